"""`Log:ToFile`: a file for each day, and a numbered one when it becomes too large (logging-3).

`logs/log.txt` becomes `logs/log20250131.txt`, then `logs/log20250131_001.txt`. Only the supervisor writes, so lines of
workers are not interleaved and no file is rotated twice. A second rowcall with the same path takes the next number.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from rowcall.service.log.entry import Entry
from rowcall.service.log.sinks import Format


class RotatingFile:
    """The sink that writes to files, one or more for each day.

    limit: bytes from which a file is full; None: no limit. roll: whether a full file is followed by the next one;
    otherwise, further entries are dropped until the next day. keep: number of files that are kept, older ones are
    removed; None: all.
    """

    name = "file"

    def __init__(self, path: Path, form: Format, limit: int | None, keep: int | None, *, roll: bool) -> None:
        """Open the file of today that has the highest number, to append to it; a new one if there is none, it is full
        and files roll, or another process writes it. path: without day and number. form: returns the line of an entry.
        Raises `OSError`."""
        self._path = path
        self._form = form
        self._limit = limit
        self._keep = keep
        self._roll = roll
        self._pattern = re.compile(rf"{re.escape(path.stem)}(\d{{8}})(?:_(\d{{3,}}))?{re.escape(path.suffix)}")
        self._descriptor = -1
        self._size = 0
        self._day = ""
        self._number = 0
        self._name = path
        self._open(_today(time.time()))

    def write(self, entries: Sequence[Entry]) -> None:
        """Write entries, each to the file of its day; an entry of an earlier day goes to the open file. If the open
        file is full and files do not roll, entries are dropped. If the file was moved or deleted, a new one is opened.
        Raises `OSError`."""
        if self._is_gone():
            self._open(self._day)
        pending: list[bytes] = []
        size = 0
        for entry in entries:
            day = max(self._day, _today(entry.time))
            if day > self._day or self._full(size):
                self._append(pending)
                pending, size = [], 0
                if not self._make_room(day):
                    continue
            line = self._form(entry).encode(errors="replace")
            pending.append(line)
            size += len(line)
        self._append(pending)

    def give_up(self) -> None:
        """Do nothing: writing to a file does not wait."""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _full(self, pending: int) -> bool:
        """Return whether the open file is full. pending: bytes that are still to be written to it."""
        return self._limit is not None and self._size + pending >= self._limit

    def _is_gone(self) -> bool:
        """Return whether no file is open, or the open file is not at its path any more: it was deleted or moved, and
        another file may be there (`create` of logrotate). Raises `OSError`."""
        if self._descriptor < 0:
            return True
        try:
            return not os.path.samestat(os.stat(self._name), os.fstat(self._descriptor))
        except FileNotFoundError:
            return True

    def _make_room(self, day: str) -> bool:
        """Open the file of a new day, or, if files roll, the next file because the present one is full. Return whether
        the open file has room. day: of the next entry, as in `_today`. Raises `OSError`.
        """
        if day > self._day:
            self._open(day)
        elif self._roll:
            self._open(day, self._number + 1)
        return not self._full(0)

    def _append(self, lines: list[bytes]) -> None:
        """Write the lines to the open file. Raises `OSError`."""
        data = memoryview(b"".join(lines))
        while data:
            written = os.write(self._descriptor, data)
            self._size += written
            data = data[written:]

    def _open(self, day: str, number: int | None = None) -> None:
        """Open the last file of the day (number None), or the one with `number`. If another process writes it, or it is
        full and files roll, open the next one. Then remove the oldest files. day: as in `_today`. Raises `OSError`."""
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if number is None:
            number = max((n for d, n, _ in self._list_files() if d == day), default=0)
        while not self._open_numbered(day, number):
            number += 1
        self._remove_oldest()

    def _open_numbered(self, day: str, number: int) -> bool:
        """Open a file of the day. Return False if another process writes it, or it is full and files roll. Raises
        `OSError`, also if its file system has no locks.
        """
        suffix = f"_{number:03}" if number else ""
        name = self._path.with_name(f"{self._path.stem}{day}{suffix}{self._path.suffix}")
        descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._size = os.fstat(descriptor).st_size
        if self._full(0) and self._roll:
            os.close(descriptor)
            return False
        self._descriptor, self._name, self._day, self._number = descriptor, name, day, number
        return True

    def _list_files(self) -> list[tuple[str, int, Path]]:
        """Return day, number and path of every file of this log, oldest first."""
        matches = ((self._pattern.fullmatch(path.name), path) for path in self._path.parent.iterdir())
        return sorted((match[1], int(match[2] or 0), path) for match, path in matches if match)

    def _remove_oldest(self) -> None:
        """Remove the oldest files beyond the configured number; nothing if that is None. The newest file is never
        removed."""
        if self._keep is not None:
            for _, _, path in self._list_files()[: -max(1, self._keep)]:
                path.unlink(missing_ok=True)


def _today(moment: float) -> str:
    """Return the local day of a time (seconds since 1970), as `20250131`."""
    return time.strftime("%Y%m%d", time.localtime(moment))
