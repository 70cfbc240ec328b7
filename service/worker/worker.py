"""One worker process: an event loop, HTTP servers (granian or `LoopServer`), the connections, and the active schema
snapshot.

The supervisor starts it as a copy of the template process (`service.supervisor.processes.prefork`), or else as `python
-P -m rowcall.service.worker.worker CHANNEL_FD FOLDER`. It receives everything else over the channel, and stops when the
channel ends: a worker never outlives its supervisor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import uvloop

from rowcall.core.errors.problems import Problem
from rowcall.service.background import Background
from rowcall.service.log import Forwarder, configure_worker_logging
from rowcall.service.log.sinks import say_on_stderr
from rowcall.service.options.server.client_connections import client_connections
from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import Handle
from rowcall.service.snapshot.garbage_collection import keep, pause_collection
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_transfer import SnapshotParts
from rowcall.service.sockets.accepting import stop_accepting
from rowcall.service.sockets.listeners import Listener
from rowcall.service.sockets.open_files import raise_limit
from rowcall.service.sockets.unused_connections import Clients, close_unused
from rowcall.service.supervisor.channel import (
    ActivateSnapshot,
    Channel,
    DeliveredEvents,
    EndStream,
    EndStreamReply,
    EventSubscription,
    GaugesReply,
    GaugesRequest,
    Identify,
    InvalidateEntry,
    InvalidateTags,
    InvalidationReply,
    KeyRingRequest,
    Keys,
    Leave,
    LogEntries,
    Part,
    PrepareSnapshot,
    PrepareSnapshotChange,
    ProfileReply,
    ProfileRequest,
    PublishedEvents,
    ReplayedEvents,
    SnapshotActivated,
    SnapshotPrepared,
    SpansReply,
    SpansRequest,
    Stale,
    Start,
    Stop,
    StreamsReply,
    StreamsRequest,
    TakeProfile,
    TokenUseFailure,
    TokenUseReply,
    TokenUseRequest,
    UnpublishedNotice,
)
from rowcall.service.supervisor.processes.prefork import name_process
from rowcall.service.worker.application import Application
from rowcall.service.worker.http_server import HttpServer
from rowcall.service.worker.loop_errors import report_loop_error
from rowcall.service.worker.loop_server import LoopServer
from rowcall.service.worker.middleware import with_middleware

log = logging.getLogger("rowcall")

LAST_SILENCE = 5.0
"""Seconds after which a stopping worker closes a connection on which no data is sent any more."""


class Worker:
    """The worker of this process, from its start to its end. channel: to the supervisor. forwarder: sends log entries
    there.
    """

    def __init__(self, channel: Channel, start: Start, forwarder: Forwarder) -> None:
        self._channel = channel
        self._forwarder = forwarder
        self._listeners = start.listeners
        self._silence = start.options.http.header_timeout
        self._unread = start.options.http.slow_client
        self._threads = start.options.http.blocking_threads
        self._application = Application(start.options)
        self._identity_claims = start.options.auth.identity
        http = start.options.http
        connections = client_connections(start.options, len(start.listeners))
        http = replace(http, limits=replace(http.limits, connections=connections))
        self._servers = [
            _server_for(
                with_middleware(self._application, start.options, item, start.https_port, forwarder.add_request),
                item,
                http,
                problem_types=start.options.problem_types,
            )
            for item in start.listeners
        ]
        self._background = Background()
        self._parts = SnapshotParts()
        self._unreadable: Exception | None = None
        """Why the schema snapshot that is being received cannot be used."""
        self._accepts = True
        """Whether connections are accepted once a schema snapshot is active; False: only other processes accept."""
        self._stopping = asyncio.Event()
        self._stop_within = 30.0
        """Seconds that running requests have to finish when the worker stops."""
        self._application.set_stale_handler(lambda: channel.send(Stale()))
        self._application.keys.on_unknown = lambda: channel.send(KeyRingRequest())
        self._application.single_use.ask = lambda *question: channel.send(TokenUseRequest(*question))
        self._application.single_use.report_failure = lambda *use: channel.send(TokenUseFailure(*use))
        self._application.unpublished_notices.report = lambda path, severity: channel.send(
            UnpublishedNotice(path, severity)
        )
        self._feed = self._application.events.feed
        self._feed.send = lambda packed: channel.send(PublishedEvents(packed))
        self._feed.request_delivery = lambda wanted: channel.send(EventSubscription(wanted))

    async def run(self) -> None:
        """Serve until the supervisor says to stop or has ended."""
        loop = asyncio.get_running_loop()
        # The supervisor decides when to stop; a Ctrl-C in the terminal reaches the whole process group.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: None)
        loop.add_signal_handler(signal.SIGUSR1, lambda: self._channel.send(ProfileRequest()))
        loop.add_signal_handler(signal.SIGTERM, self._stopping.set)
        if self._threads is not None:
            loop.set_default_executor(ThreadPoolExecutor(self._threads))
        # In parallel: a database that accepts connections and then does not answer would delay everything else.
        starting = asyncio.create_task(self._application.start())
        starting.add_done_callback(_report_failure)
        listening = asyncio.create_task(self._listen_or_end())
        unused = partial(close_unused, self._listeners, self._silence, self._unread, self._application.clients)
        self._background.keep("closing unused connections", unused)
        await self._stopping.wait()
        starting.cancel()
        await self._stop()
        self._background.cancel()
        # Before the channel is closed here: its end would look like that of the supervisor.
        listening.cancel()
        self._forwarder.flush()
        await self._channel.finish()

    async def _listen_or_end(self) -> None:
        """Receive messages. If that fails, stop: without messages, a worker would serve outdated keys and endpoints for
        ever, so it is replaced.
        """
        try:
            await self._listen()
        except Exception:
            log.exception("this worker does not understand its supervisor, and stops")
            self._stopping.set()

    async def _listen(self) -> None:
        """Handle the messages of the supervisor until it has ended, also while the worker stops. `Stop`, and the end of
        the supervisor, set `_stopping`.
        """
        while True:
            try:
                message = await self._channel.receive()
            except EOFError:
                say_on_stderr("the supervisor is gone; this worker stops")  # it could not be sent to the log any more
                self._stop_within = 1.0
                self._stopping.set()
                return
            if isinstance(message, Part):
                self._take(message)
            elif isinstance(message, PrepareSnapshot | PrepareSnapshotChange):
                self._prepare(message)
            elif isinstance(message, Keys):
                self._application.keys.ring = message.ring
            elif isinstance(message, TokenUseReply):
                self._application.single_use.answer(message.number, message.first)
            elif isinstance(message, DeliveredEvents):
                self._feed.on_events(message.packed)
            elif isinstance(message, ReplayedEvents):
                self._feed.on_join_answer(message.packed)
            elif isinstance(message, TakeProfile):
                self._background.start(self._profile(message))
            elif isinstance(message, InvalidateTags | InvalidateEntry):
                self._background.start(self._invalidate(message))
            elif isinstance(message, Identify):
                self._background.start(self._identify(message))
            elif isinstance(message, StreamsRequest):
                self._report_streams(message)
            elif isinstance(message, SpansRequest):
                self._channel.send(SpansReply(message.number, self._application.spans(message.trace)))
            elif isinstance(message, EndStream):
                found = self._application.events.end_stream(message.stream)
                self._channel.send(EndStreamReply(message.number, found))
            elif isinstance(message, GaugesRequest):
                self._channel.send(GaugesReply(message.number, self._application.gauges()))
            elif isinstance(message, ActivateSnapshot):
                self._activate_snapshot(message.number)
            elif isinstance(message, Leave):
                self._leave(message)
            elif isinstance(message, Stop):
                self._stop_within = message.seconds
                self._stopping.set()

    async def _profile(self, message: TakeProfile) -> None:
        """Sample the stacks of this worker for the time that the message asks for, and send the profile to the
        supervisor."""
        # Imported here, as it is rarely used.
        from rowcall.service.metrics.sampling import sample_stacks

        self._channel.send(ProfileReply(message.number, await sample_stacks(message.seconds)))

    async def _invalidate(self, message: InvalidateTags | InvalidateEntry) -> None:
        """Invalidate cached responses, and reply with their number, or with why it is not confirmed."""
        try:
            if isinstance(message, InvalidateTags):
                count = await self._application.invalidate_tags(message.tags)
            else:
                count = await self._application.invalidate_entry(message.endpoint, message.arguments)
        except Problem as problem:
            self._channel.send(InvalidationReply(message.number, 0, problem.detail, problem.status))
        else:
            self._channel.send(InvalidationReply(message.number, count))

    async def _identify(self, message: Identify) -> None:
        # Imported here, as it is rarely used.
        from rowcall.service.worker.operator import identify_operator

        self._channel.send(await identify_operator(message, self._application.user_sessions, self._identity_claims))

    def _report_streams(self, message: StreamsRequest) -> None:
        # Imported here, as it is rarely used.
        from rowcall.service.events.activity import open_streams

        streams = open_streams(self._application.events, self._identity_claims)
        self._channel.send(StreamsReply(message.number, streams))

    def _take(self, part: Part) -> SchemaSnapshot | None:
        """Store a part of a schema snapshot; return the snapshot if this was the last part, else None.

        If a part cannot be read, the result is None until the next snapshot begins, and `_read_snapshot` raises the
        stored error.
        """
        if not part.index:
            self._parts, self._unreadable = SnapshotParts(), None
        snapshot = None
        try:
            if self._unreadable is None:
                with pause_collection():
                    snapshot = self._parts.take(part.pickled)
                    if not self._application.snapshot.number:
                        keep(first=True)
        except Exception as error:
            self._unreadable = error
        return snapshot

    def _read_snapshot(
        self, message: PrepareSnapshot | PrepareSnapshotChange, served: SchemaSnapshot
    ) -> SchemaSnapshot:
        """Return the received schema snapshot. served: the one in use, on which a change is based. Raises the error of
        reading it.
        """
        if isinstance(message, PrepareSnapshotChange):
            return message.snapshot(served)
        snapshot = self._take(message.part)
        self._parts = SnapshotParts()  # its memory of the parts read
        if snapshot is None:
            raise self._unreadable or ValueError(f"parts of schema snapshot {message.number} are missing")
        return snapshot

    def _prepare(self, message: PrepareSnapshot | PrepareSnapshotChange) -> None:
        """Build a schema snapshot, and report to the supervisor whether that succeeded."""
        number = message.number
        try:
            with pause_collection():
                served = self._application.snapshot
                self._application.prepare(self._read_snapshot(message, served))
                if not served.number:
                    keep(first=True)
        except Exception as error:
            log.exception("schema snapshot %d cannot be built", number)
            self._channel.send(SnapshotPrepared(number, f"{type(error).__name__}: {error}"))
            return
        self._channel.send(SnapshotPrepared(number))

    def _activate_snapshot(self, number: int) -> None:
        """Activate the prepared snapshot, which has this number, and report that. The first activation starts the HTTP
        servers, unless the supervisor has said to accept no connections (`_leave`)."""
        self._application.activate_snapshot(number)
        for server in self._servers if self._accepts else ():
            server.start()
        self._channel.send(SnapshotActivated(number))

    def _leave(self, message: Leave) -> None:
        """Enter the phase of the graceful shutdown that the message describes."""
        drain_state = self._application.drain_state
        if message.closing and not drain_state.closing:
            for server in self._servers:
                server.announce_close()
        drain_state.unready, drain_state.closing = message.unready, message.closing
        if message.has_successor:
            self._application.retire_cache()
        if message.stop_accepting:
            self._accepts = False
            for server in self._servers:
                server.stop_accepting()
            stop_accepting(self._listeners)

    async def _stop(self) -> None:
        """Finish running requests and jobs within the time limit, then close everything."""
        self._application.end_streams()
        # granian waits for each client of HTTP/2 to confirm the end of its connection, and an idle client may not read.
        silent = asyncio.create_task(close_unused(self._listeners, LAST_SILENCE, self._unread, self._clients))
        jobs = asyncio.create_task(self._application.finish_jobs(self._stop_within))
        all_ended = await asyncio.gather(*(server.stop(self._stop_within) for server in self._servers))
        silent.cancel()
        await jobs
        if not all(all_ended):
            log.warning(
                "%d requests did not finish within %g s and are cut off, with the responses that clients are still "
                "reading",
                self._application.running,
                self._stop_within,
            )
        await self._application.close()

    def _clients(self) -> Clients:
        """Return the clients whose connections `close_unused` must not close during the stop: all that have a request,
        even if they are still sending it, because the stop has its own time limit."""
        clients = self._application.clients()
        return Clients(clients.busy | clients.sending, frozenset())


def _report_failure(starting: asyncio.Task[None]) -> None:
    """Log the error with which the start of the application has ended, if it has."""
    if not starting.cancelled() and (error := starting.exception()) is not None:
        log.error("the first connection could not be made ready", exc_info=error)


def _server_for(
    handle: Handle, listener: Listener, options: HttpOptions, *, problem_types: bool
) -> HttpServer | LoopServer:
    """Return the server of a listener: granian for TLS, for HTTP/2 alone, or with `HttpServer:Engine` Granian; else the
    one in the event loop, which with Engine Auto hands HTTP/2 connections over to granian. handle: handles the
    requests. problem_types: problems name their type.
    """
    if options.server.engine == "Granian" or listener.secure or listener.protocols == "2":
        return HttpServer(handle, listener, options)
    http2 = listener.protocols == "auto" and options.server.engine == "Auto"
    return LoopServer(handle, listener, options, problem_types=problem_types, http2=http2)


async def _main(channel_fd: int) -> None:
    """Run the worker of this process. channel_fd: its end of the socket pair. Raises SystemExit 1 after an unexpected
    error.
    """
    channel = await Channel.over(socket.socket(fileno=channel_fd))
    try:
        start = await channel.receive()
    except EOFError:
        return  # stopped before it began
    if not isinstance(start, Start):
        raise TypeError(f"expected Start, got {type(start).__name__}")
    if start.cores is not None:
        # Before there are threads, which inherit it, and before memory is used, which is then near those cores.
        os.sched_setaffinity(0, start.cores)
    forwarder = configure_worker_logging(
        start.settings, lambda batch: channel.send(LogEntries(batch)), lambda: channel.backlog
    )
    asyncio.get_running_loop().set_exception_handler(report_loop_error)
    try:
        await Worker(channel, start, forwarder).run()
    except Exception as error:
        # Logged by the supervisor as the reason why it starts another worker.
        log.critical("this worker ends: %s: %s", type(error).__name__, error, exc_info=error)
        forwarder.flush()
        await channel.finish()
        raise SystemExit(1) from None


def main(channel_fd: int) -> None:
    """Run the worker until it is stopped. channel_fd: its end of the socket pair to the supervisor. The current folder
    has to be that of the supervisor, to which relative paths refer. Raises SystemExit with status 1 after an unexpected
    error."""
    name_process("rowcall-worker")
    raise_limit()
    uvloop.run(_main(channel_fd))


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    main(int(sys.argv[1]))
