"""Cache of reads by anonymous callers: the result row of the main statement, from which each response is made.

The key of a result contains everything on which its transaction depends, except headers and cookies of the request. So
a result is also used for callers who send other headers or cookies.
"""

from __future__ import annotations

from collections.abc import Callable

from rowcall.core.cache.entry import Entry
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.preamble import Values
from rowcall.service.postgrest.planning.work import Work
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.result import Result
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.shared_state.single_flight import CacheBackend, CacheLease, NotShareable, release_unused_lease

Report = Callable[[RequestContext, str], None]


class AnonymousCache:
    """The cached results of one schema snapshot: their keys, their lifetime, and which results are stored."""

    def __init__(
        self, backend: CacheBackend, options: PostgRestOptions, snapshot: int, largest: int, report: Report | None
    ) -> None:
        """snapshot: number of the schema snapshot; each key contains it, so that entries of earlier snapshots are not
        found. largest: size in bytes from which a result is not stored. report: records `hit`, `miss` or `bypass` for
        a request; None: nothing is recorded.
        """
        self._role = options.anonymous_role
        self._seconds = options.anonymous_cache
        self._prefix = b"postgrest\0%d" % snapshot
        self._largest = largest
        self._report = report
        self.begin = backend.begin

    def key(self, request: ApiRequest, work: Work, settings: Values) -> bytes | None:
        """Return the key of the result; None: the result is not shared. The result of a read by an anonymous caller is
        shared if the work is repeatable and not `raw`. settings: of the transaction, without headers and cookies."""
        if not (request.reads and work.options.repeatable) or work.options.raw or request.user.role != self._role:
            return None
        parts = [self._prefix, *(part or b"" for part in settings), work.statement.sql.encode()]
        parts += [b"n" if value is None else b"t" + value.encode() for value in work.statement.parameters]
        key = b"\0".join(parts)
        # A NUL within a part would make keys ambiguous. PostgreSQL refuses it.
        return key if key.count(b"\0") == len(parts) else None

    def record_miss(self, context: RequestContext, found: CacheLease | NotShareable) -> None:
        """Record a miss, or a bypass if the result is not shareable. found: outcome of the lookup. If it is a lease, it
        is stored in the request context: this request computes the result for all that wait for it, and the lease ends
        with the request at the latest."""
        if isinstance(found, NotShareable):
            self.report(context, "bypass")
            return
        self.report(context, "miss")
        context.lease = found
        context.at_end(release_unused_lease)

    def report(self, context: RequestContext, word: str) -> None:
        """Record the outcome of a lookup. word: `hit`, `miss` or `bypass`."""
        if self._report is not None:
            self._report(context, word)

    def keep(self, context: RequestContext, execution: Execution, result: Result) -> None:
        """Store the result, which ends the lease of this request; without a lease, nothing happens. execution: of the
        main statement.

        A result that is too large is not stored, nor one that sets headers or status, because it is for one caller
        only. The lease ends then too, and each waiting request computes its own result.
        """
        lease: CacheLease | None = context.lease
        if lease is None:
            return
        context.lease = None
        body = execution.body or b""
        if result.headers is not None or result.status is not None or len(body) >= self._largest:
            lease.release_unshared()
        else:
            lease.keep(Entry(body, execution.rows), self._seconds)

    def release(self, context: RequestContext) -> None:
        """End the lease of this request after an error, if it has one: each waiting request computes its own result."""
        lease: CacheLease | None = context.lease
        if lease is not None:
            context.lease = None
            lease.release_unshared()
