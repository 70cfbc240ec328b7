"""The parent process: opens the sockets, starts and ends its parts in order, and handles signals and the messages of
workers. `supervisor.snapshot_updates` keeps the workers at one schema snapshot.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg

from rowcall.core.auth.token_families import FailedUses
from rowcall.core.config import Settings
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.background import Background
from rowcall.service.codegen.describing import Describer
from rowcall.service.database.connector import Connector
from rowcall.service.identity.refresh_token_store import record_use, refresh_token_store_for
from rowcall.service.interpreter import interpreter_command, interpreter_environment
from rowcall.service.log import current_log, is_watched
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.server import client_connections
from rowcall.service.options.server.affinity import cores_of, worker_count
from rowcall.service.options.server.http import configuration_warnings, listener_plans, unix_mode
from rowcall.service.options.server.shutdown import shutdown_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.sockets.inherited_sockets import from_systemd
from rowcall.service.sockets.listeners import Listeners
from rowcall.service.startup_error import START_AGAIN, StartupError
from rowcall.service.supervisor.announcement import announce
from rowcall.service.supervisor.channel import (
    KeyRingRequest,
    Keys,
    Message,
    ProfileRequest,
    Stale,
    Start,
    TokenUseFailure,
    TokenUseReply,
    TokenUseRequest,
    WorkerEvent,
)
from rowcall.service.supervisor.event_routing import EventRouting
from rowcall.service.supervisor.graceful_shutdown import GracefulShutdown
from rowcall.service.supervisor.notifications import NotificationHandlers, listen, listen_on, postgrest_channel
from rowcall.service.supervisor.operators.servers import OperatorServers, OperatorView
from rowcall.service.supervisor.processes.prefork import Template
from rowcall.service.supervisor.processes.questions import Questions
from rowcall.service.supervisor.processes.signal_handlers import SignalHandlers
from rowcall.service.supervisor.processes.worker_process import WorkerProcess
from rowcall.service.supervisor.processes.workers import Workers
from rowcall.service.supervisor.service_manager import ServiceManager, environment_of_successor
from rowcall.service.supervisor.snapshot_updates import SnapshotUpdates
from rowcall.service.supervisor.socket_handover import PreviousProcess, SuccessorListener
from rowcall.service.supervisor.start import Progress, begin_start

log = logging.getLogger("rowcall")


class Supervisor:
    """The service of one configuration, from its start to its end."""

    def __init__(
        self,
        settings: Settings,
        options: WorkerOptions,
        reader: SnapshotReader,
        on_listening: Callable[[list[str]], None] | None = None,
        template: Template | None = None,
        *,
        as_postgrest: bool = False,
    ) -> None:
        """Open the listening sockets. Raises `StartupError` and `ConfigError`.

        options: with the folder of the shared state, which has to remain until `run` has ended. on_listening, template:
        as for `service.supervisor.run.run`. as_postgrest: SIGUSR1 and SIGUSR2 read schema and configuration again.
        """
        self._settings = settings
        self._as_postgrest = as_postgrest
        store = Path(options.store)
        self._host = HostState(store)
        self._options = options
        self._reader = reader
        self._on_listening = on_listening
        self._connector = Connector(options.target)
        self._key_rotation = key_rotation_for(settings, self._connector, self._publish_keys)
        self._token_uses = refresh_token_store_for(settings, self._connector)
        self._failed_uses = FailedUses()
        self._events = EventRouting(options, self._connector)
        self._count = worker_count(settings)
        self._cores = [cores_of(settings, number) for number in range(self._count)]
        self._manager = ServiceManager(os.environ)
        self._shutdown = shutdown_options(settings)
        handover = self._shutdown.handover
        self._previous_process = PreviousProcess.at(handover) if handover else None
        inherited = self._previous_process.inherited if self._previous_process else from_systemd(os.environ)
        self._listeners = Listeners(listener_plans(settings), self._count, unix_mode(settings), inherited)
        self._successor_listener = (
            SuccessorListener(handover, self._listeners, self._yield_to_successor) if handover else None
        )
        listeners = len(self._listeners.of(0))
        for warning in (
            *configuration_warnings(settings, self._listeners.https_port),
            *client_connections.configuration_warnings(options, listeners),
        ):
            log.warning("%s", warning)
        database = options.target.parameters.get("dbname", "")
        described = descriptions(settings, database, options.auth, self._listeners.urls)
        self._options = self._options.with_documents(described)
        self._workers = Workers(
            self._count,
            self._listeners,
            template,
            first_messages=self._first_messages,
            hear=self._hear,
            on_gone=self._announce_exit,
        )
        self._operators = OperatorServers(
            OperatorView(
                settings,
                self._options,
                store,
                self._workers,
                Questions(self._workers),
                self._connector,
                reader.source_connector,
                self._events,
                keys=lambda: self._key_rotation.ring,
                urls=lambda: self._listeners.urls,
            )
        )
        self._updates = SnapshotUpdates(
            self._options,
            reader,
            Describer(described, self._connector, reader.source_connector),
            self._workers,
            self._listeners,
            self._events,
            self._operators,
            self._manager,
        )
        self._stop = asyncio.Event()
        self._graceful_shutdown = GracefulShutdown(self._shutdown, self._workers.send_all, lambda: self._listeners.stay)
        self._code = 0
        self._background = Background()
        self._began = begin_start()

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Start the service, run it until it has to end, and return the exit code. Raises `StartupError`,
        `ConfigError`, and `OSError` if a worker process cannot be started."""
        loop = asyncio.get_running_loop()
        handlers = SignalHandlers(loop, self._signal_handlers())
        is_last = False
        try:
            starting = loop.create_task(self._start())
            stopping = loop.create_task(self._stop.wait())
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await self._stop.wait()
            else:
                await _give_up(starting)
            is_last = self._code != START_AGAIN
        finally:
            await self._shut_down()
            if is_last:
                handlers.ignore()
            else:
                handlers.restore()
        return self._code

    def _signal_handlers(self) -> dict[signal.Signals, Callable[[], object]]:
        def profile() -> None:
            self._background.start(self._operators.profiler.profile_on_signal())

        as_postgrest = self._as_postgrest
        return {
            signal.SIGTERM: self._stop_requested,
            signal.SIGINT: self._stop_requested,
            signal.SIGQUIT: self._stop_requested,
            signal.SIGHUP: self._updates.read_changes,
            signal.SIGUSR1: self._updates.read_changes if as_postgrest else profile,
            signal.SIGUSR2: self._updates.read_changes if as_postgrest else self._begin_succession,
        }

    def end(self, code: int) -> None:
        """Begin a graceful shutdown, after which `run` returns `code`."""
        self._code = code
        self._stop.set()

    def _stop_requested(self) -> None:
        """Handle a signal to stop: the first begins a graceful shutdown, a further one ends it early."""
        if self._graceful_shutdown.begun or self._stop.is_set():
            self._code = 0
            self._graceful_shutdown.hurry.set()
            return
        self._manager.report_stopping("stopping")
        if self._workers.snapshot.number:
            self._graceful_shutdown.begin()
            self._background.start(self._end_after(self._graceful_shutdown.stop()))
        else:
            self.end(0)

    def _yield_to_successor(self) -> None:
        """Begin a graceful shutdown, as a successor serves."""
        if self._graceful_shutdown.begun:
            return
        log.info("another process serves; this one finishes what runs")
        self._manager.fall_silent()
        self._operators.close_for_successor(self._background)
        self._graceful_shutdown.begin()
        self._background.start(self._end_after(self._graceful_shutdown.yield_to_successor()))

    async def _end_after(self, graceful_shutdown: Awaitable[None]) -> None:
        """Run the phases of a shutdown, then end with exit code 0. graceful_shutdown: the phases."""
        await graceful_shutdown
        self.end(0)

    def _begin_succession(self) -> None:
        """Handle SIGUSR2: start a successor, unless this process is about to end; log an error without a configured
        hand-over socket.
        """
        if self._successor_listener is None:
            log.error("SIGUSR2: HttpServer:HandoverSocket has to name a path before another process can take over")
        elif not self._graceful_shutdown.begun:
            self._background.start(self._succession())

    async def _succession(self) -> None:
        """Start the same command again, with the installed version and configuration of now. It takes over when it
        serves.
        """
        process = _start_again()
        log.info("a new process is started to take over: pid %d", process.pid)
        await _until_ended(process.pid)
        log.error("the process that was to take over has ended with %d; this one goes on", process.wait())

    async def _start(self) -> None:
        """Start the parts of the service in order. Returns when the workers serve. Raises as `run` does."""
        self._operators.open(first=self._previous_process is None)
        # Workers import while the database is read.
        spawning = asyncio.ensure_future(self._workers.start())
        try:
            if not self._options.target.pooler:
                heard = NotificationHandlers(
                    self._updates.request_check,
                    self._host.announce_invalidation,
                    self._on_listening_again,
                    self._operators.hear_console,
                )
                await listen(self._reader.sources(), heard, self._background)
                await self._listen_for_postgrest()
            await self._updates.watch_changes(self._background)
            with Progress(watched=is_watched()) as progress:
                progress.show("reading the catalogue of the database")
                snapshot = await self._reader.first()
        finally:
            await spawning
        await self._start_key_rotation()
        await self._updates.publish_first(snapshot)
        await self._take_place()
        self._announce()
        self._updates.start(self._background)

    def _on_listening_again(self) -> None:
        """Make up for notifications that were sent while the connection that listens was lost."""
        self._host.announce_lost_invalidations()
        self._updates.read_whole()

    async def _listen_for_postgrest(self) -> None:
        """Listen for `NOTIFY pgrst` (or the configured channel), which reads the schema and the configuration of the
        database again. Nothing happens without PostgREST's interface, or if its channel is off.
        """
        options = self._options.postgrest
        if options is None or not options.channel_enabled:
            return
        channel = postgrest_channel(options.channel, self._updates.read_changes)
        await listen_on(self._connector, channel, self._background)

    async def _take_place(self) -> None:
        """Take over from the previous process, and wait for a successor from now on."""
        if self._previous_process is not None:
            await self._previous_process.report_serving()
            self._background.start(self._operators.open_after_previous())
        if self._successor_listener is not None:
            self._successor_listener.open()
            self._background.start(self._successor_listener.run())

    def _announce(self) -> None:
        """Log and report that the service has started."""
        seconds = time.monotonic() - self._began
        announce(self._settings, self._workers.snapshot, self._listeners.urls, self._count, seconds)
        current_log().flush()
        self._updates.notify_manager()
        if self._manager.between:
            self._background.keep("the signs of life for systemd", self._manager.keep_alive)
        if self._on_listening is not None:
            self._on_listening(self._listeners.urls)

    async def _shut_down(self) -> None:
        """End the parts of the service in order."""
        self._stop.set()
        self._workers.stop_restarting()
        await self._operators.close()
        if self._successor_listener is not None:
            self._successor_listener.close()
        self._listeners.close()
        self._events.close_channels()
        self._background.cancel()
        await self._workers.end(self._shutdown.within, self._graceful_shutdown.hurry)
        await self._events.finish()
        self._host.close()
        log.info("stopped")

    # --- workers ---------------------------------------------------------------------------------------------------

    def _first_messages(self, number: int) -> list[Message]:
        """Return the first messages to a new worker with this number."""
        listeners = self._listeners.of(number)
        start = Start(self._options, self._settings, listeners, self._listeners.https_port, self._cores[number])
        return [start, Keys(self._key_rotation.ring), *self._graceful_shutdown.so_far]

    def _hear(self, worker: WorkerProcess, message: WorkerEvent) -> None:
        """Handle a message of a worker."""
        if isinstance(message, Stale):
            # A worker has met such an error, which routines can raise as well, and clients can provoke.
            self._updates.request_check(
                "the database has changed under a prepared statement; its catalogue is read again"
            )
        elif isinstance(message, KeyRingRequest):
            self._key_rotation.request_reading()
        elif isinstance(message, TokenUseRequest):
            self._background.start(self._answer_token_use(worker, message))
        elif isinstance(message, TokenUseFailure):
            self._failed_uses.add(message.mark, time.time(), message.keep_until)
        elif isinstance(message, ProfileRequest):
            self._background.start(self._operators.profiler.profile_on_signal(worker.number))
        else:
            self._events.hear(worker, message)

    def _announce_exit(self, worker: WorkerProcess) -> None:
        """Report the exit of a worker to the other workers and to the metrics."""
        self._host.announce_worker_exit(worker.process.pid)
        self._operators.count_worker_exit()

    async def _start_key_rotation(self) -> None:
        """Read the key ring, and rotate it from now on. Raises `StartupError` if it cannot be read."""
        try:
            await self._key_rotation.start()
        except (psycopg.Error, OSError) as error:
            raise StartupError(f"the key ring cannot be read: {str(error).strip()}") from None
        self._background.keep("the key rotation", self._key_rotation.run)

    def _publish_keys(self, ring: KeyRing) -> None:
        self._workers.send_all(Keys(ring))

    async def _answer_token_use(self, worker: WorkerProcess, question: TokenUseRequest) -> None:
        """Send the worker the reply to its question, after recording the use of the token."""
        mark = self._failed_uses.mark_to_use(question.mark)
        first = await record_use(self._token_uses, mark, question.keep_until)
        worker.channel.send(TokenUseReply(question.number, first))


async def _give_up(starting: asyncio.Task[None]) -> None:
    """Cancel the task of the start repeatedly until it ends: libraries may take a cancellation for a transient error,
    or wait until the server has cancelled too.
    """
    while not starting.done():
        starting.cancel()
        await asyncio.wait({starting}, timeout=1)


def _start_again() -> subprocess.Popen[bytes]:
    """Start the command of this process once more, and return the process. It is none of asyncio, which kills its
    processes when their objects are freed: this one outlives the supervisor. Raises OSError.
    """
    return subprocess.Popen(  # noqa: S603 (the command of this process)
        interpreter_command(*sys.orig_argv[1:]),
        env=environment_of_successor(interpreter_environment()),
        # In this folder: the arguments and the configuration may contain relative paths.
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


async def _until_ended(pid: int) -> None:
    """Wait until the child process has ended. Only on Linux."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set_result, None)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
