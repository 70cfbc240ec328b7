"""Streaming of a large result to a client that may be slow.

granian's own response stream accepts all data and buffers it without limit, so a slow reader would make the worker grow
by the whole result. A file response is read only as fast as the client takes it. So the body goes through a pipe:
granian reads one end like a file, this module writes the other, and a full pipe is the back-pressure. From there it
reaches the connection (which stops reading) and PostgreSQL (which stops producing).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
import sys
import termios
from typing import Any, Protocol

from rowcall.core.errors.problems import unavailable
from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.ext.http1.connection import RequestProtocol
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.request_context.request_context import ClientDisconnectedError
from rowcall.service.response.stream_body import StreamBody
from rowcall.service.sockets.peers import Presence, duplicate_sockets, is_with

log = logging.getLogger("rowcall")

PIPE_BYTES = 262_144
"""Size of the pipe if the system lets it be set, as Linux does. Elsewhere the system's default applies."""
FIRST_LOOK = 0.02
"""Seconds from the first data to the first check whether granian has opened the pipe; later checks are less frequent.
"""
LOOK_AGAIN = 5.0
"""Seconds without data to send, after which the client connection is checked."""
OPENED_WITHIN = 5.0
"""Seconds after which an unread pipe is checked: granian opens a response file at once, but if the client disconnects
in that moment, it does not open the file, or closes it unread, and does not report that.
"""


