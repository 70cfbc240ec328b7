"""The workers of this service: one in each place, replaced when it dies, and all of them on one edition."""

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
    EventsWanted,
    Heard,
    Message,
    Part,
    PrepareSnapshot,
    PrepareSnapshotChange,
    SnapshotPrepared,
    Stop,
)
from rowcall.service.supervisor.processes.prefork import Template
from rowcall.service.supervisor.processes.restarts import MANY, QUICK, RestartDelay, cause
from rowcall.service.supervisor.processes.worker_process import WorkerProcess

log = logging.getLogger("rowcall")


class Workers:
    """What they need from the service comes in as calls.

    greeting: what a new one in this place is told first. hear: what one says that is for others. on_gone: one has
    ended although nobody asked it to.
    """

    def __init__(
        self,
        count: int,
        listeners: Listeners,
        template: Template | None,
        *,
        greeting: Callable[[int], Sequence[Message]],
        hear: Callable[[WorkerProcess, Heard], None],
        on_gone: Callable[[WorkerProcess], None],
    ) -> None:
        self._listeners = listeners
        self._template = template
        self._greeting = greeting
        self._hear = hear
        self._on_gone = on_gone
        self._places: list[WorkerProcess | None] = [None] * count
        self._deaths = [RestartDelay() for _ in range(count)]
        self._publishing = asyncio.Lock()
        self._ending = asyncio.Event()
        self._watches = Background()
        """One for each worker; they go on until it has said its last word."""
        self.snapshot = SchemaSnapshot(0, (), {})
        """That all of them serve; number 0: none yet."""

    def __iter__(self) -> Iterator[WorkerProcess]:
        """Those that there are, in order; one may have ended a moment ago."""
        return (worker for worker in self._places if worker is not None)

    @property
    def running(self) -> list[WorkerProcess]:
        return [worker for worker in self if not worker.gone]

    @property
    def pids(self) -> list[int | None]:
        """For each place; None where one is being replaced."""
        return [None if worker is None else worker.process.pid for worker in self._places]

    def tell(self, message: Message) -> None:
        for worker in self:
            worker.channel.send(message)

    # --- from start to end -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        await asyncio.gather(*(self._spawn(number) for number in range(len(self._places))))

    async def _spawn(self, number: int) -> None:
        worker = await WorkerProcess.start(number, self._listeners.of(number), self._template)
        for message in self._greeting(number):
            worker.channel.send(message)
        self._places[number] = worker
        self._watches.start(self._watch(worker))

    async def _watch(self, worker: WorkerProcess) -> None:
        try:
            await worker.listen(self._hear)
        except Exception:
            # Nobody would notice its end any more.
            log.exception("worker %d cannot be listened to and is replaced", worker.number)
            worker.kill()
        self._hear(worker, EventsWanted(wanted=False))
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
        """Tells of the death, and waits as long as it asks for, or until the service stops."""
        deaths = self._deaths[worker.number]
        seconds = deaths.pause_after(time.monotonic() - worker.started)
        when = f" in {seconds:.1f} s" if seconds else ""
        why = cause(code, worker.last_error)
        log.error(
            "worker %d (pid %d) ended with %d and is replaced%s: %s",
            *(worker.number, worker.process.pid, code, when, why),
        )
        if deaths.look_systematic:
            log.critical(
                "worker %d has died %d times in a row, each time within %g s; it is started again every few seconds; "
                "%s",
                *(worker.number, MANY, QUICK, why),
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    async def _replace(self, number: int) -> None:
        await self._spawn_at_last(number)
        async with self._publishing:
            worker = self._places[number]
            snapshot = self.snapshot
            # Before the first edition there is nothing to serve; the first publication includes this worker.
            if worker is not None and snapshot.number:
                (error,) = await _told_everything(snapshot, [worker])
                error = error or await worker.activate_snapshot(snapshot.number)
                if error:
                    log.error("worker %d cannot serve: %s", number, error)
                    worker.kill()  # or the connections that its socket gets would wait for ever

    async def _spawn_at_last(self, number: int) -> None:
        for attempt in itertools.count(5):
            try:
                await self._spawn(number)
            except Exception as error:  # whatever it is: a worker that is not started again is missing for good
                log.error("worker %d cannot be started, one more attempt follows: %s", number, error)
                await asyncio.sleep(pause(attempt))
            else:
                return

    def stop_restarting(self) -> None:
        """From here on none that ends is replaced."""
        self._ending.set()

    async def end(self, seconds: float, hurry: asyncio.Event) -> None:
        """Has all of them finish what runs, for so long at most; `hurry` cuts that short."""
        self.stop_restarting()
        workers = list(self)
        self.tell(Stop(seconds))
        await self._ended(workers, seconds + 5, hurry)
        if watches := list(self._watches):
            # What the workers have sent to the log as their last.
            await asyncio.wait(watches, timeout=1)
        self._watches.cancel()
        for worker in workers:
            worker.channel.close()

    async def _ended(self, workers: Sequence[WorkerProcess], seconds: float, hurry: asyncio.Event) -> None:
        ending = asyncio.gather(*(worker.end(seconds) for worker in workers))
        hurrying = asyncio.ensure_future(hurry.wait())
        either: set[asyncio.Future[Any]] = {ending, hurrying}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        if not ending.done():
            log.warning("asked to stop once more: what still runs is cut off")
            for worker in workers:
                worker.kill()
        await ending

    # --- editions --------------------------------------------------------------------------------------------------

    async def publish(self, snapshot: SchemaSnapshot, before_activation: Callable[[], Awaitable[None]]) -> str | None:
        """All swap, or none does; one that is gone gets the edition when it is replaced. Gives the reason when none
        did. before_swap: is done once all have built it, before any of them serves it.
        """
        async with self._publishing:
            workers = list(self)
            errors = await self._prepared(snapshot, workers)
            failed = [error for worker, error in zip(workers, errors, strict=True) if error and not worker.gone]
            if failed:
                return failed[0]
            if not self.snapshot.number and all(worker.gone for worker in workers):
                return "no worker could be started; the log says why"
            await before_activation()
            await asyncio.gather(*(worker.activate_snapshot(snapshot.number) for worker in workers))
            self.snapshot = snapshot
            return None

    async def _prepared(self, snapshot: SchemaSnapshot, workers: Sequence[WorkerProcess]) -> list[str | None]:
        """Has all of them build it: what each answers. Whoever serves the edition before it is told what has changed,
        and told everything where that does not go well.
        """
        base = self.snapshot
        change = SnapshotChange.between(base, snapshot) if base.number else None
        if change is not None and change.new_count > len(snapshot.endpoints) // 2:
            change = None
        done: list[WorkerProcess] = []
        if change is not None:
            done = [worker for worker in workers if worker.serving == base.number]
            result = PrepareSnapshotChange.of(change)
            answers = await asyncio.gather(*(worker.ask(result, SnapshotPrepared, snapshot.number) for worker in done))
            for worker, error in zip(tuple(done), answers, strict=True):
                if error is not None:
                    log.info("worker %d is told the whole edition %d, not its changes", worker.number, snapshot.number)
                    done.remove(worker)
        others = [worker for worker in workers if worker not in done]
        errors = dict(zip(others, await _told_everything(snapshot, others), strict=True)) if others else {}
        return [errors.get(worker) for worker in workers]


async def _told_everything(snapshot: SchemaSnapshot, workers: Sequence[WorkerProcess]) -> list[str | None]:
    """Has them build it: what each answers. A part is read there while the next one is written here."""
    index, last = 0, b""
    for index, part in enumerate(parts_of(snapshot)):
        if index:
            for worker in workers:
                worker.channel.send(Part(index - 1, last))
            await asyncio.sleep(0)
        last = part
    message = PrepareSnapshot(snapshot.number, Part(index, last))
    return await asyncio.gather(*(worker.ask(message, SnapshotPrepared, snapshot.number) for worker in workers))
