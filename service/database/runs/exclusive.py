"""Runs on connections of their own: begun, judged, and repeated where they may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from rowcall.core.catalogue.session_state import Trace
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.request import Request, RequestState, Script, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.context import Ahead, Values
from rowcall.service.database.failures import Failures, Tries
from rowcall.service.database.lanes.exclusive import RESET_SECONDS, ExclusiveLane
from rowcall.service.database.lanes.lane import NoticeHandler
from rowcall.service.database.lanes.overload import Overload
from rowcall.service.database.lanes.shared import ElsewhereError, QueuedTooLongError
from rowcall.service.database.runs.placement import Placement
from rowcall.service.database.runs.settings import CallSettings, timeout_setting
from rowcall.service.database.session.resets import DISCARD_SEQUENCES, FULL_RESET, resets
from rowcall.service.database.session.wires import PATIENCE, Wires
from rowcall.service.database.statements import settings_statement
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.exchange.exchange import ClientGoneError, Exchange, Running

ALONE = 3
"""Place of the exclusive lane in `Call.wired`."""
ARM_AFTER = 16
"""Runs on exclusive connections after which a routine is worth preparing for there."""
WIDE_ROW = 16_384
"""Bytes of a row from which rows are taken from libpq one by one."""


class ExclusiveRuns:
    """Of one database. stream_after: bytes of a result after which it leaves as a stream."""

    def __init__(
        self,
        lane: ExclusiveLane,
        placement: Placement,
        settings: CallSettings,
        failures: Failures,
        watchdog: Watchdog,
        wires: Wires,
        background: Background,
        *,
        stream_after: int,
        pooler: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lane = lane
        self._placement = placement
        self._settings = settings
        self._failures = failures
        self._watchdog = watchdog
        self._wires = wires
        self._background = background
        self._stream_after = stream_after
        self._pooler = pooler
        self.tells_whose: NoticeHandler | None = None
        """Told the exchange of what the server says, or its protocol, too."""

    def begin(self, call: Call, exchange: Exchange) -> Running:
        """A run on a connection of its own. In the hands of the driver, unless more has to be waited for than a
        connection and the answer: a task, its futures and a timer cost more than a small call does."""
        if call.hear is not None or (call.procedure and not self._pooler):
            return self.run(call, exchange)
        request = self.request(call, exchange, waited=False)
        request.alone = True
        exchange.request = request
        self._take_turn(call, exchange, request)
        return request

    def _take_turn(self, call: Call, exchange: Exchange, request: Request) -> None:
        run_on = partial(self._run_next, call, exchange, request)
        connection = self._lane.take_turn(run_on, request.refuse, _left_of(request))
        if connection is not None:
            self._run_next(call, exchange, request, connection)

    def _run_next(self, call: Call, exchange: Exchange, request: Request, connection: Connection) -> None:
        if request.finished:
            self._lane.release(connection)
            return
        statement = self._ready(call, exchange.mask, connection)
        if statement is None:
            self._background.start(self._arm_and_run(call, exchange, request, connection))
            return
        try:
            self._run_with(call, exchange, request, connection, statement)
        except Exception as error:
            self._refuse(request, error)

    async def _arm_and_run(self, call: Call, exchange: Exchange, request: Request, connection: Connection) -> None:
        try:
            statement = await self._statement(call, request, exchange.mask, connection)
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
        if not self._send(connection, call, exchange, request):
            # It has died since it was acquired: on to the next one.
            self._watchdog.forget(request)
            request.connection = request.on_free = None
            self._take_turn(call, exchange, request)

    def settle(self, call: Call, exchange: Exchange, request: Request) -> Running:
        if not request.streaming:
            self._watchdog.forget(request)
        if request.connection is None and request.failure is not None:
            raise request.failure
        if self._is_through(call, exchange, request):
            return None
        return self.again(call, exchange, request)

    def again(self, call: Call, exchange: Exchange, request: Request) -> Running:
        """What has failed is run once more, on a connection of its own.

        Raises:
            Problem: it may not be.
        """
        # If its time passed while it waited behind another request, its limit counts from the start of the next run.
        tries = Tries(began=0.0 if isinstance(request.failure, QueuedTooLongError) else request.began)
        pause = self._pause(call, exchange.mask, request, tries)
        if pause is None:
            raise self._failures.problem(call, exchange, request, tries)
        return self.run(call, exchange, tries, pause)

    def _is_through(self, call: Call, exchange: Exchange, request: Request) -> bool:
        """It has succeeded on a connection of its own, or streams.

        Raises:
            ClientGoneError: its client left while it ran.
        """
        if request.streaming:
            call.large = True
            call.wide = self._stream_after > WIDE_ROW * request.rows
            self._placement.assign(call)
            request.on_free = partial(self._end_stream, call, exchange, request.on_free)
            return True
        if not request.succeeded:
            return False
        if request.abandoned:
            # It ended before the cancel request came, but its rows had been dropped.
            raise ClientGoneError("the client has closed the connection")
        call.wide = len(request.body or b"") > WIDE_ROW * max(1, request.rows)
        self._placement.learn_alone(call, exchange.mask, request, self._lane.busy)
        return True

    def _end_stream(
        self, call: Call, exchange: Exchange, on_free: Callable[[Request], None] | None, request: Request
    ) -> None:
        """Nobody else asks how it has ended: its status has left long ago."""
        try:
            self._failures.tell_broken(call, exchange, request)
        finally:
            if on_free is not None:
                on_free(request)

    async def run(self, call: Call, exchange: Exchange, tries: Tries | None = None, pause: float | None = 0.0) -> None:
        tries = tries or Tries()
        while True:
            if pause:
                await _wait(pause, exchange)
            request = await self._run_once(call, exchange, tries)
            exchange.request = request
            if self._is_through(call, exchange, request):
                return
            pause = self._pause(call, exchange.mask, request, tries)
            if pause is None:
                raise self._failures.problem(call, exchange, request, tries)

    def _pause(self, call: Call, mask: int, request: Request, tries: Tries) -> float | None:
        """Seconds until another run may follow this one; None: none may."""
        if request.overflowed:
            # Too large for a shared connection. Repeatable, or it would not have been there.
            call.large = True
            self._placement.assign(call)
            return 0.0
        if isinstance(request.failure, ElsewhereError):
            return 0.0
        pause = self._failures.pause(call, mask, request, tries)
        if pause is not None and call.on_repeat is not None:
            call.on_repeat()
        return pause

    async def _run_once(self, call: Call, exchange: Exchange, tries: Tries) -> Request:
        """One run on a connection of its own: finished, or STREAMING."""
        lane = self._lane
        while True:
            request = self.request(call, exchange)
            # A silent repetition has what the runs before have left of the time.
            request.began = tries.began = tries.began or request.began
            connection = lane.try_acquire() or await lane.acquire(_left_of(request))
            # What was refused once because something has changed is not made to depend on that again.
            statement = request.statement
            if not tries.trips:
                statement = await self._statement(call, request, exchange.mask, connection)
            if statement is not request.statement:
                request = self.request(call, exchange, statement)
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
            if not self._send(connection, call, exchange, request):
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

    def _send(self, connection: Connection, call: Call, exchange: Exchange, request: Request) -> bool:
        """With what takes back what it leaves. False: the connection has not taken it."""
        wanted = self._resets(call, request.statement)
        # Behind a script that goes on, the reset would come too early.
        later = bool(wanted) and type(request.statement) is Script
        if later:
            request.on_free = partial(self._reset, wanted)
        elif not wanted:
            request.on_free = self._release
        self._tell_whose(connection, exchange)
        if self._submit(connection, request):
            self._lane.finish(connection, resets=[] if later else wanted)
        elif connection.state == ConnectionState.READY:
            self._lane.release(connection)
        return request.state != RequestState.WAITING

    def _tell_whose(self, connection: Connection, exchange: Exchange) -> None:
        if self.tells_whose is not None:
            connection.on_notice = _notices_of(exchange.protocol, self.tells_whose)

    def _ready(self, call: Call, mask: int, connection: Connection) -> Statement | None:
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

    async def _statement(self, call: Call, request: Request, mask: int, connection: Connection) -> Statement:
        """The same, prepared where it has to be: in half of the time that is left to the request, at most."""
        statement = self._ready(call, mask, connection)
        if statement is not None:
            return statement
        try:
            left = _left_of(request)
            seconds = min(PATIENCE, left / 2) if left > 0 else PATIENCE
            ready = await self._wires.arm(call, mask, ALONE, connection, seconds)
        except BaseException:
            self._lane.release(connection)
            raise
        return call.wired[ALONE][mask] if ready else call.statement(mask)

    def _resets(self, call: Call, statement: Statement) -> list[Statement]:
        """What takes back what a run of this statement may leave."""
        if self._pooler or statement.wired or self._placement.trusts(call):
            return []
        # What claims to leave nothing may have been replaced since it was looked at.
        if not call.session.traces:
            return FULL_RESET
        # In front of a procedure settings are made for the session, which are ours to take back.
        return resets(frozenset({*call.session.traces, Trace.SETTINGS}) if call.procedure else call.session.traces)

    def request(
        self, call: Call, exchange: Exchange, statement: Statement | None = None, *, waited: bool = True
    ) -> Request:
        may_stream = call.rows and not call.single
        watched = may_stream and (call.large or not call.small)
        limit = self._settings.limit(call, exchange)
        ahead = self._settings.ahead_alone(call, exchange, watched=watched, seconds=limit)
        request = Request(statement or call.statement(exchange.mask), exchange.arguments, ahead or None)
        request.label = call.label
        request.first_row_only = call.single
        request.wide_rows = call.wide or call.flush_rows > 0
        request.flush_rows = call.flush_rows
        stream_after = self._stream_after if call.stream_after is None else call.stream_after
        request.stream_after = stream_after if may_stream else 0
        request.timeout = limit
        # Behind a pooler nothing can be said to the session in front of a CALL.
        request.unlimited = watched or (call.procedure and self._pooler)
        if call.hear is not None:
            request.hearer = call.hear(exchange)
        if waited:
            request.waiter = self._loop.create_future()
        return request

    def _submit(self, connection: Connection, request: Request) -> bool:
        request.connection = connection
        # Whatever takes back what it leaves goes along.
        connection.corked = True
        try:
            connection.corked = connection.submit(request)
        except BaseException:
            connection.corked = False
            self._lane.release(connection)
            raise
        return connection.corked

    def _release(self, request: Request) -> None:
        connection = request.connection
        if connection is not None and connection.state != ConnectionState.CLOSED:
            self._lane.release(connection)

    def _reset(self, wanted: list[Statement], request: Request) -> None:
        if request.connection is not None:
            self._lane.finish(request.connection, resets=wanted)

    async def _prepare_procedure(self, connection: Connection, call: Call, exchange: Exchange) -> None:
        """Settings and commands of a CALL go in front of it at session level: in its own segment they would keep it
        from committing (driver-12), or end when it does. The reset behind it takes them back."""
        if call.session.reads_sequences:
            discard = Request(DISCARD_SEQUENCES, [])
            discard.timeout = RESET_SECONDS
            connection.submit_all(discard, [DISCARD_SEQUENCES])
        if call.wrapped:
            return
        try:
            settings: Values = []
            if call.timeout is not None or exchange.deadline:
                settings += timeout_setting(self._settings.limit(call, exchange))
            if call.context is not None:
                settings += call.context.setting_values(exchange)
            ahead: Ahead = ((settings_statement(len(settings) // 2, local=False), settings),) if settings else ()
            if call.context is not None and call.context.lasts:
                ahead += call.context.lasting_ahead(exchange)
            if not ahead:
                return
            statement, values = ahead[-1]
            request = Request(statement, values, ahead[:-1] or None)
            limit = self._settings.limit(call, exchange)
            request.timeout = min(RESET_SECONDS, limit) if limit > 0 else RESET_SECONDS
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


def _left_of(request: Request) -> float:
    """Seconds of its own limit; 0: it has none."""
    return max(0.001, request.timeout - request.elapsed) if request.timeout > 0 else 0.0


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
