"""Middleware: processing of requests before the application, chosen for each listener when a worker starts.

The check that a request names exactly one host is always there, and so are limits of the request head that the server
does not enforce itself. Each other part exists only if it is configured: further limits of the request head, redirects
to https, headers of every response, compression, the request log, correlation ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from rowcall.core.errors.problems import CONTENT_TYPE, Problem
from rowcall.core.http.compression import Compression
from rowcall.core.http.forwarded_headers import FORWARDED, is_allowed
from rowcall.service.log.request_line import RequestRecord
from rowcall.service.log.request_log import with_correlation, with_log
from rowcall.service.options.worker import HttpOptions, WorkerOptions
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.header_values import decode_header_lines
from rowcall.service.request_context.protocols import Handle, Headers, HeadersProtocol
from rowcall.service.response.browsers import with_cors, with_security_headers
from rowcall.service.sockets.listeners import Listener
from rowcall.service.worker.application import Application

HSTS = ("strict-transport-security", "max-age=2592000")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def with_middleware(
    application: Application,
    options: WorkerOptions,
    listener: Listener,
    https_port: int | None,
    add: Callable[[RequestRecord], None],
) -> Handle:
    """Return the handler of one listener's requests. The wrapper that is added last sees a request first.

    https_port: port of the https listener; None: there is none. add: stores the record of a request for the log.
    """
    http = options.http
    handle: Handle = application.handle if options.static is None else application.handle_files
    port = http.ssl.port or https_port
    plain = not listener.secure or options.forwarding.enabled  # a trusted proxy may report that its client used http
    if http.ssl.enabled and http.ssl.redirects and port is not None and plain and not listener.unix:
        handle = with_https_redirect(handle, port, options)
    handle = with_head_limits(handle, options)
    handle = with_one_host(handle, options, listener)
    if options.forwarding.enabled:
        handle = with_readable_forwarding(handle, options)
    if http.cors is not None:
        handle = with_cors(handle, http.cors, application.has_cors_off)
    # Around CORS, which answers preflight requests by itself.
    if options.request_log:
        handle = with_log(handle, add)
    if http.compression is not None:
        handle = with_response_compression(handle, http.compression, options, listener)
    if http.security_headers:
        handle = with_security_headers(handle, http.security_headers)
    if http.ssl.enabled and http.ssl.hsts and (listener.secure or options.forwarding.enabled):
        handle = with_hsts(handle, options, listener)
    if not http.server.server_header:
        # granian adds its own name if there is none, and headers cannot be removed.
        handle = with_headers(handle, [("server", "")])
    return with_correlation(handle, options.correlation_header) if options.correlation_header else handle


def with_response_compression(
    handle: Handle, compression: Compression, options: WorkerOptions, listener: Listener
) -> Handle:
    """Wrap `handle` with compression. The module of compression is imported here, because its libraries are only needed
    if compression is configured."""
    from rowcall.service.response.compression import with_compression

    return with_compression(handle, compression, secure_reader(options, listener))


def secure_reader(options: WorkerOptions, listener: Listener) -> Callable[[Any], bool]:
    """Return a function that returns whether a request came over https, to this service or to the proxy in front."""
    if not options.forwarding.enabled:
        return lambda scope: listener.secure
    read = client_reader(options.forwarding)
    return lambda scope: read(scope).scheme == "https"


def with_headers(handle: Handle, headers: Headers) -> Handle:
    """Wrap `handle` so that these headers are added to every response, behind its own. A response that has a header of
    the same name is sent with both."""
    return lambda scope, protocol: handle(scope, HeadersProtocol(protocol, headers))


def with_hsts(handle: Handle, options: WorkerOptions, listener: Listener) -> Handle:
    """Wrap `handle` so that responses to requests over https have the HSTS header, which makes browsers use https only
    (browsers-12). Requests for the local host are excepted."""
    strict = with_headers(handle, [HSTS])
    is_secure = secure_reader(options, listener)
    read = client_reader(options.forwarding)

    def handle_strictly(scope: Any, protocol: Any) -> None:
        local = without_port(read(scope).host or host_of(scope)).lower() in _LOCAL
        (strict if not local and is_secure(scope) else handle)(scope, protocol)

    return handle_strictly


def host_of(scope: Any) -> str:
    """Return the host of a request without the port; empty if the request names none."""
    return without_port(str(scope.authority or scope.headers.get("host") or ""))


def without_port(authority: str) -> str:
    """Return the host of `host:port`; a text without a port is returned as it is."""
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() else authority


def with_one_host(handle: Handle, options: WorkerOptions, listener: Listener) -> Handle:
    """Wrap `handle` so that a request without exactly one host gets 400, because a proxy and this service could
    interpret it differently (RFC 9112, 3.2).

    These requests are refused: HTTP/1.1 without the header Host; HTTP/2 that has neither `:authority` nor Host (RFC
    9113, 8.3.1); a request with several headers Host, or with one that differs from the authority; and, if allowed
    hosts are configured, a request for another host.
    """
    allowed = options.http.server.allowed_hosts

    def handle_named(scope: Any, protocol: Any) -> None:
        hosts = scope.headers.get_all("host")
        if len(hosts) != 1 and (len(hosts) > 1 or not _may_lack_host(scope)):
            detail = "the header Host is missing" if not hosts else "there are several headers Host"
        elif hosts and scope.authority and hosts[0].lower() != str(scope.authority).lower():
            detail = "the header Host names another host than the address of the request"
        elif allowed and not is_allowed(allowed, host_of(scope)):
            detail = "this service has no such host"
        else:
            handle(scope, protocol)
            return
        _refuse(protocol, scope, options, Problem(400, detail))

    return handle_named


def with_readable_forwarding(handle: Handle, options: WorkerOptions) -> Handle:
    """Wrap `handle` so that a request with forwarded headers that cannot be read gets 400. Otherwise the trusted proxy
    would count as the client, whose header it has continued.
    """

    def handle_readable(scope: Any, protocol: Any) -> None:
        try:
            for name in FORWARDED:
                decode_header_lines(scope.headers, name)
        except Problem as problem:
            _refuse(protocol, scope, options, problem)
            return
        handle(scope, protocol)

    return handle_readable


def _may_lack_host(scope: Any) -> bool:
    """Whether a request needs no header Host: HTTP/1.0 does not require it, and HTTP/2 has `:authority` in
    its place.
    """
    if scope.http_version == "1.1":
        return False
    return not scope.http_version.startswith("2") or bool(scope.authority)


def with_https_redirect(handle: Handle, https_port: int, options: WorkerOptions) -> Handle:
    """Wrap `handle` so that clients are redirected with 307 to the same path over https, unless they have used https
    already (browsers-11). A request without a host gets 400. https_port: the port in the target.
    """
    port = "" if https_port == 443 else f":{https_port}"
    read = client_reader(options.forwarding)

    def redirect(scope: Any, protocol: Any) -> None:
        client = read(scope)
        if client.scheme == "https":
            handle(scope, protocol)
            return
        host = without_port(client.host or "") or host_of(scope)
        if not host:
            _refuse(protocol, scope, options, Problem(400, "the header Host is missing"))
            return
        query = f"?{scope.query_string}" if scope.query_string else ""
        location = f"https://{host}{port}{_quote_path(scope.path)}{query}"
        protocol.response_empty(307, [("location", location), ("content-length", "0")])

    return redirect


def _quote_path(path: str) -> str:
    """Return a decoded path in the form for a URL."""
    from urllib.parse import quote

    return quote(path, safe="/:@!$&'()*+,;=~")


def with_head_limits(handle: Handle, options: WorkerOptions) -> Handle:
    """Wrap `handle` so that request heads beyond limits that are configured, or that the server does not enforce
    itself, are refused with 414 or 431. Without such limits, return `handle` itself.
    """
    http = options.http
    configured = (http.limits.line_size, http.limits.headers_size, http.limits.header_count)
    if configured == (None, None, None) and not http.unguarded_head:
        return handle

    def handle_limited(scope: Any, protocol: Any) -> None:
        problem = head_problem(scope, http)
        if problem is None:
            handle(scope, protocol)
        else:
            _refuse(protocol, scope, options, problem)

    return handle_limited


_LINE_EXTRA = len("  HTTP/1.1\r\n")
_HEADER_EXTRA = len(": \r\n")


def head_problem(scope: Any, http: HttpOptions) -> Problem | None:
    """Return the problem of a request head that is too large; None if it is within the limits."""
    line, size, count = getattr(scope, "head_sizes", None) or decoded_sizes(scope)
    if http.limits.line_size is not None and line > http.limits.line_size:
        return Problem(414, f"the request line is longer than {http.limits.line_size} bytes")
    if http.limits.header_count is not None and count > http.limits.header_count:
        return Problem(431, f"there are more than {http.limits.header_count} headers")
    if http.limits.headers_size is not None and size > http.limits.headers_size:
        return Problem(431, f"the headers are larger than {http.limits.headers_size} bytes")
    if http.unguarded_head and line + size > http.head_limit:
        return Problem(431, f"the request line and the headers are larger than {http.head_limit} bytes together")
    return None


def decoded_sizes(scope: Any) -> tuple[int, int, int]:
    """Return the sizes of a request head as `Scope.head_sizes` does, for a scope of granian.

    They are estimates, because granian does not report the head as it was sent: the path is decoded, and counts as long
    as its usual encoding; headers that are not ASCII are not counted.
    """
    target = _quote_path(scope.path)
    if scope.query_string:
        target += f"?{scope.query_string}"
    if scope.authority and scope.http_version.startswith("1"):
        target = f"{scope.scheme}://{scope.authority}{target}"
    headers = scope.headers.items()
    size = sum(len(name) + len(value) + _HEADER_EXTRA for name, value in headers)
    return len(scope.method) + len(target) + _LINE_EXTRA, size, len(headers)


def _refuse(protocol: Any, scope: Any, options: WorkerOptions, problem: Problem) -> None:
    """Respond with a problem document; over HTTP/1, the connection is closed then."""
    headers = (
        [("content-type", CONTENT_TYPE), ("connection", "close")]
        if scope.http_version.startswith("1")
        else [("content-type", CONTENT_TYPE)]
    )
    body = orjson.dumps(problem.members(with_type=options.problem_types))
    if scope.method == "HEAD":
        protocol.response_empty(problem.status, [*headers, ("content-length", str(len(body)))])
    else:
        protocol.response_bytes(problem.status, headers, body)
