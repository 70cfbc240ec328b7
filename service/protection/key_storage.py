"""Where the keys of the ring are kept: memory, a folder, or the database (protection-4).

A storage holds texts by name and never drops one. Every host that shares it uses the same keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import math
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import psycopg

from rowcall.service.database.connector import Connector
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


ALONE_WITHIN = 10.0
"""Seconds that somebody waits for another host that is making a key. Then he makes one of his own: two are better than
none."""
_BETWEEN_TRIES = 0.05
_COARSEST = 2_000_000_000
"""Nanoseconds between two times that any file system tells apart."""
_LOCK = 0x726F_7763_616C_6C01
"""Of a database: told apart from the advisory locks of others by being theirs with no likelihood."""


class Storage(Protocol):
    shared: bool
    """Others may add to it."""
    between_looks: float
    """Seconds after which it is worth asking `has_changed` again."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """No other host makes a key meanwhile. Raises nothing: where that cannot be had, it goes on without."""

    async def has_changed(self) -> bool:
        """Since `elements` was called, as far as that can be seen without reading it."""

    async def elements(self) -> list[str]:
        """Every stored text. Raises `psycopg.Error` or `OSError`."""

    async def store(self, name: str, text: str) -> None:
        """Raises `psycopg.Error` or `OSError`."""


class Memory:
    """Lost when the service ends, and every session with it."""

    shared = False
    between_looks = math.inf

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def alone(self) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    async def has_changed(self) -> bool:
        return False

    async def elements(self) -> list[str]:
        return list(self._texts.values())

    async def store(self, name: str, text: str) -> None:
        self._texts[name] = text


_OTHERS_WRITE, _OTHERS_READ = 0o022, 0o055


def _is_ours(state: os.stat_result) -> bool:
    """Nobody but us and root, who can do anything anyway, can have written it."""
    return state.st_uid in (os.geteuid(), 0) and not state.st_mode & _OTHERS_WRITE


class Folder:
    """One file for each key, readable for its owner alone."""

    shared = True
    between_looks = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: int | None = None
        self._reported: set[str] = set()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        file = await self._locked()
        try:
            yield
        finally:
            if file is not None:
                # Not by closing: a process that is started meanwhile has it open too.
                fcntl.flock(file, fcntl.LOCK_UN)
                os.close(file)

    async def _locked(self) -> int | None:
        """Nothing is waited for in a thread: whoever has the lock needs one to give it back."""
        ends = time.monotonic() + ALONE_WITHIN
        while time.monotonic() < ends:
            try:
                return await asyncio.to_thread(self._lock)
            except BlockingIOError:
                await asyncio.sleep(_BETWEEN_TRIES)
            except OSError as error:  # some file systems of networks have no locks
                log.debug("%s is not locked: %s", self._path, error)
                break
        return None

    def _lock(self) -> int:
        """Raises `BlockingIOError`: somebody else has it; `OSError`: it cannot be had."""
        file = os.open(self._path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        return file

    async def has_changed(self) -> bool:
        return await asyncio.to_thread(self._written) != self._seen

    def _written(self) -> int:
        """When a name in it was last added or taken away; 0: there is no folder."""
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    async def elements(self) -> list[str]:
        return await asyncio.to_thread(self._read)

    async def store(self, name: str, text: str) -> None:
        await asyncio.to_thread(self._write, name, text)

    def _read(self) -> list[str]:
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            state = self._path.stat()
            self._look_at(state)
            # Before its names are read: what is added meanwhile is seen next time. Clocks of file systems are coarse,
            # so a name may still come at the same moment as the last one.
            settled = time.time_ns() - state.st_mtime_ns > _COARSEST
            self._seen = state.st_mtime_ns if settled else None
            files = sorted(self._path.glob("key-*.json"))
        except OSError as error:
            raise StartupError(f"DataProtection:FileSystemPath cannot be read: {error}") from None
        return [text for file in files if (text := self._text(file)) is not None]

    def _look_at(self, folder: os.stat_result) -> None:
        if not _is_ours(folder):
            self._report(f"the key folder {self._path} can be written by others: let the service own it, and chmod 700")
        elif folder.st_mode & _OTHERS_READ:
            self._report(f"the key folder {self._path} can be read by others, and with it every session: chmod 700")

    def _text(self, file: Path) -> str | None:
        """None for what is no text: one damaged file must not take the other keys away. Nor for a key that others can
        have written: whoever brings a key can sign anybody in.
        """
        try:
            with file.open(encoding="utf-8") as opened:
                state = os.fstat(opened.fileno())
                if _is_ours(state) and state.st_nlink == 1 and not file.is_symlink():
                    return opened.read()
                error: Exception | str = "others own it, can write it, or have another name for it"
        except (OSError, ValueError) as failure:
            error = failure
        self._report(f"the key file {file} cannot be read and is left out: {error}")
        return None

    def _report(self, text: str) -> None:
        """Once: the folder is read again and again."""
        if text not in self._reported:
            self._reported.add(text)
            log.error("%s", text)

    def _write(self, name: str, text: str) -> None:
        # Another host may read at any time: a file is there as a whole or not at all.
        handle, made = tempfile.mkstemp(dir=self._path, prefix=".new-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, self._path / f"{name}.json")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise


class Table:
    """Two commands of the operator's own, on the default connection."""

    shared = True
    between_looks = math.inf

    def __init__(self, connector: Connector, get_all: str, store: str) -> None:
        self._connector = connector
        self._get_all = get_all
        self._store = store

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """In a transaction, which behind a pooler is all that belongs to one session."""
        connection = None
        try:
            connection = await self._connector.open_plain()
            async with asyncio.timeout(ALONE_WITHIN):
                await connection.execute("begin")
                await connection.execute(f"select pg_advisory_xact_lock({_LOCK})".encode())
        except (psycopg.Error, TimeoutError) as error:
            log.debug("the keys in the database are not locked: %s", error)
        try:
            yield
        finally:
            if connection is not None:
                await connection.close()

    async def has_changed(self) -> bool:
        return False

    async def elements(self) -> list[str]:
        async with self._connector.maintenance_connection() as connection:
            try:
                cursor = await psycopg.AsyncRawCursor(connection).execute(self._get_all.encode())
                return [str(row[0]) for row in await cursor.fetchall() if row[0] is not None]
            except psycopg.ProgrammingError as error:
                raise StartupError(f"DataProtection:GetAllElementsCommand failed: {error}") from None

    async def store(self, name: str, text: str) -> None:
        async with self._connector.maintenance_connection() as connection:
            try:
                await psycopg.AsyncRawCursor(connection).execute(self._store.encode(), [name, text])
            except psycopg.ProgrammingError as error:
                raise StartupError(f"DataProtection:StoreElementCommand failed: {error}") from None
