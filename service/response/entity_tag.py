"""`etag`: responses to GET have an entity tag, and a client that has the response already gets 304 (RFC 9110, 8.8.3).

The tag is a digest of the body, so it is the same for cached and computed responses, for GET and for HEAD. It is weak:
a compressed response is the same with other bytes. Streamed responses have no tag, as their headers are sent before the
end is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import Headers, ObservedProtocol
from rowcall.service.request_context.request_context import RequestContext, Step

Tag = Callable[[int, Headers, bytes], tuple[int, Headers]]
"""Status, headers and body → status and headers."""

_OF_BODIES = frozenset(
    {"content-type", "content-length", "content-encoding", "content-language", "content-disposition"}
)
"""Headers that a response with status 304 does not have."""


def add_entity_tag(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step after which responses have an entity tag, or None if the endpoint sends none."""
    if not endpoint.options.entity_tag or endpoint.method != "GET" or endpoint.options.invalidates:
        return None

    def tag(context: RequestContext) -> None:
        headers = ",".join(context.scope.headers.get_all("if-none-match"))
        context.protocol = TaggedProtocol(context.protocol, partial(_with_entity_tag, headers))

    return tag


def _with_entity_tag(tags: str, status: int, headers: Headers, body: bytes) -> tuple[int, Headers]:
    """Return status and headers of the response with its tag; if the client has it, 304 without the headers of
    `_OF_BODIES`. A status other than 200 gets no tag, and a response that has one, such as that of another service,
    retains it. tags: value of `If-None-Match`; may be empty."""
    if status != 200:
        return status, headers
    mark = next((value for name, value in headers if name.lower() == "etag"), None)
    if mark is None:
        mark = f'W/"{blake2b(body, digest_size=12).hexdigest()}"'
        headers = [*headers, ("etag", mark)]
    if tags and _contains_tag(tags, mark):
        return 304, [(name, value) for name, value in headers if name.lower() not in _OF_BODIES]
    return status, headers


class TaggedProtocol(ObservedProtocol):
    """Adds an entity tag to responses with a complete body. tag: status, headers and body → status and headers, with
    status 304 if the client has this response.
    """

    __slots__ = ("_tag",)

    def __init__(self, protocol: object, tag: Tag) -> None:
        super().__init__(protocol)
        self._tag = tag

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        status, headers = self._tag(status, headers, body)
        if status == 304:
            self.inner.response_empty(304, headers)
        else:
            self.inner.response_bytes(status, headers, body)


def _contains_tag(if_none_match: str, mark: str) -> bool:
    """Return whether the value of `If-None-Match` is `*` or contains the tag `mark`, by weak comparison (RFC 9110,
    13.1.2).
    """
    opaque = mark.removeprefix("W/")
    return if_none_match.strip() == "*" or opaque in (
        item.strip().removeprefix("W/") for item in if_none_match.split(",")
    )
