"""The parent process: opens the sockets, reads the database, runs the workers, and keeps all of them on one edition.

A changed schema becomes a new edition: every worker builds it beside the one it serves, and only when all of them
could, all swap. When anything on that way fails, the last good edition stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import itertools
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg

from rowcall.core.config import Settings
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.background import Background, pause
from rowcall.service.codegen.describing import Describer
from rowcall.service.database.connector import Connector
from rowcall.service.edition.edition import Difference, Edition, EditionChange
from rowcall.service.edition.reader import EndpointReader
from rowcall.service.events.between_hosts.choice import bridge_for
from rowcall.service.events.channels import ChannelListener, channels_of
from rowcall.service.events.hub import EventHub
from rowcall.service.identity.refresh_token_store import judged, refresh_token_store_for
from rowcall.service.log import Entry, current_log, is_watched
from rowcall.service.log.request_line import Seen
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.server import client_connections
from rowcall.service.options.server.affinity import cores_of, worker_count
from rowcall.service.options.server.http import doubts, listener_plans, unix_mode
from rowcall.service.options.server.metrics import admin_options, profiling_options
from rowcall.service.options.server.shutdown import shutdown_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.sockets.inherited import from_systemd
from rowcall.service.sockets.listeners import Listener, Listeners
from rowcall.service.startup_error import StartupError
from rowcall.service.store.folder import StoreFolder
from rowcall.service.store.host import HostStore
from rowcall.service.supervisor.announcement import announce, tell_left_out
from rowcall.service.supervisor.catalogue_looks import CatalogueLooks
from rowcall.service.supervisor.channel import (
    Channel,
    EventMessage,
    EventsArrived,
    EventsPublished,
    EventsSoFar,
    EventsWanted,
    Keys,
    KeysWanted,
    Leave,
    Logged,
    NoticeUnheard,
    Prepare,
    Prepared,
    ProfileTaken,
    ProfileWanted,
    Sample,
    Sampled,
    Serving,
    Stale,
    Start,
    Stop,
    Swap,
    TakeProfile,
    TokenJudged,
    TokenUsed,
)
from rowcall.service.supervisor.handover import HandoverPoint, Predecessor
from rowcall.service.supervisor.prefork import Copy, Template
from rowcall.service.supervisor.profiling import Profiler, Subject
from rowcall.service.supervisor.restarts import MANY, QUICK, RestartDelay, cause
from rowcall.service.supervisor.service_manager import ServiceManager
from rowcall.service.supervisor.start_progress import Progress

if TYPE_CHECKING:
    from rowcall.service.supervisor.admin import Admin

log = logging.getLogger("rowcall")

NOTIFY_CHANNEL = "rowcall"
SAMPLE_WITHIN = 1.0
"""Seconds for a worker to say how things are; one that is busy for longer is left out."""
PREPARE_WITHIN = 60.0
"""Seconds a worker may take to build an edition."""


async def _started(descriptors: tuple[int, ...], template: Template | None) -> asyncio.subprocess.Process | Copy:
    """A worker process that has these descriptors under the same numbers; the first is its channel."""
    if template is not None:
        try:
            return await Copy.made_by(template, descriptors)
        except OSError as error:
            log.info("a worker is started without a template: %s", error)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "rowcall.service.worker.worker",
        str(descriptors[0]),
        pass_fds=descriptors,
        stdin=asyncio.subprocess.DEVNULL,
        # A Ctrl-C is for the supervisor; it tells the workers in its own way.
        start_new_session=True,
    )


class _Reading(enum.IntEnum):
    """How much is read again; whoever wants more wins."""

    FILES = 0
    SEEN = 1
    """What the last look at the catalogue has found to be changed."""
    CHANGES = 2
    """What has changed until now."""
    WHOLE = 3


Gauges = list[tuple[str, Mapping[str, str], float]]


class WorkerProcess:
    """One worker as the supervisor sees it."""

    def __init__(self, number: int, process: asyncio.subprocess.Process | Copy, channel: Channel) -> None:
        self.number = number
        self.process = process
        self.channel = channel
        self.started = time.monotonic()
        self.serving = 0
        """The edition that it has said it serves; 0: none, or nobody knows."""
        self._answers: dict[tuple[type, int], asyncio.Future[str | None]] = {}
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self.gone = False
        self.last_error: str | None = None
        """What it has logged as its last."""

    @classmethod
    async def start(cls, number: int, listeners: tuple[Listener, ...], template: Template | None) -> WorkerProcess:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as until_started:
            until_started.callback(ours.close)
            shared = {fd: None for listener in listeners for fd in listener.descriptors}
            process = await _started((theirs.fileno(), *shared), template)
            until_started.pop_all()
        return cls(number, process, await Channel.over(ours))

    async def ask(self, message: Prepare | Swap, answer: type[Prepared] | type[Serving], number: int) -> str | None:
        """Sends `message` and waits for its answer: None, or what went wrong."""
        if self.gone:
            return f"worker {self.number} is gone"
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._answers[answer, number] = future
        self.channel.send(message)
        try:
            return await asyncio.wait_for(future, PREPARE_WITHIN)
        except TimeoutError:
            return f"worker {self.number} has not answered within {PREPARE_WITHIN:g} s"
        finally:
            self._answers.pop((answer, number), None)

    async def swap(self, number: int) -> str | None:
        """Has it serve the edition that it has prepared: None, or what went wrong."""
        self.serving = 0
        error = await self.ask(Swap(number), Serving, number)
        if error is None:
            self.serving = number
        return error

    async def sample(self, number: int, seconds: float) -> Gauges | None:
        """How it says that things are; None when it has not said anything within `seconds`."""
        found: Gauges | None = await self._told(Sample(number), seconds)
        return found

    async def profile(self, number: int, seconds: float) -> str | None:
        """What it has seen itself do for so long; None when it has not said anything."""
        found: str | None = await self._told(TakeProfile(number, seconds), seconds + SAMPLE_WITHIN * 10)
        return found

    async def _told(self, question: Sample | TakeProfile, seconds: float) -> Any:
        future = self._questions[question.number] = asyncio.get_running_loop().create_future()
        self.channel.send(question)
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return None
        finally:
            del self._questions[question.number]

    def _remember_error(self, entries: Iterable[Entry | Seen]) -> None:
        for entry in entries:
            if isinstance(entry, Entry) and entry.level >= logging.ERROR:
                self.last_error = entry.message

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def listen(
        self,
        on_stale: Callable[[], None],
        on_keys_wanted: Callable[[], None],
        on_token_used: Callable[[TokenUsed], None],
        on_event: Callable[[EventMessage], None],
        on_profile: Callable[[], None],
    ) -> None:
        """Takes the worker's messages until it is gone."""
        with contextlib.suppress(EOFError):
            while True:
                message = await self.channel.receive()
                if isinstance(message, Logged):
                    self._remember_error(message.entries)
                    current_log().take(message.entries)
                elif isinstance(message, Stale):
                    on_stale()
                elif isinstance(message, KeysWanted):
                    on_keys_wanted()
                elif isinstance(message, TokenUsed):
                    on_token_used(message)
                elif isinstance(message, EventsPublished | EventsWanted | NoticeUnheard):
                    on_event(message)
                elif isinstance(message, Sampled | ProfileTaken):
                    asked = self._questions.get(message.number)
                    if asked is not None and not asked.done():
                        asked.set_result(message.gauges if isinstance(message, Sampled) else message.text)
                elif isinstance(message, ProfileWanted):
                    on_profile()
                elif isinstance(message, Prepared | Serving):
                    error = message.error if isinstance(message, Prepared) else None
                    future = self._answers.get((type(message), message.number))
                    if future is not None and not future.done():
                        future.set_result(error)
        self.gone = True
        for future in self._answers.values():
            if not future.done():
                future.set_result(f"worker {self.number} is gone")


