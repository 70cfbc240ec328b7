"""Counters of all workers, in files of the shared state that are mapped into memory.

Each worker has its own segment, so no worker waits for another. When a worker exits, its segment remains, and the next
worker continues in it: counters never decrease. A lock marks the segment as used; the system releases it when the
process exits.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rowcall.ext.driver.meter import Meter, columns
from rowcall.service.request_context.request_context import ClientDisconnectedError

FOLDER = "metrics"
# A file: the number of rows, and from byte 4096 on the rows; a row: a label, and a double for each column.
_HEADER = 4096
_LABEL = 512
_SEPARATOR = "\0"
_ROW = _LABEL + 8 * len(columns)
_NUMBERS = struct.Struct(f"={len(columns)}d")
_COUNT = struct.Struct("=q")
_LENGTH = struct.Struct("=h")
_IN_FLIGHT = columns.index("in_flight")
_MOST_WORKERS = 1024
"""Most segments."""

Label = tuple[str, ...]
"""A kind, and the values that distinguish labels of this kind: `("endpoint", "GET", "/api/items", "public.items")`."""

OTHERS = "(others)"
"""Replaces each part of a label for which there is no room."""


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one label by column, summed over all workers so far."""

    label: Label
    numbers: dict[str, float]


class Segment:
    """The file with the counters of this process, open and locked from construction until `close`."""

    def __init__(self, folder: Path, most: int) -> None:
        """Open the first segment that no process uses, or create one. most: maximum number of labels of one kind; the
        last of them counts all further labels together. Raises `RuntimeError` if all segments are in use, and `OSError`
        if the file cannot be created."""
        self._most = most
        self._file = _open_free_segment(folder / FOLDER)
        # Pages that are never written take no memory.
        os.ftruncate(self._file, _HEADER + _ROW * most * _KINDS)
        self._memory = mmap.mmap(self._file, 0)
        self._meters: dict[Label, Meter] = {}
        self._kinds: dict[str, int] = {}
        self._count = 0
        for number in range(_COUNT.unpack_from(self._memory, 0)[0]):
            self._adopt(number)

    def meter(self, *label: str) -> Meter:
        """Return the meter of a label. If its kind has too many labels already, return the meter that counts all
        further labels of this kind together. label: the kind, and the values that distinguish labels of this kind."""
        text = _encode_label(label)
        meter = self._meters.get(_parts(text))
        if meter is None and self._kinds.get(label[0], 0) >= self._most - 1:
            text = _SEPARATOR.join((label[0], *(OTHERS for _ in label[1:]))).encode()
            meter = self._meters.get(_parts(text))
        return meter or self._add(text)

    def _add(self, text: bytes) -> Meter:
        start = _HEADER + self._count * _ROW
        self._memory[start : start + _LABEL] = (_LENGTH.pack(len(text)) + text).ljust(_LABEL, b"\0")
        meter = self._adopt(self._count)
        # Written last, because readers read the count first.
        _COUNT.pack_into(self._memory, 0, self._count)
        return meter

    def _adopt(self, number: int) -> Meter:
        """Create and register the meter of a row that a previous worker has left, or that was just written. number: of
        the row, from 0. Its number of requests in flight is set to 0."""
        start = _HEADER + number * _ROW + _LABEL
        label = _label(self._memory, number)
        # Requests in flight ended when the previous worker exited.
        struct.pack_into("=d", self._memory, start + 8 * _IN_FLIGHT, 0.0)
        meter = Meter(memoryview(self._memory)[start : start + 8 * len(columns)], ClientDisconnectedError)
        self._meters[label] = meter
        self._kinds[label[0]] = self._kinds.get(label[0], 0) + 1
        self._count = max(self._count, number + 1)
        return meter

    def close(self) -> None:
        """Close the file. The memory stays mapped while meters use it."""
        os.close(self._file)


_KINDS = 4
"""Kinds of labels. Each has as many rows as its limit."""


def _encode_label(label: Label) -> bytes:
    """Encode a label. If a row has no room for it, its longest parts lose whole characters at their ends."""
    parts = [part.encode() for part in label]
    while (excess := len(_SEPARATOR.encode().join(parts)) - (_LABEL - _LENGTH.size)) > 0:
        longest = max(range(len(parts)), key=lambda index: len(parts[index]))
        parts[longest] = parts[longest][: max(len(parts[longest]) // 2, len(parts[longest]) - excess)]
    return _SEPARATOR.join(part.decode(errors="ignore") for part in parts).encode()


def _label(memory: Any, number: int) -> Label:
    start = _HEADER + number * _ROW
    start += _LENGTH.size
    (length,) = _LENGTH.unpack_from(memory, start - _LENGTH.size)
    return _parts(bytes(memory[start : start + length]))


def _parts(text: bytes) -> Label:
    return tuple(text.decode(errors="replace").split(_SEPARATOR))


def _open_free_segment(folder: Path) -> int:
    """Open and lock the first segment that no process uses, and return its descriptor. Raises `RuntimeError` if all are
    in use.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(_MOST_WORKERS):
        descriptor = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock(descriptor):
            return descriptor
        os.close(descriptor)
    raise RuntimeError(f"{_MOST_WORKERS} processes count requests already")


def _lock(descriptor: int) -> bool:
    """Lock a file without waiting. Return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read(folder: Path) -> list[Row]:
    """Return what all workers have counted, one row for each label. folder: the shared state of the host."""
    by_label: dict[Label, list[float]] = {}
    for label, numbers in _rows(folder / FOLDER):
        sums = by_label.setdefault(label, [0.0] * len(columns))
        for place, number in enumerate(numbers):
            sums[place] += number
    return [Row(label, dict(zip(columns, sums, strict=True))) for label, sums in sorted(by_label.items())]


def _rows(folder: Path) -> Iterator[tuple[Label, tuple[float, ...]]]:
    """Yield label and numbers of each row of all segments."""
    for path in folder.glob("*"):
        if path.stat().st_size < _HEADER:
            continue  # being created
        with (
            path.open("rb") as file,
            contextlib.closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as memory,
        ):
            # Without a lock, its worker has exited, so nothing is in flight.
            alive = not _lock(file.fileno())
            for number in range(_COUNT.unpack_from(memory, 0)[0]):
                start = _HEADER + number * _ROW + _LABEL
                numbers = cast("tuple[float, ...]", _NUMBERS.unpack_from(memory, start))
                if not alive:
                    numbers = (*numbers[:_IN_FLIGHT], 0.0, *numbers[_IN_FLIGHT + 1 :])
                yield _label(memory, number), numbers
