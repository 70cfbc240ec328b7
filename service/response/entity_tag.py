"""`etag`: an answer of GET says what it is, and a client that has it already is told so with 304 (RFC 9110, 8.8.3).

The tag is made of the body as it is sent, so it is the same for kept answers and for those of a run. What is streamed
has none, for its headers leave before its end is known.
"""

from __future__ import annotations

from hashlib import blake2b

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.head import HeadProtocol
from rowcall.service.exchange.protocols import Headers, ObservedProtocol
from rowcall.service.pipeline.services import Services

_OF_BODIES = frozenset(
    {"content-type", "content-length", "content-encoding", "content-language", "content-disposition"}
)


def tag_answers(endpoint: Endpoint, _services: Services) -> Step | None:
    if not endpoint.options.entity_tag or endpoint.method != "GET" or endpoint.options.invalidates:
        return None

    def tag(exchange: Exchange) -> None:
        if type(exchange.protocol) is not HeadProtocol:
            wanted = ",".join(exchange.scope.headers.get_all("if-none-match"))
            exchange.protocol = _TaggingProtocol(exchange.protocol, wanted)

    return tag


class _TaggingProtocol(ObservedProtocol):
    __slots__ = ("_wanted",)

    def __init__(self, protocol: object, wanted: str) -> None:
        super().__init__(protocol)
        self._wanted = wanted

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        if status != 200:
            self.inner.response_bytes(status, headers, body)
            return
        mark = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        if self._wanted and _fits(self._wanted, mark):
            kept = [(name, value) for name, value in headers if name.lower() not in _OF_BODIES]
            self.inner.response_empty(304, [*kept, ("etag", mark)])
        else:
            self.inner.response_bytes(status, [*headers, ("etag", mark)], body)

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, headers, file)


def _fits(wanted: str, mark: str) -> bool:
    """Weak comparison, as RFC 9110, 13.1.2 has it."""
    return wanted.strip() == "*" or mark in (one.strip().removeprefix("W/") for one in wanted.split(","))
