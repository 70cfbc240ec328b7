"""Runs calls: picks the lane, repeats what may be repeated, and turns what is left into a `Problem`.

`Database.begin` and `settle` put a `Request` into the exchange that succeeded, or one that is STREAMING and whose
connection the caller goes on with (`service.response.streaming`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg

from rowcall.core.catalogue.session_state import Trace
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.request import Request, RequestState, Script, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.connector import SESSION, Connector, Target, statement_timeout
from rowcall.service.database.context import Ahead, Values, ahead_of
from rowcall.service.database.failures import Failures, Tries
from rowcall.service.database.generic_plans import UserNames, generic_plan, is_eligible, read_user_names
from rowcall.service.database.held.several_calls import SeveralCalls
from rowcall.service.database.held.transaction import Transaction
from rowcall.service.database.lanes.exclusive import RESET_SECONDS, ExclusiveLane
from rowcall.service.database.lanes.lane import STOPPING, LaneLoad, LaneOptions, NoticeHandler
from rowcall.service.database.lanes.overload import Overload
from rowcall.service.database.lanes.shared import ElsewhereError, SharedLane, Width
from rowcall.service.database.session.resets import DISCARD_SEQUENCES, FULL_RESET, resets
from rowcall.service.database.session.wires import Wires
from rowcall.service.database.statements import settings_statement
from rowcall.service.database.watchdog import HELD_UP, Watchdog
from rowcall.service.exchange.deadline import DeadlineError, is_past
from rowcall.service.exchange.exchange import ClientGoneError, Exchange, Running

log = logging.getLogger("rowcall.database")

# Behind a transaction pooler no session is ours, so what the text of values depends on travels with each request.
POOLED_SETTINGS: Values = [
    part.encode() for name, value in SESSION.items() if not name.startswith("tcp_") for part in (name, value)
]

ALONE = 3
"""Place of the exclusive lane in `Call.wired`."""
ARM_AFTER = 16
"""Runs on exclusive connections after which a routine is worth preparing for there."""
WAITED = 16
"""Times the threshold: a call that writes and takes this long has waited for a lock, or will soon hold up others. Less
says nothing as long as it is rare (`LaneChoice` counts): where processors are busy, one call in a hundred takes four
times the threshold, and running alone costs service and server nearly twice the processor time."""
PROCESSORS = os.cpu_count() or 1
WIDE_ROW = 16_384
"""Bytes of a row from which rows are taken from libpq one by one."""
CANCEL_WITHIN = 2.0
"""Seconds for the cancel requests of a service that stops."""


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """How one worker uses the database. Times in seconds."""

    lanes: LaneOptions = field(default_factory=LaneOptions)
    sharing: bool = True
    share_writes: bool = True
    """VOLATILE routines that leave nothing in their session share connections, too."""
    trust_stable: bool = False
    """What is declared STABLE or IMMUTABLE is taken to leave nothing, whatever was found."""
    slow: float = 0.003
    """Server time from which a call counts as slow."""
    timeout: float = 30.0
    stream_after: int = 524_288
    """Bytes of a result after which it leaves as a stream."""
    shared_limit: int = 1_048_576
    """Bytes of a result that a shared connection may buffer."""


class Database:
    """The connections of one worker."""

    def __init__(self, target: Target, options: DatabaseOptions) -> None:
        lanes = options.lanes
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._pooler = target.pooler
        self._connector = Connector(target)
        self._exclusive = ExclusiveLane(self._connector, lanes)
        fixed = {"jit": "off"}
        self._shared = SharedLane("shared", Connector(target, **fixed), lanes, options.slow)
        generic = Connector(target, plan_cache_mode="force_generic_plan", **fixed)
        self._generic = SharedLane("generic", generic, lanes, options.slow, number=1)
        most = lanes.write_connections
        width = Width(min(2, most), min(4, most), most, lanes.write_depth, max(lanes.write_depth, lanes.shared_depth))
        # Apart from the others, so that a wait for a lock never stands before a read.
        self._writes = SharedLane("write", self._connector, lanes, options.slow, width=width, number=2)
        for lane in (self._shared, self._generic, self._writes):
            lane.elsewhere = self._exclusive.room
        self._wires = Wires()
        self._names: UserNames | None = None
        self._background = Background()
        shared = (self._shared, self._generic, self._writes)
        self._watchdog = Watchdog(self._connector, self._exclusive, shared, self._background)
        self._contention = self._watchdog.contention
        self._failures = Failures(lanes.exclusive_connections)
        self.replicas: tuple[Database, ...] = ()
        """Where some of its requests may run."""
        self._tells_whose: NoticeHandler | None = None
        self.unreached: str | None = None
        """Why the first connection could not be made."""

    @property
    def on_stale(self) -> Callable[[], None] | None:
        """Called when a statement no longer fits the schema even after it was prepared anew."""
        return self._failures.on_stale

    @on_stale.setter
    def on_stale(self, callback: Callable[[], None] | None) -> None:
        self._failures.on_stale = callback
        self._wires.on_changed = callback

    @property
    def _lanes(self) -> tuple[ExclusiveLane | SharedLane, ...]:
        return (self._exclusive, self._shared, self._generic, self._writes)

    # --- life ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._watchdog.start()
        try:
            await self._exclusive.warm()
        except psycopg.Error as error:
            # While the service starts, the supervisor tells what is away, for all of its processes.
            log.debug("cannot connect yet: %s", str(error).strip())
            self.unreached = " ".join(str(error).split())

    def set_notice_handler(self, handler: NoticeHandler, *, whose: bool = False) -> None:
        """whose: it is to be told the exchange, or the protocol, of the request too."""
        self._tells_whose = handler if whose else None
        for lane in self._lanes:
            lane.on_notice = handler

    async def close(self) -> None:
        """Cancels what still runs, for closing alone would let it run on in the server, and closes everything."""
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
        for lane in self._lanes:
            lane.close()
            for connection in list(lane.connections):
                connection.close(STOPPING)

    def go_away(self, why: str) -> None:
        """The server is not there: whoever waits for it, or runs there, is told so at once, until it comes back."""
        for lane in self._lanes:
            lane.go_away()
        for lane in self._lanes:
            for connection in list(lane.connections):
                connection.close(why)

    def come_back(self) -> None:
        for lane in self._lanes:
            lane.away = False

    def end_stream(self, request: Request, *, gone: bool) -> None:
        """The caller is through with a streaming request. gone: its client has not taken everything."""
        for replica in self.replicas:
            # Nothing else tells where it has run.
            if replica.streams(request):
                replica.end_stream(request, gone=gone)
                return
        if gone:
            self._watchdog.abandon(request)
        self._watchdog.forget(request)

    def streams(self, request: Request) -> bool:
        """It runs here, and its connection is still its own."""
        return self._watchdog.watches(request)

    def load(self) -> Iterator[LaneLoad]:
        """How busy each lane is."""
        yield LaneLoad("exclusive", len(self._exclusive.connections), self._exclusive.busy, self._exclusive.waiting)
        for lane in (self._shared, self._generic, self._writes):
            under_way = sum(connection.in_flight for connection in lane.connections)
            yield LaneLoad(lane.name, len(lane.connections), under_way, lane.waiting)

    @property
    def pooled(self) -> bool:
        """Behind a transaction pooler: no session is ours."""
        return self._pooler

    @property
    def watching(self) -> bool:
        """Some request has a connection of its own."""
        return bool(self._watchdog)

    def forget_names(self) -> None:
        """After a change of the schema: what is user-defined is read anew."""
        self._names = None

    # --- running ---------------------------------------------------------------------------------------------------

    def begin(self, call: Call, exchange: Exchange) -> Running:
        """Starts `call` with the arguments of `exchange`. `settle` follows when what this gives back is done.

        Raises:
            Problem: there is no room for it.
            ClientGoneError: by what it gives back, when the client left while it ran.
        """
        if call.shared and (place := self._place(call, exchange.mask)) is not None:
            lane, statement = place
            request = self._shared_request(call, statement, exchange.arguments)
            if lane.submit(request):
                exchange.request = request
                return request
        return self._begin_alone(call, exchange)

    def begin_with_context(self, call: Call, exchange: Exchange) -> Running:
        """`begin` for a call whose requests bring something along."""
        if call.shared and call.context is not None and (place := self._place(call, exchange.mask)) is not None:
            lane, statement = place
            request = self._shared_request(call, statement, exchange.arguments)
            request.ahead = (_ahead_of_sequences(call) + call.context.ahead(exchange, call.shared_settings)) or None
            if lane.submit(request):
                exchange.request = request
                return request
        return self._begin_alone(call, exchange)

    def begin_by_deadline(self, call: Call, exchange: Exchange) -> Running:
        """`begin` for a call whose requests may have a deadline. The server is told what is left of the time."""
        if not exchange.deadline:
            return (self.begin if call.context is None else self.begin_with_context)(call, exchange)
        if is_past(exchange):
            raise DeadlineError(exchange)
        if call.shared and (place := self._place(call, exchange.mask)) is not None:
            lane, statement = place
            request = self._shared_request(call, statement, exchange.arguments)
            request.timeout = self._limit_of(call, exchange)
            settings = self._settings_of(call, watched=False, seconds=request.timeout)
            ahead = ahead_of(settings) if call.context is None else call.context.ahead(exchange, settings)
            request.ahead = (_ahead_of_sequences(call) + ahead) or None
            if lane.submit(request):
                exchange.request = request
                return request
        return self._run_alone(call, exchange)

    def _place(self, call: Call, mask: int) -> tuple[SharedLane, Statement] | None:
        """The lane for the call, with the statement that runs there; None as long as no connection is ready for it."""
        if call.volatile:
            lane = self._writes
        else:
            lane = self._generic if mask in call.generic and self._generic.connections else self._shared
        if self._pooler or self._trusts(call):
            return (lane, call.statement(mask)) if lane.connections else None
        statement = call.wired[lane.number].get(mask)
        if statement is None or statement.armed < len(lane.connections):
            self._arm(call, mask, lane)
            if statement is None or statement.armed == 0:
                return None
        return lane, statement

    def settle(self, call: Call, exchange: Exchange) -> Running:
        """Judges what has been begun: succeeded or streaming, or once more on a connection of its own.

        Raises:
            Problem: it failed.
        """
        request = exchange.request
        if request is None:
            return None
        if request.alone:
            return self._settle_alone(call, exchange, request)
        if request.connection is not None:
            return None  # `_run_alone` has judged it
        if request.succeeded:
            if call.volatile:
                self._learn_write(call, request)
            elif call.pace.record(request.seconds, self._contention.factor):
                self._assign_lane(call)
            if exchange.mask not in call.checked:
                self._examine(call, exchange.mask)
            return None
        if isinstance(request.failure, ClientGoneError):
            raise request.failure
        tries = Tries(began=request.began)
        self._judge_pace(call, request)
        pause = self._pause(call, exchange.mask, request, tries)
        if pause is None:
            raise self._failures.problem(call, exchange, request)
        return self._run_alone(call, exchange, tries, pause)

    def _judge_pace(self, call: Call, request: Request) -> None:
        """A failed run on a shared connection counts as well; one that held others up is enough."""
        changed = call.pace.fast and call.pace.record(request.seconds, self._contention.factor)
        if call.pace.fast and request.seconds > HELD_UP:
            call.pace.demote()
            changed = True
        if changed:
            self._assign_lane(call)

    def together(self) -> SeveralCalls:
        """For several calls of one request that share a connection."""
        request_of = self._exclusive_request
        unknown = [] if self._pooler else FULL_RESET
        return SeveralCalls(self._exclusive, self._watchdog, self._failures, request_of, resets=unknown)

    def errand(self) -> AbstractAsyncContextManager[psycopg.AsyncConnection[tuple[object, ...]]]:
        """A session for what is no request (`Connector.errand`)."""
        return self._connector.errand()

    def transaction(self, call: Call, exchange: Exchange) -> Transaction:
        """For many commands of one request and its call, which take effect together or not at all."""

        def ahead() -> Ahead:
            settings = self._settings_of(call, watched=False, seconds=self._limit_of(call, exchange))
            return ahead_of(settings) if call.context is None else call.context.ahead(exchange, settings)

        return Transaction(
            self._exclusive,
            self._watchdog,
            self._failures,
            call,
            exchange,
            ahead,
            seconds=self._limit_of(call, exchange),
            resets=[] if self._pooler else FULL_RESET,
        )

    async def run_alone(self, call: Call, exchange: Exchange) -> None:
        """`begin` and `settle` in one, on a connection of its own."""
        await self._run_alone(call, exchange)

    def _shared_request(self, call: Call, statement: Statement, values: list[bytes | None]) -> Request:
        if not call.known:
            # The same for every request of the call, so worked out by the first.
            call.seconds = self._timeout_of(call)
            call.shared_settings = self._settings_of(call, watched=False, seconds=call.seconds)
            call.shared_ahead = (_ahead_of_sequences(call) + ahead_of(call.shared_settings)) or None
            call.known = True
        request = Request(statement, values, call.shared_ahead)
        request.label = call.label
        # What has been written cannot be asked for once more, however large its answer is.
        request.limit = 0 if call.volatile else self._options.shared_limit
        request.first_row_only = call.single
        request.timeout = call.seconds
        return request

    def _begin_alone(self, call: Call, exchange: Exchange) -> Running:
        """A run on a connection of its own. In the hands of the driver, unless more has to be waited for than a
        connection and the answer: a task, its futures and a timer cost more than a small call does."""
        if call.hear is not None or (call.procedure and not self._pooler):
            return self._run_alone(call, exchange)
        request = self._exclusive_request(call, exchange, waited=False)
        request.alone = True
        exchange.request = request
        self._take_turn(call, exchange, request)
        return request

    def _take_turn(self, call: Call, exchange: Exchange, request: Request) -> None:
        run_on = partial(self._run_next, call, exchange, request)
        connection = self._exclusive.take_turn(run_on, request.refuse, _left_of(request))
        if connection is not None:
            self._run_next(call, exchange, request, connection)

    def _run_next(self, call: Call, exchange: Exchange, request: Request, connection: Connection) -> None:
        if request.finished:
            self._exclusive.release(connection)
            return
        statement = self._ready_alone(call, exchange.mask, connection)
        if statement is None:
            self._background.start(self._arm_and_run(call, exchange, request, connection))
            return
        try:
            self._run_with(call, exchange, request, connection, statement)
        except Exception as error:
            self._refuse(request, error)

    async def _arm_and_run(self, call: Call, exchange: Exchange, request: Request, connection: Connection) -> None:
        try:
            statement = await self._statement_alone(call, exchange.mask, connection)
            self._run_with(call, exchange, request, connection, statement)
        except asyncio.CancelledError:
            request.refuse(Overload.stopping())
            raise
        except Exception as error:
            self._refuse(request, error)

    @staticmethod
    def _refuse(request: Request, error: Exception) -> None:
        request.connection = request.on_free = None
        request.refuse(error)

    def _run_with(
        self, call: Call, exchange: Exchange, request: Request, connection: Connection, statement: Statement
    ) -> None:
        if statement is not request.statement:
            request.use(statement)
        self._watchdog.watch(request, exchange.protocol.client_disconnect)
        if not self._send_alone(connection, call, exchange, request):
            # It has died since it was acquired: on to the next one.
            self._watchdog.forget(request)
            request.connection = request.on_free = None
            self._take_turn(call, exchange, request)

    def _settle_alone(self, call: Call, exchange: Exchange, request: Request) -> Running:
        if not request.streaming:
            self._watchdog.forget(request)
        if request.connection is None and request.failure is not None:
            raise request.failure
        if self._is_through(call, exchange.mask, request):
            return None
        tries = Tries(began=request.began)
        pause = self._pause(call, exchange.mask, request, tries)
        if pause is None:
            raise self._failures.problem(call, exchange, request, tries)
        return self._run_alone(call, exchange, tries, pause)

    def _is_through(self, call: Call, mask: int, request: Request) -> bool:
        """It has succeeded on a connection of its own, or streams.

        Raises:
            ClientGoneError: its client left while it ran.
        """
        if request.streaming:
            call.large = True
            call.wide = self._options.stream_after > WIDE_ROW * request.rows
            self._assign_lane(call)
            return True
        if not request.succeeded:
            return False
        if request.abandoned:
            # It ended before the cancel request came, but its rows had been dropped.
            raise ClientGoneError("the client has closed the connection")
        call.wide = len(request.body or b"") > WIDE_ROW * max(1, request.rows)
        self._learn(call, mask, request)
        return True

    async def _run_alone(
        self, call: Call, exchange: Exchange, tries: Tries | None = None, pause: float | None = 0.0
    ) -> None:
        tries = tries or Tries()
        while True:
            if pause:
                await _wait(pause, exchange)
            request = await self._run_exclusive(call, exchange, tries)
            exchange.request = request
            if self._is_through(call, exchange.mask, request):
                return
            pause = self._pause(call, exchange.mask, request, tries)
            if pause is None:
                raise self._failures.problem(call, exchange, request, tries)

    def _pause(self, call: Call, mask: int, request: Request, tries: Tries) -> float | None:
        """Seconds until another run may follow this one; None: none may."""
        if request.overflowed:
            # Too large for a shared connection. Repeatable, or it would not have been there.
            call.large = True
            self._assign_lane(call)
            return 0.0
        if isinstance(request.failure, ElsewhereError):
            return 0.0
        pause = self._failures.pause(call, mask, request, tries)
        if pause is not None and call.on_repeat is not None:
            call.on_repeat()
        return pause

    async def _run_exclusive(self, call: Call, exchange: Exchange, tries: Tries) -> Request:
        """One run on a connection of its own: finished, or STREAMING."""
        lane = self._exclusive
        while True:
            request = self._exclusive_request(call, exchange)
            # A silent repetition has what the runs before have left of the time.
            request.began = tries.began = tries.began or request.began
            connection = lane.try_acquire() or await lane.acquire(_left_of(request))
            # What was refused once because something has changed is not made to depend on that again.
            statement = request.statement
            if not tries.trips:
                statement = await self._statement_alone(call, exchange.mask, connection)
            if statement is not request.statement:
                request = self._exclusive_request(call, exchange, statement)
                request.began = tries.began
            if await self._run_on(connection, call, exchange, request):
                return request
            # It has died since it was acquired: on to the next one.

    async def _run_on(self, connection: Connection, call: Call, exchange: Exchange, request: Request) -> bool:
        """False: the connection has not taken the request."""
        self._watchdog.watch(request, exchange.protocol.client_disconnect)
        self._tell_whose(connection, exchange)
        try:
            if call.procedure and not self._pooler:
                await self._prepare_procedure(connection, call, exchange)
            if not self._send_alone(connection, call, exchange, request):
                return False
            # Whoever ends it before it is judged asks what had begun.
            exchange.request = request
            waiter = request.waiter
            if waiter is not None:
                await waiter
        except asyncio.CancelledError:
            self._watchdog.abandon(request)
            raise
        finally:
            if not request.streaming:
                self._watchdog.forget(request)
        return True

    def _send_alone(self, connection: Connection, call: Call, exchange: Exchange, request: Request) -> bool:
        """With what takes back what it leaves. False: the connection has not taken it."""
        wanted = self._resets(call, request.statement)
        # Behind a script that goes on, the reset would come too early.
        later = bool(wanted) and type(request.statement) is Script
        if later:
            request.on_free = partial(self._reset, wanted)
        elif not wanted:
            request.on_free = self._release
        self._tell_whose(connection, exchange)
        if self._place_alone(connection, request):
            self._exclusive.finish(connection, resets=[] if later else wanted)
        elif connection.state == ConnectionState.READY:
            self._exclusive.release(connection)
        return request.state != RequestState.WAITING

    def _tell_whose(self, connection: Connection, exchange: Exchange) -> None:
        if self._tells_whose is not None:
            connection.on_notice = _notices_of(exchange.protocol, self._tells_whose)

    def _ready_alone(self, call: Call, mask: int, connection: Connection) -> Statement | None:
        """What runs on this connection: with a wire, and so without a reset, where a routine comes here often. None: it
        has to be prepared for that first."""
        if call.harmless and not self._pooler:
            wired = call.wired[ALONE].get(mask)
            if wired is not None and connection.knows(wired):
                return wired
            call.runs_alone += 1
            if call.runs_alone > ARM_AFTER:
                return None
        return call.statement(mask)

    async def _statement_alone(self, call: Call, mask: int, connection: Connection) -> Statement:
        """The same, prepared where it has to be."""
        statement = self._ready_alone(call, mask, connection)
        if statement is not None:
            return statement
        try:
            ready = await self._wires.arm(call, mask, ALONE, connection)
        except BaseException:
            self._exclusive.release(connection)
            raise
        return call.wired[ALONE][mask] if ready else call.statement(mask)

    def _resets(self, call: Call, statement: Statement) -> list[Statement]:
        """What takes back what a run of this statement may leave."""
        if self._pooler or statement.wired or self._trusts(call):
            return []
        # What claims to leave nothing may have been replaced since it was looked at.
        if not call.session.traces:
            return FULL_RESET
        # In front of a procedure settings are made for the session, which are ours to take back.
        return resets(frozenset({*call.session.traces, Trace.SETTINGS}) if call.procedure else call.session.traces)

    def _exclusive_request(
        self, call: Call, exchange: Exchange, statement: Statement | None = None, *, waited: bool = True
    ) -> Request:
        may_stream = call.rows and not call.single
        watched = may_stream and (call.large or not call.small)
        limit = self._limit_of(call, exchange)
        ahead = self._ahead_alone(call, exchange, watched=watched, seconds=limit)
        request = Request(statement or call.statement(exchange.mask), exchange.arguments, ahead or None)
        request.label = call.label
        request.first_row_only = call.single
        request.wide_rows = call.wide or call.flush_rows > 0
        request.flush_rows = call.flush_rows
        stream_after = self._options.stream_after if call.stream_after is None else call.stream_after
        request.stream_after = stream_after if may_stream else 0
        request.timeout = limit
        # Behind a pooler nothing can be said to the session in front of a CALL.
        request.unlimited = watched or (call.procedure and self._pooler)
        if call.hear is not None:
            request.hearer = call.hear(exchange)
        if waited:
            request.waiter = self._loop.create_future()
        return request

    def _place_alone(self, connection: Connection, request: Request) -> bool:
        request.connection = connection
        # Whatever takes back what it leaves goes along.
        connection.corked = True
        try:
            connection.corked = connection.submit(request)
        except BaseException:
            connection.corked = False
            self._exclusive.release(connection)
            raise
        return connection.corked

    def _timeout_of(self, call: Call) -> float:
        """Seconds that the server may take; 0: as long as it likes."""
        return self._options.timeout if call.timeout is None else call.timeout

    def _limit_of(self, call: Call, exchange: Exchange) -> float:
        """The same for one request: no longer than its deadline leaves."""
        seconds = self._timeout_of(call)
        if not exchange.deadline:
            return seconds
        left = max(0.001, exchange.deadline - self._loop.time())
        return min(seconds, left) if seconds > 0 else left

    def _release(self, request: Request) -> None:
        connection = request.connection
        if connection is not None and connection.state != ConnectionState.CLOSED:
            self._exclusive.release(connection)

    def _reset(self, wanted: list[Statement], request: Request) -> None:
        if request.connection is not None:
            self._exclusive.finish(request.connection, resets=wanted)

    def _ahead_alone(self, call: Call, exchange: Exchange, *, watched: bool, seconds: float) -> Ahead:
        """What stands in front of a call in its segment on a connection of its own."""
        context = call.context
        if not call.procedure or (call.wrapped and not self._pooler):
            settings = self._settings_of(call, watched=watched, seconds=seconds)
            others = ahead_of(settings) if context is None else context.ahead(exchange, settings)
            return others if self._pooler else _ahead_of_sequences(call) + others
        if context is None:
            return ()
        if self._pooler:
            return context.ahead(exchange, [])
        return () if context.lasts else context.commands_ahead(exchange)

    async def _prepare_procedure(self, connection: Connection, call: Call, exchange: Exchange) -> None:
        """Settings and commands of a CALL go in front of it at session level: in its own segment they would keep it
        from committing (reference 08, 3), or end when it does. The reset behind it takes them back."""
        if call.session.reads_sequences:
            connection.submit_all(Request(DISCARD_SEQUENCES, []), [DISCARD_SEQUENCES])
        if call.wrapped:
            return
        try:
            settings: Values = []
            if call.timeout is not None or exchange.deadline:
                settings += _timeout_setting(self._limit_of(call, exchange))
            if call.context is not None:
                settings += call.context.setting_values(exchange)
            ahead: Ahead = ((settings_statement(len(settings) // 2, local=False), settings),) if settings else ()
            if call.context is not None and call.context.lasts:
                ahead += call.context.lasting_ahead(exchange)
            if not ahead:
                return
            statement, values = ahead[-1]
            request = Request(statement, values, ahead[:-1] or None)
            request.timeout = RESET_SECONDS
            request.waiter = waiter = self._loop.create_future()
            # A role shows in what the server reports of the session, and is no reason to give the connection up: it is
            # compared again behind the reset.
            connection.owned = True
            if connection.submit(request):
                await waiter
            connection.accept_session()
            connection.owned = False
        except BaseException:
            connection.close("its session was left half prepared")
            raise
        if request.error is not None or request.failure is not None:
            connection.close("its session could not be prepared")
            raise self._failures.problem(call, exchange, request)

    def _settings_of(self, call: Call, *, watched: bool, seconds: float) -> Values:
        """Transaction-local settings that a request of the call needs; none when the defaults will do."""
        if not watched and not self._pooler and seconds == self._options.timeout:
            return []
        # A large result may take as long as its reader does, so the watchdog looks at progress instead.
        settings = _timeout_setting(0.0 if watched else seconds)
        return settings + POOLED_SETTINGS if self._pooler else settings

    # --- learning --------------------------------------------------------------------------------------------------

    def _learn(self, call: Call, mask: int, request: Request) -> None:
        """From a run on a connection of its own."""
        call.small = True
        if not self._may_share(call, request.statement):
            return
        if call.pace.record(request.seconds, max(self._contention.factor, self._exclusive.busy / PROCESSORS)):
            self._assign_lane(call)
        if call.shared and mask not in call.checked:
            self._examine(call, mask)

    def _may_share(self, call: Call, statement: Statement) -> bool:
        if call.procedure or call.hear is not None or not self._options.sharing or not call.may_share:
            return False
        if self._pooler or self._trusts(call):
            return not call.volatile
        return call.harmless and type(statement) is not Script and (self._options.share_writes or not call.volatile)

    def _trusts(self, call: Call) -> bool:
        """Not because of what was found, but because of what it says of itself."""
        return self._options.trust_stable and not call.volatile and not call.harmless and not call.procedure

    def _learn_write(self, call: Call, request: Request) -> None:
        """From a run on a connection that others share: the first wait for a lock is the last one here."""
        self._writes.note(request.seconds)
        if request.seconds > WAITED * call.pace.threshold * self._contention.factor:
            call.pace.demote()
        elif (
            not call.pace.record(request.seconds, self._contention.factor)
            and len(request.body or b"") <= self._options.shared_limit
        ):
            return
        call.large = len(request.body or b"") > self._options.shared_limit
        self._assign_lane(call)

    def _assign_lane(self, call: Call) -> None:
        call.shared = call.pace.fast and not call.large
        if call.shared:
            (self._writes if call.volatile else self._shared).open_missing()

    def _arm(self, call: Call, mask: int, lane: SharedLane) -> None:
        """Makes connections of the lane ready for the call, in the background."""
        key = (lane.number, mask)
        if key not in call.arming:
            # Raised here, for the request: a choice of parameters that the routine cannot be called with.
            call.statement(mask)
            call.arming.add(key)
            self._background.start(self._arm_all(call, mask, lane))

    async def _arm_all(self, call: Call, mask: int, lane: SharedLane) -> None:
        try:
            lane.open_missing()
            for connection in list(lane.connections):
                if connection.state == ConnectionState.READY and not await self._wires.arm(
                    call, mask, lane.number, connection
                ):
                    break
            call.shared = call.shared and call.harmless
        finally:
            call.arming.discard((lane.number, mask))

    def _examine(self, call: Call, mask: int) -> None:
        """Finds out, once for each statement, whether it may run with a generic plan."""
        call.checked.add(mask)
        if not self._pooler and not call.volatile:
            self._background.start(self._check_generic(call, mask))

    async def _check_generic(self, call: Call, mask: int) -> None:
        statement = call.statement(mask)
        try:
            async with self._connector.errand() as connection:
                # Not read back from self: a reload may forget it in the meantime.
                names = self._names or await read_user_names(connection)
                self._names = names
                plan = await generic_plan(connection, statement.sql.decode(), statement.count)
        except psycopg.Error as error:
            log.debug("%s: no generic plan: %s", call.label, str(error).strip())
            return
        if is_eligible(plan, names):
            call.generic.add(mask)
            self._generic.open_missing()


def _left_of(request: Request) -> float:
    """Seconds of its own limit; 0: it has none."""
    return max(0.001, request.timeout - request.elapsed) if request.timeout > 0 else 0.0


def _ahead_of_sequences(call: Call) -> Ahead:
    return ((DISCARD_SEQUENCES, []),) if call.session.reads_sequences else ()


def _timeout_setting(seconds: float) -> Values:
    return [b"statement_timeout", statement_timeout(seconds).encode()]


async def _wait(seconds: float, exchange: Exchange) -> None:
    """Raises `ClientGoneError` when the client leaves before."""
    gone = asyncio.ensure_future(exchange.protocol.client_disconnect())
    done, _ = await asyncio.wait({gone}, timeout=seconds)
    gone.cancel()
    if done:
        raise ClientGoneError("the client has left before the command was tried again")


def _notices_of(protocol: Any, handler: NoticeHandler) -> NoticeHandler:
    """Of a connection that works for one request alone."""

    def tell(
        label: str | None, severity: str, sqlstate: str, message: str, context: str | None, _owner: object
    ) -> None:
        handler(label, severity, sqlstate, message, context, protocol)

    return tell
