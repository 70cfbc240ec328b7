"""Limits of unfinished uploads: their number and total size, for one client and for all.

For each upload there is an empty file whose name states its client and the bytes that it may take. Their folder is
authoritative for all processes, and for all hosts that share it: a process that adds one holds the lock of the folder
while it counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.options import Resumable

FOLDER = "unfinished"


class _Entry(NamedTuple):
    """An unfinished upload, recorded as the name of an empty file. size: maximum size in bytes."""

    client: str
    size: int
    id: str

    @property
    def name(self) -> str:
        return f"{self.client}-{self.size}-{self.id}"


class UnfinishedUploads:
    """The list of the unfinished uploads of a folder, from which limits are checked; the uploads themselves are stored
    elsewhere. All methods block on the disk, and raise `OSError`.
    """

    def __init__(self, folder: Path, options: Resumable) -> None:
        self._folder = folder / FOLDER
        self._options = options

    def begin(self, id: str, client: str, size: int) -> None:
        """Add an upload.

        client: letters and digits. size: maximum size in bytes. Raises `Problem` if a limit is reached.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with self._hold_lock():
            entries = list(self._entries())
            self._check(
                sum(item.client == client for item in entries), len(entries), size + sum(item.size for item in entries)
            )
            (self._folder / _Entry(client, size, id).name).touch(mode=0o600)

    def _check(self, of_client: int, count: int, size: int) -> None:
        """Raise `Problem` if one more upload exceeds a limit: 429 for those of one client, 507 for those of all.
        of_client: number of uploads of the client. count: number of all uploads. size: maximum size of all in bytes,
        the new one included.
        """
        options = self._options
        if _is_limit_reached(of_client, options.most_of_client):
            raise Problem(
                429,
                f"you have {of_client} unfinished uploads, which is the limit: continue one, or end it by DELETE",
                headers=(("retry-after", "60"),),
            )
        if _is_limit_reached(count, options.most_unfinished):
            raise _no_room(f"{count} uploads are unfinished")
        if options.most_bytes is not None and size > options.most_bytes:
            raise _no_room(f"unfinished uploads would come to {size} bytes")

    def resize(self, id: str, size: int) -> None:
        """Set the maximum size of an upload, in bytes, once it is known."""
        for item in self._entries():
            if item.id == id:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self._folder / item.name, self._folder / item._replace(size=size).name)

    def end(self, id: str) -> None:
        """Remove the entry of an upload that is finished or terminated."""
        self.tidy(lambda item: item != id)

    def tidy(self, waits: Callable[[str], bool]) -> None:
        """Remove the entries of uploads that have been completed or removed. waits: return whether the upload with an
        id is still unfinished."""
        for item in self._entries():
            if not waits(item.id):
                (self._folder / item.name).unlink(missing_ok=True)

    def _entries(self) -> Iterator[_Entry]:
        """Yield the unfinished uploads; none if the folder is missing."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return
        for name in names:
            client, _, rest = name.partition("-")
            size, _, id = rest.partition("-")
            if size.isdecimal():
                yield _Entry(client, int(size), id)

    @contextlib.contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Hold the lock of the folder; waits for other processes."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_limit_reached(count: int, most: int | None) -> bool:
    """Return whether a limit is reached. most: None: there is no limit."""
    return most is not None and count >= most


def _no_room(why: str) -> Problem:
    """Return the 507 for an upload for which there is no room. why: the limit that is reached."""
    detail = f"{why}, and there is no room for more until some are finished or expire"
    return Problem(507, detail, headers=(("retry-after", "60"),))
