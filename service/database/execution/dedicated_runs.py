"""Runs on dedicated connections: start, evaluation, and repetition where it is allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from rowcall.core.catalogue.session_effects import SessionEffect
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Script, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.execution.call_settings import CallSettings, timeout_setting
from rowcall.service.database.execution.pool_selection import PoolSelection
from rowcall.service.database.failures import AttemptState, Failures
from rowcall.service.database.pools.dedicated_pool import RESET_SECONDS, DedicatedPool
from rowcall.service.database.pools.overload import Overload
from rowcall.service.database.pools.pipelined_pool import QueuedTooLongError, RerouteError
from rowcall.service.database.pools.pool import NoticeHandler
from rowcall.service.database.preamble import PrecedingStatements, Values
from rowcall.service.database.session.guarded_statements import PREPARE_TIMEOUT, GuardedStatements
from rowcall.service.database.session.resets import DISCARD_SEQUENCES, FULL_RESET, resets
from rowcall.service.database.statements import settings_statement
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Running

ALONE = 3
"""Index of the dedicated pool in `Call.guarded`."""
GUARD_AFTER = 16
"""Number of runs of a routine on dedicated connections after which its guarded statement is prepared there too."""
WIDE_ROW = 16_384
"""Average bytes of a row from which rows are taken from libpq one by one."""


class DedicatedRuns:
    """Runs on the dedicated pool of one database. stream_after: bytes of a result from which it is streamed. pooler: a
    transaction pooler is in between.
    """

    def __init__(
        self,
        pool: DedicatedPool,
        pool_selection: PoolSelection,
        settings: CallSettings,
        failures: Failures,
        watchdog: Watchdog,
        guarded_statements: GuardedStatements,
        background: Background,
        *,
        stream_after: int,
        pooler: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = pool
        self._pool_selection = pool_selection
        self._settings = settings
        self._failures = failures
        self._watchdog = watchdog
        self._guarded_statements = guarded_statements
        self._background = background
        self._stream_after = stream_after
        self._pooler = pooler
        self.identifies_requests: NoticeHandler | None = None
        """Notice handler that also gets the request context or protocol to which a notice belongs. None: no handler
        needs it.
        """

    def begin(self, call: Call, context: RequestContext) -> Running:
        """Start a run on a dedicated connection; `settle` follows. Raises `Problem` if the pool refuses it, as for a
        full queue.

        Usually the driver runs it by callbacks and an `Execution` is returned: a task, its futures and a timer cost
        more than a small call does. A call with more to await (a procedure, a notice listener) is run by the awaitable
        that is returned.
        """
        if call.hear is not None or (call.procedure and not self._pooler):
            return self.run(call, context)
        execution = self.execution(call, context, waited=False)
        execution.alone = True
        context.execution = execution
        self._take_turn(call, context, execution)
        return execution

    def _take_turn(self, call: Call, context: RequestContext, execution: Execution) -> None:
        """Run the execution on an idle connection, or on the next one that becomes free. Raises `Problem` if the pool
        refuses it.
        """
        run_on = partial(self._run_next, call, context, execution)
        connection = self._pool.take_turn(run_on, execution.refuse, _remaining_seconds(execution))
        if connection is not None:
            self._run_next(call, context, execution, connection)

    def _run_next(self, call: Call, context: RequestContext, execution: Execution, connection: Connection) -> None:
        """Run the execution on this connection, after preparing its statement if necessary. If it has ended while it
        waited, the connection is released.
        """
        if execution.finished:
            self._pool.release(connection)
            return
        statement = self._ready(call, context.mask, connection)
        if statement is None:
            self._background.start(self._prepare_and_run(call, context, execution, connection))
            return
        try:
            self._run_with(call, context, execution, connection, statement)
        except Exception as error:
            self._refuse(execution, error)

    async def _prepare_and_run(
        self, call: Call, context: RequestContext, execution: Execution, connection: Connection
    ) -> None:
        """Prepare the statement on the connection, then run the execution there. An error ends the execution."""
        try:
            statement = await self._statement(call, execution, context.mask, connection)
            self._run_with(call, context, execution, connection, statement)
        except asyncio.CancelledError:
            execution.refuse(Overload.stopping_problem())
            raise
        except Exception as error:
            self._refuse(execution, error)

    @staticmethod
    def _refuse(execution: Execution, error: Exception) -> None:
        """End an execution that could not be started, with this error."""
        execution.connection = execution.on_free = None
        execution.refuse(error)

    def _run_with(
        self, call: Call, context: RequestContext, execution: Execution, connection: Connection, statement: Statement
    ) -> None:
        """Run the execution with this statement on the connection or, if that has closed, on the next one, and watch
        it.
        """
        if statement is not execution.statement:
            execution.use(statement)
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        if not self._send(connection, call, context, execution):
            # The connection has closed since it was acquired: take the next one.
            self._watchdog.forget(execution)
            execution.connection = execution.on_free = None
            self._take_turn(call, context, execution)

    def settle(self, call: Call, context: RequestContext, execution: Execution) -> Running:
        """Evaluate the finished execution. None: it succeeded or streams; otherwise it runs again, until the returned
        awaitable is done.

        Raises `Problem` if it failed and may not run again, and `ClientDisconnectedError` if the client disconnected
        while it ran.
        """
        if not execution.streaming:
            self._watchdog.forget(execution)
        if execution.connection is None and execution.failure is not None:
            raise execution.failure
        if self._record_end(call, context, execution):
            return None
        return self.run_again(call, context, execution)

    def run_again(self, call: Call, context: RequestContext, execution: Execution) -> Running:
        """Run a failed execution of any pool again, on a dedicated connection; the returned awaitable ends like `run`.

        Raises: Problem: it may not run again.
        """
        # If its time passed while it waited behind another request, its limit counts from the start of the next run.
        tries = AttemptState(began=0.0 if isinstance(execution.failure, QueuedTooLongError) else execution.began)
        pause = self._pause(call, context.mask, execution, tries)
        if pause is None:
            raise self._failures.problem(call, context, execution, tries)
        return self.run(call, context, tries, pause)

    def _record_end(self, call: Call, context: RequestContext, execution: Execution) -> bool:
        """Record the end of an execution on a dedicated connection for pool selection, and return True if it has
        succeeded or streams; False, without a record, if it has failed.

        Duration and size of the result are recorded. A streaming call is marked as large, so that it stays on dedicated
        connections; `_end_stream` follows at the end of its stream.

        Raises:
            ClientDisconnectedError: the client disconnected while it ran.
        """
        if execution.streaming:
            call.large = True
            call.wide = self._stream_after > WIDE_ROW * execution.rows
            self._pool_selection.assign(call)
            execution.on_free = partial(self._end_stream, call, context, execution.on_free)
            return True
        if not execution.succeeded:
            return False
        if execution.abandoned:
            # It ended before the cancel request arrived, but its rows have been dropped.
            raise ClientDisconnectedError("the client has closed the connection")
        call.wide = len(execution.body or b"") > WIDE_ROW * max(1, execution.rows)
        self._pool_selection.learn_alone(call, context.mask, execution, self._pool.busy)
        return True

    def _end_stream(
        self, call: Call, context: RequestContext, on_free: Callable[[Execution], None] | None, execution: Execution
    ) -> None:
        """Log why a stream broke, if it did, as its status was sent before; then call `on_free`. on_free: the callback
        that the execution had before it streamed, which frees the connection; None: there was none."""
        try:
            self._failures.report_broken(call, context, execution)
        finally:
            if on_free is not None:
                on_free(execution)

    async def run(
        self, call: Call, context: RequestContext, tries: AttemptState | None = None, pause: float | None = 0.0
    ) -> None:
        """Run the call on dedicated connections until a run succeeds or streams, and store the execution in the request
        context.

        tries: failed runs so far. pause: seconds before the first run; None and 0 mean at once.

        Raises `Problem` if a run failed and may not be repeated, and `ClientDisconnectedError` if the client
        disconnects meanwhile.
        """
        tries = tries or AttemptState()
        while True:
            if pause:
                await _wait(pause, context)
            execution = await self._run_once(call, context, tries)
            context.execution = execution
            if self._record_end(call, context, execution):
                return
            pause = self._pause(call, context.mask, execution, tries)
            if pause is None:
                raise self._failures.problem(call, context, execution, tries)

    def _pause(self, call: Call, mask: int, execution: Execution, tries: AttemptState) -> float | None:
        """Return the seconds until the call may run again after this failed execution, or None if it may not. A result
        that was too large for a pipelined connection moves the call to the dedicated pool. If the call is repeated
        after a failure, `on_repeat` is called.

        mask: of the statement that ran. tries: earlier failed runs of the request; this one is added, unless it only
        has to move to the dedicated pool.
        """
        if execution.overflowed:
            # The result is too large for a pipelined connection. The call is repeatable, or it would not have run
            # there.
            call.large = True
            self._pool_selection.assign(call)
            return 0.0
        if isinstance(execution.failure, RerouteError):
            return 0.0
        pause = self._failures.pause(call, mask, execution, tries)
        if pause is not None and call.on_repeat is not None:
            call.on_repeat()
        return pause

    async def _run_once(self, call: Call, context: RequestContext, tries: AttemptState) -> Execution:
        """Run the call once on a dedicated connection. The returned execution is finished or STREAMING.

        tries: the failed runs so far. The timeout of the call counts from `tries.began`, the start of the first run; if
        it is 0, it is set to the start of this run. Raises `Problem` if no connection is free in time.
        """
        pool = self._pool
        while True:
            execution = self.execution(call, context)
            # A silent repetition has the time that the runs before it have left.
            execution.began = tries.began = tries.began or execution.began
            connection = pool.try_acquire() or await pool.acquire(_remaining_seconds(execution))
            # If a guarded statement was refused once for this request, the next run does not use it.
            statement = execution.statement
            if not tries.trips:
                statement = await self._statement(call, execution, context.mask, connection)
            if statement is not execution.statement:
                execution = self.execution(call, context, statement)
                execution.began = tries.began
            if await self._run_on(connection, call, context, execution):
                return execution
            # The connection has closed since it was acquired: take the next one.

    async def _run_on(self, connection: Connection, call: Call, context: RequestContext, execution: Execution) -> bool:
        """Run the execution and wait for it. False: the connection had closed, and another one has to be used. If the
        task is cancelled, the execution is cancelled. Raises `Problem` if the session of a procedure cannot be
        prepared.
        """
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        self._set_owner(connection, context)
        try:
            if call.procedure and not self._pooler:
                await self._prepare_procedure(connection, call, context)
            if not self._send(connection, call, context, execution):
                return False
            # If the request ends before this is evaluated, its steps need to know what had begun.
            context.execution = execution
            waiter = execution.waiter
            if waiter is not None:
                await waiter
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            if not execution.streaming:
                self._watchdog.forget(execution)
        return True

    def _send(self, connection: Connection, call: Call, context: RequestContext, execution: Execution) -> bool:
        """Submit the execution together with its resets. False: the connection had closed, and another one has to be
        used.
        """
        resets = self._resets(call, execution.statement)
        # A script sends further statements, so a reset right behind the first would come too early.
        later = bool(resets) and type(execution.statement) is Script
        if later:
            execution.on_free = partial(self._reset, resets)
        elif not resets:
            execution.on_free = self._release
        self._set_owner(connection, context)
        if self._submit(connection, execution):
            self._pool.finish(connection, resets=[] if later else resets)
        elif connection.state == ConnectionState.READY:
            self._pool.release(connection)
        return execution.state != ExecutionState.WAITING

    def _set_owner(self, connection: Connection, context: RequestContext) -> None:
        """Let notices of the connection be attributed to this request, if the receiver of notices needs that."""
        if self.identifies_requests is not None:
            connection.on_notice = _notices_of(context.protocol, self.identifies_requests)

    def _ready(self, call: Call, mask: int, connection: Connection) -> Statement | None:
        """Return the statement with this mask for this connection, or None if its guarded statement has to be prepared
        first.

        Routines that often run here have a guarded statement, which needs no reset. The runs until then are counted.
        """
        if call.harmless and not self._pooler:
            guarded = call.guarded[ALONE].get(mask)
            if guarded is not None and connection.knows(guarded):
                return guarded
            call.runs_alone += 1
            if call.runs_alone > GUARD_AFTER:
                return None
        return call.statement(mask)

    async def _statement(self, call: Call, execution: Execution, mask: int, connection: Connection) -> Statement:
        """Return the statement with this mask for this connection, and prepare it if necessary; this takes at most half
        of the remaining time of `execution`. If that raises, the connection is released.
        """
        statement = self._ready(call, mask, connection)
        if statement is not None:
            return statement
        try:
            remaining = _remaining_seconds(execution)
            seconds = min(PREPARE_TIMEOUT, remaining / 2) if remaining > 0 else PREPARE_TIMEOUT
            ready = await self._guarded_statements.install_guards(call, mask, ALONE, connection, seconds)
        except BaseException:
            self._pool.release(connection)
            raise
        return call.guarded[ALONE][mask] if ready else call.statement(mask)

    async def statement_on(self, connection: Connection, call: Call, mask: int) -> tuple[Statement, list[Statement]]:
        """Return the statement of the call with this mask for a connection that the caller holds, and the resets that
        it needs.
        """
        statement = self._ready(call, mask, connection)
        if statement is None:
            ready = await self._guarded_statements.install_guards(call, mask, ALONE, connection)
            statement = call.guarded[ALONE][mask] if ready else call.statement(mask)
        return statement, self._resets(call, statement)

    def _resets(self, call: Call, statement: Statement) -> list[Statement]:
        """Return the statements that reset the session effects of this statement."""
        if self._pooler or statement.guarded or self._pool_selection.trusts(call):
            return []
        # Without a guard, a routine that was found to have no session effects may have been replaced since.
        if not call.session.traces:
            return FULL_RESET
        # Settings of a procedure are set at session level by this service, so they are reset too.
        return resets(
            frozenset({*call.session.traces, SessionEffect.SETTINGS}) if call.procedure else call.session.traces
        )

    def execution(
        self, call: Call, context: RequestContext, statement: Statement | None = None, *, waited: bool = True
    ) -> Execution:
        """Return a new execution of the call. statement: instead of that of the call. waited: it gets a future that is
        done at its end.
        """
        may_stream = call.rows and not call.single
        watched = may_stream and (call.large or not call.small)
        limit = self._settings.limit(call, context)
        ahead = self._settings.dedicated_preceding_statements(call, context, watched=watched, seconds=limit)
        execution = Execution(statement or call.statement(context.mask), context.arguments, ahead or None)
        execution.label = call.label
        execution.first_row_only = call.single
        execution.wide_rows = call.wide or call.flush_rows > 0
        execution.flush_rows = call.flush_rows
        stream_after = self._stream_after if call.stream_after is None else call.stream_after
        execution.stream_after = stream_after if may_stream else 0
        execution.timeout = limit
        # Behind a pooler nothing can be set at session level in front of a CALL.
        execution.unlimited = watched or (call.procedure and self._pooler)
        if call.hear is not None:
            execution.notice_listener = call.hear(context)
        if waited:
            execution.waiter = self._loop.create_future()
        return execution

    def _submit(self, connection: Connection, execution: Execution) -> bool:
        """Submit the execution, and hold its bytes back until the resets follow. False: the connection had closed."""
        execution.connection = connection
        # Keep the output back: the resets are sent in the same write.
        connection.corked = True
        try:
            connection.corked = connection.submit(execution)
        except BaseException:
            connection.corked = False
            self._pool.release(connection)
            raise
        return connection.corked

    def _release(self, execution: Execution) -> None:
        """Return the connection of an execution to the pool, if it is open."""
        connection = execution.connection
        if connection is not None and connection.state != ConnectionState.CLOSED:
            self._pool.release(connection)

    def _reset(self, resets: list[Statement], execution: Execution) -> None:
        """Send these resets behind an execution that consisted of several statements."""
        if execution.connection is not None:
            self._pool.finish(execution.connection, resets=resets)

    async def _prepare_procedure(self, connection: Connection, call: Call, context: RequestContext) -> None:
        """Set settings and run commands of a CALL at session level in front of it: in its own segment they would keep
        the procedure from committing (driver-12), or end when it commits. The reset behind the call reverts them.
        Cached values of sequences are discarded if the procedure reads them.

        If this fails, the connection is closed. Raises `Problem`.
        """
        if call.session.reads_sequences:
            discard = Execution(DISCARD_SEQUENCES, [])
            discard.timeout = RESET_SECONDS
            connection.submit_all(discard, [DISCARD_SEQUENCES])
        if call.wrapped:
            return
        try:
            settings: Values = []
            if call.timeout is not None or context.deadline:
                settings += timeout_setting(self._settings.limit(call, context))
            if call.preamble is not None:
                settings += call.preamble.setting_values(context)
            ahead: PrecedingStatements = (
                ((settings_statement(len(settings) // 2, local=False), settings),) if settings else ()
            )
            if call.preamble is not None and call.preamble.lasts:
                ahead += call.preamble.lasting_commands(context)
            if not ahead:
                return
            statement, values = ahead[-1]
            execution = Execution(statement, values, ahead[:-1] or None)
            limit = self._settings.limit(call, context)
            execution.timeout = min(RESET_SECONDS, limit) if limit > 0 else RESET_SECONDS
            execution.waiter = waiter = self._loop.create_future()
            # A changed role shows in the parameters that the server reports, and is no reason to close the connection
            # here: it is compared again behind the reset.
            connection.owned = True
            if connection.submit(execution):
                await waiter
            connection.accept_session()
            connection.owned = False
        except BaseException:
            connection.close("its session was left half prepared")
            raise
        if execution.error is not None or execution.failure is not None:
            connection.close("its session could not be prepared")
            raise self._failures.problem(call, context, execution)


def _remaining_seconds(execution: Execution) -> float:
    """Remaining seconds of the execution's limit; 0: it has no limit."""
    return max(0.001, execution.timeout - execution.elapsed) if execution.timeout > 0 else 0.0


async def _wait(seconds: float, context: RequestContext) -> None:
    """Sleep before a retry. Raises `ClientDisconnectedError` if the client disconnects meanwhile."""
    disconnect = asyncio.ensure_future(context.protocol.client_disconnect())
    done, _ = await asyncio.wait({disconnect}, timeout=seconds)
    disconnect.cancel()
    if done:
        raise ClientDisconnectedError("the client has left before the command was tried again")


def _notices_of(protocol: Any, handler: NoticeHandler) -> NoticeHandler:
    """Return a notice handler for a connection that works for one request only: it reports all notices as those of
    `protocol`."""

    def handle(
        label: str | None, severity: str, sqlstate: str, message: str, context: str | None, _owner: object
    ) -> None:
        handler(label, severity, sqlstate, message, context, protocol)

    return handle
