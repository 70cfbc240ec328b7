"""Spooled files: temporary storage if several handlers need a file, or if it cannot be read from front to back.

The files have no name in any folder, so nothing remains of them however the process ends.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections.abc import AsyncIterator
from typing import BinaryIO, TypeVar

from rowcall.core.errors.problems import Problem
from rowcall.service.uploads.incoming_files import File, read_back

Result = TypeVar("Result")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

GATHERED_BYTES = 1_048_576
"""Bytes that are written at once: each switch to the writing thread costs as much as a few kilobytes."""

MOST_PIECES = 1024
"""Maximum number of chunks that one system call takes (`IOV_MAX`)."""


class SpooledFile:
    """A spooled file, from its storage to the end of the `with` block. stored: its content, open and without a name.
    size: in bytes.
    """

    def __init__(self, name: str, content_type: str, stored: BinaryIO, size: int) -> None:
        self.name = name
        self.content_type = content_type
        self.stored = stored
        self.size = size

    def file(self) -> File:
        """Return the file, to be read from its beginning."""
        return File(self.name, self.content_type, read_back(self.stored))

    def __enter__(self) -> SpooledFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stored.close()


async def set_aside(file: File) -> SpooledFile:
    """Read the whole file and spool it. Use the result as a context manager, which removes the file. Raises `Problem`
    for errors of the disk, and what reading the file raises."""
    stored: BinaryIO | None = None
    try:
        stored = tempfile.TemporaryFile(buffering=0, prefix="rowcall-")  # noqa: SIM115 (the result closes it)
        await write_all(file, stored)
    except BaseException as error:
        if stored is not None:
            stored.close()
        if isinstance(error, OSError):
            raise not_stored(error, "the file cannot be stored temporarily on the disk of the host") from None
        raise
    return SpooledFile(file.name, file.content_type, stored, file.size)


def not_stored(error: OSError, what: str) -> Problem:
    """Return the problem for an error of the disk: 507 if it is full, else 500. what: description of the failure."""
    full = error.errno in _FULL
    title = "Insufficient Storage" if full else None
    return Problem(507 if full else 500, f"{what}: {error.strerror}", title=title)


async def write_all(file: File, target: BinaryIO) -> None:
    """Write the file to an unbuffered target. Raises `OSError`, and what reading the file raises."""
    await write_pieces(file.pieces(), target)


async def write_pieces(pieces: AsyncIterator[bytes], target: BinaryIO) -> None:
    """Write the chunks to an unbuffered target, in a thread, so that a slow disk does not delay other requests. Raises
    `OSError`, and what `pieces` raises.

    Chunks that arrived before an error are written too.
    """
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
                    await wait_for_thread(writing)
                writing = loop.run_in_executor(None, _write, target, gathered)
                gathered, waiting = [], 0
    finally:
        if writing is not None:
            await wait_for_thread(writing)
        if gathered:
            await wait_for_thread(loop.run_in_executor(None, _write, target, gathered))


async def wait_for_thread(work: asyncio.Future[Result]) -> Result:
    """Return the result of a thread, or raise its error. If the caller is cancelled meanwhile, wait for the thread to
    end nevertheless, and then raise `CancelledError`.

    The thread continues in any case, and the file that it works on must not be reused before.
    """
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # retrieved, as no other code does
        raise


def _write(target: BinaryIO, pieces: list[bytes]) -> None:
    """Write all chunks with as few system calls as possible: after each call, a thread has to wait for the interpreter
    lock.
    """
    number = target.fileno()
    remaining = [memoryview(piece) for piece in pieces]
    while remaining:
        written = os.writev(number, remaining[:MOST_PIECES])
        complete = 0
        while complete < len(remaining) and written >= len(remaining[complete]):
            written -= len(remaining[complete])
            complete += 1
        remaining = remaining[complete:]
        if written:
            remaining[0] = remaining[0][written:]
