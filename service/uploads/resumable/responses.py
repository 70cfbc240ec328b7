"""Responses to tus clients, after the last chunk has arrived and the routine has run."""

from __future__ import annotations

from typing import Any

from rowcall.service.request_context.protocols import Headers, HeadersProtocol, find_wrapper

_OF_BODIES = frozenset({"content-type", "content-length", "content-encoding", "content-language"})
RETURNED = "return=representation"
"""Value of the header Prefer (RFC 7240, 4.2) with which the client requests the response of the routine."""


class TusResponseProtocol(HeadersProtocol):
    """Turns the response of a successful routine into that of the tus protocol: without a body, unless the client has
    requested it. Other responses are unchanged.

    headers, status: of a successful response. returns: the client has requested the body. ids: of the complete uploads,
    in their order, which together are one file. file: its name and content type. final: id of a concatenated upload,
    after which its parts are not needed any more; None: the upload has no parts.
    """

    __slots__ = ("_returns", "_status", "content_type", "final", "ids", "name")

    def __init__(
        self,
        protocol: Any,
        headers: Headers,
        status: int,
        ids: tuple[str, ...],
        file: tuple[str, str],
        *,
        final: str | None,
        returns: bool,
    ) -> None:
        super().__init__(protocol, headers)
        self._status = status
        self._returns = returns
        self.ids = ids
        self.name, self.content_type = file
        self.final = final

    def answer(self) -> None:
        """Send the response without running the routine."""
        self.response_empty(self._status, [])

    def response_empty(self, status: int, headers: Headers) -> None:
        if status >= 300:
            self.inner.response_empty(status, headers)
            return
        passed_headers = [(name, value) for name, value in headers if name.lower() not in _OF_BODIES]
        self.inner.response_empty(self._status, self._with_own_headers(passed_headers))

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        if status >= 300:
            self.inner.response_bytes(status, headers, body)
        elif self._returns:
            response_headers = [*self._with_own_headers(headers), ("preference-applied", RETURNED)]
            self.inner.response_bytes(status if self._status == 204 else self._status, response_headers, body)
        else:
            self.response_empty(status, headers)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.response_bytes(status, headers, body.encode())


def find_tus_protocol(protocol: Any) -> TusResponseProtocol | None:
    """Return the `TusResponseProtocol` among the nested protocols, or None."""
    return find_wrapper(protocol, TusResponseProtocol)
