"""Runs calls: selects the pool, repeats what may be repeated, and converts final failures into a `Problem`.

`Database.begin` and `settle` put an `Execution` into the request context: one that succeeded, or one that is STREAMING,
whose connection the caller goes on reading (`service.response.streaming`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import psycopg

from rowcall.ext.driver.execution import Execution, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.execution.call_settings import CallSettings, discard_of_sequences
from rowcall.service.database.execution.dedicated_runs import DedicatedRuns
from rowcall.service.database.execution.plain_runs import PlainRuns
from rowcall.service.database.execution.pool_selection import PoolSelection
from rowcall.service.database.failures import Failures
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.pools.pipelined_pool import PipelinedPool, Width
from rowcall.service.database.pools.pool import STOPPING, NoticeHandler, PoolLoad
from rowcall.service.database.preamble import PrecedingStatements, preceding_settings
from rowcall.service.database.session.guarded_statements import GuardedStatements
from rowcall.service.database.session.resets import FULL_RESET
from rowcall.service.database.transactions.joint_transaction import JointTransaction
from rowcall.service.database.transactions.shared_session import SharedSession
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.deadline import DeadlineError, is_past
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Running

log = logging.getLogger("rowcall.database")

CANCEL_WITHIN = 2.0
"""Seconds for the cancel requests of a service that stops."""


class Database:
    """The connection pools of one worker for one database."""

    dedicated_pool: type[DedicatedPool] = DedicatedPool
    dedicated_runs: type[DedicatedRuns] = DedicatedRuns

    def __init__(self, target: ConnectionTarget, options: DatabaseOptions) -> None:
        pools = options.pools
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._pooler = target.pooler
        self._connector = Connector(target)
        self._exclusive = self.dedicated_pool(self._connector, pools)
        fixed = {"jit": "off"}
        self._shared = PipelinedPool("shared", Connector(target, **fixed), pools, options.pools.slow)
        generic = Connector(target, plan_cache_mode="force_generic_plan", **fixed)
        self._generic = PipelinedPool("generic", generic, pools, options.pools.slow, number=1)
        most = pools.write_connections
        width = Width(
            min(2, most), min(4, most), most, pools.write_depth, max(pools.write_depth, pools.pipelined_depth)
        )
        self._writes = PipelinedPool("write", self._connector, pools, options.pools.slow, width=width, number=2)
        shared = (self._shared, self._generic, self._writes)
        for pool in shared:
            pool.elsewhere = self._exclusive.room
        self._guarded_statements = GuardedStatements()
        self._background = Background()
        self._watchdog = Watchdog(self._connector, self._exclusive, shared, self._background)
        self._failures = Failures(pools.dedicated_connections)
        self._settings = CallSettings(options.timeout, pooler=target.pooler)
        self._pool_selection = PoolSelection(
            options,
            self._connector,
            shared,
            self._guarded_statements,
            self._watchdog.contention,
            self._background,
            pooler=target.pooler,
        )
        self._place = self._pool_selection.place
        self._alone = self.dedicated_runs(
            self._exclusive,
            self._pool_selection,
            self._settings,
            self._failures,
            self._watchdog,
            self._guarded_statements,
            self._background,
            stream_after=options.pools.stream_after,
            pooler=target.pooler,
        )
        self.replicas: tuple[Database, ...] = ()
        """Read replicas on which some requests may run."""
        self.unreached: str | None = None
        """Why the first connection could not be opened."""

    @property
    def on_stale(self) -> Callable[[], None] | None:
        """Called to request another reading of the catalogue: a statement no longer fits the schema, or a definition
        differs from the analysed one. None: nothing is called."""
        return self._failures.on_stale

    @on_stale.setter
    def on_stale(self, callback: Callable[[], None] | None) -> None:
        self._failures.on_stale = callback
        self._guarded_statements.on_changed = callback

    @property
    def _pools(self) -> tuple[DedicatedPool | PipelinedPool, ...]:
        return (self._exclusive, self._shared, self._generic, self._writes)

    # --- life ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the watchdog and open one connection. If that fails, the reason is stored in `unreached`."""
        self._watchdog.start()
        try:
            await self._exclusive.warm()
        except psycopg.Error as error:
            # While the service starts, the supervisor logs an unreachable database, for all of its processes.
            log.debug("cannot connect yet: %s", str(error).strip())
            self.unreached = " ".join(str(error).split())

    def set_notice_handler(self, handler: NoticeHandler, *, identify_requests: bool = False) -> None:
        """Set the function that is called with each notice. identify_requests: it also gets the request context, or the
        protocol, of the request to which the notice belongs.
        """
        self._alone.identifies_requests = handler if identify_requests else None
        for pool in self._pools:
            pool.on_notice = handler

    async def close(self) -> None:
        """Cancel running executions, as the server would continue them after their connections are closed. Then close
        all connections.
        """
        self._watchdog.stop()
        running = [(connection, connection.head) for connection in self._exclusive.connections]
        cancels = [
            self._loop.create_task(self._exclusive.cancel(connection, head))
            for connection, head in running
            if head is not None
        ]
        if cancels:
            await asyncio.wait(cancels, timeout=CANCEL_WITHIN)
        self._background.cancel()
        for pool in self._pools:
            pool.close()
            for connection in list(pool.connections):
                connection.close(STOPPING)

    def go_away(self, why: str) -> None:
        """Refuse waiting executions and close all connections because the server cannot be reached. New executions are
        refused until `come_back`. why: for the log.
        """
        for pool in self._pools:
            pool.go_away()
        for pool in self._pools:
            for connection in list(pool.connections):
                connection.close(why)

    def come_back(self) -> None:
        """Accept executions again after `go_away`."""
        for pool in self._pools:
            pool.away = False

    def end_stream(self, execution: Execution, *, gone: bool) -> None:
        """Finish a streaming execution. gone: the client has disconnected before the end."""
        for replica in self.replicas:
            # Nothing else records on which server it has run.
            if replica.streams(execution):
                replica.end_stream(execution, gone=gone)
                return
        if gone:
            self._watchdog.abandon(execution)
        self._watchdog.forget(execution)

    def streams(self, execution: Execution) -> bool:
        """Return whether the execution runs on a dedicated connection of this database and has not been settled."""
        return self._watchdog.watches(execution)

    def load(self) -> Iterator[PoolLoad]:
        """Yield the load of each pool."""
        yield PoolLoad("exclusive", len(self._exclusive.connections), self._exclusive.busy, self._exclusive.waiting)
        for pool in (self._shared, self._generic, self._writes):
            under_way = sum(connection.in_flight for connection in pool.connections)
            yield PoolLoad(pool.name, len(pool.connections), under_way, pool.waiting)

    @property
    def pooled(self) -> bool:
        """Whether a transaction pooler is in between, so that a connection does not keep one session of PostgreSQL."""
        return self._pooler

    @property
    def watching(self) -> bool:
        """Whether an execution runs on a dedicated connection."""
        return bool(self._watchdog)

    def forget_names(self) -> None:
        """Drop the cached names of user-defined objects, after a change of the schema."""
        self._pool_selection.forget_names()

    # --- running ---------------------------------------------------------------------------------------------------

    def begin(self, call: Call, context: RequestContext) -> Running:
        """Start `call` with the arguments of `context`. When the returned object is done, `settle` follows.

        Raises `Problem`, here or from the returned object, if there is no connection: the queue is full, the wait was
        too long, the database is away, or the service is stopping. The returned object raises `ClientDisconnectedError`
        if the client disconnected while it ran.
        """
        if call.shared and (place := self._place(call, context.mask)) is not None:
            pool, statement = place
            execution = self._shared_request(call, statement, context.arguments)
            if pool.submit(execution):
                context.execution = execution
                return execution
        return self._alone.begin(call, context)

    def begin_with_preamble(self, call: Call, context: RequestContext) -> Running:
        """`begin` for a call with a preamble, which is sent in front of it."""
        if call.shared and call.preamble is not None and (place := self._place(call, context.mask)) is not None:
            pool, statement = place
            execution = self._shared_request(call, statement, context.arguments)
            execution.ahead = (
                discard_of_sequences(call) + call.preamble.preceding_statements(context, call.shared_settings)
            ) or None
            if pool.submit(execution):
                context.execution = execution
                return execution
        return self._alone.begin(call, context)

    def begin_by_deadline(self, call: Call, context: RequestContext) -> Running:
        """`begin` for a call whose requests may have a deadline. The remaining time is sent to the server as the limit.

        Raises `DeadlineError` if the deadline has passed, and `Problem` as `begin` does.
        """
        if not context.deadline:
            return (self.begin if call.preamble is None else self.begin_with_preamble)(call, context)
        if is_past(context):
            raise DeadlineError(context)
        if call.shared and (place := self._place(call, context.mask)) is not None:
            pool, statement = place
            execution = self._shared_request(call, statement, context.arguments)
            execution.timeout = self._settings.limit(call, context)
            ahead = self._settings.preceding_statements(call, context, watched=False, seconds=execution.timeout)
            execution.ahead = (discard_of_sequences(call) + ahead) or None
            if pool.submit(execution):
                context.execution = execution
                return execution
        return self._alone.run(call, context)

    def settle(self, call: Call, context: RequestContext) -> Running:
        """Evaluate the finished execution. None: it has succeeded, or streams. Otherwise the result has to be awaited:
        the call runs again on a dedicated connection.

        Raises: Problem: it failed. ClientDisconnectedError: the client disconnected while it ran.
        """
        execution = context.execution
        if execution is None:
            return None
        if execution.alone:
            return self._alone.settle(call, context, execution)
        if execution.connection is not None:
            return None  # `DedicatedRuns.run` has evaluated it.
        if execution.succeeded:
            self._pool_selection.learn_shared(call, context.mask, execution)
            return None
        if isinstance(execution.failure, ClientDisconnectedError):
            raise execution.failure
        self._pool_selection.learn_failed(call, execution)
        return self._alone.run_again(call, context, execution)

    def shared_session(self) -> SharedSession:
        """Return a session for several calls of one request on one connection."""
        request_of = self._alone.execution
        unknown = [] if self._pooler else FULL_RESET
        return SharedSession(self._exclusive, self._watchdog, self._failures, request_of, resets=unknown)

    def plain_runs(self) -> PlainRuns:
        """Return the runs of single statements without a `Call`. They have no time limit of the service: callers set
        one in PostgreSQL.
        """
        options = self._options
        return PlainRuns(
            self._exclusive,
            self._shared if options.pools.sharing else None,
            self._watchdog,
            seconds=0.0,
            slow=options.pools.slow,
            most_bytes=options.shared_limit,
        )

    def maintenance_connection(self) -> AbstractAsyncContextManager[psycopg.AsyncConnection[tuple[object, ...]]]:
        """Open a maintenance connection (`Connector.maintenance_connection`)."""
        return self._connector.maintenance_connection()

    def transaction(self, call: Call, context: RequestContext) -> Transaction:
        """Return a transaction for many commands of one request and its call."""
        return self._transaction(Transaction, call, context)

    def _transaction(self, kind: Callable[..., Transaction], call: Call, context: RequestContext) -> Transaction:
        """Return a transaction of this kind, a class with the constructor of `Transaction`, for the call."""

        def preceding_statements() -> PrecedingStatements:
            return self._settings.preceding_statements(
                call, context, watched=False, seconds=self._settings.limit(call, context)
            )

        return kind(
            self._exclusive,
            self._watchdog,
            self._failures,
            call,
            context,
            preceding_statements,
            seconds=self._settings.limit(call, context),
            resets=[] if self._pooler else FULL_RESET,
            statement_on=self._alone.statement_on,
        )

    def joint_transaction(self, context: RequestContext) -> JointTransaction:
        """Return a transaction for the calls of several requests. context: of all of them together."""
        return JointTransaction(
            self._exclusive,
            self._watchdog,
            self._failures,
            context,
            self._settings,
            resets=[] if self._pooler else FULL_RESET,
        )

    async def run_alone(self, call: Call, context: RequestContext) -> None:
        """Run the call on a dedicated connection, as `begin` and `settle` do, and wait for its end. Raises `Problem`
        and `ClientDisconnectedError` as they do.
        """
        await self._alone.run(call, context)

    def _shared_request(self, call: Call, statement: Statement, values: list[bytes | None]) -> Execution:
        """Return the execution of a request in a pipelined pool, behind the settings of the call but without its
        preamble. values: its arguments.
        """
        if not call.known:
            # These are the same for every request of the call, so the first one computes them.
            call.seconds = self._settings.timeout(call)
            call.shared_settings = self._settings.values(call, watched=False, seconds=call.seconds)
            call.shared_ahead = (discard_of_sequences(call) + preceding_settings(call.shared_settings)) or None
            call.known = True
        execution = Execution(statement, values, call.shared_ahead)
        execution.label = call.label
        # A write cannot be repeated in another pool, however large its result is.
        execution.limit = 0 if call.volatile else self._options.shared_limit
        execution.first_row_only = call.single
        execution.timeout = call.seconds
        return execution
