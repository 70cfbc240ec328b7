"""Resumable uploads on disk: their bytes and their state, in one folder for all workers.

The size of the file is the number of bytes that have arrived, so nothing else has to be recorded for a chunk. A request
that works on an upload holds its lock, which ends with the process. Another request may ask for its release: that of a
client that has reconnected after its connection was lost without notice.
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
from rowcall.core.uploads.resumable import StoredState, is_id, parse_stored_state
from rowcall.service.background import Background
from rowcall.service.shared_state.message_bus import MessageBus
from rowcall.service.uploads.resumable.unfinished_uploads import UnfinishedUploads
from rowcall.service.uploads.spool import not_stored, wait_for_thread, write_pieces

log = logging.getLogger("rowcall")

LET_GO = "uploads-let-go"
"""Topic on which a request asks for the release of an upload, by its id."""
LOCK_TIMEOUT = 5.0
"""Seconds to wait for the release of an upload."""
ASK_AGAIN = 0.05
"""Seconds between two requests for the release of an upload."""
LONGEST_SWEEP = 3600.0
"""Maximum seconds between two removals of expired uploads."""
_BYTES, _ABOUT = ".bytes", ".json"

Result = TypeVar("Result")


async def run_in_thread(work: Callable[[], Result]) -> Result:
    """Run `work` in a thread, so that a slow disk does not delay other requests. Raises `Problem` for errors of the
    disk.
    """
    try:
        return await wait_for_thread(asyncio.get_running_loop().run_in_executor(None, work))
    except OSError as error:
        raise _disk_problem(error) from None


def _disk_problem(error: OSError) -> Problem:
    """Return the problem for an error of the disk, which is logged here."""
    problem = not_stored(error, "the unfinished upload cannot be stored")
    log.error("the folder of resumable uploads cannot be used: %s", error)
    problem.logged = True
    return problem


class Part:
    """A locked upload, which only this request uses. A context manager that releases it.

    base: the folder of all uploads. file: the bytes of the upload; it is the lock. stored_state: the state of the
    upload. unfinished: the list for the limits.
    """

    def __init__(
        self, base: Path, id: str, file: BinaryIO, stored_state: StoredState, unfinished: UnfinishedUploads
    ) -> None:
        self.id = id
        self.file = file
        self.stored_state = stored_state
        self._base = base
        self._unfinished = unfinished
        self._waiting: asyncio.Task[Any] | None = None
        """Task that waits for data of the client, and may be cancelled for a release."""
        self._release_requested = asyncio.Event()
        """Set when another request asks for the release, to continue the upload."""

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self.file.fileno()).st_size

    @property
    def offset(self) -> int:
        """Bytes that count as arrived (`StoredState.offset`)."""
        return self.stored_state.offset(self.size)

    def save(self, **changes: Any) -> None:
        """Change members of the state (`StoredState`) and write it. Raises `OSError`."""
        self.stored_state = replace(self.stored_state, **changes)
        _write_stored_state(self._base, self.id, self.stored_state)

    def set_length(self, length: int) -> None:
        """Set the length, in bytes, of an upload that was created without it. Raises `OSError`."""
        self.save(length=length)
        self._unfinished.resize(self.id, length)

    def truncate(self, offset: int) -> None:
        """Truncate the file at the offset, if it is longer; the next chunk is written at its end. Raises `OSError`."""
        if self.size > offset:
            self.file.truncate(offset)
        self.file.seek(0, os.SEEK_END)

    def finish(self) -> None:
        """Mark the upload as done and delete its bytes. The mark stays until it expires, for a client that did not
        receive the response. Raises `OSError`.
        """
        self.save(done=True, settled=None)
        self.file.truncate(0)
        self._unfinished.end(self.id)

    def remove(self) -> None:
        """Remove the upload. Raises `OSError`."""
        for suffix in (_BYTES, _ABOUT):
            (self._base / f"{self.id}{suffix}").unlink(missing_ok=True)
        self._unfinished.end(self.id)

    async def next_of(self, source: AsyncIterator[bytes]) -> bytes | None:
        """Return the next chunk from the client, or None at the end. Raises `Problem` 409 when another request has
        asked for the release.
        """
        task = asyncio.current_task()
        piece = None
        if not self._release_requested.is_set():
            self._waiting = task
            try:
                piece = await anext(source, None)
                # If the cancellation comes at the same moment as a chunk, consume it here: it must not take effect
                # during writing.
                if task is not None and task.cancelling():
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not self._release_requested.is_set() or task is None:
                    raise
                task.uncancel()
            finally:
                self._waiting = None
            if piece is not None or not self._release_requested.is_set():
                return piece
        raise Problem(409, "another request continues this upload", headers=(("connection", "close"),))

    def let_go(self) -> None:
        """Make the request that receives this upload end with `Problem` 409 and release it, because another request
        continues it. A chunk that is being written is completed first."""
        self._release_requested.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()


@dataclass(frozen=True, slots=True)
class UploadState:
    """State of an upload that can be read without its lock. offset: number of bytes that have arrived."""

    stored_state: StoredState
    offset: int
    expires: float
    """Seconds since the epoch."""


class Parts:
    """The resumable uploads of a host."""

    def __init__(self, options: Resumable, message_bus: MessageBus) -> None:
        """Construct it in the running event loop."""
        self.options = options
        self._folder = Path(options.folder or default_folder())
        self._unfinished = UnfinishedUploads(self._folder, options)
        self._message_bus = message_bus
        self._receiving: dict[str, Part] = {}
        self._end = message_bus.subscribe(LET_GO, self._let_go)
        self._background = Background()
        self._background.keep("the removal of unfinished uploads", self._sweep_for_ever)

    def close(self) -> None:
        self._end()
        self._background.cancel()

    def create(self, stored_state: StoredState, room: int, client: str | None) -> str:
        """Create an upload and return its id.

        room: bytes that must be free on the disk. client: owner for the limits of unfinished uploads; None: the upload
        is concatenated from others, and is not counted. Raises `OSError`, also if there is too little room, and
        `Problem` if a limit is reached.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._checked_folder()
        space = os.statvfs(self._folder)
        if room > space.f_bavail * space.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        id = uuid.uuid4().hex
        _write_stored_state(self._folder, id, stored_state)
        os.close(os.open(self._folder / f"{id}{_BYTES}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if client is None:
            return id
        try:
            self._unfinished.begin(
                id, client, self.options.max_size if stored_state.length is None else stored_state.length
            )
        except BaseException:
            self.forget(id)
            raise
        return id

    def state_of(self, id: str) -> UploadState | None:
        """Return the state of the upload, or None if there is none. Raises `OSError`."""
        try:
            folder = self._checked_folder()
            stored_state = _read_stored_state(folder, id)
            if stored_state is None:
                return None
            status = os.stat(folder / f"{id}{_BYTES}")
        except FileNotFoundError:
            return None
        return UploadState(stored_state, stored_state.offset(status.st_size), status.st_mtime + self.options.seconds)

    def mark_done(self, id: str) -> None:
        """Mark a concatenated upload, which has no bytes of its own, as done. Has no effect if there is none with this
        id. Raises `OSError`."""
        known = self.state_of(id)
        if known is not None:
            _write_stored_state(self._folder, id, replace(known.stored_state, done=True))

    def forget(self, id: str) -> None:
        """Remove the files of an upload that is not in the list of unfinished uploads, because it was concatenated from
        others or a limit was reached. Raises `OSError`."""
        for suffix in (_BYTES, _ABOUT):
            (self._folder / f"{id}{suffix}").unlink(missing_ok=True)

    def forget_unless_done(self, id: str) -> None:
        """Remove a concatenated upload unless it is done, at the end of its request. An error of the disk is logged."""
        try:
            known = self.state_of(id)
            if known is None or not known.stored_state.done:
                self.forget(id)
        except OSError as error:
            log.error("a concatenated upload could not be removed: %s", error)

    async def take(self, id: str) -> Part | None:
        """Lock an upload; ask the request that holds it for its release. Return None if there is none. Raises
        `Problem`: 423 if it is not released in time, 500 or 507 for errors of the disk."""
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            part = await run_in_thread(partial(self._lock, id))
            if part is None or isinstance(part, Part):
                return part
            if time.monotonic() > until:
                raise Problem(
                    423, "another request is using this upload; try again later", headers=(("retry-after", "1"),)
                )
            self._message_bus.publish(LET_GO, id.encode())
            await asyncio.sleep(ASK_AGAIN)

    async def append(self, part: Part, pieces: Any, checked: Callable[[bytes], None] | None) -> None:
        """Append what the client sends, until its end. What arrived before an error is retained.

        pieces: iterates over the chunks. checked: called with each chunk; None: nothing is called. Raises `Problem`:
        409 if another request wants to continue the upload, 500 or 507 for errors of the disk, and the errors of
        `pieces`.
        """
        source = aiter(pieces)
        self._receiving[part.id] = part
        try:
            await write_pieces(_until_release(part, source, checked), part.file)
        except OSError as error:
            raise _disk_problem(error) from None
        finally:
            self._receiving.pop(part.id, None)

    def _let_go(self, id: bytes) -> None:
        """Stop receiving an upload, as another process requests it; nothing happens if this process does not receive
        it.
        """
        part = self._receiving.get(id.decode())
        if part is not None:
            part.let_go()

    def _checked_folder(self) -> Path:
        """Return the folder. The default one must belong to this user: others can create it first, with links to files
        of this user as uploads. A configured one is not checked. Raises `OSError`, also if there is none.
        """
        status = self._folder.lstat()
        if self.options.folder is None and status.st_uid != os.getuid():
            raise OSError(errno.EPERM, "the folder belongs to another user", str(self._folder))
        return self._folder

    def _lock(self, id: str) -> Part | bool | None:
        """Return a locked upload as `_lock_upload` does. Raises `OSError`."""
        try:
            return _lock_upload(self._checked_folder(), id, self._unfinished)
        except FileNotFoundError:
            return None

    # --- expired uploads ---------------------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.get_running_loop().run_in_executor(None, self.sweep)
            await asyncio.sleep(min(LONGEST_SWEEP, self.options.seconds))

    def sweep(self) -> int:
        """Remove expired uploads, except those that a request has locked, and return how many of them were unfinished.
        Removes also the entries in the list of unfinished uploads whose upload is done or does not exist any more."""
        before = time.time() - self.options.seconds
        count = 0
        for id in self._ids():
            with contextlib.suppress(OSError):
                part = self._lock(id)
                if not isinstance(part, Part):
                    continue
                with part:
                    if os.fstat(part.file.fileno()).st_mtime < before:
                        part.remove()
                        count += not part.stored_state.done
        with contextlib.suppress(OSError):
            self._unfinished.tidy(self._is_unfinished)
        if count:
            log.info("%d unfinished uploads have expired and are removed", count)
        return count

    def _is_unfinished(self, id: str) -> bool:
        """Return whether the upload is still unfinished: it exists and is not marked as done.

        One that is done can still be in the list of unfinished uploads, if a process was killed before it removed it.
        """
        known = self.state_of(id)
        return known is not None and not known.stored_state.done

    def _ids(self) -> Iterable[str]:
        """Return the ids of all uploads that have a file for their bytes, which may be empty; none if the folder cannot
        be read."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return ()
        return [name.removesuffix(_BYTES) for name in names if name.endswith(_BYTES) and is_id(name[: -len(_BYTES)])]


def default_folder() -> str:
    """Return the folder of resumable uploads if none is configured."""
    return os.path.join(tempfile.gettempdir(), f"rowcall-uploads-{os.getuid()}")


async def _until_release(
    part: Part, source: AsyncIterator[bytes], checked: Callable[[bytes], None] | None
) -> AsyncIterator[bytes]:
    """Yield the chunks of `source`. When the release is requested, raise `Problem` 409: a wait for the client ends at
    once then; writing is completed first. checked: called with each chunk, or None."""
    while True:
        piece = await part.next_of(source)
        if piece is None:
            return
        if checked is not None:
            checked(piece)
        yield piece


def _lock_upload(folder: Path, id: str, unfinished: UnfinishedUploads) -> Part | bool | None:
    """Lock an upload, and return it. Return False if another request holds it, None if there is none. unfinished: as
    for `Part`. Raises `OSError`.
    """
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
    stored_state = _read_stored_state(folder, id) if os.fstat(file.fileno()).st_nlink else None
    if stored_state is None:
        file.close()
        return None
    return Part(folder, id, file, stored_state, unfinished)


def _read_stored_state(folder: Path, id: str) -> StoredState | None:
    """Return the state of an upload; None if there is none, or its content is invalid. Raises `OSError` if it cannot be
    read."""
    if not is_id(id):
        return None
    try:
        return parse_stored_state((folder / f"{id}{_ABOUT}").read_bytes())
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write_stored_state(folder: Path, id: str, stored_state: StoredState) -> None:
    """Write the state of an upload atomically. Raises `OSError`."""
    path = folder / f"{id}{_ABOUT}"
    new = path.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(stored_state.format_json())
    os.replace(new, path)
