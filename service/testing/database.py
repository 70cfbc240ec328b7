"""The database for the endpoints of a test: one connection, with the open transaction of the test.

In this transaction, every statement of a request has a savepoint instead of a transaction of its own: a failing
statement undoes only itself. BEGIN and COMMIT of a file become savepoints too, so that neither ends the transaction of
the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import unavailable
from rowcall.core.sqlfile.commands import Effect, Suspects, effect
from rowcall.core.sqlfile.splitting import split
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Part, Script, Statement
from rowcall.service.database.call import Call
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.database import Database
from rowcall.service.database.execution.dedicated_runs import DedicatedRuns
from rowcall.service.database.execution.plain_runs import PlainRuns
from rowcall.service.database.failures import AttemptState
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.statements import numbers, settings_statement, statement_for
from rowcall.service.database.transactions.shared_session import SharedSession
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.request_context.request_context import RequestContext, Running
from rowcall.service.testing.plain_runs import TestPlainRuns
from rowcall.service.testing.session import BACK, RELEASE, SET, Session
from rowcall.service.testing.transaction import NestedTransaction

_NO_SUSPECTS = Suspects()


class _Pool(DedicatedPool):
    """A pool that always returns the connection of the test. session: that of the running file; None: no file runs."""

    session: Session | None = None

    def try_acquire(self) -> Connection | None:
        """Return the connection of the test. Raises `Problem` 503 if it was lost, or no file runs."""
        connection = None if self.session is None else self.session.driver
        if connection is None or connection.state != ConnectionState.READY:
            raise unavailable("the connection of the test to the database was lost")
        return connection

    def release(self, connection: Connection) -> None:
        """Do nothing: the connection belongs to the test."""

    def let_go(self, connection: Connection, *, resets: list[Statement]) -> None:
        """Do nothing: the connection belongs to the test, and is not reset."""

    @property
    def busy(self) -> int:
        return 1


class _Runs(DedicatedRuns):
    """Runs on the connection of the test, in the state in which its file has left it."""

    @property
    def session(self) -> Session | None:
        return cast(_Pool, self._pool).session

    def begin(self, call: Call, context: RequestContext) -> Running:
        # Asynchronous, because the session has to be prepared first.
        return self.run(call, context)

    async def _run_once(self, call: Call, context: RequestContext, tries: AttemptState) -> Execution:
        """Run once on the connection of the test. Raises `Problem` 503 if it was lost."""
        connection = self._pool.try_acquire()
        if self.session is not None and connection is not None:
            await self.session.record_settings(self.set_by(call, context))
            execution = self.execution(call, context)
            execution.began = tries.began = tries.began or execution.began
            if await self._run_on(connection, call, context, execution):
                return execution
        raise unavailable("the connection of the test to the database was lost")

    def set_by(self, call: Call, context: RequestContext) -> list[str]:
        """Return the names of the settings that a call sets and that the session has to restore after it. Settings of a
        call outlive it if the test has an open transaction, or if the call is of a procedure; otherwise the result is
        empty."""
        if not call.procedure and (self.session is None or not self.session.in_transaction):
            return []
        ahead = self._settings.dedicated_preceding_statements(
            call, context, watched=False, seconds=self._settings.limit(call, context)
        )
        names = [
            name
            for statement, values in ahead
            if values and statement is settings_statement(len(values) // 2)
            for name in values[::2]
        ]
        if call.preamble is not None:
            names += call.preamble.setting_values(context)[::2]
            names += [b"role", b"search_path"] if call.preamble.commands else []
        return [name.decode() for name in dict.fromkeys(names) if name is not None]

    def execution(
        self, call: Call, context: RequestContext, statement: Statement | None = None, *, waited: bool = True
    ) -> Execution:
        """Return the execution of a call, without streaming; in a transaction of the test, with a savepoint in place of
        its own transaction. statement: None: that of the call. waited: as for `DedicatedRuns.execution`.
        """
        # Responses are always read completely.
        call.small, call.large = True, False
        session = self.session
        statement = statement or call.statement(context.mask)
        mark = session.mark() if session is not None and session.in_transaction else ()
        if mark and isinstance(statement, Script):
            statement = with_savepoints(statement, mark)
        execution = super().execution(call, context, statement, waited=waited)
        execution.stream_after = 0
        if mark and not isinstance(statement, Script):
            execution.ahead = (*((statement_for(sql, 0), []) for sql in mark), *(execution.ahead or ()))
        return execution

    def _resets(self, call: Call, statement: Statement) -> list[Statement]:
        return []

    async def _prepare_procedure(self, connection: Connection, call: Call, context: RequestContext) -> None:
        """Do what `DedicatedRuns` does. The connection still belongs to the test afterwards, so it is not reset."""
        try:
            await super()._prepare_procedure(connection, call, context)
        finally:
            connection.owned = True


class TestDatabase(Database):
    """A database on the connection of the running test file. session: that of the file; None: no file runs."""

    __test__ = False
    dedicated_pool = _Pool
    dedicated_runs = _Runs

    def __init__(self, target: ConnectionTarget, options: DatabaseOptions) -> None:
        super().__init__(target, DatabaseOptions(PoolOptions(sharing=False), timeout=options.timeout))

    @property
    def _session_pool(self) -> _Pool:
        return cast(_Pool, self._exclusive)

    @property
    def session(self) -> Session | None:
        return self._session_pool.session

    @session.setter
    def session(self, session: Session | None) -> None:
        self._session_pool.session = session

    def transaction(self, call: Call, context: RequestContext) -> Transaction:
        changed = cast(_Runs, self._alone).set_by(call, context)
        nested_in_test = partial(NestedTransaction, session=self.session, changed=changed)
        return self._transaction(nested_in_test, call, context)

    def plain_runs(self) -> PlainRuns:
        return TestPlainRuns(self._session_pool, self._watchdog, lambda: self.session)

    def shared_session(self) -> SharedSession:
        return SharedSession(self._session_pool, self._watchdog, self._failures, self._alone.execution, resets=[])


def with_savepoints(script: Script, mark: tuple[str, ...]) -> Script:
    """Return the script for use in the transaction of a test: savepoints take the place of its transactions. mark:
    commands that set the savepoint before its first statement.
    """
    parts = tuple(_nested_parts(script, mark))
    return Script(next(numbers), script.nparams, parts, script.tail, script.repeatable)


def _nested_parts(script: Script, mark: tuple[str, ...]) -> Iterator[Part]:
    """Yield the parts of the script with savepoints in place of its transactions. mark: as for `with_savepoints`."""

    def plain(sql: str, like: Part | None = None) -> Part:
        """Return a part that runs `sql`. like: the part that it replaces; None: it is a further part."""
        renderer = None if like is None else like.statement.renderer
        statement = Statement(next(numbers), sql.encode(), script.nparams, renderer, picks=())
        return Part(statement, like is not None and like.last, False)

    yield from map(plain, mark)
    in_block, marked = False, True
    for part in script.parts:
        words = split(part.statement.sql.decode()).statements
        effect_of_part = effect(words[0], _NO_SUSPECTS) if words else Effect.ALONE
        if effect_of_part is Effect.BEGIN or (effect_of_part is Effect.CHAIN and in_block):
            yield plain(RELEASE)
            yield plain(SET, part)
            in_block = marked = True
        elif effect_of_part in (Effect.END, Effect.CHAIN) and words[0].words[0] in ("rollback", "abort"):
            yield plain(BACK, part)
            in_block = False
        elif effect_of_part in (Effect.END, Effect.CHAIN):
            yield plain(RELEASE)
            yield plain(SET, part)
            in_block = False
        else:
            if not in_block and not marked:
                yield plain(RELEASE)
                yield plain(SET)
            marked = True
            yield part
        marked = marked and (in_block or not part.last)
    if in_block:
        yield Part(Statement(next(numbers), BACK.encode(), script.nparams, None, picks=()), True, False)