class PipeBody:
    """A response body, written into a pipe that granian reads. Write it in parts and close it, or cut it off."""

    def __init__(
        self, protocol: Any, status: int, headers: list[tuple[str, str]], time_limit: float, client: str
    ) -> None:
        """Begin the response. time_limit: seconds for which the client may leave it unread. client: `host:port` of the
        client, by which its disconnect is noticed; empty: unknown. Raises `Problem` 503 if the process has too many
        open files.
        """
        self._presence = Presence(client)
        self._loop = asyncio.get_running_loop()
        self._time_limit = time_limit
        self._written = 0
        self._read_end, self._write_end, spare = _pipe()
        self._pipe = os.fstat(self._read_end).st_ino
        """Inode of the reading end: macOS gives each end an inode of its own."""
        os.set_blocking(self._write_end, False)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._watching = self._loop.create_task(self._watch(protocol))
        self._next_check: asyncio.TimerHandle | None = None
        # granian opens the reading end next, by its name.
        os.close(spare)
        try:
            protocol.response_file(status, headers, f"/dev/fd/{self._read_end}")
        except BaseException:
            self._watching.cancel()
            os.close(self._read_end)
            os.close(self._write_end)
            raise

    async def _watch(self, protocol: Any) -> None:
        """Record a disconnect that granian reports. It does so only until it reads the pipe; from then on, it closes
        the pipe instead.
        """
        await protocol.client_disconnect()
        self._record_disconnect()

    def _record_disconnect(self) -> None:
        """Record that the client has disconnected, or that granian has closed the pipe."""
        self._loop.remove_reader(self._write_end)
        _wake(self._gone)

    async def write(self, data: bytes) -> None:
        """Write data, and return when the pipe has taken everything. Raises `ClientDisconnectedError`."""
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._write_end, view)
            except BlockingIOError:
                self._close_read_end_if_read()
                await self._wait_for_room()
            except BrokenPipeError:
                raise ClientDisconnectedError("the client has closed the connection") from None
            else:
                if not self._written:
                    self._look_for_reader(FIRST_LOOK)
                self._written += written
                view = view[written:]

    async def wait_for(self, event: asyncio.Future[Any], seconds: float | None = None) -> None:
        """Wait until `event` is done, or for `seconds` (None: without a limit). Raises `ClientDisconnectedError` if the
        client disconnects before.
        """
        until = None if seconds is None else self._loop.time() + seconds
        while not (event.done() or self._gone.done()):
            timeout = LOOK_AGAIN if until is None else min(LOOK_AGAIN, until - self._loop.time())
            if timeout <= 0:
                return
            await asyncio.wait({event, self._gone}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            # While granian waits for the pipe, it neither closes it nor reports a disconnect.
            if not event.done() and self._presence.is_disconnected():
                self._record_disconnect()
        if not event.done():
            raise ClientDisconnectedError("the client has closed the connection")

    async def _wait_for_room(self) -> None:
        """Wait until the pipe has room. Raises `ClientDisconnectedError` if the client disconnects or does not read in
        time.
        """
        room = self._loop.create_future()
        time_limit = self._time_limit
        self._loop.add_writer(self._write_end, _wake, room)
        try:
            if self._read_end >= 0 and time_limit > OPENED_WITHIN:
                await self.wait_for(room, OPENED_WITHIN)
                if not room.done() and self._is_unread():
                    raise ClientDisconnectedError("the client has closed the connection")
                time_limit -= OPENED_WITHIN
            await self.wait_for(room, time_limit)
        finally:
            self._loop.remove_writer(self._write_end)
        if not room.done():
            raise ClientDisconnectedError(f"the client has not read for {self._time_limit:g} s")
        self._close_read_end_if_read()

    def _look_for_reader(self, seconds: float) -> None:
        """Check repeatedly whether granian has opened the pipe, for which there is no event. An event stream may send
        only little data that never fills the pipe: without these checks, a disconnect would never be noticed. seconds:
        until the first check.
        """
        self._next_check = self._loop.call_later(seconds, self._check_reader, seconds)

    def _check_reader(self, seconds: float) -> None:
        """Check once, and schedule the next check if granian has not opened the pipe. seconds: between the previous
        check and this one; the next one follows after twice the time, at most after one second.
        """
        self._close_read_end_if_read()
        if self._read_end >= 0:
            self._look_for_reader(min(2 * seconds, 1.0))

    def _close_read_end_if_read(self) -> None:
        """Close the reading end of this object as soon as granian has read from the pipe, so has opened it itself.
        Otherwise it would not be noticed when granian closes the pipe."""
        if self._read_end >= 0 and _unread(self._read_end) < self._written:
            self._close_read_end()
            # The writing end of a pipe is never readable: this callback runs when the last reader has closed its end.
            self._loop.add_reader(self._write_end, self._record_disconnect)

    def _is_unread(self) -> bool:
        """Whether no other descriptor of this process has the reading end open, so that granian does not read."""
        own = (self._read_end, self._write_end)
        return not any(number not in own and _inode(number) == self._pipe for number in _descriptors())

    def _close_read_end(self) -> None:
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1

    async def close(self) -> None:
        """End the body. The reading end stays open until granian has opened it, at a time of its own."""
        if self._next_check is not None:
            self._next_check.cancel()
        try:
            if self._read_end >= 0:
                await self._until_read()
        finally:
            self._close_read_end()
            self._watching.cancel()
            self._loop.remove_reader(self._write_end)
            os.close(self._write_end)

    async def _until_read(self) -> None:
        """Wait until granian has read from the pipe. Return earlier if nothing was written, if the client has
        disconnected, if granian has not opened the pipe within `OPENED_WITHIN` seconds, and at the time limit."""
        start = self._loop.time()
        looked = False
        while _unread(self._read_end) >= self._written > 0 and not self._gone.done():
            waited = self._loop.time() - start
            if waited >= self._time_limit or (not looked and waited >= OPENED_WITHIN and self._is_unread()):
                break
            looked = waited >= OPENED_WITHIN
            # There is no event for the opening of a file.
            await asyncio.sleep(0.002)

    def abort(self, client: str) -> None:
        """End an incomplete body so that the client notices: the end of the pipe alone would look like success. client:
        `host:port`, whose connection is shut down; empty: granian's reading of the pipe is made to fail instead.
        """
        if not self._gone.done():
            if client:
                shut_down_connection(client)
            else:
                self._break_reading()
        self._close_later()

    def _close_later(self) -> None:
        """Close the body in a task of its own."""
        # Granian may be about to open the reading end by its number, which must not belong to another pipe by then.
        closing = self._loop.create_task(self.close())
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)

    def _break_reading(self) -> None:
        """Make granian's next read of the pipe fail, if the connection of the client must not be shut down: over a Unix
        socket, clients have no address by which to find their connection, and over HTTP/2, it carries other responses
        too. The descriptor that reads the pipe is replaced by one that cannot be read: granian then ends the connection
        in the middle of the body, or resets only the stream.
        """
        folder = os.open("/", os.O_RDONLY)
        for number in _descriptors():
            if number not in (self._read_end, self._write_end) and _inode(number) == self._pipe:
                os.dup2(folder, number, inheritable=False)
        os.close(folder)
        # A read that already waits on the pipe goes on waiting; this byte ends it, and the next read fails.
        with contextlib.suppress(OSError):
            os.write(self._write_end, b" ")


