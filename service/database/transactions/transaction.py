"""One transaction over several segments, for requests that run many commands before their routine.

    async with database.transaction(call, context) as transaction:
        await transaction.run(command, values)
        await transaction.call()
        await transaction.commit()

It begins with the first command, with the whole preamble of the request: row commands see the same settings as the
routine. Without `commit`, everything is rolled back. Commands may be sent without waiting for the previous one; of
those in one segment, only the result of the last is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from rowcall.core.errors.error_policy import DatabaseError
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Loss, Statement
from rowcall.service.database.call import Call, NoticeListener
from rowcall.service.database.failures import Failures, guard_has_failed, level_of
from rowcall.service.database.pools.dedicated_pool import RESET_SECONDS, DedicatedPool
from rowcall.service.database.preamble import PrecedingStatements, Values
from rowcall.service.database.statements import settings_statement, statement_for
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.redaction import hide_values
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.request_context.trace import log_extra

log = logging.getLogger("rowcall.database")


StatementOn = Callable[[Connection, Call, int], Awaitable[tuple[Statement, list[Statement]]]]
"""Returns the statement of a call with a mask on a connection, and the resets that have to run behind it."""

_AS_SERVICE: PrecedingStatements = tuple(
    (statement_for(sql, 0), []) for sql in ("set constraints all immediate", "reset role")
)
"""Statements after which the role is that of the service. Deferred constraints are checked before, with the other role:
before version 18, PostgreSQL runs their triggers with the role of the COMMIT."""


class Transaction:
    """One transaction of a request, on a dedicated connection that it holds until the end of the `async with` block."""

    def __init__(
        self,
        pool: DedicatedPool,
        watchdog: Watchdog,
        failures: Failures,
        call: Call,
        context: RequestContext,
        ahead: Callable[[], PrecedingStatements],
        *,
        seconds: float,
        resets: list[Statement],
        statement_on: StatementOn | None = None,
    ) -> None:
        """ahead: makes the statements of the preamble. seconds: time limit of the call, 0 for none. statement_on:
        selects the statement of the routine for `begin_with_call`, with its resets; None: the statement of the call,
        with `resets`.

        resets: statements that reset the session after a transaction, whose commands may be any.
        """
        self._pool = pool
        self._watchdog = watchdog
        self._failures = failures
        self._call = call
        self._context = context
        self._ahead = ahead
        self._seconds = seconds
        self._resets = resets
        self._statement_on = statement_on
        self._refusals: Mapping[str, str] = {}
        """Reasons why the service cannot run the call now, by the SQLSTATE of a statement in front of it."""
        self._begin, self._commit = "begin", "commit"
        self._roll_back_commands: tuple[str, ...] = ("rollback",)
        self._connection: Connection | None = None
        self._open = False
        self._as_service = False
        """The command of `commit` needs the role of the service, which the call does not have."""
        self._notice_listener = None if call.hear is None else TransactionNotices(call.hear(context))
        """Receives the notices of all executions of the transaction."""
        self.sqlstate: str | None = None
        """SQLSTATE of the last command that failed."""
        self.in_doubt = False
        """The commit was sent, and its outcome is not known."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._open:
            self._roll_back(connection)
            if self._notice_listener is not None:
                self._notice_listener.close(committed=False)
        self._pool.let_go(connection, resets=self._resets)

    def _roll_back(self, connection: Connection) -> Execution:
        """Send ROLLBACK without waiting, and return its execution: nothing that follows on this connection runs before
        it. If it cannot be sent because another statement is in the middle of its rows, the connection is closed.
        """
        *before, last = (statement_for(command, 0) for command in self._roll_back_commands)
        execution = Execution(last, [], tuple((statement, []) for statement in before) or None)
        execution.timeout = RESET_SECONDS
        execution.on_done = lambda _request: self._release(connection)
        if not connection.submit(execution) and connection.state != ConnectionState.CLOSED:
            connection.close("a transaction was given up in the middle of a command")
        return execution

    async def begin(self) -> None:
        """Begin the transaction unless it has begun. Raises `Problem`: no connection is free, or the preamble fails."""
        if self._open:
            return
        *before, (statement, values) = await self._begin_statements()
        execution = Execution(statement, values, tuple(before) or None)
        await self._wait_for_execution(self._call, self._place(execution), ahead=True)

    async def begin_with(self, call: Call, values: Values) -> Execution:
        """Begin the transaction with a first command (`call` with `values`), in one segment, and return the finished
        execution of the command. Raises `Problem` if there is no connection, or the preamble or the command fails.
        """
        execution = Execution(call.statement(0), values, await self._begin_statements())
        execution.label = call.label
        return await self._wait_for_execution(call, self._place(execution))

    async def begin_with_call(self, first: Call, values: Values, refusals: Mapping[str, str]) -> None:
        """Begin the transaction with a command of the service (`first` with `values`) and the routine, in one segment.
        If the command fails, the routine does not run. No other command may run in the transaction, except that of
        `commit`. This command and that of `commit` run as the service, even if the preamble sets another role.

        refusals: details of the `UnavailableError` for errors of the command, by their SQLSTATE. Raises: see `call`.
        """
        connection = await self._acquire_connection()
        self._refusals = refusals
        statement = None
        if self._statement_on is not None:
            # The other commands are those of the service, so only the routine can have session effects.
            statement, self._resets = await self._statement_on(connection, self._call, self._context.mask)
        begin, *preamble = await self._begin_statements()
        self._as_service = self._sets_role()
        await self._run_call((begin, (first.statement(0), values), *preamble), statement)

    def _sets_role(self) -> bool:
        """Return whether the preamble may set a role."""
        preamble = self._call.preamble
        if preamble is None:
            return False
        return bool(preamble.commands) or b"role" in preamble.setting_values(self._context)[::2]

    async def _begin_statements(self) -> PrecedingStatements:
        """Acquire the connection, mark the transaction as open, and return the statements that begin it: BEGIN and the
        preamble. Raises `Problem` if no connection is free.
        """
        connection = await self._acquire_connection()
        connection.owned = self._open = True
        return ((statement_for(self._begin, 0), []), *self._ahead())

    async def _acquire_connection(self) -> Connection:
        """Return the connection of the transaction, which is acquired before its first use. Raises `Problem` if none is
        free.
        """
        if self._connection is None:
            connection = self._pool.try_acquire() or await self._pool.acquire()
            self._pool.hold(connection)
            self._connection = connection
        return self._connection

    def send(self, call: Call, values: Values, before: Sequence[Values] = ()) -> Execution:
        """Submit `call` with each of the values of `before` and then with `values`, all in one segment, and return the
        last execution, of whose result only the first row is stored. The transaction must have begun;
        `wait_for_execution` follows.

        Raises: Problem: the connection is lost.
        """
        statement = call.statement(0)
        execution = Execution(statement, values, tuple((statement, each) for each in before) or None)
        execution.first_row_only = True
        execution.label = call.label
        return self._place(execution)

    async def run(self, call: Call, values: Values) -> Execution:
        """Run a command (`call` with `values`) and return its finished execution. The transaction begins if it has not
        begun. Raises `Problem` if the command fails or the connection is lost.
        """
        await self.begin()
        return await self.wait_for_execution(call, self.send(call, values))

    async def wait_for_execution(self, call: Call, execution: Execution, *, quiet: bool = False) -> Execution:
        """Wait for an execution that `send` has submitted, and return it. Raises `Problem` if it failed; then only a
        return to a savepoint can run in the transaction.

        call: the one that was sent. quiet: a failure is not logged.
        """
        return await self._wait_for_execution(call, execution, quiet=quiet)

    async def command(self, sql: str) -> None:
        """Run a command of the service itself, without a result. The transaction begins if it has not begun. Raises
        `Problem` if the command fails or the connection is lost.
        """
        await self.begin()
        await self._wait_for_execution(self._call, self._place(Execution(statement_for(sql, 0), [])))

    async def set(self, settings: Values) -> None:
        """Set transaction-local settings: names and values in turn. The transaction begins if it has not begun. Raises
        `Problem` if that fails or the connection is lost.
        """
        await self.begin()
        await self._wait_for_execution(
            self._call, self._place(Execution(settings_statement(len(settings) // 2), settings))
        )

    async def call(self) -> None:
        """Run the routine with the arguments of the request context, and store its execution there. The transaction
        begins if it has not begun.

        Raises: Problem: it failed. ClientDisconnectedError: the client has disconnected.
        """
        await self.begin()
        await self._run_call(())

    async def _run_call(self, ahead: PrecedingStatements, statement: Statement | None = None) -> None:
        """Run the routine behind `ahead`, and then its `publish` command if it has one. statement: of the routine;
        None: the statement of the call. Raises as `call` does."""
        call, context = self._call, self._context
        execution = Execution(statement or call.statement(context.mask), context.arguments, ahead or None)
        execution.label = call.label
        execution.first_row_only = call.single
        context.execution = execution
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        try:
            await self._wait_for_execution(call, self._place(execution))
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            self._watchdog.forget(execution)
        if execution.abandoned:
            raise ClientDisconnectedError("the client has closed the connection")
        if call.publish is not None:
            publish, values = call.publish
            await self._wait_for_execution(publish, self._place(Execution(publish.statement(0), values(context))))

    async def commit(self, last: tuple[Call, Values] | None = None) -> None:
        """Commit, if the transaction has begun. If the task is cancelled meanwhile, the server's answer is awaited all
        the same, because the commit cannot be revoked, and the cancellation has no effect.

        last: a command that runs before COMMIT in the same segment, with its values; None: there is none. Raises
        `Problem`, also for deferred constraints.
        """
        if not self._open:
            return
        ahead: PrecedingStatements | None = None
        if last is not None:
            ahead = (*(_AS_SERVICE if self._as_service else ()), (last[0].statement(0), last[1]))
        execution = self._place(Execution(statement_for(self._commit, 0), [], ahead))
        connection = self._connection
        try:
            while execution.waiter is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({execution.waiter})
            await self._wait_for_execution(self._call, execution)
        finally:
            self.in_doubt = not execution.succeeded and not _is_rolled_back(execution)
            if connection is not None and execution.finished:
                self._open = False
                self._release(connection)
                if self._notice_listener is not None:
                    self._notice_listener.close(committed=execution.succeeded)

    async def roll_back(self) -> None:
        """Roll back, if the transaction has begun, and wait until its locks are free. At the end of the block this
        happens without waiting."""
        connection = self._connection
        if connection is None or not self._open:
            return
        execution = self._roll_back(connection)
        self._open = False
        if self._notice_listener is not None:
            self._notice_listener.close(committed=False)
        if connection.state != ConnectionState.CLOSED and not execution.finished:
            waiter = execution.waiter = execution.waiter or asyncio.get_running_loop().create_future()
            await waiter

    def _release(self, connection: Connection) -> None:
        """Mark the connection as free after the end of the transaction: other executions may use it."""
        connection.owned = False

    def _place(self, execution: Execution) -> Execution:
        """Submit the execution to the connection of the transaction, with a waiter and a time limit, and return it.
        Raises `Problem` if the connection is lost.
        """
        connection = self._connection
        execution.waiter = asyncio.get_running_loop().create_future()
        execution.connection = connection
        execution.notice_listener = self._notice_listener
        # A lost answer would otherwise be waited for without end: the server's own limit, which applies to each
        # statement of the segment, does not end that.
        execution.timeout = self._seconds * (1 + len(execution.ahead or ()))
        if connection is None or not connection.submit(execution):
            raise unavailable("the connection to the database was lost before the request took effect")
        return execution

    async def _wait_for_execution(
        self, call: Call, execution: Execution, *, ahead: bool = False, quiet: bool = False
    ) -> Execution:
        """Wait for the execution, and return it. Raises `Problem` if it failed.

        call: the command or routine that it runs. ahead: the execution contains nothing of the call itself. quiet: a
        failure is not logged.
        """
        waiter = execution.waiter
        if waiter is not None:
            await waiter
        if not execution.succeeded:
            execution.failed_ahead |= ahead and execution.error is not None
            raise self._problem(call, execution, quiet=quiet)
        return execution

    def _problem(self, call: Call, execution: Execution, *, quiet: bool = False) -> Problem:
        """Return the problem for a failed execution of the transaction. It is logged, except an error that `refusals`
        of `begin_with_call` names, and a guarded statement whose definition has changed. A statement that no longer
        fits the schema is replaced for the next request.

        call: the command or routine that the execution ran. quiet: a failed command is not logged.
        """
        # It cannot run again in this transaction; but a statement that no longer fits is built again for the next
        # request.
        own = call is self._call
        self._failures.renew(call, self._context.mask if own else 0, execution)
        error = execution.error
        self.sqlstate = None if error is None else error.sqlstate
        if self.sqlstate is not None and execution.failed_ahead and self.sqlstate in self._refusals:
            return unavailable(self._refusals[self.sqlstate])
        if guard_has_failed(execution):
            call.drop_guards(self._context.mask)
            return unavailable("the routine has changed")
        if own or error is None or execution.loss != Loss.NOT_LOST:
            return self._failures.problem(call, self._context, execution)
        # If a command names an object that the database lacks, the command is wrong: it was not checked before.
        message = hide_values(error.message, self._values(execution)) if call.sensitive else error.message
        problem = call.policy.problem(DatabaseError(error.sqlstate, message, column=error.column))
        text = message.replace("\n", "\\n")
        if not quiet:
            extra = log_extra(self._context.protocol)
            log.log(level_of(problem.status), "%s: %s: %s", call.label, error.sqlstate, text, extra=extra)
        problem.logged = True
        return problem

    def _values(self, execution: Execution) -> Iterator[bytes | None]:
        """Yield the values to hide in the message of an error, which may repeat them: the arguments of the client, and
        the values that were just sent to the server."""
        yield from self._context.arguments
        for _, values in execution.ahead or ():
            yield from values
        yield from execution.values


def _is_rolled_back(execution: Execution) -> bool:
    """Return whether a commit that has failed did certainly not take effect."""
    if execution.loss == Loss.NOT_LOST:
        return execution.error is not None
    return execution.loss != Loss.IN_DOUBT


class TransactionNotices:
    """Forwards the notices of all executions of a transaction to one listener, and reports the end of the transaction
    to it, but not the end of each execution.
    """

    __slots__ = ("_notice_listener",)

    def __init__(self, notice_listener: NoticeListener) -> None:
        self._notice_listener = notice_listener

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        self._notice_listener.hear(severity, sqlstate, message, hint)

    def send(self, message: str) -> None:
        self._notice_listener.send(message)

    def end(self, committed: bool) -> None:
        """Ignore the end of one execution."""

    def close(self, *, committed: bool) -> None:
        """Report the end of the transaction to the listener. committed: its effects are permanent."""
        self._notice_listener.end(committed)
