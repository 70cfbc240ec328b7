"""Keys of tracing with OpenTelemetry spans (issue 22)."""

from rowcall.core.sections.keys import Key, flag, interval, section, text, text_map

_P = "Tracing:"

ROWS: tuple[Key, ...] = (
    section("Tracing", "Tracing of requests with OpenTelemetry spans. Needs the extra `rowcall[tracing]`."),
    flag(_P + "Enabled", False, "Trace requests."),
    text(_P + "Endpoint", "http://localhost:4318", "URL of the collector (OTLP over HTTP); /v1/traces is appended."),
    text_map(_P + "Headers", {}, "Additional headers for the collector, such as a token.", secret=True),
    text_map(_P + "Resource", {}, "Attributes of the sender for the collector, besides service.name and environment."),
    text(
        _P + "SampleRatio", "0.05", "Share of traced requests, among those without a sampling decision of the caller."
    ),
    flag(
        _P + "TrustCallers",
        True,
        "Follow the sampling decision of the caller. false: SampleRatio decides for all requests.",
    ),
    interval(_P + "Interval", "5 seconds", "Time for which spans are collected before they are sent."),
    flag(_P + "ApplicationName", False, "Set application_name to the trace of a sampled request."),
    flag(_P + "QueryTags", False, "Prefix each endpoint's statement with a comment that contains method and route."),
)
