"""Options of tracing with OpenTelemetry spans."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.sections.declaration import flag, interval, part, section, text, text_map
from rowcall.core.sections.values import at_least, without_empty


def _address(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"{text!r} is no address such as http://localhost:4318")
    return text


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise ValueError(f"{text!r} is no share between 0 and 1, such as 0.05")
    return ratio


@section("Tracing", switch="QueryTags")
class QueryTags:
    query_tags = flag(
        "QueryTags", False, "Prefix each endpoint's statement with a comment that contains method and route."
    )


@section("Tracing", "Tracing of requests with OpenTelemetry spans. Needs the extra `rowcall[tracing]`.")
class TracingOptions:
    """Options of tracing with OpenTelemetry spans."""

    enabled: bool = flag("Enabled", False, "Trace requests.")
    endpoint: str = text(
        "Endpoint",
        "http://localhost:4318",
        "URL of the collector (OTLP over HTTP); /v1/traces is appended.",
        convert=_address,
    )
    headers: Mapping[str, str] = text_map(
        "Headers", {}, "Additional headers for the collector, such as a token.", secret=True, convert=without_empty
    )
    resource: Mapping[str, str] = text_map(
        "Resource",
        {},
        "Attributes of the sender for the collector, besides service.name and environment.",
        convert=without_empty,
    )
    ratio: float = text(
        "SampleRatio",
        "0.05",
        "Share of traced requests, among those without a sampling decision of the caller.",
        convert=_ratio,
    )
    trusts: bool = flag(
        "TrustCallers", True, "Follow the sampling decision of the caller. false: SampleRatio decides for all requests."
    )
    delay: float = interval(
        "Interval", "5 seconds", "Time for which spans are collected before they are sent.", convert=at_least(0.05)
    )
    names: bool = flag("ApplicationName", False, "Set application_name to the trace of a sampled request.")
    stored: int = 0
    """Number of spans that a worker stores for the console; 0 without it."""
    query_tags = part(QueryTags)
