"""A request of a passthrough on its way, without a task: what most of them are until their answer leaves.

It is sent over a connection that is open already, and answered where its answer arrives, if that is soon, small and
stands for itself. Everything else goes on in a task, from where it has got to: what takes longer than `UNWATCHED`,
whose client may have left meanwhile; what fails, and may be sent again; redirects; bodies that are streamed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import TYPE_CHECKING

from rowcall.ext.driver.plain_http import PendingAnswer, stands
from rowcall.service.exchange.attendance import UNWATCHED
from rowcall.service.exchange.deadline import DeadlineError
from rowcall.service.exchange.exchange import Exchange
from rowcall.service.outbound.relay import is_gathered
from rowcall.service.upstream.messages import Answer, Arriving, OutgoingRequest

if TYPE_CHECKING:
    from rowcall.service.upstream.client import Client
    from rowcall.service.upstream.http1 import Http1Connection

_IN_WHOLE_MILLISECONDS = 0.001
"""So the timers of the loop count."""


class Flights:
    """Those of one endpoint. finish(exchange, answer, moment): sends an answer that has arrived as a whole.
    go_on(exchange, flight, arriving): does the rest for a request that has begun."""

    def __init__(
        self,
        client: Client,
        finish: Callable[[Exchange, Answer, float], None],
        go_on: Callable[[Exchange, Flight, Arriving], Awaitable[None]],
    ) -> None:
        self.client = client
        self.finish = finish
        self.go_on = go_on
        self._loop = asyncio.get_running_loop()
        self.unwatched: dict[Flight, None] = {}
        """In the order in which they have begun."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, flight: Flight) -> None:
        flight.moment = self._loop.time()
        self.unwatched[flight] = None
        if self._timer is None:
            self._timer = self._loop.call_later(UNWATCHED, self._look)

    def _look(self) -> None:
        """One timer for all of them."""
        latest = self._loop.time() - UNWATCHED + _IN_WHOLE_MILLISECONDS
        for flight in list(takewhile(lambda one: one.moment <= latest, self.unwatched)):
            flight.take_time()
        self._timer = None
        first = next(iter(self.unwatched), None)
        if first is not None:
            self._timer = self._loop.call_at(first.moment + UNWATCHED, self._look)


class Flight(PendingAnswer):
    """One of them."""

    __slots__ = ("_flights", "connection", "metered", "request", "reused")

    request: OutgoingRequest
    connection: Http1Connection
    reused: bool
    metered: float

    def __init__(self, exchange: Exchange, flights: Flights) -> None:
        super().__init__(exchange, flights.unwatched, flights.finish)
        self._flights = flights

    def _answered_otherwise(self, answer: Answer) -> None:
        if self._arriving is not None:
            self._arriving.answered(answer)
        elif self.done():
            answer.close()
        else:
            self._answer = answer
            if stands(answer.status) and not answer.ended and is_gathered(answer):
                answer.on_end = self._ended
            else:
                self.take_time()

    def _count(self, status: int) -> None:
        if self._flights.client.watches:
            self._flights.client.ended(self, status)

    def failed(self, error: Exception) -> None:
        if not self.done():
            self.take_time()
        if self._arriving is not None:
            self._arriving.failed(error)

    def take_time(self) -> None:
        """Goes on in a task."""
        self._flights.unwatched.pop(self, None)
        arriving = self._arriving = Arriving()
        if self._answer is not None:
            self._answer.on_end = None
            arriving.answered(self._answer)
        self.wait_for(self._flights.go_on(self.exchange, self, arriving))

    def cancel(self) -> None:
        """The deadline of its request has passed."""
        self._flights.unwatched.pop(self, None)
        if self._answer is not None:
            self._answer.on_end = None
        self._count(0)
        self.fail(DeadlineError(self.exchange))
        self.connection.abort()

    def _ended(self, answer: Answer) -> None:
        answer.on_end = None
        self._answer = None
        self.answered(answer)
