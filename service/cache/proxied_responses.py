"""Cached responses of other services: status, headers and body, as they were forwarded (caching-18).

The step that forwards the request sends the response itself, so its response is captured at the protocol.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.plan import CachePlan
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.cache.keys import join_with_lengths, key_of, reads_body
from rowcall.service.cache.response_cache import announce, lifetime_of, skips_of, status_reporter
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.head_protocol import is_head
from rowcall.service.request_context.protocols import Headers, ObservedProtocol
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import comment_fields
from rowcall.service.shared_state.single_flight import CacheLease, LookupResult, NotShareable, release_unused_lease

_PARTIAL = ("range", "if-range", "if-none-match", "if-modified-since", "if-match", "if-unmodified-since")
"""Headers of requests whose response may be a part of the resource, or state that it has not changed (RFC 9110, 13 and
14).
"""

_PLACE = ":authority"
"""Name, among those of headers, of the scheme and host that the client has requested. The other service gets them in
`X-Forwarded-*`, so its response may differ by them, such as in links."""

PlaceOf = Callable[[Any], str]
"""Returns scheme and host that the client has requested, given the scope of a request."""

_OF_ONE_REQUEST = frozenset({"set-cookie", "server-timing"})
"""Headers that are not stored: cookies belong to one caller, and times to one request."""

_IN_KEY = frozenset({"", "authorization", "cookie"})
"""Words of `Vary` that need no key of their own: these headers are part of every key."""


def with_proxy_cache(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan,
    forward: Step,
    log_hit: Step | None,
    count: Callable[[str], None] | None = None,
) -> tuple[Step, ...]:
    """Return `forward` with the lookup in front. `forward` sends the response; no step follows.

    log_hit: logs a cached response; None: it is not logged. count: called with `hit`, `miss` or `bypass`; None: nothing
    is counted.
    """
    store = services.caches.of(plan.place)
    time_limit = services.options.outbound.proxy.timeout
    key_for = key_of(endpoint, plan, services)
    seconds_of = lifetime_of(endpoint, plan)
    skips = skips_of(endpoint, plan)
    limit = services.options.http.limits.body_size
    largest = services.caches.largest(plan.place)
    needs_body = reads_body(endpoint, plan)
    report = status_reporter(services.options.cache.status_header, count)
    place_of = _place_reader(services)
    always = frozenset({_PLACE}) if services.options.outbound.proxy.forwarded_headers else frozenset[str]()
    # Upstream values of `Vary` are added to those of the comment, so that this header is stored.
    of_comment = frozenset(name.lower() for name, _ in endpoint.options.headers) - {"vary"}
    announced = announce(endpoint, plan) if plan.tags or plan.further_tags else None

    def report_outcome(context: RequestContext, word: str) -> None:
        if report is not None:
            report(context, word)

    def give(context: RequestContext, entry: Entry) -> None:
        report_outcome(context, "hit")
        if log_hit is not None:
            log_hit(context)
        status, headers, *_ = orjson.loads(entry.head)
        # Header lines of the comment have the values of this request (caching-17).
        fields = [(name, value) for name, value in headers if name.lower() not in of_comment]
        if of_comment:
            fields += [item for item in comment_fields(context) if item[0] in of_comment]
        if status in (204, 205, 304):
            context.protocol.response_empty(status, fields)
        else:
            context.protocol.response_bytes(status, fields, entry.body)
        context.answered = True
        context.follow(())

    async def find(context: RequestContext, key: bytes) -> LookupResult:
        result = store.begin(key, time_limit)
        if type(result) is not Entry and isinstance(result, Awaitable):
            result = await result
        # A response that varies by headers has a key for each combination of their values.
        if type(result) is Entry and (varied_key := _vary_key(result, context, place_of)) is not None:
            return await find(context, varied_key)
        return result

    async def look_up(context: RequestContext) -> None:
        if needs_body and context.body is None:
            context.body = await read_body(context.scope, context.protocol, limit)
        key = None if skips(context) else key_for(context)
        if key is None:
            report_outcome(context, "bypass")
            return
        result = await find(context, key)
        if type(result) is Entry:
            give(context, result)
            return
        if isinstance(result, NotShareable | Entry):
            report_outcome(context, "bypass")
            return
        if _asks_for_less(context):
            # Its response is incomplete, so the next request computes the one to store.
            result.give_up(None)
            report_outcome(context, "bypass")
            return
        report_outcome(context, "miss")
        context.lease = result
        context.at_end(release_unused_lease)
        if announced is not None and (waiting := announced(context)) is not None:
            await waiting
        context.protocol = _CacheWriter(context, seconds_of(context), largest, always, place_of)

    return (look_up, forward)


def _asks_for_less(context: RequestContext) -> bool:
    """Whether the request asks for less than a complete response, so that its response cannot be stored."""
    headers = context.scope.headers
    return is_head(context) or any(headers.get(name) is not None for name in _PARTIAL)


def _place_reader(services: Services) -> PlaceOf:
    """Return the function that reads the scheme and host that the client has requested, in lower case: `https://host`."""
    read = client_reader(services.options.forwarding)

    def place_of(scope: Any) -> str:
        client = read(scope)
        return f"{client.scheme}://{client.host or scope.authority or scope.headers.get('host') or ''}".lower()

    return place_of


def _vary_key(entry: Entry, context: RequestContext, place_of: PlaceOf) -> bytes | None:
    """Return the key under which the response to this request is cached, if `entry` was cached for a request with other
    values of the headers in `Vary` or of the requested host. None: the values are equal, so `entry` is the response
    (RFC 9111, 4.1).

    The key contains a random number from `entry`: if `entry` is invalidated, all responses with such keys become
    unreachable.
    """
    _status, _headers, *varies = orjson.loads(entry.head)
    if not varies:
        return None
    names, number, values = varies
    own = _values(context, names, place_of)
    return None if own == values else hashlib.sha256(join_with_lengths(number, own)).hexdigest().encode()


def _values(context: RequestContext, names: list[str], place_of: PlaceOf) -> str:
    """Return a digest of the values that the request has for these names: of headers, or of scheme and host for
    `:authority`."""
    scope = context.scope
    values = (place_of(scope) if name == _PLACE else ", ".join(scope.headers.get_all(name)) for name in names)
    return hashlib.sha256(join_with_lengths(*values)).hexdigest()


def _varies_by(headers: Headers, always: frozenset[str]) -> list[str]:
    """Return the names of the request headers on which a response depends (RFC 9110, 12.5.5), with `always`, sorted and
    in lower case, except those that are in every key. `*`: it depends on more than headers.
    """
    names = {
        word.strip() for name, value in headers if name.lower() == "vary" for word in value.lower().split(",")
    } - _IN_KEY
    if any(name.lower() == "content-encoding" for name, _ in headers):
        names.add("accept-encoding")
    return sorted(names | always)


def _are_events(headers: Headers) -> bool:
    """Return whether the body is an event stream. Such responses are not stored, even if one arrived complete."""
    types = (value for name, value in headers if name.lower() == "content-type")
    return any(value.lower().startswith("text/event-stream") for value in types)


class _CacheWriter(ObservedProtocol):
    """Stores a response in the cache after it was sent in one piece, with the lease of the request. A response that
    could not be sent, is streamed, is an event stream or depends on more than headers is not stored; then each waiting
    request computes its own.

    room: maximum size in bytes of a response that is buffered to be sent in one piece. seconds: lifetime; None:
    unlimited. always: names of request headers on which each response depends, in addition to those of its `Vary`.
    """

    __slots__ = ("_always", "_context", "_place_of", "_seconds", "room")

    def __init__(
        self, context: RequestContext, seconds: float | None, room: int, always: frozenset[str], place_of: PlaceOf
    ) -> None:
        super().__init__(context.protocol)
        self._always = always
        self._place_of = place_of
        self._context = context
        self._seconds = seconds
        self.room = room

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)
        self._keep(status, headers, b"")

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, headers, body)
        self._keep(status, headers, body)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        lease: CacheLease | None = self._context.lease
        if lease is not None:
            self._context.lease = None
            lease.release_unshared()
        self.inner.response_file(status, headers, file)

    def _keep(self, status: int, headers: Headers, body: bytes) -> None:
        """End the lease of the request, if it has one, and store the response unless it cannot be shared."""
        lease: CacheLease | None = self._context.lease
        if lease is None:
            return
        self._context.lease = None
        names = _varies_by(headers, self._always)
        if "*" in names or _are_events(headers):
            lease.release_unshared()
            return
        # Responses of any status are stored: if the other service does not respond, the request fails and no lease gets
        # here (`release_unused_lease`).
        fields = [(name, value) for name, value in headers if name.lower() not in _OF_ONE_REQUEST]
        head: list[Any] = [status, fields]
        if names:
            head += [names, secrets.token_hex(16), _values(self._context, names, self._place_of)]
        lease.keep(Entry(body, 1, head=orjson.dumps(head), tags=lease.tags), self._seconds)
