"""Options of outgoing requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.core.data.record import Record
from rowcall.core.outgoing.guard import Guard


@dataclass(frozen=True, slots=True)
class ClientOptions(Record):
    """Options of the HTTP client of a worker. Times in seconds, sizes in bytes."""

    guard: Guard = field(default_factory=Guard)
    """Applies to hosts that come from values, and to redirects."""
    connections: int = 256
    """Maximum number of open connections to one host, of each worker; further requests wait."""
    queue: int = 1024
    """Maximum number of requests that wait for a connection to one host."""
    idle: float = 60.0
    """Time after which an unused connection is closed."""
    lifetime: float = 300.0
    """Time for which a connection is used: the next one resolves its host again."""
    max_response: int | None = 67_108_864
    """Maximum size of a response that is held in memory as a whole."""
    ca_file: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    http2: bool = True
    follow: int = 50
    """Maximum number of redirects."""
    breaker_failures: int = 0
    """Consecutive failures after which no request is sent to a server for `breaker_seconds`; 0: never."""
    breaker_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class TypeOptions(Record):
    """`HttpClientOptions`: names of the attributes that receive the parts of a response (outbound-1)."""

    enabled: bool = False
    status_code: str = "status_code"
    body: str = "body"
    headers: str = "headers"
    content_type: str = "content_type"
    success: str = "success"
    error_message: str = "error_message"
    caches: bool = True
    max_entries: int = 10_000
    prune: float = 60.0

    @property
    def fields(self) -> dict[str, str]:
        """Part of the response by the name of an attribute."""
        parts = ("status_code", "body", "headers", "content_type", "success", "error_message")
        return {getattr(self, part): part for part in parts}


@dataclass(frozen=True, slots=True)
class ProxyOptions(Record):
    """`ProxyOptions` (proxies-1, proxies-2). Header names in lower case."""

    enabled: bool = False
    host: str | None = None
    timeout: float = 30.0
    forward_headers: bool = True
    forward_credentials: bool = False
    """Whether credentials for this service are forwarded too."""
    forwarded_headers: bool = True
    """Whether `X-Forwarded-*` and `Forwarded` are written."""
    exclude_headers: frozenset[str] = frozenset({"host", "content-length", "transfer-encoding"})
    forward_response_headers: bool = True
    exclude_response_headers: frozenset[str] = frozenset({"transfer-encoding", "content-length"})
    status_code: str = "_proxy_status_code"
    body: str = "_proxy_body"
    headers: str = "_proxy_headers"
    content_type: str = "_proxy_content_type"
    success: str = "_proxy_success"
    error_message: str = "_proxy_error_message"
    forward_uploads: bool = False
    max_query_value: int = 2048
    """Maximum length in characters; 0: no limit."""

    @property
    def parameters(self) -> dict[str, str]:
        """Part of the response by the lower-case name of a parameter."""
        parts = ("status_code", "body", "headers", "content_type", "success", "error_message")
        return {getattr(self, part).lower(): part for part in parts}


@dataclass(frozen=True, slots=True)
class OutboundOptions(Record):
    client: ClientOptions = field(default_factory=ClientOptions)
    types: TypeOptions = field(default_factory=TypeOptions)
    proxy: ProxyOptions = field(default_factory=ProxyOptions)
