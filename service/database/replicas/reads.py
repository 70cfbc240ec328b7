"""Executions of read-only calls: on a replica if one qualifies, otherwise on the primary.

A failure caused by the replica is not returned: the same call runs again, on the primary. It has written nothing, so
that does no harm. Errors of the routine itself are returned, wherever it ran.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import psycopg

from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.replicas.replica import Replica
from rowcall.service.database.replicas.replicas import Replicas
from rowcall.service.request_context.deadline import DeadlineError
from rowcall.service.request_context.request_context import RequestContext, Running

log = logging.getLogger("rowcall.database")

READ_ONLY = "25006"
OF_THE_SERVER = frozenset({
    READ_ONLY, "40001", "40P01", "55000", "57P01", "57P02", "57P03", "57P05", "53100", "53200", "53300",
})  # fmt: skip
"""SQLSTATEs that are not caused by the call: it conflicted with the replay, it writes, or the server shuts down."""
NOT_THERE_YET = frozenset({"42P01", "42883", "42703", "42704", "3F000", "3D000", "26000", "0A000"})
"""Names that may have been created on the primary a moment ago."""

Begin = Callable[[Database, Call, RequestContext], Running]
"""Starts a call on a database, as `Database.begin` does."""
Position = Callable[[RequestContext], int | None]
"""Returns the WAL position up to which the client has written: a replica must have replayed that too. 0: nothing; None:
the primary must be read.
"""


class Reads:
    """Runs the requests of one read-only call. `begin` and `settle` are used like those of `Database`."""

    def __init__(
        self,
        call: Call,
        begin: Begin,
        primary: Database,
        replicas: Replicas,
        lag: float | None,
        position: Position,
        *,
        current: bool = False,
    ) -> None:
        """begin: starts a request of the call on a database. lag: largest accepted lag of a replica in seconds; None:
        any. current: a replica must have everything that is committed when the call begins.
        """
        self._call = call
        self._begin = begin
        self._primary = primary
        self._replicas = replicas
        self._lag = lag
        self._position = position
        self._current = current
        self._calls: dict[Replica, Call] = {}
        """The call for each replica, as durations are learned separately."""
        self._shared: dict[RequestContext, Replica] = {}
        """Request contexts whose execution runs by callbacks of the driver, which always end in `settle`."""
        self._writes = False
        """The routine has tried to write on a replica, so it is no longer sent to one."""

    def begin(self, context: RequestContext) -> Running:
        """Start the call on a replica that qualifies, else on the primary; if replicas lack only the position, wait for
        one first. `settle` follows. Raises `Problem` as `Database.begin` does.
        """
        position = None if self._writes else self._position(context)
        if position is None:
            return self._begin(self._primary, self._call, context)
        if self._current and self._replicas.usable_replicas(self._lag):
            return self._begin_current(context, position)
        replica = self._replicas.choose(self._lag, position)
        if replica is not None:
            return self._begin_on(replica, context)
        if position and self._replicas.usable_replicas(self._lag):
            return self._wait(context, position)
        return self._begin(self._primary, self._call, context)

    async def _begin_current(self, context: RequestContext, position: int) -> None:
        """Run the call on a replica that has everything that is committed now, as `_wait` does. If the primary cannot
        be asked what that is, `position` is enough, so that reads continue. Raises `Problem` if the call fails.
        """
        with contextlib.suppress(psycopg.Error):
            position = max(position, await self._replicas.primary.position())
        await self._wait(context, position)

    async def _wait(self, context: RequestContext, position: int) -> None:
        """Run the call on a replica once it has reached the WAL position; on the primary if none does so in time, or if
        the replica causes a failure. Raises `Problem` if the call fails.
        """
        replica = await self._replicas.wait_for(self._lag, position)
        if replica is None:
            await self._primary.run_alone(self._call, context)
            return
        try:
            await replica.database.run_alone(self._call_on(replica), context)
        except Problem as problem:
            await self._elsewhere(context, problem)

    def _begin_on(self, replica: Replica, context: RequestContext) -> Running:
        """Start the call on the replica; if the replica causes a failure, run it on the primary. Raises `Problem` as
        `Database.begin` does, from the returned object too.
        """
        try:
            waiting = self._begin(replica.database, self._call_on(replica), context)
        except Problem as problem:
            return self._elsewhere(context, problem)
        if isinstance(waiting, Execution):
            self._shared[context] = replica
            return waiting
        return None if waiting is None else self._fall_back_on_failure(context, waiting)

    def settle(self, context: RequestContext) -> Running:
        """Evaluate the finished execution, as `Database.settle` does. If the replica has caused a failure, the returned
        awaitable runs the call on the primary. Raises `Problem`.
        """
        replica = self._shared.pop(context, None)
        if replica is None:
            return self._primary.settle(self._call, context)
        try:
            waiting = replica.database.settle(self._call_on(replica), context)
        except Problem as problem:
            return self._elsewhere(context, problem)
        return (
            None if waiting is None or isinstance(waiting, Execution) else self._fall_back_on_failure(context, waiting)
        )

    async def _fall_back_on_failure(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        """Wait for a run on a replica; if the replica causes a failure, run the call on the primary. waiting: ends with
        the run, and raises its `Problem`. Raises `Problem` if the call fails.
        """
        try:
            await waiting
        except Problem as problem:
            await self._elsewhere(context, problem)

    async def _elsewhere(self, context: RequestContext, problem: Problem) -> None:
        """Run the call on the primary if the replica caused the problem; otherwise raise `problem`. All replicas are
        then checked again at once, and a call that tried to write is no longer sent to them.

        problem: the failure of the run on the replica. Raises `Problem` if the run on the primary fails.
        """
        sqlstate = _sqlstate(context)
        if isinstance(problem, DeadlineError) or not (_is_connection_failure(context, problem) or sqlstate in _OTHERS):
            raise problem
        if sqlstate == READ_ONLY and not self._writes:
            self._writes = True
            log.warning("%s writes, whatever it says of itself: it is no longer sent to replicas", self._call.label)
        self._replicas.check_now()
        log.info("%s: runs on the primary, as a replica has failed: %s", self._call.label, problem.detail)
        await self._primary.run_alone(self._call, context)

    def _call_on(self, replica: Replica) -> Call:
        """Return the call for this replica, with its own record of durations."""
        call = self._calls.get(replica)
        if call is None:
            call = self._calls[replica] = _without_learned_state(self._call)
        return call


_OTHERS = OF_THE_SERVER | NOT_THERE_YET


def _sqlstate(context: RequestContext) -> str:
    """Return the SQLSTATE of the last execution of the request; empty if it had no error of the server."""
    execution = context.execution
    return "" if execution is None or execution.error is None else execution.error.sqlstate


def _is_connection_failure(context: RequestContext, problem: Problem) -> bool:
    """Return whether the problem is that there was no connection, no room, or that the connection broke."""
    return problem.status == 503 and not _sqlstate(context)


def _without_learned_state(call: Call) -> Call:
    """Return a copy of the call for another server, without its prepared statements and measurements. Retries with
    delays are off: the primary is the next attempt.
    """
    return replace(
        call,
        retry=None,
        pace=PoolAssignment(call.pace.threshold),
        shared=False,
        guarded=({}, {}, {}, {}),
        installing_guards=set(),
        runs_alone=0,
        statements={},
        generic=set(),
        checked=set(),
        small=False,
        large=False,
        shared_settings=[],
        shared_ahead=None,
        known=False,
        seconds=0.0,
        wide=True,
    )
