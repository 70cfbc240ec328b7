"""The numbers of all workers, in files of the host's store that are mapped into memory.

Each worker has a segment of its own, so nobody waits for anybody. A worker that dies leaves its segment behind, and the
next one goes on in it: what has been counted never becomes less. Whose segment it is says a lock, which the system
takes back from the dead.
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
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.request_context import ClientDisconnectedError

FOLDER = "metrics"
_HEADER = 4096
_LABEL = 512
_SEPARATOR = "\0"
_ROW = _LABEL + 8 * len(columns)
_NUMBERS = struct.Struct(f"={len(columns)}d")
_COUNT = struct.Struct("=q")
_LENGTH = struct.Struct("=h")
_IN_FLIGHT = columns.index("in_flight")
_MOST_WORKERS = 1024

Label = tuple[str, ...]
"""A kind, and what tells one of that kind from the others: `("endpoint", "GET", "/api/items", "public.items")`."""

OTHERS = "(others)"
"""Takes the place of each part of a label that there is no room for."""


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one label, over all workers there have been, by column."""

    label: Label
    numbers: dict[str, float]


class Segment:
    """That of this process, from construction until `close`."""

    def __init__(self, folder: Path, most: int) -> None:
        """most: labels of one kind that are told apart."""
        self._most = most
        self._file = _own_file(folder / FOLDER)
        # Pages that nothing is written to take no memory.
        os.ftruncate(self._file, _HEADER + _ROW * most * _KINDS)
        self._memory = mmap.mmap(self._file, 0)
        self._meters: dict[Label, Meter] = {}
        self._kinds: dict[str, int] = {}
        self._count = 0
        for number in range(_COUNT.unpack_from(self._memory, 0)[0]):
            self._adopt(number)

    def meter(self, *label: str) -> Meter:
        """The numbers of one label; where there are too many of its kind, those of all others together."""
        text = _cut(_SEPARATOR.join(label))
        meter = self._meters.get(_parts(text))
        if meter is None and self._kinds.get(label[0], 0) >= self._most - 1:
            text = _SEPARATOR.join((label[0], *(OTHERS for _ in label[1:]))).encode()
            meter = self._meters.get(_parts(text))
        return meter or self._add(text)

    def _add(self, text: bytes) -> Meter:
        start = _HEADER + self._count * _ROW
        self._memory[start : start + _LABEL] = (_LENGTH.pack(len(text)) + text).ljust(_LABEL, b"\0")
        meter = self._adopt(self._count)
        # Whoever reads looks at this first.
        _COUNT.pack_into(self._memory, 0, self._count)
        return meter

    def _adopt(self, number: int) -> Meter:
        start = _HEADER + number * _ROW + _LABEL
        label = _label(self._memory, number)
        # What was in flight in a worker that has died is so no longer.
        struct.pack_into("=d", self._memory, start + 8 * _IN_FLIGHT, 0.0)
        meter = Meter(memoryview(self._memory)[start : start + 8 * len(columns)], HeadProtocol, ClientDisconnectedError)
        self._meters[label] = meter
        self._kinds[label[0]] = self._kinds.get(label[0], 0) + 1
        self._count = max(self._count, number + 1)
        return meter

    def close(self) -> None:
        """The memory stays mapped as long as something counts into it."""
        os.close(self._file)


_KINDS = 3
"""Of labels; each has as many rows as there may be."""


def _cut(text: str) -> bytes:
    """As many whole characters as there is room for."""
    return text.encode()[: _LABEL - _LENGTH.size].decode(errors="ignore").encode()


def _label(memory: Any, number: int) -> Label:
    start = _HEADER + number * _ROW
    start += _LENGTH.size
    (length,) = _LENGTH.unpack_from(memory, start - _LENGTH.size)
    return _parts(bytes(memory[start : start + length]))


def _parts(text: bytes) -> Label:
    return tuple(text.decode(errors="replace").split(_SEPARATOR))


def _own_file(folder: Path) -> int:
    """The first that nobody holds."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(_MOST_WORKERS):
        descriptor = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock(descriptor):
            return descriptor
        os.close(descriptor)
    raise RuntimeError(f"{_MOST_WORKERS} processes count requests already")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read(folder: Path) -> list[Row]:
    """What all workers have counted, one row for each label."""
    found: dict[Label, list[float]] = {}
    for label, numbers in _rows(folder / FOLDER):
        sums = found.setdefault(label, [0.0] * len(columns))
        for place, number in enumerate(numbers):
            sums[place] += number
    return [Row(label, dict(zip(columns, sums, strict=True))) for label, sums in sorted(found.items())]


def _rows(folder: Path) -> Iterator[tuple[Label, tuple[float, ...]]]:
    for path in folder.glob("*"):
        if path.stat().st_size < _HEADER:
            continue  # it is just being made
        with (
            path.open("rb") as file,
            contextlib.closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as memory,
        ):
            # As long as nobody holds it, nothing is in flight.
            alive = not _lock(file.fileno())
            for number in range(_COUNT.unpack_from(memory, 0)[0]):
                start = _HEADER + number * _ROW + _LABEL
                numbers = cast("tuple[float, ...]", _NUMBERS.unpack_from(memory, start))
                if not alive:
                    numbers = (*numbers[:_IN_FLIGHT], 0.0, *numbers[_IN_FLIGHT + 1 :])
                yield _label(memory, number), numbers
