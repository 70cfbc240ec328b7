"""A transaction of a request, within the transaction of a test: a savepoint takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.preamble import PrecedingStatements
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.testing.session import Session

_NAME = "savepoint rowcall_transaction"


class NestedTransaction(Transaction):
    """A transaction that is a savepoint if the test has an open transaction. session: that of the test; None: no test
    runs. changed: names of the settings that the request changes; their values are recorded, so that the session
    restores them. Other parameters as for `Transaction`.
    """

    def __init__(self, *arguments: Any, session: Session | None, changed: Sequence[str], **named: Any) -> None:
        # No guarded statements: they are prepared, and a test may deallocate any statement.
        super().__init__(*arguments, **{**named, "statement_on": None})
        self._session = session
        self._changed = changed
        self._rolled_back: asyncio.Future[None] | None = None
        if session is not None and session.in_transaction:
            self._begin, self._commit = _NAME, f"release {_NAME}"
            self._roll_back_commands = (f"rollback to {_NAME}", f"release {_NAME}")

    async def _begin_statements(self) -> PrecedingStatements:
        if self._session is not None:
            await self._session.record_settings(self._changed)
        return await super()._begin_statements()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if self._rolled_back is not None:
            # The test goes on with the same connection, outside of pipeline mode.
            await self._rolled_back

    def _roll_back(self, connection: Connection) -> Execution:
        execution = super()._roll_back(connection)
        if not execution.finished:
            self._rolled_back = execution.waiter = asyncio.get_running_loop().create_future()
        return execution

    def _release(self, connection: Connection) -> None:
        """Do nothing: the session state after a request is part of the test."""
