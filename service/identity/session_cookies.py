"""Responses that renew the session cookie, whatever else they contain."""

from __future__ import annotations

from typing import Any

from rowcall.service.request_context.protocols import ObservedProtocol

Headers = list[tuple[str, str]]

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
    """Return `headers` followed by `fields`. Headers that occur in both are taken from `fields`, except cookies."""
    replaced = {name for name, _ in fields if name != "set-cookie"}
    return [*(field for field in headers if field[0].lower() not in replaced), *fields]


class RenewingProtocol(ObservedProtocol):
    """Adds Set-Cookie headers with the values `cookies` to the response, and headers against caching."""

    __slots__ = ("_cookies",)

    def __init__(self, protocol: Any, cookies: list[str]) -> None:
        super().__init__(protocol)
        self._cookies = cookies

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, self._with_cookies(headers))

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, self._with_cookies(headers), body)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, self._with_cookies(headers), file)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, self._with_cookies(headers), file, start, end)

    def response_stream(self, status: int, headers: Headers) -> Any:
        return self.inner.response_stream(status, self._with_cookies(headers))

    def _with_cookies(self, headers: Headers) -> Headers:
        return with_fields(headers, cookie_headers(self._cookies))
