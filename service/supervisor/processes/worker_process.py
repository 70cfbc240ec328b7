"""One worker process as the supervisor sees it: its start, messages and end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from rowcall.service.interpreter import FOLDER, interpreter_command, interpreter_environment
from rowcall.service.log import Entry, current_log
from rowcall.service.log.request_line import RequestRecord
from rowcall.service.sockets.listeners import Listener
from rowcall.service.supervisor.channel import (
    ActivateSnapshot,
    Channel,
    EndStream,
    EndStreamReply,
    GaugesReply,
    GaugesRequest,
    Identify,
    IdentityReply,
    InvalidateEntry,
    InvalidateTags,
    InvalidationReply,
    LogEntries,
    PrepareSnapshot,
    PrepareSnapshotChange,
    ProfileReply,
    SnapshotActivated,
    SnapshotPrepared,
    SpansReply,
    SpansRequest,
    StreamsReply,
    StreamsRequest,
    TakeProfile,
    WorkerEvent,
)
from rowcall.service.supervisor.processes.prefork import Copy, Template

log = logging.getLogger("rowcall")

SAMPLE_WITHIN = 1.0
"""Seconds within which a worker must send its gauges; one that is busy for longer is left out."""
INVALIDATE_WITHIN = 10.0
"""Seconds within which a worker must have invalidated cached responses."""
IDENTIFY_WITHIN = 10.0
"""Seconds within which a worker must have authenticated a user, for which it may ask the database."""
END_STREAM_WITHIN = 5.0
"""Seconds within which a worker must have ended an event stream."""
PREPARE_WITHIN = 60.0
"""Seconds that a worker may take to build a schema snapshot."""

_Question = (
    GaugesRequest
    | TakeProfile
    | InvalidateTags
    | InvalidateEntry
    | Identify
    | StreamsRequest
    | SpansRequest
    | EndStream
)
_Answer = GaugesReply | ProfileReply | InvalidationReply | IdentityReply | StreamsReply | SpansReply | EndStreamReply
Headers = tuple[tuple[str, str], ...]
"""Names and values of request headers."""
Gauges = list[tuple[str, Mapping[str, str], float]]
"""Name, labels and value of each gauge."""


async def _start_process(descriptors: tuple[int, ...], template: Template | None) -> asyncio.subprocess.Process | Copy:
    """Start a worker process that has these descriptors under the same numbers; the first is its channel. template: the
    process to copy; None, or if it has ended: the worker is started by exec. Raises `OSError`.
    """
    if template is not None:
        try:
            return await Copy.start(template, descriptors)
        except OSError as error:
            log.info("a worker is started without a template: %s", error)
    return await asyncio.create_subprocess_exec(
        *interpreter_command("-m", "rowcall.service.worker.worker"),
        str(descriptors[0]),
        os.getcwd(),
        cwd=FOLDER,
        env=interpreter_environment(),
        pass_fds=descriptors,
        stdin=asyncio.subprocess.DEVNULL,
        # A Ctrl-C is for the supervisor, which stops the workers in order.
        start_new_session=True,
    )


def _result_of(answer: _Answer) -> Gauges | str | _Answer:
    """Return what `_reply_to` returns for a reply: the gauges of a `GaugesReply`, the text of a `ProfileReply`, or any
    other reply itself."""
    if isinstance(answer, GaugesReply):
        return answer.gauges
    return answer.text if isinstance(answer, ProfileReply) else answer


class WorkerProcess:
    """One worker process, from its start to its end. Questions to the worker have a number, unique among all questions,
    which its reply repeats.
    """

    def __init__(self, number: int, process: asyncio.subprocess.Process | Copy, channel: Channel) -> None:
        self.number = number
        self.process = process
        self.channel = channel
        self.started = time.monotonic()
        self.serving = 0
        """Number of the snapshot that it serves, as reported; 0: none, or unknown."""
        self._pending_answers: dict[tuple[type, int], asyncio.Future[str | None]] = {}
        """Waits of `ask`, by type of the answer and number of the schema snapshot. Their result is None or an error
        text.
        """
        self._questions: dict[int, asyncio.Future[Any]] = {}
        """Waits for replies, by number of the question."""
        self.gone = False
        """It has closed its channel: it has ended or is about to."""
        self.last_error: str | None = None
        """The last error that it logged."""

    @classmethod
    async def start(cls, number: int, listeners: tuple[Listener, ...], template: Template | None) -> WorkerProcess:
        """Start a worker process that inherits the descriptors of its listeners. number: of the worker, from 0.
        template: the process to copy; if it is None or has ended, the worker is started by exec. Raises `OSError`."""
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as until_started:
            until_started.callback(ours.close)
            shared = {fd: None for listener in listeners for fd in listener.descriptors}
            process = await _start_process((theirs.fileno(), *shared), template)
            until_started.pop_all()
        return cls(number, process, await Channel.over(ours))

    async def ask(
        self,
        message: PrepareSnapshot | PrepareSnapshotChange | ActivateSnapshot,
        answer: type[SnapshotPrepared] | type[SnapshotActivated],
        number: int,
    ) -> str | None:
        """Send `message` and wait for its answer, at most `PREPARE_WITHIN` seconds. Returns None, or an error text.
        answer: the type of the answer. number: of the schema snapshot.
        """
        if self.gone:
            return f"worker {self.number} is gone"
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._pending_answers[answer, number] = future
        self.channel.send(message)
        try:
            return await asyncio.wait_for(future, PREPARE_WITHIN)
        except TimeoutError:
            return f"worker {self.number} has not answered within {PREPARE_WITHIN:g} s"
        finally:
            self._pending_answers.pop((answer, number), None)

    async def activate_snapshot(self, number: int) -> str | None:
        """Make the worker activate its prepared snapshot, which has this number, and record the number as `serving`.
        Returns None, or an error text.
        """
        self.serving = 0
        error = await self.ask(ActivateSnapshot(number), SnapshotActivated, number)
        if error is None:
            self.serving = number
        return error

    async def sample(self, number: int, seconds: float) -> Gauges | None:
        """Return the gauges of the worker; None without an answer within `seconds`. number: of the question."""
        result: Gauges | None = await self._reply_to(GaugesRequest(number), seconds)
        return result

    async def profile(self, number: int, seconds: float) -> str | None:
        """Return a profile of the worker over `seconds`; None without an answer. number: of the question."""
        result: str | None = await self._reply_to(TakeProfile(number, seconds), seconds + SAMPLE_WITHIN * 10)
        return result

    async def invalidate(self, question: InvalidateTags | InvalidateEntry) -> InvalidationReply | None:
        """Make the worker invalidate cached responses for all workers, and return its reply; None without an answer."""
        result: InvalidationReply | None = await self._reply_to(question, INVALIDATE_WITHIN)
        return result

    async def identify(self, number: int, headers: Headers, address: str) -> IdentityReply | None:
        """Return which user these headers authenticate in a request from this client address; None without an answer.
        number: of the question."""
        result: IdentityReply | None = await self._reply_to(Identify(number, headers, address), IDENTIFY_WITHIN)
        return result

    async def streams(self, number: int) -> StreamsReply | None:
        """Return the open event streams of the worker; None without an answer. number: of the question."""
        result: StreamsReply | None = await self._reply_to(StreamsRequest(number), SAMPLE_WITHIN)
        return result

    async def spans(self, number: int, trace: str | None) -> SpansReply | None:
        """Return the spans that the worker has stored; None without an answer. number: of the question. trace: id of
        their trace; None: the root spans of its latest requests."""
        result: SpansReply | None = await self._reply_to(SpansRequest(number, trace), SAMPLE_WITHIN)
        return result

    async def end_stream(self, number: int, stream: int) -> EndStreamReply | None:
        """Make the worker end one of its event streams, and return its reply; None without an answer. number: of the
        question. stream: number of the stream in the worker.
        """
        result: EndStreamReply | None = await self._reply_to(EndStream(number, stream), END_STREAM_WITHIN)
        return result

    async def _reply_to(self, question: _Question, seconds: float) -> Any:
        """Send a question and wait for the reply. Returns the gauges of a `GaugesReply`, the text of a `ProfileReply`,
        or any other reply itself; None without a reply within `seconds`.
        """
        future = self._questions[question.number] = asyncio.get_running_loop().create_future()
        self.channel.send(question)
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return None
        finally:
            del self._questions[question.number]

    def _remember_error(self, entries: Iterable[Entry | RequestRecord]) -> None:
        """Store the last error among these entries, as the likely cause if the worker exits."""
        for entry in entries:
            if isinstance(entry, Entry) and entry.level >= logging.ERROR:
                self.last_error = entry.message

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def listen(self, hear: Callable[[WorkerProcess, WorkerEvent], None]) -> None:
        """Receive the worker's messages until it ends: complete the waits for answers, take log entries into the log,
        and pass all other messages to `hear`. At the end, set `gone`, and let the waits of `ask` end with an error
        text."""
        with contextlib.suppress(EOFError):
            while True:
                message = await self.channel.receive()
                if isinstance(message, LogEntries):
                    self._remember_error(message.entries)
                    current_log().submit(message.entries)
                elif isinstance(message, _Answer):
                    waiter = self._questions.get(message.number)
                    if waiter is not None and not waiter.done():
                        waiter.set_result(_result_of(message))
                elif isinstance(message, SnapshotPrepared | SnapshotActivated):
                    error = message.error if isinstance(message, SnapshotPrepared) else None
                    future = self._pending_answers.get((type(message), message.number))
                    if future is not None and not future.done():
                        future.set_result(error)
                elif isinstance(message, WorkerEvent):
                    hear(self, message)
        self.gone = True
        for future in self._pending_answers.values():
            if not future.done():
                future.set_result(f"worker {self.number} is gone")

    async def end(self, seconds: float) -> None:
        """Wait until the process has ended; kill it if it has not after `seconds`."""
        waiting: Awaitable[int] = self.process.wait()
        try:
            await asyncio.wait_for(waiting, seconds)
        except TimeoutError:
            log.error("worker %d did not stop in time and is killed", self.number)
            self.kill()
            await self.process.wait()
