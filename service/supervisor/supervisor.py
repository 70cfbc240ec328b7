"""The parent process: opens the sockets, reads the database, runs the workers, and updates all of them to one schema
snapshot.

After a change of the schema, every worker builds the new snapshot beside the one it serves, and only if all of them
succeed, all activate it. If any step fails, the last good snapshot stays active.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from rowcall.core.config import ConfigError, Settings
from rowcall.core.operations.metrics import ProfilingOptions
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.background import Background
from rowcall.service.codegen.describing import Describer
from rowcall.service.database.connector import Connector
from rowcall.service.events.channels import ChannelListener, channels_of
from rowcall.service.events.cross_host.transport_choice import transport_for
from rowcall.service.events.hub import EventHub
from rowcall.service.identity.refresh_token_store import judged, refresh_token_store_for
from rowcall.service.interpreter import interpreter_command, interpreter_environment
from rowcall.service.log import current_log, is_watched
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.server import client_connections
from rowcall.service.options.server.affinity import cores_of, worker_count
from rowcall.service.options.server.http import configuration_warnings, listener_plans, unix_mode
from rowcall.service.options.server.metrics import admin_options
from rowcall.service.options.server.shutdown import shutdown_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.state_folder import StateFolder
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.sockets.inherited import from_systemd
from rowcall.service.sockets.listeners import Listeners
from rowcall.service.startup_error import START_AGAIN, StartupError
from rowcall.service.supervisor.announcement import announce, hidden_objects, report_hidden, report_left_out
from rowcall.service.supervisor.catalogue_polling import CataloguePolling
from rowcall.service.supervisor.channel import (
    EventMessage,
    EventsArrived,
    EventsPublished,
    EventsSoFar,
    Keys,
    KeysWanted,
    Message,
    NoticeNotPublished,
    ProfileWanted,
    Stale,
    Start,
    TokenJudged,
    TokenUsed,
    WorkerEvent,
)
from rowcall.service.supervisor.graceful_shutdown import GracefulShutdown
from rowcall.service.supervisor.notifications import Channel, Notified, listen, listen_on
from rowcall.service.supervisor.processes.prefork import Template
from rowcall.service.supervisor.processes.questions import Questions
from rowcall.service.supervisor.processes.signal_handlers import SignalHandlers
from rowcall.service.supervisor.processes.worker_process import WorkerProcess
from rowcall.service.supervisor.processes.workers import Workers
from rowcall.service.supervisor.profiling import Profiler, Subject
from rowcall.service.supervisor.service_manager import ServiceManager
from rowcall.service.supervisor.socket_handover import PreviousProcess, SuccessorListener
from rowcall.service.supervisor.start_progress import Progress
from rowcall.service.supervisor.start_time import begin_start

if TYPE_CHECKING:
    from rowcall.service.console.console import Console
    from rowcall.service.options.server.metrics import AdminOptions
    from rowcall.service.supervisor.admin import Admin
    from rowcall.service.supervisor.postgrest_admin import PostgRestAdmin

log = logging.getLogger("rowcall")


class _Reading(enum.IntEnum):
    """How much is read again; the largest request counts."""

    FILES = 0
    SEEN = 1
    """The changes that the last check of the catalogue has found."""
    CHANGES = 2
    """All changes until now."""
    WHOLE = 3


class Supervisor:
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
        """as_postgrest: SIGUSR1 and SIGUSR2 read schema and configuration again."""
        self._settings = settings
        self._as_postgrest = as_postgrest
        self._store = StateFolder()
        self._host = HostState(self._store.path)
        self._options = replace(options, store=str(self._store.path))
        self._reader = reader
        self._on_listening = on_listening
        self._connector = Connector(options.target)
        self._keeper = key_rotation_for(settings, self._connector, self._publish_keys)
        self._token_uses = refresh_token_store_for(settings, self._connector)
        self._events = EventHub(options.events)
        self._channels = ChannelListener(self._connector, self._events.notified)
        self._count = worker_count(settings)
        self._admin_options = admin_options(settings)
        self._admin: Admin | None = None
        self._console: Console | None = None
        self._postgrest_admin: PostgRestAdmin | None = None
        self._profiler = Profiler(settings.read(ProfilingOptions), self._subjects)
        self._cores = [cores_of(settings, number) for number in range(self._count)]
        self._manager = ServiceManager(os.environ)
        self._shutdown = shutdown_options(settings)
        handover = self._shutdown.handover
        self._previous_process = PreviousProcess.at(handover) if handover else None
        inherited = self._previous_process.inherited if self._previous_process else from_systemd(os.environ)
        self._listeners = Listeners(listener_plans(settings), self._count, unix_mode(settings), inherited)
        self._handover = SuccessorListener(handover, self._listeners, self._yield_to_successor) if handover else None
        listeners = len(self._listeners.of(0))
        for warning in (
            *configuration_warnings(settings, self._listeners.https_port),
            *client_connections.configuration_warnings(options, listeners),
        ):
            log.warning("%s", warning)
        database = options.target.parameters.get("dbname", "")
        described = descriptions(settings, database, options.auth, self._listeners.urls)
        self._options = self._options.with_documents(described)
        self._describer = Describer(described, self._connector)
        self._workers = Workers(
            self._count,
            self._listeners,
            template,
            greeting=self._greeting,
            hear=self._hear,
            on_gone=self._announce_exit,
        )
        self._questions = Questions(self._workers)
        self._stop = asyncio.Event()
        self._departure = GracefulShutdown(self._shutdown, self._workers.send_all, lambda: self._listeners.stay)
        self._code = 0
        self._reload = asyncio.Event()
        self._looks = CataloguePolling(reader, self._read_what_was_seen, self._reload.set)
        self._wanted = _Reading.FILES
        """How much the next reading includes."""
        self._background = Background()
        self._between_hosts = Background()
        """Runs until the last worker has ended: requests that finish meanwhile publish events too."""
        self._began = begin_start()

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
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
            self._background.start(self._profiler.profile_on_signal())

        as_postgrest = self._as_postgrest
        return {
            signal.SIGTERM: self._stop_requested,
            signal.SIGINT: self._stop_requested,
            signal.SIGHUP: self._read_everything,
            signal.SIGUSR1: self._read_everything if as_postgrest else profile,
            signal.SIGUSR2: self._read_everything if as_postgrest else self._begin_succession,
        }

    def end(self, code: int) -> None:
        """Make `run` stop in order and return `code`."""
        self._code = code
        self._stop.set()

    def _stop_requested(self) -> None:
        """Handle a signal to stop: the first one stops in order, another one at once."""
        if self._departure.begun or self._stop.is_set():
            self._code = 0
            self._departure.hurry.set()
            return
        self._manager.stopping("stopping")
        if self._workers.snapshot.number:
            self._departure.begin()
            self._background.start(self._end_after(self._departure.stop()))
        else:
            self.end(0)

    def _yield_to_successor(self) -> None:
        """Begin a graceful shutdown, as a successor serves."""
        if self._departure.begun:
            return
        log.info("another process serves; this one finishes what runs")
        if self._console is not None:
            self._console.close()
        if self._admin is not None:
            self._background.start(asyncio.to_thread(self._admin.close))
            self._admin = None
        self._departure.begin()
        self._background.start(self._end_after(self._departure.yield_to_successor()))

    async def _end_after(self, graceful_shutdown: Awaitable[None]) -> None:
        await graceful_shutdown
        self.end(0)

    def _begin_succession(self) -> None:
        if self._handover is None:
            log.error("SIGUSR2: HttpServer:HandoverSocket has to name a path before another process can take over")
        elif not self._departure.begun:
            self._background.start(self._succession())

    async def _succession(self) -> None:
        """Start the same command again, with the installed version and configuration of now. It takes over when it
        serves.
        """
        process = await asyncio.create_subprocess_exec(
            *interpreter_command(*sys.orig_argv[1:]),
            env=interpreter_environment(),
            # In this folder: the arguments and the configuration may contain relative paths.
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        log.info("a new process is started to take over: pid %d", process.pid)
        code = await process.wait()
        log.error("the process that was to take over has ended with %d; this one goes on", code)

    async def _start(self) -> None:
        if self._previous_process is None:
            self._open_admin()
        self._open_postgrest_admin()
        # Workers import while the database is read.
        spawning = asyncio.ensure_future(self._workers.start())
        try:
            if not self._options.target.pooler:
                heard = Notified(self._looks.request_check, self._host.announce_invalidation, self._read_whole)
                await listen(self._reader.sources(), heard, self._background)
                await self._listen_for_postgrest()
            await self._watch_changes()
            with Progress(watched=is_watched()) as progress:
                progress.show("reading the catalogue of the database")
                snapshot = await self._reader.first()
        finally:
            await spawning
        await self._begin_keeping()
        await self._describe(snapshot)
        transport = transport_for(self._options.events, self._connector, pooler=self._options.target.pooler)
        if transport is not None:
            await self._events.connect(transport, self._between_hosts)
        error = await self._publish(await self._with_requests(snapshot))
        if error is not None:
            raise StartupError(error)
        await self._take_place()
        self._announce()
        self._background.keep("the reloading", self._reload_on_request)
        self._background.keep("looking at the catalogue", self._looks.run)

    async def _listen_for_postgrest(self) -> None:
        """Listen for `NOTIFY pgrst`, which reads the schema and the configuration of the database again."""
        options = self._options.postgrest
        if options is None or not options.channel_enabled:
            return
        channel = Channel(options.channel, lambda _payload: self._read_everything(), self._read_everything)
        await listen_on(self._connector, channel, self._background)

    def _open_admin(self) -> None:
        """Open the admin listener before the database is connected, so that operators see a service that
        waits for it.
        """
        if self._admin_options is None:
            return
        # Imported here: its server is only needed if it is configured.
        from rowcall.service.supervisor.admin import Admin

        console = self._open_console(self._admin_options)
        self._admin = Admin(
            self._admin_options,
            self._store.path,
            self._questions.sample,
            lambda: self._workers.pids,
            self._profiler,
            {} if console is None else {"console": console},
        )
        log.info("the admin listener is at %s", self._admin.url)
        if console is not None:
            console.announce(self._admin.url)

    def _open_console(self, options: AdminOptions) -> Console | None:
        if options.console is None:
            return None
        # Imported here: only needed if it is configured.
        from rowcall.service.console.console import Console
        from rowcall.service.console.sources import Sources

        sources = Sources(
            self._settings,
            self._options,
            self._store.path,
            self._questions.sample,
            lambda: self._workers.pids,
            lambda: self._workers.snapshot,
            self._connector,
            current_log().keep_recent(),
            asyncio.get_running_loop(),
            lambda: self._keeper.ring,
            lambda: self._listeners.urls,
            self._questions.invalidate_tags,
            self._questions.invalidate_entry,
            self._questions.identify,
        )
        self._console = Console(options.console, options.token, sources)
        return self._console

    def _open_postgrest_admin(self) -> None:
        options = self._options.postgrest
        if options is None or (options.admin_port is None and options.admin_socket is None):
            return
        # Imported here: its server is only needed if it is configured.
        from rowcall.service.supervisor.postgrest_admin import PostgRestAdmin

        self._postgrest_admin = PostgRestAdmin(
            options, self._connector, lambda: self._workers.snapshot.postgrest, self._questions.sample
        )
        log.info("the admin server of PostgREST's interface is at %s", self._postgrest_admin.url)

    async def _take_admin_over(self) -> None:
        """Open the admin listener after the previous process, which closes its own at the same moment."""
        for attempt in itertools.count():
            try:
                self._open_admin()
            except StartupError as error:
                if attempt >= 40:
                    log.error("%s", error)
                    return
                await asyncio.sleep(0.25)
            else:
                return

    def _subjects(self) -> dict[int, Subject]:
        return {
            worker.number: Subject(worker.process.pid, partial(worker.profile, self._questions.number()))
            for worker in self._workers.running
        }

    async def _take_place(self) -> None:
        """Take over from the previous process, and wait for a successor from now on."""
        if self._previous_process is not None:
            await self._previous_process.leave()
            self._background.start(self._take_admin_over())
        if self._handover is not None:
            self._handover.open()
            self._background.start(self._handover.run())

    async def _with_requests(self, snapshot: SchemaSnapshot) -> SchemaSnapshot:
        """Return the snapshot with the example requests that it serves."""
        requests = await self._describer.served_requests(snapshot.endpoints, snapshot.types_of)
        return replace(snapshot, example_requests=requests) if requests else snapshot

    async def _describe(self, snapshot: SchemaSnapshot) -> None:
        """Write clients and documents about the endpoints."""
        await self._describer.write(snapshot.endpoints, snapshot.types_of)
        if self._options.mcp is not None:
            announce_tools(snapshot.endpoints)

    def _announce(self) -> None:
        seconds = time.monotonic() - self._began
        announce(self._settings, self._workers.snapshot, self._listeners.urls, self._count, seconds)
        current_log().flush()
        self._notify_manager()
        if self._manager.between:
            self._background.keep("the signs of life for systemd", self._manager.keep_alive)
        if self._on_listening is not None:
            self._on_listening(self._listeners.urls)

    def _notify_manager(self) -> None:
        endpoints = len(self._workers.snapshot.endpoints)
        self._manager.ready(f"{endpoints} endpoints, {self._count} workers, {';'.join(self._listeners.urls)}")

    async def _shut_down(self) -> None:
        self._stop.set()
        self._workers.stop_restarting()
        if self._console is not None:
            self._console.close()
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)
        if self._postgrest_admin is not None:
            await asyncio.to_thread(self._postgrest_admin.close)
        if self._handover is not None:
            self._handover.close()
        self._listeners.close()
        self._channels.close()
        self._background.cancel()
        await self._workers.end(self._shutdown.within, self._departure.hurry)
        await self._events.finish()
        self._between_hosts.cancel()
        self._host.close()
        self._store.remove()
        log.info("stopped")

    # --- workers ---------------------------------------------------------------------------------------------------

    def _greeting(self, number: int) -> list[Message]:
        """Return the first messages to a new worker."""
        listeners = self._listeners.of(number)
        start = Start(self._options, self._settings, listeners, self._listeners.https_port, self._cores[number])
        return [start, Keys(self._keeper.ring), *self._departure.so_far]

    def _hear(self, worker: WorkerProcess, message: WorkerEvent) -> None:
        if isinstance(message, Stale):
            # A worker has met such an error, which routines can raise as well, and clients can provoke.
            self._looks.request_check(
                "the database has changed under a prepared statement; its catalogue is read again"
            )
        elif isinstance(message, KeysWanted):
            self._keeper.look_again()
        elif isinstance(message, TokenUsed):
            self._background.start(self._judge(worker, message))
        elif isinstance(message, ProfileWanted):
            self._background.start(self._profiler.profile_on_signal(worker.number))
        else:
            self._hear_of_events(worker, message)

    def _announce_exit(self, worker: WorkerProcess) -> None:
        self._host.announce_worker_exit(worker.process.pid)
        if self._admin is not None:
            self._admin.restarts += 1

    async def _begin_keeping(self) -> None:
        try:
            await self._keeper.start()
        except (psycopg.Error, OSError) as error:
            raise StartupError(f"the key ring cannot be read: {str(error).strip()}") from None
        self._background.keep("the key rotation", self._keeper.run)

    def _publish_keys(self, ring: KeyRing) -> None:
        self._workers.send_all(Keys(ring))

    async def _judge(self, worker: WorkerProcess, question: TokenUsed) -> None:
        first = await judged(self._token_uses, question.mark, question.keep_until)
        worker.channel.send(TokenJudged(question.number, first))

    async def _listen_to_channels(self, channels: frozenset[str]) -> None:
        if channels and self._options.target.pooler:
            log.warning(
                "behind a transaction pooler LISTEN is not possible: streams of %s stay empty", ", ".join(channels)
            )
        else:
            # Add to the channels of the snapshot that is still active.
            await self._channels.watch(self._channels.watched | channels)

    def _hear_of_events(self, worker: WorkerProcess, message: EventMessage) -> None:
        if isinstance(message, EventsPublished):
            self._events.take(message.packed)
        elif isinstance(message, NoticeNotPublished):
            self._events.unpublished_notices(message.path, message.severity)
        elif message.wanted:
            channel = worker.channel
            so_far = self._events.want(worker, lambda packed: channel.send(EventsArrived(packed)))
            channel.send(EventsSoFar(so_far))
        else:
            self._events.forget(worker)

    def _read_everything(self) -> None:
        self._read(_Reading.CHANGES)

    def _read_whole(self) -> None:
        self._read(_Reading.WHOLE)

    def _read_what_was_seen(self) -> None:
        self._read(_Reading.SEEN)

    def _read(self, reading: _Reading) -> None:
        self._wanted = max(self._wanted, reading)
        self._reload.set()

    # --- schema snapshots ----------------------------------------------------------------------------------------

    async def _publish(self, snapshot: SchemaSnapshot) -> str | None:
        """Publish a snapshot to the workers. Returns the reason if they do not serve it."""
        channels = channels_of(snapshot.options)

        async def before_activation() -> None:
            # A stream is open from its first response on: a notification right behind that must be received.
            await self._listen_to_channels(channels)
            self._listeners.begin()

        error = await self._workers.publish(snapshot, before_activation)
        if error is None and self._postgrest_admin is not None:
            self._postgrest_admin.loads += 1
        if error is None:
            await self._channels.watch(self._channels.watched & channels)
        return error

    async def _reload_on_request(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            expected, self._wanted = self._wanted, _Reading.FILES
            self._manager.reloading()
            await self._read_again(expected)
            self._notify_manager()
            # Requests that arrive in the meantime are served by one more reading.
            await asyncio.sleep(0.2)

    async def _read_again(self, reading: _Reading) -> None:
        only_files = reading is _Reading.FILES
        try:
            snapshot = await self._reader.read(
                self._workers.snapshot.number + 1,
                only_files=only_files,
                whole=reading is _Reading.WHOLE,
                seen=reading is _Reading.SEEN,
            )
        except (psycopg.Error, OSError, StartupError) as error:
            log.error("the catalogue cannot be read, the last good one stays: %s", str(error).strip())
            return
        except Exception:
            log.exception("the catalogue cannot be read, the last good one stays")
            return
        before = self._workers.snapshot
        difference = Difference.between(before, snapshot)
        same_interface = snapshot.postgrest == before.postgrest
        if only_files and not difference and snapshot.left_out == before.left_out and same_interface:
            return  # saved without a change, or still invalid
        reason = await self._publish(await self._with_requests(snapshot))
        if reason is not None:
            log.error("schema snapshot %d is not served, the last good one stays: %s", snapshot.number, reason)
            return
        _log_difference(snapshot, difference)
        if self._console is not None:
            self._console.note_reload(before, snapshot, difference)
        if snapshot.left_out != before.left_out:
            report_left_out(snapshot)
        if hidden_objects(snapshot) != hidden_objects(before):
            report_hidden(snapshot)
        if difference:
            try:
                await self._describe(snapshot)
            except (ConfigError, StartupError) as error:
                log.error("%s", error)

    async def _watch_changes(self) -> None:
        """Start to watch for changes by a developer, if configured."""
        watching = self._reader.watcher()
        if watching is not None:
            await watching.start(self._background, self._reload.set, self._read_everything)


def _log_difference(snapshot: SchemaSnapshot, difference: Difference) -> None:
    left_out = f", {snapshot.left_out_count} left out" if snapshot.left_out else ""
    log.info("schema snapshot %d is served: %d endpoints%s", snapshot.number, len(snapshot.endpoints), left_out)
    for word, names in (
        ("added", difference.added),
        ("changed", difference.changed),
        ("removed", difference.removed),
    ):
        for name in names:
            log.info("%s %s", word, name)


async def _give_up(starting: asyncio.Task[None]) -> None:
    """Cancel the start repeatedly until it ends: libraries may take a cancellation for a transient error, or wait until
    the server has cancelled too.
    """
    while not starting.done():
        starting.cancel()
        await asyncio.wait({starting}, timeout=1)
