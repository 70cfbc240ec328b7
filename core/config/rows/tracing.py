"""Keys of tracing with OpenTelemetry spans (issue 22)."""

from rowcall.core.config.keys import Key, flag, interval, section, text, text_map

_P = "Tracing:"

ROWS: tuple[Key, ...] = (
    section("Tracing", "The way of single requests, as spans of OpenTelemetry. Needs the extra `rowcall[tracing]`."),
    flag(_P + "Enabled", False, "Trace requests."),
    text(_P + "Endpoint", "http://localhost:4318", "Where the collector takes OTLP over HTTP; /v1/traces is added."),
    text_map(_P + "Headers", {}, "More headers for the collector, such as a token.", secret=True),
    text_map(_P + "Resource", {}, "What the collector is told about the sender, besides service.name and environment."),
    text(_P + "SampleRatio", "0.05", "Share of requests that are traced, of those that come without a decision."),
    flag(_P + "TrustCallers", True, "Trace what callers trace, and nothing else of them. Otherwise the share decides."),
    interval(_P + "Interval", "5 seconds", "How long spans are gathered before they are sent."),
    flag(_P + "ApplicationName", False, "Tell the database the trace of a sampled request as application_name."),
    flag(_P + "QueryTags", False, "Put a comment with method and route in front of each endpoint's statement."),
)
