"""The HTTP client of a worker: sends a request, follows redirects, and returns the response as a stream.

It stores no cookies, uses no proxy of the environment, and decodes nothing. Redirects are followed as browsers do (RFC
9110, 15.4), each after another check by the guard.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from rowcall.core.outgoing.address import Address, BadUrlError, Origin, redirect_target
from rowcall.core.outgoing.guard import Guard
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.http_client.circuit_breakers import FAILING, CircuitBreakers
from rowcall.service.http_client.errors import NotReachedError, OutboundError, QueueFullError
from rowcall.service.http_client.http1 import Http1Connection
from rowcall.service.http_client.messages import (
    IDEMPOTENT,
    Headers,
    HttpResponse,
    OutgoingRequest,
    Receiver,
    ResponseWaiter,
)
from rowcall.service.http_client.pool import Pool
from rowcall.service.request_context.trace import NAMES, Trace

if TYPE_CHECKING:
    from rowcall.ext.driver.meter import Meter

log = logging.getLogger("rowcall")

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
_HARMLESS = frozenset(
    {
        "cache-control", "date", "expect", "idempotency-key", "prefer", "range", "traceparent", "tracestate",
        "user-agent", "x-correlation-id", "x-request-id",
    }
)  # fmt: skip
"""Headers that are sent to another host too, besides those of `_ABOUT_CONTENT`. Any other header may contain a key or
identify the caller.
"""
_ABOUT_CONTENT = ("accept", "content-", "if-")
_OF_BODY = ("content-", "expect")


class Client:
    """The HTTP client of a worker: connections, redirects, circuit breakers. Construct it in the running event loop."""

    def __init__(
        self,
        options: ClientOptions,
        circuit_breakers: CircuitBreakers | None = None,
        meters: Callable[[str], Meter] | None = None,
    ) -> None:
        """meters: function that returns the meter of a server, by `host:port`. None: nothing is measured.
        circuit_breakers: None: circuits are never open.
        """
        self.options = options
        self._pool = Pool(options)
        self._circuit_breakers = circuit_breakers
        self._meters = meters

    @property
    def open_connections(self) -> int:
        return self._pool.open

    def close(self) -> None:
        self._pool.close()

    async def send(self, request: OutgoingRequest, *, named: bool, trace: Trace | None = None) -> HttpResponse:
        """Send a request. Return the response, whose body is still to be read.

        named: the operator has named the host; otherwise the guard checks it. trace: the trace that the request is part
        of.

        Raises:
            OutboundError: there is no response.
            RefusedError: the request, or a redirect of it, has a target that is not allowed.
            Errors of the body iterator of the request.
        """
        if trace is None:
            return await self._send(request, named=named)
        span = trace.begin_outgoing_request(request.method, request.address.origin.authority)
        headers = [(name, value) for name, value in request.headers if name.lower() not in NAMES]
        status = 0
        try:
            answer = await self._send(_copy_request(request, headers=[*headers, *span.headers]), named=named)
            status = answer.status
        finally:
            span.end(status)
        return answer

    def begin(self, begun: RequestWithoutTask) -> bool:
        """Send a request to a host that the operator has named, if that needs no waiting. Return False if nothing was
        sent: there is no idle connection of HTTP/1.1, the circuit of the server is open, or the URL contains
        credentials. Then `send` has to be called.

        begun: has the request, and receives the response. It has to call either `record_end` or `go_on` afterwards.
        """
        address = begun.request.address
        origin = address.origin
        if address.userinfo or (self._circuit_breakers is not None and self._circuit_breakers.is_open(origin)):
            return False
        connection = self._pool.take_idle(origin)
        if connection is None:
            return False
        begun.connection = connection
        begun.reused = connection.used > 0
        begun.metered = 0.0 if self._meters is None else self._meters(origin.authority).begin()
        connection.begin(begun.request, begun)
        return True

    def record_end(self, begun: RequestWithoutTask, status: int) -> None:
        """Record the end of a request that `begin` has sent. Needed if `watches`. status: of the response; 0: it was
        given up.
        """
        self._record_end(begun.request, begun.metered, status)

    async def continue_request(self, begun: RequestWithoutTask, arriving: ResponseWaiter) -> HttpResponse:
        """Return the response to a request that `begin` has sent, as `send` does: a failed request may be repeated, and
        redirects are followed. To be called if the receiver got an error or a redirect, or if a task is to wait for the
        response from now on.

        arriving: object to which the receiver passes the response or the error.
        """
        return await self._send(begun.request, named=True, first=self._first_response(begun, arriving))

    async def _first_response(self, begun: RequestWithoutTask, arriving: ResponseWaiter) -> HttpResponse:
        """Return the response to a request that `begin` has sent; the request is repeated once if `_repeats` allows it.
        arriving: as for `continue_request`."""

        async def receive() -> HttpResponse:
            try:
                return await arriving.wait(begun.connection.abort)
            except OutboundError as error:
                if not _repeats(begun.request, error, used=begun.reused):
                    raise
            connection = await self._pool.acquire(begun.request.address.origin, None, fresh=True)
            return await connection.send(begun.request)

        return await self._record_outcome(begun.request, begun.metered, receive())

    async def _send(
        self, request: OutgoingRequest, *, named: bool, first: Coroutine[Any, Any, HttpResponse] | None = None
    ) -> HttpResponse:
        """Send a request, follow redirects, and return the response as `send` does. named: the operator has named the
        host; otherwise the guard checks it. first: returns the response to the request itself, if it has begun; None:
        it is still to be sent.
        """
        guard = None if named else self.options.guard
        own = request.address.origin if named else None
        request = _with_credentials(request)
        for _ in range(self.options.follow):
            if guard is not None:
                guard.check_origin(request.address.origin)
            answer = await (first or self._attempt(request, guard))
            first = None
            answer.address = request.address
            following = _redirect_request(request, answer)
            if following is None:
                return answer
            await _drain(answer)
            request = following
            guard = None if request.address.origin == own else self.options.guard
        if guard is not None:
            guard.check_origin(request.address.origin)
        answer = await (first or self._attempt(request, guard))
        answer.address = request.address
        return answer

    async def _attempt(self, request: OutgoingRequest, guard: Guard | None) -> HttpResponse:
        """Send one request, without following redirects. guard: checks the host; None: the operator has named it."""
        if not self.watches:
            return await self._send_with_retry(request, guard)
        return await self._record_outcome(request, self._record_begin(request), self._send_with_retry(request, guard))

    @property
    def watches(self) -> bool:
        """Whether the ends of requests are recorded by meters or circuit breakers."""
        return self._meters is not None or self._circuit_breakers is not None

    async def _record_outcome(
        self, request: OutgoingRequest, began: float, answering: Coroutine[Any, Any, HttpResponse]
    ) -> HttpResponse:
        """Await a response until its header section has arrived, and record the outcome. began: what the meter returned
        at the begin.
        """
        try:
            answer = await answering
        except BaseException as error:
            is_of_server = isinstance(error, OutboundError) and not isinstance(error, QueueFullError)
            if self._circuit_breakers is not None and is_of_server:
                self._circuit_breakers.record_failure(request.address.origin)
            if self._meters is not None:
                self._meters(request.address.origin.authority).record_end(began, 0)
            raise
        self._record_end(request, began, answer.status)
        return answer

    def _record_begin(self, request: OutgoingRequest) -> float:
        """Record the begin of a request, and return its time for the meter. Raises `OutboundError` if the circuit of
        the server is open.
        """
        origin = request.address.origin
        meter = None if self._meters is None else self._meters(origin.authority)
        began = 0.0 if meter is None else meter.begin()
        if self._circuit_breakers is not None:
            try:
                self._circuit_breakers.check(origin)
            except OutboundError:
                if meter is not None:
                    meter.record_end(began, 0)
                raise
        return began

    def _record_end(self, request: OutgoingRequest, began: float, status: int) -> None:
        """Record the end of a request for circuit breakers and meters. began: what the meter returned at the begin.
        status: 0 without a response.
        """
        origin = request.address.origin
        if self._circuit_breakers is not None and status:
            if status in FAILING:
                self._circuit_breakers.record_failure(origin)
            else:
                self._circuit_breakers.record_success(origin)
        if self._meters is not None:
            self._meters(origin.authority).record_end(began, status)

    def record_timeout(self, address: Address) -> None:
        """Record a timeout. The caller has to report it, as it looks like any other cancelled request here."""
        if self._circuit_breakers is not None:
            self._circuit_breakers.record_failure(address.origin)

    async def _send_with_retry(self, request: OutgoingRequest, guard: Guard | None) -> HttpResponse:
        """Send a request on a connection of the pool, once more on a new connection if `_repeats` allows it. guard: as
        for `_attempt`.
        """
        origin = request.address.origin
        connection = await self._pool.acquire(origin, guard)
        used = connection.used > 0
        try:
            return await connection.send(request)
        except OutboundError as error:
            if not _repeats(request, error, used=used):
                raise
        connection = await self._pool.acquire(origin, guard, fresh=True)
        return await connection.send(request)


class RequestWithoutTask(Receiver, Protocol):
    """A request in flight without a task. Its sender sets `request`, the client sets the other attributes."""

    request: OutgoingRequest
    connection: Http1Connection
    reused: bool
    """Whether the connection was used before."""
    metered: float
    """Time at which it began, for the meter."""


def _repeats(request: OutgoingRequest, error: OutboundError, *, used: bool) -> bool:
    """Return whether to repeat a failed request on a new connection: if its connection was used before, so that the
    server may just have closed it, no byte of a response has arrived, and sending the request twice does no harm (RFC
    9110, 9.2.2).

    error: why the request has failed. used: whether the connection was used before.
    """
    unanswered = error.unanswered and not isinstance(error, NotReachedError)
    return used and unanswered and request.repeatable and request.method in IDEMPOTENT


async def _drain(answer: HttpResponse) -> None:
    """Read the body of a redirect if it is short, so that its connection can be reused; otherwise close the
    response."""
    if answer.complete:
        return
    if answer.length is not None and answer.length <= 65_536:
        await answer.read(65_536)
    else:
        answer.close()


def _with_credentials(request: OutgoingRequest) -> OutgoingRequest:
    """Return the request with user and password of the URL as Basic credentials, unless its headers have some."""
    userinfo = request.address.userinfo
    if not userinfo or any(name.lower() == "authorization" for name, _ in request.headers):
        return request
    text = userinfo if ":" in userinfo else f"{userinfo}:"
    value = f"Basic {base64.b64encode(text.encode()).decode()}"
    return _copy_request(request, headers=[*request.headers, ("Authorization", value)])


def _redirect_request(request: OutgoingRequest, answer: HttpResponse) -> OutgoingRequest | None:
    """Return the request of a redirect, or None if the response is final.

    It is final if it is no redirect, if it leads to an invalid URL or from https to http, or if the body cannot be sent
    again.
    """
    location = answer.header("location") if answer.status in _REDIRECTS else None
    if location is None:
        return None
    try:
        address = redirect_target(request.address, location)
    except BadUrlError:
        return None
    if (request.address.origin.scheme, address.origin.scheme) == ("https", "http"):
        return None
    becomes_get = (answer.status == 303 and request.method not in ("GET", "HEAD")) or (
        answer.status in (300, 301, 302) and request.method == "POST"
    )
    if not becomes_get and not request.repeatable:
        return None
    headers = _redirect_headers(
        request.headers, becomes_get=becomes_get, same=_same(request.address.origin, address.origin)
    )
    if becomes_get:
        return OutgoingRequest("GET", address, headers)
    return OutgoingRequest(request.method, address, headers, request.body, request.length)


def _redirect_headers(headers: Headers, *, becomes_get: bool, same: bool) -> Headers:
    """Return the headers for a redirect. becomes_get: leave out those about the body, which is not sent again. same:
    the redirect leads to the same server; otherwise those for the first server only, such as credentials, are left out.
    """
    carried = []
    for name, value in headers:
        lowered = name.lower()
        if not same and lowered not in _HARMLESS and not lowered.startswith(_ABOUT_CONTENT):
            continue
        if becomes_get and lowered.startswith(_OF_BODY):
            continue
        carried.append((name, value))
    return carried


def _same(first: Origin, second: Origin) -> bool:
    """Whether both origins are the same server: equal, or the second is the first with TLS, both at the default
    ports.
    """
    upgraded = (first.scheme, first.port, second.scheme, second.port) == ("http", 80, "https", 443)
    return first == second or (upgraded and first.host == second.host)


def _copy_request(
    request: OutgoingRequest, *, headers: Headers | None = None, address: Address | None = None
) -> OutgoingRequest:
    """Return a copy of the request. headers, address: None: those of the request."""
    return OutgoingRequest(
        request.method,
        address or request.address,
        request.headers if headers is None else headers,
        request.body,
        request.length,
        expects_continue=request.expects_continue,
    )
