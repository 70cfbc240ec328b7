"""Options of outgoing requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.core.data.record import Record
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.outgoing.guard import Guard
from rowcall.core.sections.declaration import flag, integer, interval, part, section, text, texts
from rowcall.core.sections.values import lower_case_texts
from rowcall.core.text.interval import parse_interval


@section("Service:HttpClientOptions")
class ClientOptions(Record):
    """Options of the HTTP client of a worker. Times in seconds, sizes in bytes."""

    guard: Guard = part(Guard)
    connections: int = integer(
        "MaxConnectionsPerHost",
        256,
        "Maximum number of connections of a worker to one host. Further requests wait.",
        minimum=1,
    )
    queue: int = integer(
        "MaxWaitingPerHost",
        1024,
        "Maximum number of requests that wait for a connection to one host; further ones fail at once.",
    )
    idle: float = interval("ConnectionIdleTimeout", "1 minute", "Time after which an unused connection is closed.")
    lifetime: float = interval(
        "ConnectionLifetime", "5 minutes", "Time after which a connection is replaced, and its host resolved again."
    )
    max_response: int | None = integer(
        "MaxResponseBytes",
        67_108_864,
        "Maximum size of a response for a routine, which is held in memory; null: no limit. Pass-through has no limit.",
        nullable=True,
        minimum=1,
    )
    breaker_failures: int = integer(
        "CircuitBreakerFailures",
        0,
        "Consecutive failures (no response, or 502, 503, 504) after which the circuit breaker of a host opens. "
        "0: never.",
    )
    breaker_seconds: float = interval(
        "CircuitBreakerDuration",
        "10 seconds",
        "Time for which no requests are sent to the host. Proxies respond with 503 and `Retry-After`.",
    )
    http2: bool = flag("Http2", True, "Use HTTP/2 with servers that offer it over TLS.")
    ca_file: str | None = text(
        "CaFile", None, "File with certificates of authorities to trust besides those of the system."
    )
    certificate: str | None = text(
        "ClientCertificate",
        None,
        "File with a client certificate, and optionally its key, for servers that request one. A host that a value of "
        "a request or a redirect selects gets it only if `AllowedHosts` has the host.",
    )
    certificate_key: str | None = text("ClientCertificateKey", None, "File with the key of that certificate.")
    follow: int = 50
    """Maximum number of redirects."""


@section(
    "Service:HttpClientOptions",
    "HTTP types (composite types that represent outgoing requests), and the HTTP client of all outgoing requests.",
)
class TypeOptions(Record):
    """`HttpClientOptions`: names of the attributes that receive the parts of a response (outbound-1)."""

    enabled: bool = flag("Enabled", False, "Send the requests of HTTP types.")
    status_code: str = text("ResponseStatusCodeField", "status_code", "Attribute that receives the status.")
    body: str = text("ResponseBodyField", "body", "Attribute that receives the body.")
    headers: str = text("ResponseHeadersField", "headers", "Attribute that receives the headers.")
    content_type: str = text("ResponseContentTypeField", "content_type", "Attribute that receives the content type.")
    success: str = text("ResponseSuccessField", "success", "Attribute that receives whether the request succeeded.")
    error_message: str = text(
        "ResponseErrorMessageField", "error_message", "Attribute that receives the reason of a failure."
    )
    caches: bool = flag("CacheEnabled", True, "Cache responses if the type requests it.")
    max_entries: int = integer("MaxCacheEntries", 10_000, "Maximum number of cached responses.")
    prune: float = integer(
        "CachePruneIntervalSeconds", 60, "Seconds between removals of expired responses.", minimum=1, convert=float
    )

    @property
    def fields(self) -> dict[str, str]:
        """Name of an attribute → the part of the response that it receives."""
        parts = ("status_code", "body", "headers", "content_type", "success", "error_message")
        return {getattr(self, part): part for part in parts}


FALLBACK_TIMEOUT = 30.0
"""Seconds that are used instead of an invalid timeout of proxying (proxies-1)."""


def _host(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    if text.startswith("/"):
        return text
    try:
        read_address(text)
    except BadUrlError as error:
        raise ValueError(str(error)) from None
    return text.strip()


@section("Service:ProxyOptions", "Proxying: endpoints that forward requests to another server.")
class ProxyOptions(Record):
    """`ProxyOptions` (proxies-1, proxies-2). Header names in lower case."""

    enabled: bool = flag("Enabled", False, "Enable the annotations of proxying.")
    host: str | None = text("Host", None, "Server for annotations that name none.", convert=_host)
    default_timeout: str | None = text(
        "DefaultTimeout",
        "00:00:30",
        "Timeout of the other server: an interval. null or an invalid interval: 30 seconds.",
        nullable=True,
    )
    forward_headers: bool = flag("ForwardHeaders", True, "Forward the headers of the request.")
    forward_credentials: bool = flag(
        "ForwardCredentials",
        False,
        "Forward credentials of the caller for this service: session cookies, API key, bearer tokens, Basic passwords.",
    )
    forwarded_headers: bool = flag(
        "SendForwardedHeaders",
        True,
        "Send X-Forwarded-For, -Proto, -Host and Forwarded about the client. Those of the client are not forwarded.",
    )
    exclude_headers: frozenset[str] = texts(
        "ExcludeHeaders",
        ("Host", "Content-Length", "Transfer-Encoding"),
        "Request headers that are not forwarded.",
        convert=lower_case_texts,
    )
    forward_response_headers: bool = flag("ForwardResponseHeaders", True, "Forward the headers of the response.")
    exclude_response_headers: frozenset[str] = texts(
        "ExcludeResponseHeaders",
        ("Transfer-Encoding", "Content-Length"),
        "Response headers that are not forwarded.",
        convert=lower_case_texts,
    )
    status_code: str = text(
        "ResponseStatusCodeParameter", "_proxy_status_code", "Parameter of the routine that receives the status."
    )
    body: str = text("ResponseBodyParameter", "_proxy_body", "Parameter of the routine that receives the body.")
    headers: str = text(
        "ResponseHeadersParameter", "_proxy_headers", "Parameter of the routine that receives the headers."
    )
    content_type: str = text(
        "ResponseContentTypeParameter",
        "_proxy_content_type",
        "Parameter of the routine that receives the content type.",
    )
    success: str = text(
        "ResponseSuccessParameter",
        "_proxy_success",
        "Parameter of the routine that receives whether the request succeeded.",
    )
    error_message: str = text(
        "ResponseErrorMessageParameter",
        "_proxy_error_message",
        "Parameter of the routine that receives the reason of a failure.",
    )
    forward_uploads: bool = flag("ForwardUploadContent", False, "Forward uploads unchanged.")
    max_query_value: int = integer(
        "MaxForwardedQueryParamLength",
        2048,
        "Maximum length of an injected value in the other server's query string. 0 or less: no limit.",
        minimum=-(2**31),
    )

    timeout: float = field(init=False, default=FALLBACK_TIMEOUT)
    """Seconds."""

    def __post_init__(self) -> None:
        seconds = parse_interval(self.default_timeout or "")
        object.__setattr__(self, "timeout", FALLBACK_TIMEOUT if seconds is None else seconds)

    @property
    def parameters(self) -> dict[str, str]:
        """Name of a parameter in lower case → the part of the response that it receives."""
        parts = ("status_code", "body", "headers", "content_type", "success", "error_message")
        return {getattr(self, part).lower(): part for part in parts}


@dataclass(frozen=True, slots=True)
class OutboundOptions(Record):
    """All options of outgoing requests."""

    client: ClientOptions = field(default_factory=ClientOptions)
    types: TypeOptions = field(default_factory=TypeOptions)
    proxy: ProxyOptions = field(default_factory=ProxyOptions)
