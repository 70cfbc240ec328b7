"""Transactions of PostgREST's interface in tests: savepoints take their place in the transaction of a test."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.ext.driver.execution import Execution, Statement
from rowcall.service.database.call import NoticeListener
from rowcall.service.database.execution.plain_runs import COMMIT, ROLLBACK, PlainRuns, PlainTransaction
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.preamble import PrecedingStatements, Values
from rowcall.service.database.statements import settings_statement, statement_for
from rowcall.service.database.watchdog import Disconnected, Watchdog
from rowcall.service.testing.session import Session

_NAME = "savepoint rowcall_transaction"
_BEGIN = statement_for(_NAME, 0)
_RELEASE = statement_for(f"release {_NAME}", 0)
_BACK = statement_for(f"rollback to {_NAME}", 0)
_SET_BY_FUNCTIONS = ("response.headers", "response.status")
"""Settings by which functions set the response."""
_READ_ONLY = "transaction_read_only"
"""PostgreSQL itself restores it at the end of the savepoint, and does not allow to reset it within."""


class TestPlainRuns(PlainRuns):
    """Substitute for `PlainRuns` in tests: statements of PostgREST's interface run on the connection of the test, and a
    transaction is a savepoint if the test has one open.
    """

    __test__ = False
    one_segment = False

    def __init__(self, pool: DedicatedPool, watchdog: Watchdog, session: Callable[[], Session | None]) -> None:
        """session: returns that of the running test; None: no test runs."""
        super().__init__(pool, None, watchdog, seconds=0.0, slow=0.0, most_bytes=0)
        self._session = session

    def transaction(self, disconnected: Disconnected, _listener: NoticeListener | None = None) -> PlainTransaction:
        return _NestedTransaction(self._pool, self._watchdog, disconnected, self._session())


class _NestedTransaction(PlainTransaction):
    """A transaction that is a savepoint if the test has an open transaction. The settings of the request are recorded,
    so that the session restores them.
    """

    def __init__(
        self, pool: DedicatedPool, watchdog: Watchdog, disconnected: Disconnected, session: Session | None
    ) -> None:
        super().__init__(pool, watchdog, disconnected, 0.0)
        self._session = session
        self._nested = session is not None and session.in_transaction

    async def __aexit__(self, *_: object) -> None:
        if self._open and self._connection is not None:
            await self.end(ROLLBACK)
        if self._connection is not None:
            # The session state after a request is part of the test.
            self._connection.owned = True

    async def run(self, statement: Statement, values: Values, ahead: PrecedingStatements) -> Execution:
        """Run a statement, and return its finished execution, successful or not.

        If the test has an open transaction, a savepoint replaces BEGIN, and the settings that the request changes are
        recorded before, so that the session restores them. ahead: statements in front of it; if there are any, the
        first is BEGIN. Raises `psycopg.Error` if the settings cannot be read.
        """
        if self._nested and ahead:
            # The first statement in front is BEGIN.
            if self._session is not None:
                await self._session.record_settings(_settings_of(ahead))
            ahead = ((_BEGIN, []), *ahead[1:])
        return await super().run(statement, values, ahead)

    async def end(self, statement: Statement) -> Execution:
        """End the savepoint, or without one the transaction. statement: `COMMIT` or `ROLLBACK`."""
        if not self._nested:
            return await super().end(statement)
        if statement is not COMMIT:
            await self._submit_and_wait(Execution(_BACK, []))
        return await super().end(_RELEASE)


def _settings_of(ahead: PrecedingStatements) -> list[str]:
    """Return the names of the settings to restore after a request: those that the statements in front of it set,
    without the access mode, and those by which functions set the response (`_SET_BY_FUNCTIONS`).

    ahead: statements in front of the main statement, with their values.
    """
    names = [
        name.decode()
        for statement, values in ahead
        if values and statement is settings_statement(len(values) // 2)
        for name in values[::2]
        if name is not None
    ]
    return [name for name in dict.fromkeys((*names, *_SET_BY_FUNCTIONS)) if name != _READ_ONLY]
