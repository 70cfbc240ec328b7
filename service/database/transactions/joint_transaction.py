"""One transaction for the calls of several requests (batches), each with its own preamble.

Settings of a preamble end with its request: before the next one, those that it does not set itself are reset.
"""

from __future__ import annotations

from types import TracebackType

from rowcall.core.errors.problems import Problem
from rowcall.core.text.naming import quote_identifier
from rowcall.ext.driver.execution import Statement
from rowcall.service.database.call import Call
from rowcall.service.database.execution.call_settings import CallSettings, timeout_setting
from rowcall.service.database.failures import Failures
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import PrecedingStatements, Values, preceding_settings
from rowcall.service.database.statements import statement_for
from rowcall.service.database.transactions.transaction import Transaction, TransactionNotices
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.request_context import RequestContext

_OF_RESPONSES = (b"response.status", b"response.headers")
"""Settings with which a routine sets its response."""


class JointTransaction(Transaction):
    """One transaction for the calls of several requests of a batch, each with its own preamble and limits.

    Use: `async with database.joint_transaction(context) as joint: await joint.run_next(call, context)`, for each call,
    then `finish`. Without `finish` it is rolled back.
    """

    def __init__(
        self,
        pool: DedicatedPool,
        watchdog: Watchdog,
        failures: Failures,
        context: RequestContext,
        settings: CallSettings,
        *,
        resets: list[Statement],
    ) -> None:
        """context: of the whole batch. settings: computes the limits and settings of each call. resets: as for
        `Transaction`.
        """
        whole = Call("batch", lambda _mask: ("", 0), None, PoolAssignment(0.0), volatile=True)
        super().__init__(pool, watchdog, failures, whole, context, lambda: (), seconds=0.0, resets=resets)
        self._settings = settings
        self._set_before: frozenset[bytes] = frozenset()
        """Names of settings of the preambles so far."""
        self._listeners: list[TransactionNotices] = []
        self.failed = False
        """A call has failed, so nothing can be committed."""
        self.may_have_written = False
        """A call was not only a read."""

    async def run_next(self, call: Call, context: RequestContext) -> None:
        """Run a call and put its execution into the request context. The first call begins the transaction; after a
        failed one, no other call can run.

        call: of one request of the batch. context: of that request.

        Raises: Problem: the call failed, or (409) an earlier call of the batch has failed. ClientDisconnectedError: the
        client has disconnected.
        """
        if self.failed:
            raise Problem(409, "an earlier request of the batch has failed")
        opening = await self._begin_statements() if not self._open else ()
        self._call, self._context = call, context
        self.may_have_written |= call.volatile or call.procedure
        self._seconds = self._settings.limit(call, context)
        self._notice_listener = None
        if call.hear is not None:
            self._notice_listener = TransactionNotices(call.hear(context))
            self._listeners.append(self._notice_listener)
        try:
            await self._run_call((*opening, *self._preceding_statements(call, context)))
        except BaseException:
            self.failed = True
            raise

    def _preceding_statements(self, call: Call, context: RequestContext) -> PrecedingStatements:
        """Return the statements in front of a call: resets of earlier settings, its limits and its preamble. The names
        of its settings are recorded for the resets in front of later calls.
        """
        own = timeout_setting(self._seconds) + self._settings.values(call, watched=False, seconds=self._seconds)
        preamble = call.preamble
        ahead = preceding_settings(own) if preamble is None else preamble.preceding_statements(context, own)
        settings = [] if preamble is None else preamble.setting_values(context)
        names = frozenset(name for name in settings[::2] if name is not None)
        result = (*self._resets_of(self._set_before - names), *ahead)
        self._set_before |= names
        return result

    @staticmethod
    def _resets_of(names: frozenset[bytes]) -> PrecedingStatements:
        """Return the statements that reset settings of earlier requests of the batch, and those with which a routine
        sets its response, so that the next request does not see them. names: the settings of earlier requests.
        """
        own: Values = []
        for name in (*sorted(names), *_OF_RESPONSES):
            if b"." in name or name == b"role":
                own += [name, b"none" if name == b"role" else b""]
        others = (quote_identifier(name.decode()) for name in sorted(names) if b"." not in name and name != b"role")
        return (*preceding_settings(own), *((statement_for(f"set local {name} to default", 0), []) for name in others))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._notice_listener = None
        await super().__aexit__(kind, error, trace)
        self._close_listeners(committed=False)

    async def finish(self) -> None:
        """Commit, and report that to the receivers of notices. Raises `Problem`, also for deferred constraints."""
        self._notice_listener = None
        await self.commit()
        self._close_listeners(committed=True)

    def _close_listeners(self, *, committed: bool) -> None:
        """Report the end of the transaction to all receivers of notices, and drop them. committed: its effects are
        permanent.
        """
        for listener in self._listeners:
            listener.close(committed=committed)
        self._listeners.clear()
