"""Look-up in a list of breached passwords, in the format of haveibeenpwned.com: lines `HASH:COUNT` with the SHA-1 of a
password in hex, sorted by hash.

The list has some 40 GB, so it is not loaded: a binary search in the file reads a few bytes about 30 times.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

Read = Callable[[int, int], bytes]
"""Function that returns bytes of the file. Arguments: offset and size. At the end of the file, the result is
shorter."""

LINE = 64
"""Bytes of the longest valid line, with its end."""
WHOLE = 1_000_000
"""Size in bytes up to which `file_fault` examines all lines of a list."""
SAMPLES = 1000
"""Number of lines that `file_fault` examines of a longer list."""
_LINE = re.compile(rb"([0-9A-Fa-f]{40})(?::[0-9]{1,12})?\r?")


class BreachedListError(Exception):
    """The file is not a valid list of breached passwords; the text says where and why."""


def digest(password: str) -> bytes:
    """Return the SHA-1 of a password as it is written in the list: 40 hex digits in upper case."""
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()


def contains(read: Read, size: int, requested: bytes) -> bool:
    """Return whether the list contains a hash, by binary search. Raises `BreachedListError` for a line that is not
    valid.

    read: function from offset and number of bytes to these bytes of the file. size: of the file in bytes. requested:
    hash from `digest`.
    """
    low, high = 0, size
    while low < high:  # the line of the hash, if there is one, begins at `low` or later, and before `high`
        middle = (low + high) // 2
        start, listed = _line_from(read, size, middle)
        if listed == requested and start < high:
            return True
        if start < high and listed < requested:
            low = start + 1
        else:
            high = middle
    return False


def file_fault(read: Read, size: int) -> str | None:
    """Return why the file is not a valid list, as the end of a sentence such as `it is empty`; None: no fault was
    found.

    If the file has more than `WHOLE` bytes, only `SAMPLES` of its lines and the last one are examined.
    """
    if size == 0:
        return "it is empty"
    before = b""
    try:
        for start, listed in _lines(read, size):
            if listed < before:
                return f"it is not sorted by hash: the line at byte {start} is lower than one before it"
            before = listed
    except BreachedListError as error:
        return str(error)
    return None


def _lines(read: Read, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and hash of lines, in the order of the file: of all lines if it has at most `WHOLE` bytes, else of
    `SAMPLES` lines and the last one. Raises `BreachedListError` for a line that is not valid."""
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
    """Return offset and hash of the first line that begins at `place` or later; (size, b"") if no line does. Raises
    `BreachedListError` for a line that is not valid."""
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
