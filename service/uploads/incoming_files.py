"""Files of a request as handlers see them: read once, from the beginning, at the pace of the handler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

READ_BYTES = 262_144
"""Bytes of a chunk that is read from a spooled file."""


class File:
    """A file that is being received. `await file.sample(n)` returns its beginning; `file.pieces()` yields everything,
    including the sample.

    size: bytes that have been read so far, and the size of the file at its end.
    """

    def __init__(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        self.name = name
        self.content_type = content_type
        self.size = 0
        self._pieces = pieces
        self._ahead: list[bytes] = []
        """Chunks read by `sample` that have not been yielded yet."""

    async def sample(self, size: int) -> bytes:
        """Return the first `size` bytes, or fewer if the file has fewer. Call it before the file is read in another
        way: afterwards, it returns the next bytes."""
        available = sum(map(len, self._ahead))
        while available < size:
            piece = await self._next()
            if piece is None:
                break
            self._ahead.append(piece)
            available += len(piece)
        if len(self._ahead) > 1:
            self._ahead = [b"".join(self._ahead)]
        return self._ahead[0][:size] if self._ahead else b""

    async def _next(self) -> bytes | None:
        """Return the next chunk and count it in `size`; None: the file has ended."""
        async for piece in self._pieces:
            self.size += len(piece)
            return piece
        return None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield everything, in chunks as they arrive, beginning with the sample."""
        ahead, self._ahead = self._ahead, []
        for piece in ahead:
            yield piece
        while (following := await self._next()) is not None:
            yield following

    async def in_pieces_of(self, size: int) -> AsyncIterator[bytes]:
        """Yield everything, in chunks of this size; the last one may be smaller."""
        pending: list[bytes] = []
        room = size
        async for piece in self.pieces():
            rest = piece
            while len(rest) >= room:
                yield b"".join((*pending, rest[:room]))
                pending, rest, room = [], rest[room:], size
            if rest:
                pending.append(rest)
                room -= len(rest)
        if pending:
            yield b"".join(pending)

    async def drain(self) -> None:
        """Read and discard the unread part of the file, so that the size is known and the next file can follow."""
        async for _ in self.pieces():
            pass


async def read_back(stored: BinaryIO) -> AsyncIterator[bytes]:
    """Yield the content of a spooled file from its beginning."""
    loop = asyncio.get_running_loop()
    stored.seek(0)
    while piece := await loop.run_in_executor(None, stored.read, READ_BYTES):
        yield piece