class Supervisor:
    def __init__(
        self,
        settings: Settings,
        options: WorkerOptions,
        reader: EndpointReader,
        on_listening: Callable[[list[str]], None] | None = None,
        template: Template | None = None,
    ) -> None:
        self._template = template
        self._settings = settings
        self._store = StoreFolder()
        self._host = HostStore(self._store.path)
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
        self._questions = itertools.count()
        self._profiler = Profiler(profiling_options(settings), self._subjects)
        self._cores = [cores_of(settings, number) for number in range(self._count)]
        self._manager = ServiceManager(os.environ)
        self._shutdown = shutdown_options(settings)
        handover = self._shutdown.handover
        self._predecessor = Predecessor.at(handover) if handover else None
        inherited = self._predecessor.inherited if self._predecessor else from_systemd(os.environ)
        self._listeners = Listeners(listener_plans(settings), self._count, unix_mode(settings), inherited)
        self._handover = HandoverPoint(handover, self._listeners, self._give_way) if handover else None
        listeners = len(self._listeners.of(0))
        for doubt in (*doubts(settings, self._listeners.https_port), *client_connections.doubts(options, listeners)):
            log.warning("%s", doubt)
        database = options.target.parameters.get("dbname", "")
        described = descriptions(settings, database, options.auth, self._listeners.urls)
        self._options = replace(
            self._options,
            openapi=described.openapi,
            mcp=described.mcp,
            tool_schemas=described.tool_schemas,
        )
        self._describer = Describer(described, self._connector)
        self._workers: list[WorkerProcess | None] = [None] * self._count
        self._edition = Edition(0, (), {})
        self._publishing = asyncio.Lock()
        self._stop = asyncio.Event()
        self._leaving: Leave | None = None
        """What workers are told meanwhile, once this process has been asked to end."""
        self._hurry = asyncio.Event()
        """Asked to end again: at once."""
        self._code = 0
        self._reload = asyncio.Event()
        self._looks = CatalogueLooks(reader, self._read_what_was_seen, self._reload.set)
        self._wanted = _Reading.FILES
        """How much the next reading is to read."""
        self._background = Background()
        self._watches = Background()
        """One for each worker; they go on until it has said its last word."""
        self._deaths = [RestartDelay() for _ in range(self._count)]
        self._began = time.monotonic()

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_end)
        loop.add_signal_handler(signal.SIGUSR1, lambda: self._background.start(self._profiler.asked_by_signal()))
        loop.add_signal_handler(signal.SIGHUP, self._read_everything)
        loop.add_signal_handler(signal.SIGUSR2, self._begin_succession)
        try:
            starting = loop.create_task(self._start())
            stopping = loop.create_task(self._stop.wait())
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await self._stop.wait()
            else:
                await _give_up(starting)
        finally:
            await self._shut_down()
        return self._code

    def end(self, code: int) -> None:
        """Makes `run` stop in order and give `code`."""
        self._code = code
        self._stop.set()

    def _asked_to_end(self) -> None:
        """The first time in order; once more, at once."""
        if self._leaving is not None or self._stop.is_set():
            self._code = 0
            self._hurry.set()
            return
        self._manager.stopping("stopping")
        if self._edition.number:
            self._leaving = Leave()
            self._background.start(self._leave(unready=True))
        else:
            self.end(0)

    def _give_way(self) -> None:
        """A successor serves. Health stays as it is: the same address tells of both."""
        if self._leaving is None:
            log.info("another process serves; this one finishes what runs")
            if self._admin is not None:
                self._background.start(asyncio.to_thread(self._admin.close))
                self._admin = None
            self._leaving = Leave()
            self._background.start(self._leave(unready=False))

    async def _leave(self, *, unready: bool) -> None:
        """Serves for as long as others need to notice, and ends."""
        options = self._shutdown
        if unready and options.delay:
            log.info("not ready any more; requests are served for another %g s", options.delay)
            self._tell_leaving(Leave(unready=True))
            await self._unless_hurried(options.delay)
        stay = self._listeners.stay
        if stay or (unready and options.delay):
            self._tell_leaving(Leave(unready, closing=True, deaf=stay))
            await self._unless_hurried(options.goodbye)
        self.end(0)

    def _tell_leaving(self, message: Leave) -> None:
        self._leaving = message
        for worker in self._workers:
            if worker is not None:
                worker.channel.send(message)

    async def _unless_hurried(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    def _begin_succession(self) -> None:
        if self._handover is None:
            log.error("SIGUSR2: HttpServer:HandoverSocket has to name a path before another process can take over")
        elif self._leaving is None:
            self._background.start(self._succession())

    async def _succession(self) -> None:
        """The same command once more, as it is installed and configured now. It takes over when it serves."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, *sys.orig_argv[1:], stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        log.info("a new process is started to take over: pid %d", process.pid)
        code = await process.wait()
        log.error("the process that was to take over has ended with %d; this one goes on", code)

    async def _start(self) -> None:
        if self._predecessor is None:
            self._open_admin()
        # Workers import while the database is read.
        spawning = asyncio.gather(*(self._spawn(number) for number in range(self._count)))
        try:
            if not self._options.target.pooler:
                await self._listen()
            await self._watch_changes()
            with Progress(watched=is_watched()) as progress:
                progress.tell("reading the catalogue of the database")
                edition = await self._reader.first()
        finally:
            await spawning
        await self._begin_keeping()
        await self._describe(edition)
        bridge = bridge_for(self._options.events, self._connector, pooler=self._options.target.pooler)
        if bridge is not None:
            await self._events.connect(bridge, self._background)
        error = await self._publish(await self._with_requests(edition))
        if error is not None:
            raise StartupError(error)
        await self._take_place()
        self._announce()
        self._background.keep("the reloading", self._reload_when_asked)
        self._background.keep("looking at the catalogue", self._looks.run)

    def _open_admin(self) -> None:
        """Before there is a database: who waits for it can see so."""
        if self._admin_options is None:
            return
        # Imported where it is used: its server is only for those who ask for it.
        from rowcall.service.supervisor.admin import Admin

        self._admin = Admin(
            self._admin_options,
            self._store.path,
            self._sample,
            lambda: [None if worker is None else worker.process.pid for worker in self._workers],
            self._profiler,
        )
        log.info("the admin listener is at %s", self._admin.url)

    async def _take_admin_over(self) -> None:
        """From the process that has served before, which closes its own in the same moment."""
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
        running = [worker for worker in self._workers if worker is not None and not worker.gone]
        return {
            worker.number: Subject(worker.process.pid, partial(worker.profile, next(self._questions)))
            for worker in running
        }

    async def _sample(self) -> list[Gauges | None]:
        workers = [worker for worker in self._workers if worker is not None and not worker.gone]
        number = next(self._questions)
        return await asyncio.gather(*(worker.sample(number, SAMPLE_WITHIN) for worker in workers))

    async def _take_place(self) -> None:
        """From here on this process is the one that serves, and the next one asks it."""
        if self._predecessor is not None:
            await self._predecessor.leave()
            self._background.start(self._take_admin_over())
        if self._handover is not None:
            self._handover.open()
            self._background.start(self._handover.run())

    async def _with_requests(self, edition: Edition) -> Edition:
        """The same, with what it serves of example requests."""
        requests = await self._describer.served_requests(edition.endpoints, edition.types_of)
        return replace(edition, example_requests=requests) if requests else edition

    async def _describe(self, edition: Edition) -> None:
        """Clients and documents, for others."""
        await self._describer.write(edition.endpoints, edition.types_of)
        if self._options.mcp is not None:
            announce_tools(edition.endpoints)

    def _announce(self) -> None:
        seconds = time.monotonic() - self._began
        announce(self._settings, self._edition, self._listeners.urls, self._count, seconds)
        current_log().flush()
        self._tell_manager()
        if self._manager.between:
            self._background.keep("the signs of life for systemd", self._manager.keep_alive)
        if self._on_listening is not None:
            self._on_listening(self._listeners.urls)

    def _tell_manager(self) -> None:
        endpoints = len(self._edition.endpoints)
        self._manager.ready(f"{endpoints} endpoints, {self._count} workers, {';'.join(self._listeners.urls)}")

    async def _shut_down(self) -> None:
        self._stop.set()
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)
        seconds = self._settings.seconds("ConnectionSettings:Pool:ShutdownTimeout")
        seconds = self._shutdown.within
        if self._handover is not None:
            self._handover.close()
        self._listeners.close()
        self._channels.close()
        self._background.cancel()
        running = [worker for worker in self._workers if worker is not None]
        for worker in running:
            worker.channel.send(Stop(seconds))
        await self._ended(running, seconds + 5)
        if watches := list(self._watches):
            # What the workers have sent to the log as their last.
            await asyncio.wait(watches, timeout=1)
        self._watches.cancel()
        for worker in running:
            worker.channel.close()
        self._host.close()
        self._store.remove()
        log.info("stopped")

    async def _ended(self, workers: list[WorkerProcess], seconds: float) -> None:
        ending = asyncio.gather(*(_end(worker, seconds) for worker in workers))
        hurrying = asyncio.ensure_future(self._hurry.wait())
        either: set[asyncio.Future[Any]] = {ending, hurrying}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        if not ending.done():
            log.warning("asked to stop once more: what still runs is cut off")
            for worker in workers:
                worker.kill()
        await ending

    # --- workers ---------------------------------------------------------------------------------------------------

    async def _spawn(self, number: int) -> None:
        listeners = self._listeners.of(number)
        worker = await WorkerProcess.start(number, listeners, self._template)
        worker.channel.send(
            Start(self._options, self._settings, listeners, self._listeners.https_port, self._cores[number])
        )
        worker.channel.send(Keys(self._keeper.ring))
        if self._leaving is not None:
            worker.channel.send(self._leaving)
        self._workers[number] = worker
        self._watches.start(self._watch(worker))

    async def _watch(self, worker: WorkerProcess) -> None:
        try:
            await worker.listen(
                self._stale,
                self._keeper.look_again,
                lambda question: self._background.start(self._judge(worker, question)),
                partial(self._event, worker),
                lambda: self._background.start(self._profiler.asked_by_signal(worker.number)),
            )
        except Exception:
            # Nobody would notice its end any more.
            log.exception("worker %d cannot be listened to and is replaced", worker.number)
            worker.kill()
        self._events.forget(worker)
        code = await worker.process.wait()
        if self._stop.is_set():
            return
        self._workers[worker.number] = None
        worker.channel.close()
        self._host.tell_worker_gone(worker.process.pid)
        if self._admin is not None:
            self._admin.restarts += 1
        await self._mourn(worker, code)
        if not self._stop.is_set():
            await self._replace(worker.number)

    async def _mourn(self, worker: WorkerProcess, code: int) -> None:
        """Tells of the death, and waits as long as it asks for, or until the service stops."""
        deaths = self._deaths[worker.number]
        seconds = deaths.pause_after(time.monotonic() - worker.started)
        when = f" in {seconds:.1f} s" if seconds else ""
        why = cause(code, worker.last_error)
        log.error(
            "worker %d (pid %d) ended with %d and is replaced%s: %s",
            *(worker.number, worker.process.pid, code, when, why),
        )
        if deaths.look_like_a_rule:
            log.critical(
                "worker %d has died %d times in a row, each time within %g s; it is started again every few seconds; "
                "%s",
                *(worker.number, MANY, QUICK, why),
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _spawn_at_last(self, number: int) -> None:
        for attempt in itertools.count(5):
            try:
                await self._spawn(number)
            except Exception as error:  # whatever it is: a worker that is not started again is missing for good
                log.error("worker %d cannot be started, one more attempt follows: %s", number, error)
                await asyncio.sleep(pause(attempt))
            else:
                return

    async def _replace(self, number: int) -> None:
        await self._spawn_at_last(number)
        async with self._publishing:
            worker = self._workers[number]
            edition = self._edition
            # Before the first edition there is nothing to serve; the first publication includes this worker.
            if worker is not None and edition.number:
                error = await worker.ask(Prepare.of(edition), Prepared, edition.number)
                error = error or await worker.swap(edition.number)
                if error:
                    log.error("worker %d cannot serve: %s", number, error)
                    worker.kill()  # or the connections that its socket gets would wait for ever

    async def _begin_keeping(self) -> None:
        try:
            await self._keeper.start()
        except (psycopg.Error, OSError) as error:
            raise StartupError(f"the key ring cannot be read: {str(error).strip()}") from None
        self._background.keep("the key rotation", self._keeper.run)

    def _publish_keys(self, ring: KeyRing) -> None:
        for worker in self._workers:
            if worker is not None:
                worker.channel.send(Keys(ring))

    async def _judge(self, worker: WorkerProcess, question: TokenUsed) -> None:
        first = await judged(self._token_uses, question.mark, question.keep_until)
        worker.channel.send(TokenJudged(question.number, first))

    async def _listen_to_channels(self, channels: frozenset[str]) -> None:
        if channels and self._options.target.pooler:
            log.warning("behind a transaction pooler nothing can listen: streams of %s stay empty", ", ".join(channels))
        else:
            # Not yet without those of the edition that is still served.
            await self._channels.watch(self._channels.wanted | channels)

    def _event(self, worker: WorkerProcess, message: EventMessage) -> None:
        if isinstance(message, EventsPublished):
            self._events.take(message.packed)
        elif isinstance(message, NoticeUnheard):
            self._events.unheard(message.path, message.severity)
        elif message.wanted:
            channel = worker.channel
            so_far = self._events.want(worker, lambda packed: channel.send(EventsArrived(packed)))
            channel.send(EventsSoFar(so_far))
        else:
            self._events.forget(worker)

    def _stale(self) -> None:
        """A worker has met an error that says so, which routines can raise as well, and clients provoke."""
        self._looks.wish("the database has changed under a prepared statement; its catalogue is read again")

    def _read_everything(self) -> None:
        self._read(_Reading.CHANGES)

    def _read_what_was_seen(self) -> None:
        self._read(_Reading.SEEN)

    def _read(self, wanted: _Reading) -> None:
        self._wanted = max(self._wanted, wanted)
        self._reload.set()

    # --- editions --------------------------------------------------------------------------------------------------

    async def _publish(self, edition: Edition) -> str | None:
        """All workers swap, or none does; one that is gone gets the edition when it is replaced. Gives the reason
        when none did.
        """
        async with self._publishing:
            workers = [worker for worker in self._workers if worker is not None]
            errors = await self._prepared(edition, workers)
            failed = [error for worker, error in zip(workers, errors, strict=True) if error and not worker.gone]
            if failed:
                return failed[0]
            if not self._edition.number and all(worker.gone for worker in workers):
                return "no worker could be started; the log says why"
            # A stream is open from its first answer on: what is notified right behind that has to be heard.
            channels = channels_of(edition.endpoints)
            await self._listen_to_channels(channels)
            self._listeners.begin()
            await asyncio.gather(*(worker.swap(edition.number) for worker in workers))
            self._edition = edition
            await self._channels.watch(self._channels.wanted & channels)
            return None

    async def _prepared(self, edition: Edition, workers: list[WorkerProcess]) -> list[str | None]:
        """Has all of them build it: what each answers. Whoever serves the edition before it is told what has changed,
        and told everything where that does not go well.
        """
        base = self._edition
        change = EditionChange.between(base, edition) if base.number else None
        if change is not None and change.new_count > len(edition.endpoints) // 2:
            change = None
        whole: list[Prepare] = []

        def everything() -> Prepare:
            if not whole:
                whole.append(Prepare.of(edition))
            return whole[0]

        told = None if change is None else Prepare.of_change(change)

        async def prepared(worker: WorkerProcess) -> str | None:
            if told is not None and worker.serving == base.number:
                if await worker.ask(told, Prepared, edition.number) is None:
                    return None
                log.info("worker %d is told the whole edition %d, not what has changed", worker.number, edition.number)
            return await worker.ask(everything(), Prepared, edition.number)

        return await asyncio.gather(*map(prepared, workers))

    async def _reload_when_asked(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            wanted, self._wanted = self._wanted, _Reading.FILES
            self._manager.reloading()
            await self._read_again(wanted)
            self._tell_manager()
            # Whatever asks in the meantime is answered by one more reading.
            await asyncio.sleep(0.2)

    async def _read_again(self, wanted: _Reading) -> None:
        only_files = wanted is _Reading.FILES
        try:
            edition = await self._reader.read(
                self._edition.number + 1,
                only_files=only_files,
                whole=wanted is _Reading.WHOLE,
                seen=wanted is _Reading.SEEN,
            )
        except (psycopg.Error, OSError, StartupError) as error:
            log.error("the catalogue cannot be read, the last good one stays: %s", str(error).strip())
            return
        except Exception:
            log.exception("the catalogue cannot be read, the last good one stays")
            return
        difference = Difference.between(self._edition, edition)
        if only_files and not difference and edition.left_out == self._edition.left_out:
            return  # saved as it was, or broken as it was
        before = self._edition
        reason = await self._publish(await self._with_requests(edition))
        if reason is not None:
            log.error("edition %d is not served, the last good one stays: %s", edition.number, reason)
            return
        _log_difference(edition, difference)
        if edition.left_out != before.left_out:
            tell_left_out(edition)
        if difference:
            try:
                await self._describe(edition)
            except StartupError as error:
                log.error("%s", error)

    async def _watch_changes(self) -> None:
        """Begins to look for what a developer changes, if that is asked for."""
        watching = self._reader.watcher()
        if watching is not None:
            await watching.start(self._background, self._reload.set, self._read_everything)

    async def _listen(self) -> None:
        """Begins to listen where routines are read. A change between the first reading and the first LISTEN would go
        unnoticed, so this returns when LISTEN has been tried everywhere.
        """
        tried = [asyncio.Event() for _ in self._reader.sources()]
        for connector, event in zip(self._reader.sources(), tried, strict=True):
            self._background.keep("listening for NOTIFY", partial(self._listen_for_notify, connector, event))
        await asyncio.gather(*(event.wait() for event in tried))

    async def _listen_for_notify(self, connector: Connector, tried: asyncio.Event) -> None:
        """`NOTIFY rowcall, 'reload'` looks if the catalogue has changed; finding the database again after a loss reads
        it again.

        Anybody who can connect can notify, and what is sent is no secret: whoever listens reads it, so no signature
        would stay one. A notification is therefore a hint, and costs a fingerprint a second at most.
        """
        attempt = 0
        heard = False
        """Before it listens for the first time, whoever reads the database tells that it is away."""
        lost = False
        while True:
            try:
                async with await connector.open_plain() as connection:
                    await connection.execute(f"listen {NOTIFY_CHANNEL}")
                    tried.set()
                    heard = True
                    attempt = 0
                    if lost:
                        # It may be another server than before.
                        self._read(_Reading.WHOLE)
                    async for notification in connection.notifies():
                        if notification.payload.startswith("forget "):
                            self._host.tell_forgotten(notification.payload.removeprefix("forget "))
                        if notification.payload in ("", "reload"):
                            self._looks.wish()
            except (psycopg.Error, OSError) as error:
                tried.set()
                lost = True
                log.log(
                    logging.INFO if heard else logging.DEBUG,
                    "not listening for NOTIFY: %s",
                    " ".join(str(error).split()),
                )
            await asyncio.sleep(pause(attempt + 2))
            attempt += 1


def _log_difference(edition: Edition, difference: Difference) -> None:
    left_out = f", {edition.left_out_count} left out" if edition.left_out else ""
    log.info("edition %d is served: %d endpoints%s", edition.number, len(edition.endpoints), left_out)
    for word, names in (
        ("added", difference.added),
        ("changed", difference.changed),
        ("removed", difference.removed),
    ):
        for name in names:
            log.info("%s %s", word, name)


async def _give_up(starting: asyncio.Task[None]) -> None:
    """Cancels it until it ends: libraries may take a cancellation for an error that passes, or wait for the server to
    have cancelled as well."""
    while not starting.done():
        starting.cancel()
        await asyncio.wait({starting}, timeout=1)


async def _end(worker: WorkerProcess, seconds: float) -> None:
    waiting: Awaitable[int] = worker.process.wait()
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        log.error("worker %d did not stop in time and is killed", worker.number)
        worker.kill()
        await worker.process.wait()
