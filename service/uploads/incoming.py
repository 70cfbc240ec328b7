"""Files of a request as handlers see them: read once, from the beginning, as fast as the handler takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

READ_BYTES = 262_144


class File:
    """`await file.sample(n)` looks at the beginning; iterating reads everything, sample included.

    size: bytes that have been read so far; all of them once the file is through.
    """

    def __init__(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        self.name = name
        self.content_type = content_type
        self.size = 0
        self._pieces = pieces
        self._ahead: list[bytes] = []
        """Read by `sample`, and not yet given to anybody."""

    async def sample(self, size: int) -> bytes:
        """The first `size` bytes, fewer only of a file that has no more."""
        result = sum(map(len, self._ahead))
        while result < size:
            piece = await self._next()
            if piece is None:
                break
            self._ahead.append(piece)
            result += len(piece)
        if len(self._ahead) > 1:
            self._ahead = [b"".join(self._ahead)]
        return self._ahead[0][:size] if self._ahead else b""

    async def _next(self) -> bytes | None:
        async for piece in self._pieces:
            self.size += len(piece)
            return piece
        return None

    async def pieces(self) -> AsyncIterator[bytes]:
        ahead, self._ahead = self._ahead, []
        for piece in ahead:
            yield piece
        while (following := await self._next()) is not None:
            yield following

    async def in_pieces_of(self, size: int) -> AsyncIterator[bytes]:
        """Everything, in pieces of this size, the last one smaller."""
        held: list[bytes] = []
        room = size
        async for piece in self.pieces():
            rest = piece
            while len(rest) >= room:
                yield b"".join((*held, rest[:room]))
                held, rest, room = [], rest[room:], size
            if rest:
                held.append(rest)
                room -= len(rest)
        if held:
            yield b"".join(held)

    async def drain(self) -> None:
        """Reads what nobody wants, so that the size is known and the next file can follow."""
        async for _ in self.pieces():
            pass


async def read_back(stored: BinaryIO) -> AsyncIterator[bytes]:
    """A file that has been set aside, from its beginning."""
    loop = asyncio.get_running_loop()
    stored.seek(0)
    while piece := await loop.run_in_executor(None, stored.read, READ_BYTES):
        yield piece
