"""Files that arrive in pieces: their bytes, and what is known of them, in one folder for all workers.

The size of a file is how much has arrived, so that nothing else has to be written down for a piece. Who works on one
holds its lock, which ends with the process. One request may ask another to let go of it: that of a client whose
connection is gone without a word, and who is already back.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.options import Resumable
from rowcall.core.uploads.resumable import About, is_id, loaded
from rowcall.service.background import Background
from rowcall.service.shared_state.message_bus import MessageBus
from rowcall.service.uploads.resumable.unfinished import Unfinished
from rowcall.service.uploads.spool import ended, not_stored, write_pieces

log = logging.getLogger("rowcall")

LET_GO = "uploads-let-go"
"""Topic on which a request asks whoever holds a file, by its id, to let go of it."""
PATIENCE = 5.0
"""Seconds that are waited for the holder of a file."""
ASK_AGAIN = 0.05
LONGEST_SWEEP = 3600.0
"""Seconds between two looks for files that have expired."""
_BYTES, _ABOUT = ".bytes", ".json"

Given = TypeVar("Given")


async def aside(work: Callable[[], Given]) -> Given:
    """In a thread: a slow disk holds up nobody else. Raises `Problem` for what the disk says."""
    try:
        return await ended(asyncio.get_running_loop().run_in_executor(None, work))
    except OSError as error:
        raise _kept_from(error) from None


def _kept_from(error: OSError) -> Problem:
    problem = not_stored(error, "the file cannot be kept until it is complete")
    log.error("resumable uploads: %s", error)
    problem.logged = True
    return problem


class Part:
    """One file that nobody else works on. `with part:`"""

    def __init__(self, base: Path, id: str, file: BinaryIO, about: About, unfinished: Unfinished) -> None:
        self.id = id
        self.file = file
        self.about = about
        self._base = base
        self._unfinished = unfinished
        self._waiting: asyncio.Task[Any] | None = None
        """What waits for the client, and may be told not to."""
        self._wanted = asyncio.Event()
        """By somebody else, who goes on with it."""

    @property
    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    @property
    def offset(self) -> int:
        return self.about.offset(self.size)

    def save(self, **changes: Any) -> None:
        self.about = replace(self.about, **changes)
        _write_about(self._base, self.id, self.about)

    def set_length(self, length: int) -> None:
        """One that was begun without."""
        self.save(length=length)
        self._unfinished.resize(self.id, length)

    def cut(self, offset: int) -> None:
        """What is behind does not count."""
        if self.size > offset:
            self.file.truncate(offset)
        self.file.seek(0, os.SEEK_END)

    def finish(self) -> None:
        """Remembered until it expires: a client that has lost the answer asks."""
        self.save(done=True, settled=None)
        self.file.truncate(0)
        self._unfinished.end(self.id)

    def remove(self) -> None:
        for suffix in (_BYTES, _ABOUT):
            (self._base / f"{self.id}{suffix}").unlink(missing_ok=True)
        self._unfinished.end(self.id)

    async def next_of(self, source: AsyncIterator[bytes]) -> bytes | None:
        """What the client sends next. Raises `Problem` 409 once somebody else goes on."""
        task = asyncio.current_task()
        piece = None
        if not self._wanted.is_set():
            self._waiting = task
            try:
                piece = await anext(source, None)
                # Told in the moment in which a piece came: it must not be felt in the middle of writing.
                if task is not None and task.cancelling():
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not self._wanted.is_set() or task is None:
                    raise
                task.uncancel()
            finally:
                self._waiting = None
            if piece is not None or not self._wanted.is_set():
                return piece
        raise Problem(409, "another request goes on with this upload", headers=(("connection", "close"),))

    def let_go(self) -> None:
        self._wanted.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()


@dataclass(frozen=True, slots=True)
class Known:
    """What can be said of a file without its lock."""

    about: About
    offset: int
    expires: float
    """Seconds of the clock."""


class Parts:
    """Those of a host."""

    def __init__(self, options: Resumable, message_bus: MessageBus) -> None:
        """To be made in the running event loop."""
        self.options = options
        self._folder = Path(options.folder or default_folder())
        self._unfinished = Unfinished(self._folder, options)
        self._message_bus = message_bus
        self._held: dict[str, Part] = {}
        self._end = message_bus.subscribe(LET_GO, self._let_go)
        self._background = Background()
        self._background.keep("the removal of unfinished uploads", self._sweep_for_ever)

    def close(self) -> None:
        self._end()
        self._background.cancel()

    def create(self, about: About, room: int, client: str | None) -> str:
        """Its id. room: bytes that are going to come. client: whose it is; None: it is made of others, and never waits.

        Raises `OSError`, and `Problem` where there are too many."""
        self._check_folder()
        space = os.statvfs(self._folder)
        if room > space.f_bavail * space.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        id = uuid.uuid4().hex
        _write_about(self._folder, id, about)
        os.close(os.open(self._folder / f"{id}{_BYTES}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if client is None:
            return id
        try:
            self._unfinished.begin(id, client, self.options.max_size if about.length is None else about.length)
        except BaseException:
            self.forget(id)
            raise
        return id

    def look(self, id: str) -> Known | None:
        """None: there is none."""
        about = _read_about(self._folder, id)
        if about is None:
            return None
        try:
            result = os.stat(self._folder / f"{id}{_BYTES}")
        except FileNotFoundError:
            return None
        return Known(about, about.offset(result.st_size), result.st_mtime + self.options.seconds)

    def mark_done(self, id: str) -> None:
        """One that has been put together: it has no bytes of its own."""
        known = self.look(id)
        if known is not None:
            _write_about(self._folder, id, replace(known.about, done=True))

    def forget(self, id: str) -> None:
        """One that has not been put together, or for which there is no room."""
        for suffix in (_BYTES, _ABOUT):
            (self._folder / f"{id}{suffix}").unlink(missing_ok=True)

    async def take(self, id: str) -> Part | None:
        """Locked; None: there is none. Raises `Problem` 423 when whoever holds it does not let go."""
        until = time.monotonic() + PATIENCE
        while True:
            part = await aside(partial(_locked, self._folder, id, self._unfinished))
            if part is None or isinstance(part, Part):
                return part
            if time.monotonic() > until:
                raise Problem(423, "another request is at work on this upload", headers=(("retry-after", "1"),))
            self._message_bus.publish(LET_GO, id.encode())
            await asyncio.sleep(ASK_AGAIN)

    async def append(self, part: Part, pieces: Any, checked: Callable[[bytes], None] | None) -> None:
        """What the client sends, until its end; what has come before an error stays.

        checked: sees each piece. Raises `Problem` 409 when somebody else wants to go on with the file."""
        source = aiter(pieces)
        self._held[part.id] = part
        try:
            await write_pieces(_until_wanted(part, source, checked), part.file)
        except OSError as error:
            raise _kept_from(error) from None
        finally:
            self._held.pop(part.id, None)

    def _let_go(self, id: bytes) -> None:
        part = self._held.get(id.decode())
        if part is not None:
            part.let_go()

    def _check_folder(self) -> None:
        """Files of strangers wait in it: nobody else may have put it there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        result = self._folder.lstat()
        if self.options.folder is None and result.st_uid != os.getuid():
            raise OSError(errno.EPERM, "the folder belongs to somebody else", str(self._folder))

    # --- what nobody finishes ----------------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.get_running_loop().run_in_executor(None, self.sweep)
            await asyncio.sleep(min(LONGEST_SWEEP, self.options.seconds))

    def sweep(self) -> int:
        """Removes what has expired; how many there were."""
        before = time.time() - self.options.seconds
        count = 0
        for id in self._ids():
            with contextlib.suppress(OSError):
                part = _locked(self._folder, id, self._unfinished)
                if not isinstance(part, Part):
                    continue
                with part:
                    if os.fstat(part.file.fileno()).st_mtime < before:
                        part.remove()
                        count += not part.about.done
        with contextlib.suppress(OSError):
            self._unfinished.tidy(self._waits)
        if count:
            log.info("%d unfinished uploads have expired and are removed", count)
        return count

    def _waits(self, id: str) -> bool:
        """No: whoever was at work on it was killed between two steps."""
        known = self.look(id)
        return known is not None and not known.about.done

    def _ids(self) -> Iterable[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return ()
        return [name.removesuffix(_BYTES) for name in names if name.endswith(_BYTES) and is_id(name[: -len(_BYTES)])]


def default_folder() -> str:
    return os.path.join(tempfile.gettempdir(), f"rowcall-uploads-{os.getuid()}")


async def _until_wanted(
    part: Part, source: AsyncIterator[bytes], checked: Callable[[bytes], None] | None
) -> AsyncIterator[bytes]:
    """Whoever waits for the client is told at once that nobody waits for it any more; whoever writes, afterwards."""
    while True:
        piece = await part.next_of(source)
        if piece is None:
            return
        if checked is not None:
            checked(piece)
        yield piece


def _locked(folder: Path, id: str, unfinished: Unfinished) -> Part | bool | None:
    """False: somebody else holds it. None: there is none. Raises `OSError`."""
    try:
        file = open(folder / f"{id}{_BYTES}", "r+b", buffering=0)  # noqa: SIM115 (it is the lock, and ends with the part)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    except BaseException:
        file.close()
        raise
    about = _read_about(folder, id) if os.fstat(file.fileno()).st_nlink else None
    if about is None:
        file.close()
        return None
    return Part(folder, id, file, about, unfinished)


def _read_about(folder: Path, id: str) -> About | None:
    if not is_id(id):
        return None
    try:
        return loaded((folder / f"{id}{_ABOUT}").read_bytes())
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write_about(folder: Path, id: str, about: About) -> None:
    """At once or not at all."""
    path = folder / f"{id}{_ABOUT}"
    new = path.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(about.dumped())
    os.replace(new, path)
