"""One transaction over several requests to the server, for what runs many commands before its routine does.

    async with database.transaction(call, exchange) as transaction:
        await transaction.run(command, values)
        await transaction.call()
        await transaction.commit()

It begins with the first command, with everything that the request brings along for its routine: row commands see the
same settings. Without `commit` everything is rolled back. Commands may be sent without waiting for the one before; of
those in one segment, only the result of the last is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from rowcall.core.errors.error_policy import DatabaseError
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Loss, Statement
from rowcall.service.database.call import Call, NoticeListener
from rowcall.service.database.failures import Failures, level_of
from rowcall.service.database.pools.dedicated import RESET_SECONDS, DedicatedPool
from rowcall.service.database.preamble import Ahead, Values
from rowcall.service.database.statements import settings_statement, statement_for
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.redaction import hide_values
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext

log = logging.getLogger("rowcall.database")


class Transaction:
    def __init__(
        self,
        pool: DedicatedPool,
        watchdog: Watchdog,
        failures: Failures,
        call: Call,
        context: RequestContext,
        ahead: Callable[[], Ahead],
        *,
        seconds: float,
        resets: list[Statement],
    ) -> None:
        """ahead: what the request brings along. seconds: that the call may take."""
        self._pool = pool
        self._watchdog = watchdog
        self._failures = failures
        self._call = call
        self._context = context
        self._ahead = ahead
        self._seconds = seconds
        self._resets = resets
        self._connection: Connection | None = None
        self._open = False
        self._notice_listener = None if call.hear is None else _Throughout(call.hear(context))
        """Hears the notices of everything that runs in here."""
        self.sqlstate: str | None = None
        """Of the last command that failed."""

    async def __aenter__(self) -> Transaction:
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

    def _roll_back(self, connection: Connection) -> None:
        """Not waited for: nothing that follows on this connection runs before it."""
        execution = Execution(statement_for("rollback", 0), [])
        execution.timeout = RESET_SECONDS
        execution.on_done = lambda _request: _no_longer_owned(connection)
        if not connection.submit(execution) and connection.state != ConnectionState.CLOSED:
            connection.close("a transaction was given up in the middle of a command")

    async def begin(self) -> None:
        """Raises `Problem` when there is no connection, or for what the request brings along."""
        if self._open:
            return
        connection = self._pool.try_acquire() or await self._pool.acquire()
        self._pool.hold(connection)
        self._connection = connection
        connection.owned = self._open = True
        whole: Ahead = ((statement_for("begin", 0), []), *self._ahead())
        statement, values = whole[-1]
        execution = Execution(statement, values, whole[:-1] or None)
        await self._finished(self._call, self._place(execution), ahead=True)

    def send(self, call: Call, values: Values, before: Sequence[Values] = ()) -> Execution:
        """Places a run of `call` behind those of `before`, all of them one segment. `finished` follows.

        Raises:
            Problem: the connection is gone.
        """
        statement = call.statement(0)
        execution = Execution(statement, values, tuple((statement, each) for each in before) or None)
        execution.first_row_only = True
        execution.label = call.label
        return self._place(execution)

    async def run(self, call: Call, values: Values) -> Execution:
        """One run, finished. Raises `Problem`."""
        await self.begin()
        return await self.finished(call, self.send(call, values))

    async def finished(self, call: Call, execution: Execution) -> Execution:
        """Raises `Problem` for what failed. Nothing else can run then."""
        return await self._finished(call, execution)

    async def command(self, sql: str) -> None:
        """A command of the service's own that gives nothing. Raises `Problem`."""
        await self.begin()
        await self._finished(self._call, self._place(Execution(statement_for(sql, 0), [])))

    async def set(self, settings: Values) -> None:
        """Settings of the transaction: names and values in turn. Raises `Problem`."""
        await self.begin()
        await self._finished(self._call, self._place(Execution(settings_statement(len(settings) // 2), settings)))

    async def call(self) -> None:
        """The routine, with the arguments of the exchange; what it gave is put there.

        Raises:
            Problem: it failed.
            ClientGoneError: nobody waits for it any more.
        """
        await self.begin()
        call, context = self._call, self._context
        execution = Execution(call.statement(context.mask), context.arguments)
        execution.label = call.label
        execution.first_row_only = call.single
        context.execution = execution
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        try:
            await self._finished(call, self._place(execution))
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            self._watchdog.forget(execution)
        if execution.abandoned:
            raise ClientDisconnectedError("the client has closed the connection")

    async def commit(self) -> None:
        """Whoever is cancelled meanwhile waits for the answer all the same, and it counts: nobody can call it back.

        Raises `Problem`, also for what is only checked now.
        """
        if not self._open:
            return
        execution = self._place(Execution(statement_for("commit", 0), []))
        connection = self._connection
        try:
            while execution.waiter is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({execution.waiter})
            await self._finished(self._call, execution)
        finally:
            if connection is not None and execution.finished:
                self._open = False
                _no_longer_owned(connection)
                if self._notice_listener is not None:
                    self._notice_listener.close(committed=execution.succeeded)

    def _place(self, execution: Execution) -> Execution:
        connection = self._connection
        execution.waiter = asyncio.get_running_loop().create_future()
        execution.connection = connection
        execution.notice_listener = self._notice_listener
        # A lost answer would otherwise be waited for without end: the server's own limit, one for each statement of the
        # segment, does not end that.
        execution.timeout = self._seconds * (1 + len(execution.ahead or ()))
        if connection is None or not connection.submit(execution):
            raise unavailable("the connection to the database was lost before the request took effect")
        return execution

    async def _finished(self, call: Call, execution: Execution, *, ahead: bool = False) -> Execution:
        """ahead: nothing of the call itself is in it."""
        waiter = execution.waiter
        if waiter is not None:
            await waiter
        if not execution.succeeded:
            execution.failed_ahead |= ahead and execution.error is not None
            raise self._problem(call, execution)
        return execution

    def _problem(self, call: Call, execution: Execution) -> Problem:
        # It cannot run again in here; but a statement that no longer fits is made anew for the next request.
        own = call is self._call
        self._failures.renew(call, self._context.mask if own else 0, execution)
        error = execution.error
        self.sqlstate = None if error is None else error.sqlstate
        if own or error is None or execution.loss != Loss.NOT_LOST:
            return self._failures.problem(call, self._context, execution)
        # What a command names and the database lacks is the command's mistake: nobody has looked at it before.
        message = hide_values(error.message, self._values(execution)) if call.sensitive else error.message
        problem = call.policy.problem(DatabaseError(error.sqlstate, message, column=error.column))
        text = message.replace("\n", "\\n")
        log.log(level_of(problem.status), "%s: %s: %s", call.label, error.sqlstate, text)
        problem.logged = True
        return problem

    def _values(self, execution: Execution) -> Iterator[bytes | None]:
        """What a message may repeat: what the client has sent, and what of it went to the server just now."""
        yield from self._context.arguments
        for _, values in execution.ahead or ():
            yield from values
        yield from execution.values


class _Throughout:
    """Hears all requests of a transaction, of which none is its end."""

    __slots__ = ("_notice_listener",)

    def __init__(self, notice_listener: NoticeListener) -> None:
        self._notice_listener = notice_listener

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        self._notice_listener.hear(severity, sqlstate, message, hint)

    def tell(self, message: str) -> None:
        self._notice_listener.tell(message)

    def end(self, committed: bool) -> None:
        """Of one request."""

    def close(self, *, committed: bool) -> None:
        """Of the transaction."""
        self._notice_listener.end(committed)


def _no_longer_owned(connection: Connection) -> None:
    connection.owned = False
