"""Limits of the HTTP server."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.core.sections.declaration import integer, interval, part, section, subsection, text
from rowcall.core.sections.values import none_for_zero


def _or(default: float) -> Callable[[float | None], float]:
    """Return a conversion that replaces None and 0 by a default."""
    return lambda value: value or default


def _body_size(size: int | None) -> int:
    return 30_000_000 if size is None else size


@section("HttpServer:Limits")
class BodyLimits:
    """Limits of request bodies; times in seconds, sizes in bytes."""

    budget: int = integer(
        "MaxBufferedBodies",
        33_554_432,
        "Bytes of large bodies that a worker holds at the same time; further ones get 503. A single body may be "
        "as large as MaxRequestBodySize.",
        minimum=65_536,
        maximum=2**63 - 1,
    )
    rate: float = integer(
        "MinRequestBodyDataRate",
        240,
        "Minimum average rate of a body in bytes per second; slower ones get 408. 0: no minimum.",
        convert=float,
    )
    grace: float = interval(
        "MinRequestBodyDataRateGracePeriod", "5 seconds", "Time after which MinRequestBodyDataRate applies."
    )
    longest: float = interval(
        "RequestBodyTimeout",
        "5 minutes",
        "Maximum time for a body to arrive completely; slower ones get 408. 0: no limit.",
    )


@section("HttpServer:Limits:Http2", "HTTP/2.")
class Http2Options:
    """Options of HTTP/2; times in seconds, sizes in bytes."""

    streams: int = integer(
        "MaxStreamsPerConnection", None, "Streams of a connection; null is 100.", minimum=1, convert=_or(100)
    )
    header_table_size = integer("HeaderTableSize", None, "Accepted; no effect here.")
    sent_frame: int | None = integer(
        "MaxFrameSize", None, "Bytes of a frame's payload; null is 16384.", minimum=16_384, maximum=16_777_215
    )
    headers: int | None = integer(
        "MaxRequestHeaderFieldSize", None, "Bytes of all headers of a request; null: as for HTTP/1.1.", minimum=1
    )
    connection_window: int = integer(
        "InitialConnectionWindowSize",
        None,
        "Window of a connection; null is 1048576.",
        minimum=65_535,
        convert=_or(1_048_576),
    )
    stream_window: int = integer(
        "InitialStreamWindowSize", None, "Window of a stream; null is 786432.", minimum=65_535, convert=_or(786_432)
    )
    read_frame: int | None = integer(
        "MaxReadFrameSize", None, "Second name of MaxFrameSize.", minimum=16_384, maximum=16_777_215
    )
    ping_delay: float | None = interval(
        "KeepAlivePingDelay", None, "Idle time before a ping; null sends none.", convert=none_for_zero
    )
    ping_timeout: float = interval(
        "KeepAlivePingTimeout", None, "Time for the reply to a ping; null: 00:00:20.", convert=_or(20.0)
    )
    keep_alive_ping_policy = text("KeepAlivePingPolicy", None, "Accepted; no effect here.")

    @property
    def frame(self) -> int:
        """Largest size of a frame's payload."""
        return self.sent_frame or self.read_frame or 16_384


@section("HttpServer:Limits", "Limits of requests and connections; null: the default of the server.")
class HttpLimits:
    """Limits of requests and connections; times in seconds, sizes in bytes."""

    connections: int | None = integer(
        "MaxConcurrentConnections",
        None,
        "Maximum number of open connections of an address, divided equally among the workers; further ones wait. "
        "null: as the limit of open files allows (`ulimit -n`), after databases, streams and files have got "
        "theirs.",
        minimum=1,
    )
    max_concurrent_upgraded_connections = integer(
        "MaxConcurrentUpgradedConnections", None, "Accepted; no effect here: connections are never upgraded."
    )
    body_size: int = integer(
        "MaxRequestBodySize",
        None,
        "Maximum size of a request body in bytes; larger ones get 413. null: 30000000.",
        maximum=2**63 - 1,
        convert=_body_size,
    )
    sign_in_body_size: int = integer(
        "MaxSignInBodySize",
        65_536,
        "The same for logins and token refreshes, which are open to anonymous callers.",
        minimum=1,
    )
    form_body_size: int = integer(
        "MaxUrlEncodedBodySize",
        2_097_152,
        "The same for bodies of the type `application/x-www-form-urlencoded` whose fields the service reads; at "
        "least 65536. MaxRequestBodySize applies too.",
        minimum=65_536,
        maximum=2**63 - 1,
    )
    bodies: BodyLimits = part(BodyLimits)
    read_at_once: int | None = integer(
        "MaxRequestBufferSize",
        None,
        "Size of one read of an HTTP/1 connection in bytes; large reads make large bodies faster. At least the "
        "limits of a request head, at most 1048576. null: 262144 if uploads are enabled, else the limits of a "
        "request head.",
        minimum=1,
        maximum=2**63 - 1,
    )
    header_count: int | None = integer(
        "MaxRequestHeaderCount",
        None,
        "Maximum number of headers of a request; more get 431. null: 100, which is also the largest value.",
        minimum=1,
    )
    headers_size: int | None = integer(
        "MaxRequestHeadersTotalSize",
        None,
        "Maximum size of all headers in bytes; more get 431. null: 32768, plus what the request line leaves of "
        "its limit.",
        minimum=1,
    )
    line_size: int | None = integer(
        "MaxRequestLineSize",
        None,
        "Maximum size of the request line in bytes; more get 414. null: 8192, plus what the headers leave of "
        "their limit.",
        minimum=1,
    )
    response_buffer: int | None = integer(
        "MaxResponseBufferSize",
        None,
        "Bytes of a response that are buffered for each HTTP/2 stream; null: 409600.",
        minimum=4096,
        maximum=4_294_967_295,
    )
    keep_alive: float | None = interval(
        "KeepAliveTimeout",
        None,
        "Time for which an idle connection stays open. If RequestHeadersTimeout is set, it applies to both. 0: "
        "close after each response.",
    )
    header_timeout: float | None = interval(
        "RequestHeadersTimeout",
        None,
        "Time for the headers of a request to arrive; then the connection is closed. null: KeepAliveTimeout, or "
        "00:00:30.",
    )
    http2: Http2Options = part(Http2Options)
    http3 = subsection("Http3", "HTTP/3, which this server does not support; its keys are accepted.")
    http3_max_request_header_field_size = integer(
        "Http3:MaxRequestHeaderFieldSize", None, "Bytes of a header field; no effect here."
    )
