"""Look-up in a list of breached passwords, in the format of haveibeenpwned.com: lines `HASH:COUNT` with the SHA-1 of a
password in hex, sorted by hash.

The list has some 40 GB, so it is searched where it is: a binary search reads about 30 times a few bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

Read = Callable[[int, int], bytes]
"""Returns bytes of the file: offset and size → bytes, fewer at the end of the file."""

LINE = 64
"""Most bytes of a line, with its end."""
WHOLE = 1_000_000
"""Bytes of a list up to which `mistake` examines all lines."""
SAMPLES = 1000
"""Lines that it examines of a longer list."""
_LINE = re.compile(rb"([0-9A-Fa-f]{40})(?::[0-9]{1,12})?\r?")


class BreachedListError(Exception):
    """The file is no such list; the text says where and why."""


def digest(password: str) -> bytes:
    """Return the hash of a password as the list has it."""
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()


def contains(read: Read, size: int, wanted: bytes) -> bool:
    """Return whether the list has a hash. Raises `BreachedListError`.

    read: of the file. size: bytes of the file. wanted: as from `digest`.
    """
    low, high = 0, size
    while low < high:  # the line of the hash, if there is one, begins at `low` or later, and before `high`
        middle = (low + high) // 2
        start, found = _line_from(read, size, middle)
        if found == wanted and start < high:
            return True
        if start < high and found < wanted:
            low = start + 1
        else:
            high = middle
    return False


def mistake(read: Read, size: int) -> str | None:
    """Return what is wrong with the file as a list, or None. All lines are examined, or a sample of a long list."""
    if size == 0:
        return "it is empty"
    before = b""
    try:
        for start, found in _lines(read, size):
            if found < before:
                return f"it is not sorted by hash: the line at byte {start} is lower than one before it"
            before = found
    except BreachedListError as error:
        return str(error)
    return None


def _lines(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield positions and hashes of lines, in the order of the file: of all lines if it is small, else of samples."""
    if size <= WHOLE:
        start = 0
        for line in read(0, size).removesuffix(b"\n").split(b"\n"):
            yield start, _hash_of(line, start)
            start += len(line) + 1
        return
    places = (size * number // SAMPLES for number in range(SAMPLES))
    lines = (_line_from(read, size, place) for place in (*places, size - LINE))
    yield from (line for line in lines if line[1])


def _line_from(read: Read, size: int, place: int) -> tuple[int, bytes]:
    """Return begin and hash of the first line that begins at a place or later; without one, the size and no hash."""
    before = max(0, place - 1)
    chunk = read(before, 2 * LINE)
    start = before
    if place > 0:
        end = chunk.find(b"\n")
        if end < 0 and before + len(chunk) < size:
            raise BreachedListError(f"the line at byte {before} is too long: lines `HASH:COUNT` are expected")
        start = size if end < 0 else before + end + 1
    if start >= size:
        return size, b""
    return start, _hash_of(chunk[start - before :].partition(b"\n")[0][:LINE], start)


def _hash_of(line: bytes, start: int) -> bytes:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BreachedListError(f"the line at byte {start} is not `HASH:COUNT` with a SHA-1 hash of 40 hex digits")
    return match[1].upper()
