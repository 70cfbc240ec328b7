"""Pass-through requests in flight without a task. Most requests need none.

The request is sent on an open connection, and answered by the callback of its response if this arrives soon, is small
and is final. Otherwise, a task takes the request over: if it takes longer than `WATCH_AFTER_SECONDS`, as its client may
have disconnected meanwhile; after failures that may be repeated; for redirects; and for bodies that are streamed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import TYPE_CHECKING

from rowcall.ext.driver.http1_client import PendingHttpResponse, is_final_with_body
from rowcall.service.http_client.messages import HttpResponse, OutgoingRequest, ResponseWaiter
from rowcall.service.outgoing.pass_through import is_gathered
from rowcall.service.request_context.client_liveness import WATCH_AFTER_SECONDS
from rowcall.service.request_context.deadline import DeadlineError
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.http_client.client import Client
    from rowcall.service.http_client.http1 import Http1Connection

_IN_WHOLE_MILLISECONDS = 0.001
"""Resolution of the timers of the event loop."""


class InFlightRequests:
    """The requests in flight of one endpoint.

    finish: called with the context, a response that has arrived completely, and the time at which its request was sent,
    in the time of the event loop. It sends the response to the client. continue_request: called with the context, the
    request in flight, and the object that waits for its response. It returns what completes the request in a task.
    """

    def __init__(
        self,
        client: Client,
        finish: Callable[[RequestContext, HttpResponse, float], None],
        continue_request: Callable[[RequestContext, InFlightRequest, ResponseWaiter], Awaitable[None]],
    ) -> None:
        self.client = client
        self.finish = finish
        self.continue_request = continue_request
        self._loop = asyncio.get_running_loop()
        self.unwatched: dict[InFlightRequest, None] = {}
        """Requests without a task, in the order in which they were sent."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, in_flight_request: InFlightRequest) -> None:
        """Watch a request that was sent now: if it takes too long, it is moved to a task."""
        in_flight_request.sent_at = self._loop.time()
        self.unwatched[in_flight_request] = None
        if self._timer is None:
            self._timer = self._loop.call_later(WATCH_AFTER_SECONDS, self._move_slow_requests)

    def _move_slow_requests(self) -> None:
        """Move requests that have been in flight for `WATCH_AFTER_SECONDS` to a task, which can wait for them with a
        timeout, and set the timer for the next one. One timer serves all requests.
        """
        latest = self._loop.time() - WATCH_AFTER_SECONDS + _IN_WHOLE_MILLISECONDS
        for in_flight_request in list(takewhile(lambda item: item.sent_at <= latest, self.unwatched)):
            in_flight_request.continue_in_task()
        self._timer = None
        first = next(iter(self.unwatched), None)
        if first is not None:
            self._timer = self._loop.call_at(first.sent_at + WATCH_AFTER_SECONDS, self._move_slow_requests)


class InFlightRequest(PendingHttpResponse):
    """A request in flight, and the callbacks of its connection. `continue_in_task` hands it to a task, once.

    `Client.begin` sets `connection`, `reused` (the connection has carried other requests) and `metered` (when it was
    sent, for the metrics).
    """

    __slots__ = ("_owner", "connection", "metered", "request", "reused")

    request: OutgoingRequest
    connection: Http1Connection
    reused: bool
    metered: float

    def __init__(self, context: RequestContext, in_flight_requests: InFlightRequests) -> None:
        super().__init__(context, in_flight_requests.unwatched, in_flight_requests.finish)
        self._owner = in_flight_requests

    def _handle_other_response(self, answer: HttpResponse) -> None:
        """Receive a response that cannot be sent at once: pass it to the task, if there is one; discard it if the
        request has ended; otherwise gather a small body, or continue in a task.
        """
        if self._arriving is not None:
            self._arriving.on_response(answer)
        elif self.done():
            answer.close()
        else:
            self._answer = answer
            if is_final_with_body(answer.status) and not answer.ended and is_gathered(answer):
                answer.on_end = self._on_end
            else:
                self.continue_in_task()

    def _record_end(self, status: int) -> None:
        """Report the end of the request to the HTTP client, which counts it for circuit breakers and metrics. status:
        of the response; 0: there is none."""
        if self._owner.client.watches:
            self._owner.client.record_end(self, status)

    def on_failure(self, error: Exception) -> None:
        """Continue in a task after an error of the connection: the task repeats the request if that is allowed."""
        if not self.done():
            self.continue_in_task()
        if self._arriving is not None:
            self._arriving.on_failure(error)

    def continue_in_task(self) -> None:
        """Let a task complete the request, which can wait, retry and stream."""
        self._owner.unwatched.pop(self, None)
        arriving = self._arriving = ResponseWaiter()
        if self._answer is not None:
            self._answer.on_end = None
            arriving.on_response(self._answer)
        self.wait_for(self._owner.continue_request(self.context, self, arriving))

    def cancel(self) -> None:
        """End the request with a `DeadlineError`, and its connection, as its deadline has passed."""
        self._owner.unwatched.pop(self, None)
        if self._answer is not None:
            self._answer.on_end = None
        self._record_end(0)
        self.fail(DeadlineError(self.context))
        self.connection.abort()

    def _on_end(self, answer: HttpResponse) -> None:
        """Send a response whose body is complete now."""
        answer.on_end = None
        self._answer = None
        self.on_response(answer)
