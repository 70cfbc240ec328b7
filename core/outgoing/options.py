"""What the configuration says about requests that go out, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.core.data.record import Record
from rowcall.core.outgoing.guard import Guard


@dataclass(frozen=True, slots=True)
class ClientOptions(Record):
    """The one client of a worker. Times in seconds, sizes in bytes."""

    guard: Guard = field(default_factory=Guard)
    """For hosts that come from values and for redirects."""
    connections: int = 256
    """Most open ones to one host, of each worker; more requests wait."""
    queue: int = 1024
    """Most requests that wait for a connection to one host."""
    idle: float = 60.0
    """How long an unused connection is kept."""
    lifetime: float = 300.0
    """How long a connection is used: its host is resolved again by the next one."""
    max_response: int | None = 67_108_864
    """Of an answer that is kept in memory as a whole."""
    ca_file: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    http2: bool = True
    follow: int = 50
    """Redirects."""
    breaker_failures: int = 0
    """In a row, after which a server is left alone for `breaker_seconds`; 0: never."""
    breaker_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class TypeOptions(Record):
    """`HttpClientOptions`: names of the attributes that receive the parts of an answer (outbound-1)."""

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
        """Name of an attribute → part of the answer."""
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
    """Credentials that are meant for this service go on too."""
    forwarded_headers: bool = True
    """`X-Forwarded-*` and `Forwarded` are written."""
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
    """Characters; 0: no limit."""

    @property
    def parameters(self) -> dict[str, str]:
        """Lower-cased name of a parameter → part of the answer."""
        parts = ("status_code", "body", "headers", "content_type", "success", "error_message")
        return {getattr(self, part).lower(): part for part in parts}


@dataclass(frozen=True, slots=True)
class OutboundOptions(Record):
    client: ClientOptions = field(default_factory=ClientOptions)
    types: TypeOptions = field(default_factory=TypeOptions)
    proxy: ProxyOptions = field(default_factory=ProxyOptions)
