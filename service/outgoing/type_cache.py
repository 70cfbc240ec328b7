"""Cached responses to the requests of HTTP types: `cache 5 minutes` in the comment of a type (outbound-18).

Equal requests share one response, over all workers of the host, and while one is in flight the others wait for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.outgoing.reply import Reply
from rowcall.service.http_client.messages import Headers
from rowcall.service.shared_state.bounded_cache import BoundedCache
from rowcall.service.shared_state.single_flight import NotShareable

_OF_THE_TRACE = frozenset({"traceparent", "tracestate"})
"""Headers that differ for each request, and have no effect on the response (W3C Trace Context)."""


def request_key(method: str, url: str, headers: Headers, body: bytes | None) -> bytes:
    """Return a digest of everything that is sent, except headers of the trace. So callers share a cached response,
    unless what is sent for them differs, for example in a header with their id."""
    sent = ((name.lower(), value) for name, value in headers)
    lines = sorted(f"{name}: {value}" for name, value in sent if name not in _OF_THE_TRACE)
    text = "\n".join([method, url, *lines])
    return hashlib.sha256(text.encode(errors="replace") + b"\n\n" + (body or b"")).digest()


async def cached_reply(
    answers: BoundedCache, key: bytes, seconds: float | None, ask: Callable[[], Awaitable[Reply]]
) -> Reply:
    """Return the cached reply, or that of `ask`, which sends the request. If an equal request is in flight, wait for
    its reply. A failure is not stored.

    key: from `request_key`. seconds: lifetime of a successful reply; None: until the service stops.
    """
    lookup = answers.begin(key)
    result = await lookup if isinstance(lookup, Awaitable) else lookup
    if isinstance(result, Entry):
        return _reply_of(result)
    if isinstance(result, NotShareable):
        return await ask()
    try:
        reply = await ask()
    except BaseException:
        result.give_up(None)
        raise
    # Waiting requests get this reply in any case; only a successful one is stored.
    answers.keep(key, result, _entry_of(reply), seconds if reply.success else 0.0)
    return reply


def _entry_of(reply: Reply) -> Entry:
    head = orjson.dumps([reply.status, reply.headers, reply.content_type, reply.error])
    return Entry(reply.body or b"", 1, is_null=reply.body is None, head=head)


def _reply_of(entry: Entry) -> Reply:
    status, headers, content_type, error = orjson.loads(entry.head)
    return Reply(status, None if entry.is_null else entry.body, headers, content_type, error)
