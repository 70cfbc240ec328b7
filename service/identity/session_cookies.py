"""Responses that set cookies, such as the renewed one of a session, whatever else they contain."""

from __future__ import annotations

from typing import Any

from rowcall.service.request_context.protocols import Headers, HeadersProtocol, find_wrapper
from rowcall.service.request_context.request_context import RequestContext

UNCACHED: Headers = [
    ("cache-control", "no-cache,no-store"),
    ("pragma", "no-cache"),
    ("expires", "Thu, 01 Jan 1970 00:00:00 GMT"),
]
"""Headers of every response that begins, renews or ends a session by cookie."""


def cookie_headers(cookies: list[str]) -> Headers:
    """Return Set-Cookie headers for the cookies, with headers against caching."""
    return [*(("set-cookie", cookie) for cookie in cookies), *UNCACHED]


def with_fields(headers: Headers, fields: Headers) -> Headers:
    """Return `headers` followed by `fields`. Headers that occur in both are taken from `fields`, except cookies.
    fields: with names in lower case."""
    replaced = {name for name, _ in fields if name != "set-cookie"}
    return [*(field for field in headers if field[0].lower() not in replaced), *fields]


class CookieProtocol(HeadersProtocol):
    """Adds Set-Cookie headers with the values `cookies` to the response, and headers against caching."""

    __slots__ = ()

    def __init__(self, protocol: Any, cookies: list[str]) -> None:
        super().__init__(protocol, cookie_headers(cookies))

    def _with_own_headers(self, headers: Headers) -> Headers:
        return with_fields(headers, self._headers)


class RenewingProtocol(CookieProtocol):
    """Renews the session of the request by its `cookies`, unless this is cancelled. A request has at most one."""

    __slots__ = ()

    def cancel(self) -> None:
        """Send the response without these cookies."""
        self._headers = []


def cancel_renewal(context: RequestContext) -> None:
    """Send the response without a renewal of the session, because the response replaces or ends it, or because it has
    ended. Behind the new cookie, the renewed one would take its place in the browser."""
    renewal = find_wrapper(context.protocol, RenewingProtocol)
    if renewal is not None:
        renewal.cancel()
