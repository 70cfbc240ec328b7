"""Storages of the key ring: memory, a folder, or the database (protection-4).

A storage holds texts by name and never deletes one. All hosts that share it use the same keys.
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
"""Seconds to wait for the lock while another host creates a key. After that, this host creates one as well: two keys
are better than none."""
_BETWEEN_TRIES = 0.05
"""Seconds between two attempts to lock the folder."""
_COARSEST = 2_000_000_000
"""Nanoseconds after which the timestamps of every file system differ."""
_LOCK = 0x726F_7763_616C_6C01
"""Number of the advisory lock in the database: random, so that it is unlikely to collide with locks of other
programs."""


class Storage(Protocol):
    """The interface of the storages of the key ring."""

    shared: bool
    """Whether other hosts may add keys."""
    between_looks: float
    """Seconds between two calls of `has_changed`."""

    def hold_lock(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that holds the lock for creating keys. It raises nothing: if the lock is
        unavailable, the block runs without it."""

    async def has_changed(self) -> bool:
        """Return whether the storage has changed since `elements` was called, as far as this is visible without reading
        it."""

    async def elements(self) -> list[str]:
        """Return the stored texts, without unusable ones, which are logged. Raises `psycopg.Error` or `OSError`, and
        `StartupError` if the configured folder or command cannot be used."""

    async def store(self, name: str, text: str) -> None:
        """Store a text, which replaces one of the same name. Raises as `elements` does."""


class Memory:
    """Keys in memory, lost at the end of the service together with all sessions."""

    shared = False
    between_looks = math.inf

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hold_lock(self) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    async def has_changed(self) -> bool:
        return False

    async def elements(self) -> list[str]:
        return list(self._texts.values())

    async def store(self, name: str, text: str) -> None:
        self._texts[name] = text


_OTHERS_WRITE, _OTHERS_READ = 0o022, 0o055


def _is_ours(state: os.stat_result) -> bool:
    """Return whether only this user or root can have written the file."""
    return state.st_uid in (os.geteuid(), 0) and not state.st_mode & _OTHERS_WRITE


class Folder:
    """One file for each key, readable by its owner only."""

    shared = True
    between_looks = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: int | None = None
        self._reported: set[str] = set()

    @contextlib.asynccontextmanager
    async def hold_lock(self) -> AsyncIterator[None]:
        file = await self._acquire_lock()
        try:
            yield
        finally:
            if file is not None:
                # Closing would not release the lock: a process that was started meanwhile has inherited the file.
                fcntl.flock(file, fcntl.LOCK_UN)
                os.close(file)

    async def _acquire_lock(self) -> int | None:
        """Return the locked file, or None if locking is impossible or takes too long.

        It does not wait in a thread, because releasing the lock needs one.
        """
        ends = time.monotonic() + ALONE_WITHIN
        while time.monotonic() < ends:
            try:
                return await asyncio.to_thread(self._lock)
            except BlockingIOError:
                await asyncio.sleep(_BETWEEN_TRIES)
            except OSError as error:  # some network file systems have no locks
                log.debug("%s is not locked: %s", self._path, error)
                break
        return None

    def _lock(self) -> int:
        """Lock the folder and return the descriptor that holds the lock. Raises `BlockingIOError` if another process
        has the lock, `OSError` if locking is impossible.
        """
        self._create()
        file = os.open(self._path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        return file

    async def has_changed(self) -> bool:
        return await asyncio.to_thread(self._modification_time) != self._seen

    def _modification_time(self) -> int:
        """Return when a file was last added to or removed from the folder, in nanoseconds since 1970; 0 without a
        folder.
        """
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    async def elements(self) -> list[str]:
        return await asyncio.to_thread(self._read)

    async def store(self, name: str, text: str) -> None:
        await asyncio.to_thread(self._write, name, text)

    def _create(self) -> None:
        """Create the folder if it does not exist. Raises `OSError`."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _read(self) -> list[str]:
        """Return the texts of all usable key files, none without a folder, and record the state of the folder for
        `has_changed`. Raises `StartupError` if the folder cannot be read."""
        try:
            state = self._path.stat()
            self._report_permissions(state)
            # Taken before the names are read, so that the next check sees files that are added meanwhile. Timestamps of
            # file systems are coarse: another file may still get the same timestamp.
            settled = time.time_ns() - state.st_mtime_ns > _COARSEST
            self._seen = state.st_mtime_ns if settled else None
            files = sorted(self._path.glob("key-*.json"))
        except FileNotFoundError:
            self._seen = 0
            return []
        except OSError as error:
            raise StartupError(f"DataProtection:FileSystemPath cannot be read: {error}") from None
        return [text for file in files if (text := self._text(file)) is not None]

    def _report_permissions(self, folder: os.stat_result) -> None:
        """Check the permissions of the folder: log an error, once, if other users can write or read it."""
        if not _is_ours(folder):
            self._report(f"the key folder {self._path} can be written by others: let the service own it, and chmod 700")
        elif folder.st_mode & _OTHERS_READ:
            self._report(f"the key folder {self._path} can be read by others, and with it every session: chmod 700")

    def _text(self, file: Path) -> str | None:
        """Return the content of a key file; None if it is unreadable, because one damaged file must not affect the
        other keys.

        None also for a file that other users can have written: with a key, an attacker can sign in as any user.
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
        """Log an error once, because the folder is read again and again."""
        if text not in self._reported:
            self._reported.add(text)
            log.error("%s", text)

    def _write(self, name: str, text: str) -> None:
        """Write a key file completely or not at all. Raises `OSError`."""
        self._create()
        # Another host may read at any time, so the file must appear complete (rename).
        handle, temporary = tempfile.mkstemp(dir=self._path, prefix=".new-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path / f"{name}.json")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


class Table:
    """Keys in the database, read and stored by two commands of the operator on the default connection."""

    shared = True
    between_looks = math.inf

    def __init__(self, connector: Connector, get_all: str, store: str) -> None:
        self._connector = connector
        self._get_all = get_all
        self._store = store

    @contextlib.asynccontextmanager
    async def hold_lock(self) -> AsyncIterator[None]:
        """Hold an advisory lock in a transaction, because a connection pooler assigns a session only for a transaction.
        If the lock is unavailable, the block runs without it."""
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
