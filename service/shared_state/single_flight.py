"""One computes, the others wait: tickets for whoever computes an answer, and those of this process that wait for it.

What is the same for all stores of answers. Where the tickets are written down, so that all workers or all hosts agree
on who computes, is for each store to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple, Protocol

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.request_context.deadline import DeadlineError
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext


class RetryLookup:
    """Nobody computes any more and nothing has come of it: whoever waits asks once more."""


class NotShared:
    """The answer is none that can be shared: whoever waits computes for itself."""


RETRY_LOOKUP = RetryLookup()
NOT_SHARED = NotShared()

Outcome = Entry | Problem | RetryLookup | NotShared
"""What those who wait are told."""


class CacheLease(Protocol):
    """The right, and the duty, to compute the answer for a key. Exactly one of `keep`, `pass_on` and `give_up` is
    called, once."""

    tags: tuple[str, ...]
    """Those that were announced."""

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> Awaitable[None] | None:
        """Before the answer is computed: whoever forgets one of its tags from now on forgets this answer too.
        seconds: how long it may live."""

    def last(self, stale: Stale) -> Entry | Awaitable[Entry | None] | None:
        """`AnswerStore.last` for its key."""

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        """The answer, and how long it is fresh; None: until it is forgotten. stale: seconds for which it is of use
        after that."""

    def pass_on(self) -> None:
        """It has turned out to be none that is kept."""

    def give_up(self, problem: Problem | None) -> None:
        """It failed. None: for reasons that are this request's own, so that the next one shall try."""


class StaleEntry(NamedTuple):
    """An answer that may still be given. ticket: to make a new one; None: somebody else does."""

    entry: Entry
    lease: CacheLease | None


Found = Entry | CacheLease | NotShared
FoundStale = Found | StaleEntry


class CacheBackend(Protocol):
    """Where answers are kept. `begin` may say at once what it knows, or has to be awaited."""

    def begin(self, key: bytes, time_limit: float) -> Found | Awaitable[Found]:
        """An answer; the ticket to compute it; or nothing that others would share.

        time_limit: seconds that this request may wait for another one's answer; 0: as long as it takes.

        Raises:
            Problem: the one who computed failed, or took longer than that.
        """

    def begin_stale(self, key: bytes, time_limit: float, stale: Stale) -> FoundStale | Awaitable[FoundStale]:
        """`begin` for answers that are of use for longer than they are fresh."""

    def last(self, key: bytes, stale: Stale) -> Entry | Awaitable[Entry | None] | None:
        """The answer that may be given as a new one could not be made."""

    def forget(self, key: bytes) -> bool | Awaitable[bool]:
        """Whether there was an answer. Nobody is given it afterwards."""

    def invalidate_tag(self, tag: str) -> int | Awaitable[int]:
        """The number of answers with this tag; what is being computed with it is not kept either."""

    def close(self) -> None: ...


def ending(context: RequestContext, error: Exception | None) -> None:
    """For `Exchange.at_end`: what becomes of a ticket that no step has used."""
    lease: CacheLease | None = context.lease
    if lease is None:
        return
    context.lease = None
    request = context.execution
    # Cancelled because its own client has left: that is no failure of anybody else.
    gone = request is not None and request.abandoned and request.failure is None
    if error is None or gone or isinstance(error, ClientDisconnectedError | DeadlineError):
        lease.give_up(None)
    elif isinstance(error, Problem):
        lease.give_up(error)
    else:
        lease.give_up(Problem(500, "an unexpected error; the log of the service has it"))


class SingleFlightWaiters:
    """The requests of this process that wait, by key."""

    def __init__(self) -> None:
        self.futures: dict[bytes, dict[asyncio.Future[Outcome], bytes]] = {}
        """With the ticket that each waits for, as far as that is known. Empty when nobody waits."""
        self._loop = asyncio.get_running_loop()

    def join(self, key: bytes) -> asyncio.Future[Outcome]:
        """From here on whatever is told about the key reaches this one; `wait` follows."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.futures.setdefault(key, {})[future] = b""
        return future

    def awaits(self, key: bytes, future: asyncio.Future[Outcome], number: bytes) -> None:
        """It waits for this ticket."""
        waiting = self.futures.get(key)
        if waiting is not None and future in waiting:
            waiting[future] = number

    def has(self, key: bytes) -> bool:
        return key in self.futures

    def leave(self, key: bytes, future: asyncio.Future[Outcome]) -> None:
        waiting = self.futures.get(key)
        if waiting is not None:
            waiting.pop(future, None)
            if not waiting:
                del self.futures[key]

    async def wait(
        self, key: bytes, future: asyncio.Future[Outcome], time_limit: float, late: RetryLookup | None = None
    ) -> Entry | RetryLookup | NotShared:
        """time_limit: seconds; 0: as long as it takes. late: what it is then; None: a `Problem`.

        Raises:
            Problem: of the one who computed, or because this one has waited long enough.
        """
        try:
            outcome = await (asyncio.wait_for(future, time_limit) if time_limit > 0 else future)
        except TimeoutError:
            if late is not None:
                return late
            detail = "another request computes this answer, and it took too long"
            raise Problem(504, detail, title="Command execution timed out") from None
        finally:
            self.leave(key, future)
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    def tell(self, key: bytes, outcome: Outcome, number: bytes | None = None) -> None:
        """number: of the ticket that has come to this, for stores that hear of an end later than it was: whoever waits
        for another one, which was begun when this had been forgotten, asks again."""
        for future, awaited in self.futures.pop(key, {}).items():
            if future.done():
                continue
            if number is not None and awaited != number:
                future.set_result(RETRY_LOOKUP)
            else:
                # An error is raised with a traceback of its own in each request.
                future.set_result(copied(outcome) if isinstance(outcome, Problem) else outcome)

    def tell_all(self) -> None:
        """Whoever waits shall look again."""
        for key in tuple(self.futures):
            self.tell(key, RETRY_LOOKUP)


def copied(problem: Problem) -> Problem:
    return Problem(
        problem.status, problem.detail, title=problem.title, type_url=problem.type_url, headers=problem.headers
    )


def invalidation_failed() -> Problem:
    detail = "Redis does not answer, so nothing says that this is forgotten everywhere; ask again"
    return Problem(503, detail, headers=(("retry-after", "1"),))


def problem_text(problem: Problem) -> bytes:
    """For another process."""
    return orjson.dumps([problem.status, problem.detail, problem.title, problem.type_url, problem.headers])


def problem_of(text: bytes) -> Problem:
    status, detail, title, type_url, headers = orjson.loads(text)
    return Problem(
        status, detail, title=title, type_url=type_url, headers=tuple((name, value) for name, value in headers)
    )
