"""Files set aside: where more than one handler wants a file, or where it cannot be read from front to back.

They have no name in any folder, so nothing of them stays whatever happens to the process.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, TypeVar

from rowcall.core.errors.problems import Problem
from rowcall.service.uploads.incoming import File, read_back

Given = TypeVar("Given")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

GATHERED_BYTES = 1_048_576
"""Written at once: each turn to the thread that writes costs as much as a few kilobytes."""

MOST_PIECES = 1024
"""That one call of the system takes (`IOV_MAX`)."""


class Stored:
    """One file that has been set aside."""

    def __init__(self, name: str, content_type: str, stored: BinaryIO, size: int) -> None:
        self.name = name
        self.content_type = content_type
        self.stored = stored
        self.size = size

    def file(self) -> File:
        return File(self.name, self.content_type, read_back(self.stored))

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self.stored.close()


async def set_aside(file: File) -> Stored:
    """Reads the whole file. What is made of it goes with its context."""
    stored: BinaryIO | None = None
    try:
        stored = tempfile.TemporaryFile(buffering=0, prefix="rowcall-")  # noqa: SIM115 (the result closes it)
        await write_all(file, stored)
    except BaseException as error:
        if stored is not None:
            stored.close()
        if isinstance(error, OSError):
            raise not_stored(error, "the file cannot wait on the disk of the host") from None
        raise
    return Stored(file.name, file.content_type, stored, file.size)


def not_stored(error: OSError, what: str) -> Problem:
    """507 where there is no room, else 500. what: it is that fails."""
    full = error.errno in _FULL
    title = "Insufficient Storage" if full else None
    return Problem(507 if full else 500, f"{what}: {error.strerror}", title=title)


async def write_all(file: File, target: BinaryIO) -> None:
    """The file to an unbuffered target."""
    await write_pieces(file.pieces(), target)


async def write_pieces(pieces: AsyncIterator[bytes], target: BinaryIO) -> None:
    """To an unbuffered target, in a thread: a slow disk holds up nobody else. What has come before an error is
    written too."""
    loop = asyncio.get_running_loop()
    writing: asyncio.Future[None] | None = None
    gathered: list[bytes] = []
    waiting = 0
    try:
        async for piece in pieces:
            gathered.append(piece)
            waiting += len(piece)
            if waiting >= GATHERED_BYTES:
                if writing is not None:
                    await ended(writing)
                writing = loop.run_in_executor(None, _write, target, gathered)
                gathered, waiting = [], 0
    finally:
        if writing is not None:
            await ended(writing)
        if gathered:
            await ended(loop.run_in_executor(None, _write, target, gathered))


async def ended(work: asyncio.Future[Given]) -> Given:
    """What a thread gives. Whoever is cancelled meanwhile waits for it: it goes on in any case, and the file that it
    works on must not be somebody else's by then."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # nobody else asks for it
        raise


def _write(target: BinaryIO, pieces: list[bytes]) -> None:
    """All pieces by one call where it takes them: behind each call a thread has to wait for the interpreter's lock."""
    number = target.fileno()
    left = [memoryview(piece) for piece in pieces]
    while left:
        written = os.writev(number, left[:MOST_PIECES])
        done = 0
        while done < len(left) and written >= len(left[done]):
            written -= len(left[done])
            done += 1
        left = left[done:]
        if written:
            left[0] = left[0][written:]
