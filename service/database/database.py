"""Runs calls: picks the lane, repeats what may be repeated, and turns what is left into a `Problem`.

`Database.begin` and `settle` put a `Request` into the exchange that succeeded, or one that is STREAMING and whose
connection the caller goes on with (`service.response.streaming`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import psycopg

from rowcall.ext.driver.request import Request, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.connector import Connector, Target
from rowcall.service.database.context import Ahead, ahead_of
from rowcall.service.database.failures import Failures
from rowcall.service.database.held.several_calls import SeveralCalls
from rowcall.service.database.held.transaction import Transaction
from rowcall.service.database.lanes.exclusive import ExclusiveLane
from rowcall.service.database.lanes.lane import STOPPING, LaneLoad, NoticeHandler
from rowcall.service.database.lanes.shared import SharedLane, Width
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.runs.exclusive import ExclusiveRuns
from rowcall.service.database.runs.placement import Placement
from rowcall.service.database.runs.settings import CallSettings, ahead_of_sequences
from rowcall.service.database.session.resets import FULL_RESET
from rowcall.service.database.session.wires import Wires
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.exchange.deadline import DeadlineError, is_past
from rowcall.service.exchange.exchange import ClientGoneError, Exchange, Running

log = logging.getLogger("rowcall.database")

CANCEL_WITHIN = 2.0
"""Seconds for the cancel requests of a service that stops."""


class Database:
    """The connections of one worker."""

    exclusive_lane: type[ExclusiveLane] = ExclusiveLane
    exclusive_runs: type[ExclusiveRuns] = ExclusiveRuns

    def __init__(self, target: Target, options: DatabaseOptions) -> None:
        lanes = options.lanes
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._pooler = target.pooler
        self._connector = Connector(target)
        self._exclusive = self.exclusive_lane(self._connector, lanes)
        fixed = {"jit": "off"}
        self._shared = SharedLane("shared", Connector(target, **fixed), lanes, options.slow)
        generic = Connector(target, plan_cache_mode="force_generic_plan", **fixed)
        self._generic = SharedLane("generic", generic, lanes, options.slow, number=1)
        most = lanes.write_connections
        width = Width(min(2, most), min(4, most), most, lanes.write_depth, max(lanes.write_depth, lanes.shared_depth))
        self._writes = SharedLane("write", self._connector, lanes, options.slow, width=width, number=2)
        shared = (self._shared, self._generic, self._writes)
        for lane in shared:
            lane.elsewhere = self._exclusive.room
        self._wires = Wires()
        self._background = Background()
        self._watchdog = Watchdog(self._connector, self._exclusive, shared, self._background)
        self._failures = Failures(lanes.exclusive_connections)
        self._settings = CallSettings(options.timeout, pooler=target.pooler)
        self._placement = Placement(
            options,
            self._connector,
            shared,
            self._wires,
            self._watchdog.contention,
            self._background,
            pooler=target.pooler,
        )
        self._place = self._placement.place
        self._alone = self.exclusive_runs(
            self._exclusive,
            self._placement,
            self._settings,
            self._failures,
            self._watchdog,
            self._wires,
            self._background,
            stream_after=options.stream_after,
            pooler=target.pooler,
        )
        self.replicas: tuple[Database, ...] = ()
        """Where some of its requests may run."""
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
        self._alone.tells_whose = handler if whose else None
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
        self._placement.forget_names()

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
        return self._alone.begin(call, exchange)

    def begin_with_context(self, call: Call, exchange: Exchange) -> Running:
        """`begin` for a call whose requests bring something along."""
        if call.shared and call.context is not None and (place := self._place(call, exchange.mask)) is not None:
            lane, statement = place
            request = self._shared_request(call, statement, exchange.arguments)
            request.ahead = (ahead_of_sequences(call) + call.context.ahead(exchange, call.shared_settings)) or None
            if lane.submit(request):
                exchange.request = request
                return request
        return self._alone.begin(call, exchange)

    def begin_by_deadline(self, call: Call, exchange: Exchange) -> Running:
        """`begin` for a call whose requests may have a deadline. The server is told what is left of the time."""
        if not exchange.deadline:
            return (self.begin if call.context is None else self.begin_with_context)(call, exchange)
        if is_past(exchange):
            raise DeadlineError(exchange)
        if call.shared and (place := self._place(call, exchange.mask)) is not None:
            lane, statement = place
            request = self._shared_request(call, statement, exchange.arguments)
            request.timeout = self._settings.limit(call, exchange)
            ahead = self._settings.ahead(call, exchange, watched=False, seconds=request.timeout)
            request.ahead = (ahead_of_sequences(call) + ahead) or None
            if lane.submit(request):
                exchange.request = request
                return request
        return self._alone.run(call, exchange)

    def settle(self, call: Call, exchange: Exchange) -> Running:
        """Judges what has been begun: succeeded or streaming, or once more on a connection of its own.

        Raises:
            Problem: it failed.
        """
        request = exchange.request
        if request is None:
            return None
        if request.alone:
            return self._alone.settle(call, exchange, request)
        if request.connection is not None:
            return None  # `ExclusiveRuns.run` has judged it
        if request.succeeded:
            self._placement.learn_shared(call, exchange.mask, request)
            return None
        if isinstance(request.failure, ClientGoneError):
            raise request.failure
        self._placement.learn_failed(call, request)
        return self._alone.again(call, exchange, request)

    def together(self) -> SeveralCalls:
        """For several calls of one request that share a connection."""
        request_of = self._alone.request
        unknown = [] if self._pooler else FULL_RESET
        return SeveralCalls(self._exclusive, self._watchdog, self._failures, request_of, resets=unknown)

    def errand(self) -> AbstractAsyncContextManager[psycopg.AsyncConnection[tuple[object, ...]]]:
        """A session for what is no request (`Connector.errand`)."""
        return self._connector.errand()

    def transaction(self, call: Call, exchange: Exchange) -> Transaction:
        """For many commands of one request and its call, which take effect together or not at all."""

        def ahead() -> Ahead:
            return self._settings.ahead(call, exchange, watched=False, seconds=self._settings.limit(call, exchange))

        return Transaction(
            self._exclusive,
            self._watchdog,
            self._failures,
            call,
            exchange,
            ahead,
            seconds=self._settings.limit(call, exchange),
            resets=[] if self._pooler else FULL_RESET,
        )

    async def run_alone(self, call: Call, exchange: Exchange) -> None:
        """`begin` and `settle` in one, on a connection of its own."""
        await self._alone.run(call, exchange)

    def _shared_request(self, call: Call, statement: Statement, values: list[bytes | None]) -> Request:
        if not call.known:
            # The same for every request of the call, so worked out by the first.
            call.seconds = self._settings.timeout(call)
            call.shared_settings = self._settings.values(call, watched=False, seconds=call.seconds)
            call.shared_ahead = (ahead_of_sequences(call) + ahead_of(call.shared_settings)) or None
            call.known = True
        request = Request(statement, values, call.shared_ahead)
        request.label = call.label
        # What has been written cannot be asked for once more, however large its answer is.
        request.limit = 0 if call.volatile else self._options.shared_limit
        request.first_row_only = call.single
        request.timeout = call.seconds
        return request
