"""The HTTP server of a worker by granian: for TLS, for HTTP/2, and for all listeners with `HttpServer:Engine` Granian.
The listener is a socket that the supervisor has opened. `service.worker.loop_server` serves the other sockets.

The supervisor holds the sockets, so connections that arrive while a worker is being replaced wait in the queue of the
socket instead of being refused.

granian's public interface runs an RSGI application as one asyncio task for each request. Its native worker only needs
an object with a `_schedule_fn`, so requests are passed to the application as plain callbacks: measured with a constant
response, 69,000 instead of 52,000 requests a second. This interface is private to granian, hence the narrow version
range in pyproject.toml and a test that speaks HTTP through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Self

from granian._granian import CallbackScheduler, RSGIWorker, SocketHolder, WorkerSignal
from granian.http import HTTP1Settings, HTTP2Settings

from rowcall.ext.base.response_guard import GuardedProtocol, InvalidResponseError
from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.sockets.listeners import BACKLOG, Listener, Tls

log = logging.getLogger("rowcall")

Handle = Callable[[Any, Any], None]
"""Handles a request: granian's scope and protocol."""


class _Scheduler(CallbackScheduler):
    """Passes requests from granian's threads to the event loop."""

    def __new__(cls, loop: asyncio.AbstractEventLoop, _handle: Handle) -> Self:
        # The other arguments serve granian's own tasks, which are not used.
        new: Any = super().__new__
        scheduler: Self = new(cls, loop, None, None, None, None)
        return scheduler

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Handle) -> None:
        super().__init__()
        arrived: deque[Any] = deque()
        wake = loop.call_soon_threadsafe

        def announce_close() -> None:
            nonlocal handle
            handle = with_connection_close(handle)

        def start_arrived() -> None:
            # Requests that arrive meanwhile wait for the next turn, so that responses are not delayed.
            for _ in range(len(arrived)):
                watcher = arrived.popleft()
                protocol = GuardedProtocol(watcher.proto)
                try:
                    handle(watcher.scope, protocol)
                except InvalidResponseError as error:
                    # For handlers that respond without the application's steps; those report errors themselves.
                    log.error("a response was rejected: %s", error)
                    protocol.fail()
                except Exception:
                    # Raised from here, it would leave the others in `arrived`, and no later request wakes the loop.
                    log.exception("a request failed outside of its steps")
                    protocol.fail()
            if arrived:
                loop.call_soon(start_arrived)

        def schedule(watcher: Any) -> None:
            # One wake-up of the loop for all requests that arrive before it runs.
            arrived.append(watcher)
            if len(arrived) == 1:
                wake(start_arrived)

        self._schedule_fn = schedule
        self.announce_close = announce_close
        """Send `Connection: close` with each response from now on."""


class HttpServer:
    """Serves requests from one listener until stopped."""

    def __init__(self, handle: Handle, listener: Listener, options: HttpOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._signal = WorkerSignal()
        self._stopped = asyncio.Event()
        self._started = False
        holder: Any = SocketHolder
        worker: Any = RSGIWorker
        self._worker = worker(
            1,
            (None, holder(listener.fd, listener.unix, BACKLOG)),
            None,
            options.server.threads or 1,  # of granian's runtime
            512,  # threads for reading files, that is, for streamed results
            1,  # thread that passes requests on: `_Scheduler` loses wake-ups with several
            30,
            options.limits.connections or BACKLOG,
            listener.protocols,
            _http1(options),
            _http2(options),
            False,  # websockets
            None,
            *_tls(listener.tls),
            (None, None),
        )
        self._serve = self._worker.serve_async_uds if listener.unix else self._worker.serve_async
        self._scheduler = _Scheduler(self._loop, handle)

    def start(self) -> None:
        """Begin to accept connections; no effect if it has begun already."""
        if self._started:
            return
        self._started = True
        signal: Any = self._signal
        signal.add_cb(lambda: self._loop.call_soon_threadsafe(self._stopped.set))
        self._serve(self._scheduler, self._loop, self._signal)

    def stop_accepting(self) -> None:
        """Do nothing: `service.sockets.accepting` makes all listeners of granian stop at once."""

    def announce_close(self) -> None:
        """Send `Connection: close` with each response of HTTP/1, so that no client sends a request on a connection that
        is being closed. Clients of HTTP/2 are informed when `stop` is called."""
        self._scheduler.announce_close()

    async def stop(self, seconds: float) -> bool:
        """Refuse new requests at once and wait for running ones. Returns False if they did not end within `seconds`."""
        if not self._started:
            return True
        self._signal.set()
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except TimeoutError:
            return False
        return True


def with_connection_close(handle: Handle) -> Handle:
    """Wrap `handle` so that responses of HTTP/1 have `Connection: close`. HTTP/2 has a frame for it, which granian
    sends when it stops.
    """

    def handle_once_more(scope: Any, protocol: Any) -> None:
        once = scope.http_version.startswith("1")
        handle(scope, HeadersProtocol(protocol, [("connection", "close")]) if once else protocol)

    return handle_once_more


def _http1(options: HttpOptions) -> HTTP1Settings:
    """Return granian's settings for HTTP/1.1."""
    return HTTP1Settings(
        header_read_timeout=_milliseconds(options.header_timeout),
        keep_alive=options.keep_alive,
        max_buffer_size=max(8192, options.head_limit, options.read_at_once),
    )


def _http2(options: HttpOptions) -> HTTP2Settings:
    """Return granian's settings for HTTP/2."""
    http2 = options.limits.http2
    settings = HTTP2Settings(
        initial_connection_window_size=http2.connection_window,
        initial_stream_window_size=http2.stream_window,
        keep_alive_interval=None if http2.ping_delay is None else _milliseconds(http2.ping_delay),
        keep_alive_timeout=max(1, round(http2.ping_timeout)),
        max_concurrent_streams=http2.streams,
        max_frame_size=http2.frame,
        max_headers_size=http2.headers or options.head_limit,
    )
    if options.limits.response_buffer is not None:
        settings.max_send_buffer_size = options.limits.response_buffer
    return settings


def _milliseconds(seconds: float) -> int:
    """Return seconds as whole milliseconds, at least one."""
    return max(1, round(seconds * 1000))


def _tls(tls: Tls | None) -> tuple[Any, ...]:
    """Return granian's eight TLS arguments. The supervisor has checked that certificate and key match. tls: None: the
    listener is http.
    """
    if tls is None:
        return (False, None, None, None, "tls1.2", None, [], False)
    return (True, tls.chain, tls.key, None, tls.oldest, None, [], False)
