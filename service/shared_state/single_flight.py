"""Single flight: of equal requests one computes, the others wait. Leases, and the waiting requests of this process.

This is the part that all cache backends have in common. Where leases are stored, so that all workers or all hosts agree
on which request computes, is up to each backend.
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
    """Outcome: the computation has ended without a response, so waiting requests look up again."""


class NotShareable:
    """Outcome: the response cannot be shared, so each waiting request computes its own."""


RETRY_LOOKUP = RetryLookup()
NOT_SHARED = NotShareable()

Outcome = Entry | Problem | RetryLookup | NotShareable
"""Result of a computation, as it is reported to waiting requests."""

PROBLEM = b"e"
"""Kind of a message to other processes that contains a `problem_text`. Earlier versions sent a shorter text as `p`;
processes let waiting requests look up again for kinds that they do not know.
"""


class CacheLease(Protocol):
    """The right, and the duty, to compute the response for a key. Exactly one of `keep`, `release_unshared` and
    `give_up` is called, once.
    """

    tags: tuple[str, ...]
    """The announced tags."""

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> Awaitable[None] | None:
        """Record tags before the response is computed: an invalidation of one of them from now on applies to it.

        seconds: maximum lifetime of the response; None: unlimited.
        """

    def last(self, stale: Stale) -> Entry | Awaitable[Entry | None] | None:
        """Return the last response of its key, as `CacheBackend.last` does."""

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        """Complete the lease with a response.

        seconds: for how long it is fresh; None: until invalidated. stale: seconds for which it may be used after that.
        """

    def release_unshared(self) -> None:
        """Release the lease, as the response turned out to be one that is not stored: each waiting request computes its
        own."""

    def give_up(self, problem: Problem | None) -> None:
        """Release the lease after a failure. problem: reported to waiting requests; None: the failure concerns this
        request only, so that the next one computes.
        """


class StaleEntry(NamedTuple):
    """A stale response that may still be used. lease: to compute a new one; None: another request does."""

    entry: Entry
    lease: CacheLease | None


LookupResult = Entry | CacheLease | NotShareable
StaleLookupResult = LookupResult | StaleEntry


class CacheBackend(Protocol):
    """A cache backend. `begin` returns a result that is known at once, or an awaitable."""

    def begin(self, key: bytes, time_limit: float) -> LookupResult | Awaitable[LookupResult]:
        """Look up a key. Return the entry, the lease to compute it, or `NOT_SHARED`.

        time_limit: seconds that this request may wait for the result of another one; 0: no limit.

        Raises:
            Problem: the computation of the other request failed, or took longer than the time limit.
        """

    def begin_stale(
        self, key: bytes, time_limit: float, stale: Stale
    ) -> StaleLookupResult | Awaitable[StaleLookupResult]:
        """Do what `begin` does for responses that may be used for longer than they are fresh; a stale one is returned
        as a `StaleEntry`. stale: for how long.
        """

    def last(self, key: bytes, stale: Stale) -> Entry | Awaitable[Entry | None] | None:
        """Return the response that may be used because a new one could not be computed, or None. stale: for how long a
        stale one may be used.
        """

    def invalidate(self, key: bytes) -> bool | Awaitable[bool]:
        """Invalidate a key. Return whether there was an entry. No request gets it afterwards. Raises `Problem` 503 if
        that is not confirmed.
        """

    def invalidate_tag(self, tag: str) -> int | Awaitable[int]:
        """Invalidate a tag. Return the number of removed entries. Responses that are being computed with it are not
        stored. Raises `Problem` 503 if that is not confirmed.
        """

    def close(self) -> None: ...


def release_unused_lease(context: RequestContext, error: Exception | None) -> None:
    """Release a lease that no step has used. For `RequestContext.at_end`.

    error: what ended the request; None: no error. Waiting requests get a `Problem` as it is, and for any other
    exception a `Problem` 500 without details. If there is no error, or the error concerns only this request (its client
    has disconnected, its deadline has passed), one of the waiting requests computes.
    """
    lease: CacheLease | None = context.lease
    if lease is None:
        return
    context.lease = None
    request = context.execution
    # Cancelled because its own client has disconnected: other requests must not fail for that.
    gone = request is not None and request.abandoned and request.failure is None
    if error is None or gone or isinstance(error, ClientDisconnectedError | DeadlineError):
        lease.give_up(None)
    elif isinstance(error, Problem):
        lease.give_up(shared_failure(error))
    else:
        problem = Problem(500, "an unexpected error; the log of the service has the reason")
        problem.logged = True  # as that of the request itself
        lease.give_up(problem)


class SingleFlightWaiters:
    """The waiting requests of this process, by key. Must be created in the running event loop."""

    def __init__(self) -> None:
        self.futures: dict[bytes, dict[asyncio.Future[Outcome], bytes]] = {}
        """Futures by key, with the number of the lease that each waits for, if known. Empty if no request waits."""
        self._loop = asyncio.get_running_loop()

    def join(self, key: bytes) -> asyncio.Future[Outcome]:
        """Register a waiting request. Every outcome for the key that is reported from now on reaches it. Call `wait`
        next.
        """
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.futures.setdefault(key, {})[future] = b""
        return future

    def record_lease_number(self, key: bytes, future: asyncio.Future[Outcome], number: bytes) -> None:
        """Record the number of the lease for which a waiting request waits. future: as `join` has returned it."""
        waiting = self.futures.get(key)
        if waiting is not None and future in waiting:
            waiting[future] = number

    def has(self, key: bytes) -> bool:
        return key in self.futures

    def leave(self, key: bytes, future: asyncio.Future[Outcome]) -> None:
        """Remove a waiting request, if it still waits. future: as `join` has returned it."""
        waiting = self.futures.get(key)
        if waiting is not None:
            waiting.pop(future, None)
            if not waiting:
                del self.futures[key]

    async def wait(
        self, key: bytes, future: asyncio.Future[Outcome], time_limit: float, late: RetryLookup | None = None
    ) -> Entry | RetryLookup | NotShareable:
        """Wait for the outcome, and remove the waiting request.

        future: as `join` has returned it. time_limit: seconds; 0: no limit. late: the result after the time limit;
        None: a `Problem` is raised.

        Raises:
            Problem: of the computing request, or because the time limit has passed.
        """
        try:
            outcome = await (asyncio.wait_for(future, time_limit) if time_limit > 0 else future)
        except TimeoutError:
            if late is not None:
                return late
            detail = "another request computes this response and has not finished in time"
            raise Problem(504, detail, title="Command execution timed out") from None
        finally:
            self.leave(key, future)
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    def resolve(self, key: bytes, outcome: Outcome, number: bytes | None = None) -> None:
        """Report an outcome to the waiting requests of a key, and remove them.

        number: the lease that ended so, for backends that learn of an end later than it happened: only requests that
        wait for this lease (`record_lease_number`) get the outcome. Those without a recorded number, and those that
        wait for a newer lease, which was acquired after an invalidation, look up again. None: all requests get the
        outcome.
        """
        for future, awaited in self.futures.pop(key, {}).items():
            if future.done():
                continue
            if number is not None and awaited != number:
                future.set_result(RETRY_LOOKUP)
            else:
                # A copy for each request, as raising sets a traceback.
                future.set_result(copy_problem(outcome) if isinstance(outcome, Problem) else outcome)

    def resolve_all(self) -> None:
        """Let all waiting requests look up again."""
        for key in tuple(self.futures):
            self.resolve(key, RETRY_LOOKUP)


def copy_problem(problem: Problem) -> Problem:
    """Return a copy of a problem, with all of its members, but without its traceback."""
    kind = type(problem)
    copy = kind.__new__(kind, *problem.args)
    vars(copy).update(vars(problem))
    return copy


def shared_failure(problem: Problem) -> Problem:
    """Return the problem for waiting requests: a copy that counts as logged, as the request that has failed logs it."""
    copy = copy_problem(problem)
    copy.logged = True
    return copy


def invalidation_failed() -> Problem:
    """Return the 503 for an invalidation that is not confirmed."""
    detail = "Redis does not answer, so the invalidation is not confirmed; repeat the request"
    return Problem(503, detail, headers=(("retry-after", "1"),))


def problem_text(problem: Problem) -> bytes:
    """Serialize a problem for another process."""
    members = (problem.detail, problem.title, problem.type_url, problem.headers, problem.others, problem.code)
    return orjson.dumps([problem.status, *members, problem.logged], default=dict)


def problem_of(text: bytes) -> Problem:
    """Return the problem that `problem_text` has serialized, also that of a later version, with further members."""
    status, detail, title, type_url, headers, others, code, logged, *_ = orjson.loads(text)
    headers = tuple((name, value) for name, value in headers)
    problem = Problem(status, detail, title=title, type_url=type_url, headers=headers, others=others, code=code)
    problem.logged = logged
    return problem
