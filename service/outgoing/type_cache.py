"""Answers to the requests of HTTP types that are kept: `cache 5 minutes` in the comment of a type (outbound-18).

Equal requests share one answer, over all workers of the host, and while one is under way the others wait for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.outgoing.reply import Reply
from rowcall.service.http_client.messages import Headers
from rowcall.service.shared_state.bounded_cache import BoundedCache
from rowcall.service.shared_state.single_flight import NOT_SHARED

_OF_THE_TRACE = frozenset({"traceparent", "tracestate"})
"""New in each request, and without a say in the answer (W3C Trace Context)."""


def request_key(method: str, url: str, headers: Headers, body: bytes | None) -> bytes:
    """Of everything that is sent; who is calling is part of it only where a value says so."""
    sent = ((name.lower(), value) for name, value in headers)
    lines = sorted(f"{name}: {value}" for name, value in sent if name not in _OF_THE_TRACE)
    text = "\n".join([method, url, *lines])
    return hashlib.sha256(text.encode(errors="replace") + b"\n\n" + (body or b"")).digest()


async def kept_reply(
    answers: BoundedCache, key: bytes, seconds: float | None, ask: Callable[[], Awaitable[Reply]]
) -> Reply:
    """seconds: for which an answer that is a success is kept; None: until the service stops."""
    coming = answers.begin(key)
    result = await coming if isinstance(coming, Awaitable) else coming
    if isinstance(result, Entry):
        return _opened(result)
    if result is NOT_SHARED:
        return await ask()
    try:
        reply = await ask()
    except BaseException:
        result.give_up(None)  # type: ignore[union-attr]
        raise
    # Those who wait get what has come, whatever it is; only a success is there for others.
    answers.keep(key, result, _sealed(reply), seconds if reply.success else 0.0)  # type: ignore[arg-type]
    return reply


def _sealed(reply: Reply) -> Entry:
    head = orjson.dumps([reply.status, reply.headers, reply.content_type, reply.error])
    return Entry(reply.body or b"", 1, is_null=reply.body is None, head=head)


def _opened(entry: Entry) -> Reply:
    status, headers, content_type, error = orjson.loads(entry.head)
    return Reply(status, None if entry.is_null else entry.body, headers, content_type, error)
