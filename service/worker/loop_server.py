"""The HTTP/1.1 server in the worker's event loop (`ext.http1`) behind one listening socket.

It takes the place of granian on sockets without TLS. A connection that begins with the preface of HTTP/2 is handed to
granian in the same process (`service.worker.http2_connections`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from contextlib import suppress
from typing import Any

import orjson
from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem
from rowcall.ext.base.response_guard import InvalidResponseError
from rowcall.ext.http1.connection import Connection, Http1Server, RequestProtocol, StreamWriter
from rowcall.service.background import pause
from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import Handle, Headers
from rowcall.service.sockets.listeners import BACKLOG, Listener
from rowcall.service.worker.http2_connections import Http2Connections

log = logging.getLogger("rowcall")

CHECKS = 8
"""Checks of all connections within the time that one may be idle."""
LONGEST_CHECK = 1.0
"""Maximum seconds between two checks of the connections."""
GATHER_FROM = 16
GATHER_SECONDS = 0.00005
"""Responses of several connections are sent together if so many requests are in progress, or if as many responses have
followed each other in less time, such as cached ones: the event loop is busy then, and waking a client once for many
responses saves more than a response loses that waits for the others of its turn. With 8 connections it does not.
"""
READ_BYTES = 262_144
"""Of a file, for each part that is sent."""


class LoopServer:
    """Serves requests from one listener until stopped."""

    def __init__(
        self, handle: Handle, listener: Listener, options: HttpOptions, *, problem_types: bool, http2: bool
    ) -> None:
        """handle: handles the requests. problem_types: problems name their type. http2: hand connections of HTTP/2 to
        granian; otherwise, they are refused.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._most = options.limits.connections or BACKLOG
        self._idle_seconds = options.header_timeout
        self._problem_types = problem_types
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._wants_connections = False
        self._waiting: deque[Connection] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._http2 = Http2Connections(handle, options, self._end_http2) if http2 else None
        self._server = Http1Server(
            self._loop,
            with_error_handling(handle),
            self._problem_body,
            self._send_file,
            None if self._http2 is None else self._http2.take,
            RSGIProtocolClosed,
            self._end_connection,
            head_limit=options.head_limit,
            line_limit=options.limits.line_size or 0,
            body_buffer=options.read_at_once,
            keep_alive=options.keep_alive,
            idle_seconds=options.header_timeout,
            unread_seconds=options.slow_client,
            gather_from=GATHER_FROM,
            gather_seconds=GATHER_SECONDS,
            own_headers=(*options.security_headers, *(() if options.server.server_header else (("server", ""),))),
        )

    # Connections

    def start(self) -> None:
        """Begin to accept. Does nothing if it has begun already."""
        if self._wants_connections:
            return
        self._wants_connections = True
        self._accept()
        self._check()

    def stop_accepting(self) -> None:
        """Stop accepting connections: those in the queue of the socket are left to the other processes that have it."""
        self._wants_connections = False
        self._pause()

    def _accept(self) -> None:
        """Begin to accept connections in the background, unless that has begun or the server stops."""
        if self._opening is None and self._accepting is None and self._wants_connections:
            self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        """Accept connections from now on. If that fails, for example because no file descriptor is free, log the error
        and try again with growing delays, as long as the server wants connections.
        """
        attempt = 0
        while self._wants_connections:
            try:
                self._accepting = await self._listen()
                break
            except OSError as error:
                log.error("connections cannot be accepted, tried again: %s", error)
            await asyncio.sleep(pause(attempt))
            attempt += 1
        self._opening = None
        if not self._wants_connections:
            self._pause()

    async def _listen(self) -> asyncio.Server:
        """Return a server that accepts connections on a copy of the listening socket. Raises `OSError`."""
        # A copy of the descriptor: to stop accepting, uvloop closes the socket that it was given.
        listening = socket.socket(fileno=os.dup(self._listener.fd))
        try:
            if self._listener.unix:
                return await self._loop.create_unix_server(self._connection, sock=listening, **_KEEP_PATH)
            return await self._loop.create_server(self._connection, sock=listening, backlog=BACKLOG)
        except BaseException:
            listening.close()
            raise

    def _pause(self) -> None:
        """Stop accepting connections."""
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None

    def _connection(self) -> Any:
        """Return the protocol of a new connection, which waits for admission if there are too many."""
        connection = Connection(self._server)
        self._empty.clear()
        if self._count() > self._most:
            # Those that the system has accepted already wait here, the next ones in the queue of the socket.
            connection.wait_for_admission()
            self._waiting.append(connection)
        if self._count() >= self._most:
            self._loop.call_soon(self._pause_if_full)
        return connection

    def _pause_if_full(self) -> None:
        """Stop accepting connections if there are as many as allowed."""
        # A connection may have ended since: with the end of the next one, it would be too late to accept again.
        if self._count() >= self._most:
            self._pause()

    def _count(self) -> int:
        """Return the number of open connections, with those of HTTP/2 and those that wait for admission."""
        return len(self._server.connections) + (0 if self._http2 is None else self._http2.count)

    def _end_connection(self, _connection: Connection) -> None:
        """Admit a waiting connection, and accept again if there is room."""
        while self._waiting and self._count() - len(self._waiting) < self._most:
            connection = self._waiting.popleft()
            if connection in self._server.connections:
                connection.admit()
        if self._count() < self._most:
            self._accept()
        if not self._count():
            self._empty.set()

    def _end_http2(self) -> None:
        self._end_connection(None)  # type: ignore[arg-type]  # only counted

    def _check(self) -> None:
        """Check the connections for timeouts, and schedule the next check."""
        self._server.check()
        self._timer = self._loop.call_later(min(LONGEST_CHECK, self._idle_seconds / CHECKS), self._check)

    # The end

    def announce_close(self) -> None:
        """Have each response of HTTP/1.1 ask its client to use another connection. Clients of HTTP/2 are asked when
        `stop` is called."""
        self._server.closing = True
        if self._http2 is not None:
            self._http2.announce_close()

    async def stop(self, seconds: float) -> bool:
        """Stop accepting connections, close the listening socket in this process, and wait for running requests, at
        most `seconds`. Return False if the time was too short; what still runs is cut off then.

        New connections are refused when no other process has the socket.
        """
        self.stop_accepting()
        # Connections are refused when no process has the socket any more.
        with suppress(OSError):
            os.close(self._listener.fd)
        # Requests that have arrived already are read first.
        for _ in range(2):
            await asyncio.sleep(0)
        self._server.end_idle()
        http2 = None if self._http2 is None else self._loop.create_task(self._http2.stop(seconds))
        ended = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._server.connections:
                    self._server.end_idle()
                    await asyncio.sleep(0.02)
        if self._server.connections:
            ended = False
            self._server.abort()
        if http2 is not None:
            ended = await http2 and ended
        if self._timer is not None:
            self._timer.cancel()
        return ended

    # Responses

    def _problem_body(self, status: int, detail: str) -> bytes:
        """Return the problem document for an error that the server itself reports."""
        return orjson.dumps(Problem(status, detail).members(with_type=self._problem_types))

    def _send_file(
        self, protocol: RequestProtocol, status: int, headers: Headers, path: str, start: int, end: int | None
    ) -> None:
        """Send a file as the response, in the background. Parameters: as for `_read_and_send_file`."""
        task = self._loop.create_task(self._read_and_send_file(protocol, status, headers, path, start, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_and_send_file(
        self, protocol: RequestProtocol, status: int, headers: Headers, path: str, start: int, end: int | None
    ) -> None:
        """Send a file as the response. Parts that are not in the page cache are read in a thread, because that may take
        long. Responds 404 if it cannot be opened.

        start, end: range of its bytes, without the one at `end`; end None: up to its end.
        """
        try:
            file = await self._loop.run_in_executor(None, _open_file, path)
        except OSError:
            protocol.response_bytes(404, [("content-type", "application/problem+json")], self._problem_body(404, ""))
            return
        with file:
            length = (os.fstat(file.fileno()).st_size if end is None else end) - start
            stated = next((int(value) for name, value in headers if name.lower() == "content-length"), None)
            if stated is None:
                headers = [*headers, ("content-length", str(length))]
            else:
                # The file may have grown since the headers were chosen.
                length = min(length, stated)
            writer = protocol.prepare_stream()
            protocol.response_file(status, headers, writer.name)
            try:
                await self._copy(file, start, length, writer)
            except OSError as error:
                log.error("%s cannot be read further, so its response is cut off: %s", path, error)
            finally:
                writer.close()

    async def _copy(self, file: Any, start: int, length: int, writer: StreamWriter) -> None:
        """Send `length` bytes of a file from `start` on, at the pace of the client; fewer if the file is shorter or the
        client disconnects. Raises `OSError` if the file cannot be read.
        """
        place = start
        while place < start + length and writer.open:
            size = min(READ_BYTES, start + length - place)
            data: bytes | bytearray | None = _cached_part(file.fileno(), size, place)
            if data is None:
                data = await self._loop.run_in_executor(None, os.pread, file.fileno(), size, place)
            if not data or not writer.send_bytes(data):
                break
            place += len(data)
            # Other requests have their turn between two parts.
            await asyncio.sleep(0)
            # A client that reads nothing at all is ended by the check of its connection.
            while writer.full():
                await writer.room()


def with_error_handling(handle: Handle) -> Handle:
    """Wrap `handle`: if it raises, log the error and end the request with status 500. The application's steps handle
    their errors themselves; this is for handlers in front of them, such as static files.
    """

    def handle_with_errors(scope: Any, protocol: Any) -> None:
        try:
            handle(scope, protocol)
        except InvalidResponseError as error:
            log.error("a response was rejected: %s", error)
            protocol.fail()
        except Exception:
            log.exception("a request failed outside of its steps")
            protocol.fail()

    return handle_with_errors


def _cached_part(descriptor: int, size: int, place: int) -> bytearray | None:
    """Read a part of a file without waiting for the disk. Returns the bytes from `place` on that the page cache has, at
    most `size`; None if it has none, or if the system cannot read without waiting.
    """
    if _WITHOUT_WAITING is None:
        return None
    part = bytearray(size)
    try:
        count = os.preadv(descriptor, [part], place, _WITHOUT_WAITING)
    except OSError:
        return None
    del part[count:]
    return part or None


_WITHOUT_WAITING: int | None = getattr(os, "RWF_NOWAIT", None)
"""Flag of Linux: a read that would wait for the disk fails."""


def _open_file(path: str) -> Any:
    return open(path, "rb", buffering=0)


_KEEP_PATH: dict[str, Any] = {"cleanup_socket": False}
"""The supervisor removes the path of a Unix socket."""