class _CapturedBody(PipeBody):
    """A body that this process reads itself, such as that of a subrequest. Its end does not end the connection of the
    client, which carries another response. captured: reads the body (`service.request.subrequests.CapturedResponse`).
    """

    def __init__(
        self, captured: Any, protocol: Any, status: int, headers: list[tuple[str, str]], time_limit: float, client: str
    ) -> None:
        self._captured = captured
        super().__init__(protocol, status, headers, time_limit, client)

    def abort(self, _client: str) -> None:
        """End an incomplete body so that its reader notices."""
        self._captured.cut_off()
        self._close_read_end()
        self._close_later()


def _pipe() -> tuple[int, int, int]:
    """Return a pipe as its reading end, its writing end, and a descriptor that can be closed to make room for another
    one. Raises `Problem` 503 if too many files are open: granian would answer 404 for a file that it cannot open.
    """
    descriptors: list[int] = []
    try:
        descriptors += os.pipe()
        descriptors.append(os.dup(descriptors[0]))
    except OSError as error:
        for descriptor in descriptors:
            os.close(descriptor)
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        log.error("a stream cannot begin: %s (ulimit -n)", error.strerror)
        raise unavailable("the service has too many files and connections open to begin a stream") from None
    return descriptors[0], descriptors[1], descriptors[2]


_closing: set[asyncio.Task[None]] = set()
"""Tasks that close bodies that were cut off. Without a reference, they could be garbage-collected."""


def _descriptors() -> list[int]:
    """Return the open file descriptors of this process."""
    return [int(name) for name in os.listdir("/dev/fd") if name.isdigit()]


def _inode(descriptor: int) -> int:
    """Return the inode of a pipe; -1: the descriptor is closed or is no pipe."""
    try:
        result = os.fstat(descriptor)
    except OSError:
        return -1
    return result.st_ino if stat.S_ISFIFO(result.st_mode) else -1


