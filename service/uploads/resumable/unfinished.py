"""How many files may wait for their last piece, and how large they may be together: of one client, and of all.

For each there is an empty file whose name says whose it is and how many bytes it may come to. Their folder is the
truth for all processes, and for all hosts that share it: whoever adds one holds the folder's lock while it counts.
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
    client: str
    size: int
    id: str

    @property
    def name(self) -> str:
        return f"{self.client}-{self.size}-{self.id}"


class Unfinished:
    """Everything in here blocks for as long as the disk does, and raises `OSError`."""

    def __init__(self, folder: Path, options: Resumable) -> None:
        self._folder = folder / FOLDER
        self._options = options

    def begin(self, id: str, client: str, size: int) -> None:
        """client: letters and digits. size: bytes that it may come to. Raises `Problem` where there is no room."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with self._locked():
            values = list(self._entries())
            self._check(
                sum(item.client == client for item in values), len(values), size + sum(item.size for item in values)
            )
            (self._folder / _Entry(client, size, id).name).touch(mode=0o600)

    def _check(self, of_client: int, count: int, size: int) -> None:
        options = self._options
        if _reached(of_client, options.most_of_client):
            raise Problem(
                429,
                f"{of_client} uploads of yours are unfinished, and no more can be: go on with one, or end it by DELETE",
                headers=(("retry-after", "60"),),
            )
        if _reached(count, options.most_unfinished):
            raise _no_room(f"{count} uploads are unfinished")
        if options.most_bytes is not None and size > options.most_bytes:
            raise _no_room(f"unfinished uploads would come to {size} bytes")

    def resize(self, id: str, size: int) -> None:
        """Its size has become known."""
        for item in self._entries():
            if item.id == id:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self._folder / item.name, self._folder / item._replace(size=size).name)

    def end(self, id: str) -> None:
        """It is finished, or given up."""
        self.tidy(lambda item: item != id)

    def tidy(self, waits: Callable[[str], bool]) -> None:
        """Forgets those that do not wait any more."""
        for item in self._entries():
            if not waits(item.id):
                (self._folder / item.name).unlink(missing_ok=True)

    def _entries(self) -> Iterator[_Entry]:
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
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _reached(count: int, most: int | None) -> bool:
    return most is not None and count >= most


def _no_room(why: str) -> Problem:
    detail = f"{why}, and there is no room for more until some are finished or expire"
    return Problem(507, detail, title="Insufficient Storage", headers=(("retry-after", "60"),))
