"""The workers of this service: one for each number, replaced after its exit, all of them with one schema snapshot."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from rowcall.service.background import Background, pause
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, SnapshotChange
from rowcall.service.snapshot.snapshot_transfer import parts_of
from rowcall.service.sockets.listeners import Listeners
from rowcall.service.supervisor.channel import (
    EventSubscription,
    Message,
    Part,
    PrepareSnapshot,
    PrepareSnapshotChange,
    SnapshotPrepared,
    Stop,
    WorkerEvent,
)
from rowcall.service.supervisor.processes.prefork import Template
from rowcall.service.supervisor.processes.restarts import MANY, QUICK, RestartDelay, cause
from rowcall.service.supervisor.processes.worker_process import WorkerProcess

log = logging.getLogger("rowcall")


class Workers:
    """Starts, watches, replaces and updates the workers.

    count: number of workers. template: the process of which they are copies; None: each is started by exec.
    first_messages: returns the first messages to a new worker of this number. hear: receives messages that are no
    answers. on_gone: called when a worker has ended unexpectedly.
    """

    def __init__(
        self,
        count: int,
        listeners: Listeners,
        template: Template | None,
        *,
        first_messages: Callable[[int], Sequence[Message]],
        hear: Callable[[WorkerProcess, WorkerEvent], None],
        on_gone: Callable[[WorkerProcess], None],
    ) -> None:
        self._listeners = listeners
        self._template = template
        self._first_messages = first_messages
        self._hear = hear
        self._on_gone = on_gone
        self._places: list[WorkerProcess | None] = [None] * count
        self._restart_delays = [RestartDelay() for _ in range(count)]
        self._publishing = asyncio.Lock()
        self._ending = asyncio.Event()
        self._watches = Background()
        """One task for each worker; it runs until its last message has been read."""
        self.snapshot = SchemaSnapshot(0, (), {})
        """The snapshot that all workers serve; number 0: none yet."""
        self.next_number = 1
        """Number of the next snapshot. One of a failed publication is not used again: a worker that was too slow for it
        answers later, which would count as its answer to the next publication.
        """

    def __iter__(self) -> Iterator[WorkerProcess]:
        """Iterate over the existing workers, in order; one may have ended a moment ago."""
        return (worker for worker in self._places if worker is not None)

    @property
    def running(self) -> list[WorkerProcess]:
        """Workers that have not ended, as far as known."""
        return [worker for worker in self if not worker.gone]

    def any_serving(self) -> WorkerProcess | None:
        """Return a worker that serves, or None."""
        return next((worker for worker in self.running if worker.serving), None)

    @property
    def pids(self) -> list[int | None]:
        """The process id for each number; None while the worker is being replaced."""
        return [None if worker is None else worker.process.pid for worker in self._places]

    def send_all(self, message: Message) -> None:
        """Send a message to all existing workers."""
        for worker in self:
            worker.channel.send(message)

    # --- from start to end -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all workers. Raises `OSError` if one cannot be started."""
        await asyncio.gather(*(self._spawn(number) for number in range(len(self._places))))

    async def _spawn(self, number: int) -> None:
        """Start a worker with this number, send the first messages to it, and watch it. Raises `OSError`."""
        worker = await WorkerProcess.start(number, self._listeners.of(number), self._template)
        for message in self._first_messages(number):
            worker.channel.send(message)
        self._places[number] = worker
        self._watches.start(self._watch(worker))

    async def _watch(self, worker: WorkerProcess) -> None:
        """Receive the messages of a worker until it ends; then log its end and replace it, unless the service stops."""
        try:
            await worker.listen(self._hear)
        except Exception:
            # Its end would not be noticed any more.
            log.exception("worker %d cannot be listened to and is replaced", worker.number)
            worker.kill()
        self._hear(worker, EventSubscription(subscribed=False))
        code = await worker.process.wait()
        if self._ending.is_set():
            return
        self._places[worker.number] = None
        worker.channel.close()
        self._on_gone(worker)
        await self._log_exit_and_back_off(worker, code)
        if not self._ending.is_set():
            await self._replace(worker.number)

    async def _log_exit_and_back_off(self, worker: WorkerProcess, code: int) -> None:
        """Log a worker's exit, and wait for the restart back-off, or until the service stops. code: the exit code,
        negative for a signal.
        """
        restart_delay = self._restart_delays[worker.number]
        seconds = restart_delay.pause_after(time.monotonic() - worker.started)
        when = f" in {seconds:.1f} s" if seconds else ""
        why = cause(code, worker.last_error)
        log.error(
            "worker %d (pid %d) ended with %d and is replaced%s: %s",
            *(worker.number, worker.process.pid, code, when, why),
        )
        if restart_delay.look_systematic:
            log.critical(
                "worker %d has died %d times in a row, each time within %g s; it is started again every few seconds; "
                "%s",
                *(worker.number, MANY, QUICK, why),
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    async def _replace(self, number: int) -> None:
        """Start another worker with this number, and make it serve the snapshot. If it cannot, it is killed, and so
        replaced again.
        """
        await self._spawn_at_last(number)
        async with self._publishing:
            worker = self._places[number]
            snapshot = self.snapshot
            # Before the first snapshot there is nothing to serve; the first publication includes this worker.
            if worker is not None and snapshot.number:
                (error,) = await _send_all(snapshot, [worker])
                error = error or await worker.activate_snapshot(snapshot.number)
                if error:
                    log.error("worker %d cannot serve: %s", number, error)
                    worker.kill()  # otherwise the connections of its socket would wait without end

    async def _spawn_at_last(self, number: int) -> None:
        """Start a worker with this number, with growing delays until it succeeds."""
        for attempt in itertools.count(5):
            try:
                await self._spawn(number)
            except Exception as error:  # every error: a worker that is not started again is missing for good
                log.error("worker %d cannot be started, one more attempt follows: %s", number, error)
                await asyncio.sleep(pause(attempt))
            else:
                return

    def stop_restarting(self) -> None:
        """Replace no worker that ends from now on."""
        self._ending.set()

    async def end(self, seconds: float, hurry: asyncio.Event) -> None:
        """Make all workers finish running requests for at most `seconds`, and wait until they have ended. Those that
        have not ended five seconds after that are killed. `hurry`: when it is set, all are killed at once."""
        self.stop_restarting()
        workers = list(self)
        self.send_all(Stop(seconds))
        await self._end_workers(workers, seconds + 5, hurry)
        if watches := list(self._watches):
            # The last log entries of the workers.
            await asyncio.wait(watches, timeout=1)
        self._watches.cancel()
        for worker in workers:
            worker.channel.close()

    async def _end_workers(self, workers: Sequence[WorkerProcess], seconds: float, hurry: asyncio.Event) -> None:
        """Wait until the workers have ended, at most `seconds`, after which they are killed; kill them at once when
        `hurry` is set.
        """
        ending = asyncio.gather(*(worker.end(seconds) for worker in workers))
        hurrying = asyncio.ensure_future(hurry.wait())
        either: set[asyncio.Future[Any]] = {ending, hurrying}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        if not ending.done():
            log.warning("second request to stop: running requests are cut off")
            for worker in workers:
                worker.kill()
        await ending

    # --- schema snapshots ----------------------------------------------------------------------------------------

    async def publish(self, snapshot: SchemaSnapshot, before_activation: Callable[[], Awaitable[None]]) -> str | None:
        """Make all workers activate the snapshot; if one cannot build it, none does. A worker that has ended gets it
        when it is replaced.

        Returns None, or why no worker activated it. A worker that does not confirm the activation is not reported; it
        does not count as serving. before_activation: called once all have built the snapshot, before any of them serves
        it.
        """
        async with self._publishing:
            self.next_number = snapshot.number + 1
            workers = list(self)
            errors = await self._prepare_snapshot(snapshot, workers)
            failed = [error for worker, error in zip(workers, errors, strict=True) if error and not worker.gone]
            if failed:
                return failed[0]
            if not self.snapshot.number and all(worker.gone for worker in workers):
                return "no worker could be started; the log says why"
            await before_activation()
            await asyncio.gather(*(worker.activate_snapshot(snapshot.number) for worker in workers))
            self.snapshot = snapshot
            return None

    async def _prepare_snapshot(self, snapshot: SchemaSnapshot, workers: Sequence[WorkerProcess]) -> list[str | None]:
        """Make these workers build the snapshot. Return for each None, or the reason why it has not built it.

        If at most half of the endpoints are new, workers that serve the previous snapshot receive only the changes, and
        the whole snapshot if that fails.
        """
        base = self.snapshot
        change = SnapshotChange.from_snapshots(base, snapshot) if base.number else None
        if change is not None and change.new_count > len(snapshot.endpoints) // 2:
            change = None
        done: list[WorkerProcess] = []
        if change is not None:
            done = [worker for worker in workers if worker.serving == base.number]
            result = PrepareSnapshotChange.of(change)
            answers = await asyncio.gather(*(worker.ask(result, SnapshotPrepared, snapshot.number) for worker in done))
            for worker, error in zip(tuple(done), answers, strict=True):
                if error is not None:
                    log.info(
                        "worker %d gets the whole schema snapshot %d, not its changes", worker.number, snapshot.number
                    )
                    done.remove(worker)
        others = [worker for worker in workers if worker not in done]
        errors = dict(zip(others, await _send_all(snapshot, others), strict=True)) if others else {}
        return [errors.get(worker) for worker in workers]


async def _send_all(snapshot: SchemaSnapshot, workers: Sequence[WorkerProcess]) -> list[str | None]:
    """Send the whole snapshot to workers, and return their error texts (None: the snapshot is prepared). They read a
    part while the next one is pickled here.
    """
    index, last = 0, b""
    for index, part in enumerate(parts_of(snapshot)):
        if index:
            for worker in workers:
                worker.channel.send(Part(index - 1, last))
            await asyncio.sleep(0)
        last = part
    message = PrepareSnapshot(snapshot.number, Part(index, last))
    return await asyncio.gather(*(worker.ask(message, SnapshotPrepared, snapshot.number) for worker in workers))
