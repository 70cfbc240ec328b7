"""Headers for browsers in every response: security headers and CORS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowcall.core.http.cors import Cors
from rowcall.service.request_context.protocols import Handle, Headers, HeadersProtocol


class SecureProtocol(HeadersProtocol):
    """Adds the headers of the service in front of those of each response. If a comment sets a field of the same name,
    both are sent (browsers-1, browsers-2).
    """

    __slots__ = ()

    def _with_own_headers(self, headers: Headers) -> Headers:
        return [*self._headers, *headers]


_OF_POLICY = frozenset({"access-control-allow-origin", "access-control-allow-credentials"})
"""Headers by which a response allows an origin; a browser refuses a response with several of them."""


class CorsProtocol(HeadersProtocol):
    """Adds the headers of the CORS policy to each response. `Access-Control-Allow-Origin` and
    `Access-Control-Allow-Credentials` that it has from elsewhere, such as from the service behind a proxy or from
    PostgREST's interface, are removed."""

    __slots__ = ()

    def _with_own_headers(self, headers: Headers) -> Headers:
        return [*(field for field in headers if field[0].lower() not in _OF_POLICY), *self._headers]


def with_security_headers(handle: Handle, fields: tuple[tuple[str, str], ...]) -> Handle:
    """Wrap `handle` so that every response has these headers."""
    added = list(fields)
    return lambda scope, protocol: handle(scope, SecureProtocol(protocol, added))


def with_cors(handle: Handle, cors: Cors, closed: Callable[[str, str], bool]) -> Handle:
    """Wrap `handle` with CORS. Preflight requests are answered here and reach no endpoint.

    closed: returns for a method and path whether the endpoint there accepts only its own origin (`cors off`).
    """

    def handle_cross_origin(scope: Any, protocol: Any) -> None:
        headers = scope.headers
        origin = headers.get("origin")
        method = headers.get("access-control-request-method") if scope.method == "OPTIONS" else None
        if origin is not None and method is not None:
            fields = (
                []
                if closed(method, scope.path)
                else cors.preflight(origin, method, headers.get("access-control-request-headers"))
            )
            protocol.response_empty(204, fields)
        elif closed(scope.method, scope.path):
            handle(scope, protocol)
        else:
            handle(scope, CorsProtocol(protocol, cors.actual(origin)))

    return handle_cross_origin
