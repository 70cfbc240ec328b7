"""Access to health checks and statistics, and caching of their responses (operations-5, operations-8).

A cached response is a few seconds old at most, and carries its age in the header `Age`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.errors.problems import Problem
from rowcall.core.operations.options import GuardOptions
from rowcall.service.pipeline.fixed_route import admission, with_limit
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.shared_state.bounded_cache import BoundedCache
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import now
from rowcall.service.shared_state.single_flight import CacheLease, LookupResult, NotShareable, shared_failure


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of a health check or a report."""

    status: int
    headers: Headers
    body: bytes


Make = Callable[[RequestContext], Awaitable[Answer]]
"""Function that computes the response to a request."""


ResponseFormat = Callable[[RequestContext], str]
"""Function that returns the form of the response to a request; each form is cached separately."""


def guarded_steps(what: str, options: GuardOptions, services: Services, answer: Step) -> tuple[Step, ...]:
    """Return the steps of a path: rate limit and authentication (`with_limit`), access, and then `answer`. what: name
    in refusals, such as `/stats/tables`.
    """
    authenticating = (services.auth.sessions.authenticate,) if services.options.auth.schemes else ()
    return (
        *with_limit(services, options.rate_limiter, authenticating),
        *admission(f"{what} is", options.access, services.options.auth.schemes.challenge),
        answer,
    )


def make_answer(make: Make) -> Step:
    """Return the step that responds with what `make` returns, without a cache."""

    async def answer(context: RequestContext) -> None:
        _send(context, await make(context))

    return answer


def _wants_new(context: RequestContext) -> bool:
    """Return whether the response must not come from the cache: the caller may be signed in, or the method is not GET
    or HEAD.
    """
    scope = context.scope
    signed = context.user is not None or scope.headers.get("authorization") is not None
    return signed or scope.method not in ("GET", "HEAD")


def _place(scope: Any) -> tuple[str, str]:
    """Return the parts of the requested URL on which responses may depend: scheme and host."""
    return scope.scheme, str(scope.authority or scope.headers.get("host") or "")


def _with_age(answer: Answer, seconds: float) -> Answer:
    """Return the response with the header `Age`. seconds: its age."""
    return Answer(answer.status, [*answer.headers, ("age", str(int(seconds)))], answer.body)


def _retrieve_exception(making: asyncio.Task[Answer]) -> None:
    """Retrieve the exception of a finished task, because asyncio logs one that is never retrieved, as when no caller
    waits any more."""
    if not making.cancelled():
        making.exception()


class HostCachedPage:
    """Step that answers with a response cached for some seconds by all workers of the host; the query string is
    ignored. Only responses with status 200 are cached; callers who may be signed in get new ones.

    what: name of the page in the cache key. seconds: lifetime of the response.
    """

    def __init__(self, what: str, seconds: float, make: Make, host: HostState) -> None:
        self._what = what
        self._seconds = seconds
        self._make = make
        self._host = host

    def __call__(self, context: RequestContext) -> Awaitable[None] | None:
        if _wants_new(context):
            return self._send_new(context)
        answers: BoundedCache = self._host.get_or_create("reports", self._open_cache)
        key = orjson.dumps((self._what, *_place(context.scope)))
        entry = answers.begin(key)
        if not isinstance(entry, Entry):
            return self._send_current(context, answers, key, entry)
        self._send_cached(context, entry)
        return None

    def _open_cache(self) -> BoundedCache:
        return BoundedCache(self._host, "reports", MOST_HOSTS, max(1.0, self._seconds))

    async def _send_new(self, context: RequestContext) -> None:
        _send(context, await self._make(context))

    async def _send_current(
        self, context: RequestContext, answers: BoundedCache, key: bytes, coming: LookupResult | Awaitable[LookupResult]
    ) -> None:
        """Send the response: the cached one if another request has stored it meanwhile, else a new one, which is cached
        if it has status 200 and the lookup allows it. coming: result of the lookup in the cache.

        A new response to be cached is computed to its end even if the client disconnects, since other requests may wait
        for it.
        """
        result = await coming if isinstance(coming, Awaitable) else coming
        if isinstance(result, Entry):
            self._send_cached(context, result)
        elif isinstance(result, NotShareable):
            await self._send_new(context)
        else:
            making = asyncio.ensure_future(self._make_and_cache(context, answers, key, result))
            making.add_done_callback(_retrieve_exception)
            _send(context, await asyncio.shield(making))

    async def _make_and_cache(
        self, context: RequestContext, answers: BoundedCache, key: bytes, lease: CacheLease
    ) -> Answer:
        try:
            answer = await self._make(context)
        except BaseException as error:
            lease.give_up(shared_failure(error) if isinstance(error, Problem) else None)
            raise
        head = orjson.dumps((answer.status, answer.headers))
        answers.keep(key, lease, Entry(answer.body, 1, head=head), self._seconds if answer.status == 200 else 0.0)
        return answer

    def _send_cached(self, context: RequestContext, entry: Entry) -> None:
        status, headers = orjson.loads(entry.head)
        answer = Answer(status, [(name, value) for name, value in headers], entry.body)
        _send(context, _with_age(answer, max(0.0, now() - entry.written)) if entry.written else answer)


class CachedPage:
    """Step that answers with a response cached for some seconds, separately in each worker. Only responses with status
    200 are cached; callers who may be signed in, and requests with other methods than GET and HEAD, get new ones.

    A worker never waits for another worker, whose failure may be the reason of the request. seconds: lifetime of a
    response. response_format: returns the format that a request asks for, such as `json`; each format is cached
    separately, and the rest of the query string is ignored.
    """

    def __init__(self, seconds: float, make: Make, response_format: ResponseFormat) -> None:
        self._seconds = seconds
        self._response_format = response_format
        self._make = make
        self._cached: dict[tuple[str, ...], tuple[float, Answer]] = {}
        self._making: dict[tuple[str, ...], asyncio.Task[Answer]] = {}

    def __call__(self, context: RequestContext) -> Awaitable[None] | None:
        if _wants_new(context):
            return self._send_new(context)
        key = (*_place(context.scope), self._response_format(context))
        made, answer = self._cached.get(key, (0.0, None))
        age = time.monotonic() - made
        if answer is None or age >= self._seconds:
            return self._send_current(context, key)
        _send(context, _with_age(answer, age))
        return None

    async def _send_new(self, context: RequestContext) -> None:
        _send(context, await self._make(context))

    async def _send_current(self, context: RequestContext, key: tuple[str, ...]) -> None:
        """Compute the response once for all concurrent requests; it continues if a client disconnects."""
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._make(context))
            making.add_done_callback(lambda done: self._keep(key, done))
        _send(context, await asyncio.shield(making))

    def _keep(self, key: tuple[str, ...], done: asyncio.Task[Answer]) -> None:
        """Cache a response with status 200; if there are too many, drop all others."""
        self._making.pop(key, None)
        if done.cancelled() or done.exception() is not None or done.result().status != 200:
            return
        if len(self._cached) >= MOST_HOSTS:
            self._cached.clear()
        self._cached[key] = time.monotonic(), done.result()


MOST_HOSTS = 64
"""Maximum number of cached hosts, so that requests with ever new host names cannot exhaust the memory."""


def _send(context: RequestContext, answer: Answer) -> None:
    context.protocol.response_bytes(answer.status, answer.headers, answer.body)
    context.answered = True