def _unread(pipe: int) -> int:
    """Return the number of bytes in the pipe. pipe: the reading end; on macOS the writing end always reports 0."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def _wake(future: asyncio.Future[None]) -> None:
    """Set the result of a future, unless it is done."""
    if not future.done():
        future.set_result(None)


def client_of_only_response(scope: Any) -> str:
    """Return the client of a request (`host:port`) if its connection carries only this response; empty if it carries
    others too (HTTP/2), which must not end because one of them is left unread.
    """
    return "" if scope.http_version.startswith("2") else str(scope.client)


def shut_down_connection(client: str) -> None:
    """Shut down this process's TCP connection with `client` (`host:port`), wherever in the process it is used. Without
    such a connection, nothing happens.
    """
    for connection in duplicate_sockets():
        with connection, contextlib.suppress(OSError):
            if is_with(connection, client):
                connection.shutdown(socket.SHUT_RDWR)
                return


class Encoder(Protocol):
    """Converts rendered parts into the bytes that are sent to the client."""

    async def part(self, data: bytes) -> bytes:
        """Return the next bytes to send for these rendered rows; they may be empty."""

    async def end(self) -> bytes:
        """Return the last bytes to send."""


class _Plain:
    """Sends rendered parts unchanged."""

    async def part(self, data: bytes) -> bytes:
        return data

    async def end(self) -> bytes:
        return b""


PLAIN: Encoder = _Plain()


class Coder(Protocol):
    """Compresses one body."""

    def part(self, data: bytes) -> bytes:
        """Compress `data` and flush, so that the receiver can read all of it; return the compressed bytes."""

    def end(self) -> bytes:
        """Return the last bytes of the compressed body."""


def coder_of(protocol: Any, headers: list[tuple[str, str]]) -> Coder | None:
    """Return the compressor of the body with these headers; None: it is not compressed. protocol: of the request; the
    compressing protocol is searched among those that it wraps.
    """
    while protocol is not None and not hasattr(protocol, "stream_coder"):
        # A captured response is not that of the client.
        protocol = None if hasattr(protocol, "reads_files") else getattr(protocol, "inner", None)
    return None if protocol is None else protocol.stream_coder(headers)


class _CompressingEncoder:
    """Compresses the output of another encoder."""

    def __init__(self, inner: Encoder, coder: Coder) -> None:
        self._inner = inner
        self._coder = coder

    async def part(self, data: bytes) -> bytes:
        encoded = await self._inner.part(data)
        return self._coder.part(encoded) if encoded else b""

    async def end(self) -> bytes:
        encoded = await self._inner.end()
        return (self._coder.part(encoded) if encoded else b"") + self._coder.end()


def open_body(
    protocol: Any, status: int, headers: list[tuple[str, str]], time_limit: float, client: str
) -> PipeBody | StreamBody:
    """Begin a response whose body is written in parts, in the way that the HTTP server offers. time_limit, client: as
    for `PipeBody`. Raises `Problem` 503 if the process has too many open files.
    """
    innermost = protocol
    while not hasattr(innermost, "reads_files") and (inner := getattr(innermost, "inner", None)) is not None:
        innermost = inner
    if isinstance(innermost, RequestProtocol):
        return StreamBody(innermost, protocol, status, headers, time_limit)
    if hasattr(innermost, "reads_files"):
        return _CapturedBody(innermost, protocol, status, headers, time_limit, client)
    return PipeBody(protocol, status, headers, time_limit, client)


async def stream_result(
    protocol: Any,
    client: str,
    execution: Execution,
    status: int,
    headers: list[tuple[str, str]],
    time_limit: float,
    encoder: Encoder = PLAIN,
) -> bool:
    """Send the result of a STREAMING execution. Return True if all of its rows were taken, also if the execution
    failed, in which case the response is cut off. Return False if rows may be left: the client has disconnected, or the
    result could not be encoded, which is logged.

    client: `host:port`, whose connection ends with an incomplete body; empty if it carries other responses. time_limit:
    as for `PipeBody`. encoder: converts rendered rows into the bytes that are sent. Raises `Problem` 503 if the process
    has too many open files.
    """
    connection = execution.connection
    assert connection is not None  # noqa: S101 (only executions on dedicated connections stream)
    coder = coder_of(protocol, headers)
    if coder is not None:
        encoder = _CompressingEncoder(encoder, coder)
    body = open_body(protocol, status, headers, time_limit, client)
    complete = False
    try:
        await _pump(connection, execution, encoder, body)
        if execution.error is None and not execution.loss and execution.failure is None:
            await body.write(await encoder.end())
            complete = True
    except ClientDisconnectedError:
        return False
    except Exception:
        log.exception("%s: the result could not be encoded", execution.label)
        return False
    finally:
        if complete:
            await body.close()
        else:
            body.abort(client)
        # The end of a captured body is not that of the response to the client.
        if not isinstance(body, _CapturedBody) and (waiting := logging_protocol_of(protocol)) is not None:
            waiting.stream_ended()
    return True


async def _pump(connection: Connection, execution: Execution, encoder: Encoder, body: PipeBody | StreamBody) -> None:
    """Send the parts of the result as the database server delivers them. Raises `ClientDisconnectedError`, and the
    errors of the encoder.
    """
    while execution.streaming:
        part = connection.take()
        execution.waiter = waiter = asyncio.get_running_loop().create_future()
        # The next part is rendered while this one is being sent.
        connection.resume()
        await body.write(await encoder.part(part))
        if execution.streaming:
            await body.wait_for(waiter)
    if execution.body:
        await body.write(await encoder.part(execution.body))
