"""What a client of tus is answered when its last piece has arrived and the routine has run."""

from __future__ import annotations

from typing import Any

from rowcall.service.request_context.protocols import Headers, HeadersProtocol

_OF_BODIES = frozenset({"content-type", "content-length", "content-encoding", "content-language"})
RETURNED = "return=representation"
"""Of the header Prefer (RFC 7240, 4.2): the routine's answer is wanted."""


class Completed(HeadersProtocol):
    """The answer of a routine that has succeeded becomes that of the protocol: without a body, unless the client has
    asked for it. Everything else goes out as it is.

    ids: of the files that are complete, in their order; they are one file together. name, content_type: of that file.
    final: it has been put together; the parts are of no use any more.
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
        """There is nothing more to run."""
        self.response_empty(self._status, [])

    def response_empty(self, status: int, headers: Headers) -> None:
        if status >= 300:
            self.inner.response_empty(status, headers)
            return
        values = [(name, value) for name, value in headers if name.lower() not in _OF_BODIES]
        self.inner.response_empty(self._status, self._joined(values))

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        if status >= 300:
            self.inner.response_bytes(status, headers, body)
        elif self._returns:
            result = [*self._joined(headers), ("preference-applied", RETURNED)]
            self.inner.response_bytes(status if self._status == 204 else self._status, result, body)
        else:
            self.response_empty(status, headers)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.response_bytes(status, headers, body.encode())


def completed(protocol: Any) -> Completed | None:
    """The one among the protocols that stand one in front of the other."""
    while protocol is not None and type(protocol) is not Completed:
        protocol = getattr(protocol, "inner", None)
    return protocol
