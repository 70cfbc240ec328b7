"""Stores of used refresh tokens. The supervisor has one, for all workers.

In memory by default. If the key ring is stored in a folder, the uses are stored beside it, so that they survive a
restart and apply to all hosts that share the folder. With a command of the operator, they are stored in the database.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import psycopg

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.auth.options import RefreshTokens
from rowcall.core.auth.token_families import BETWEEN_SWEEPS, NONE_USED, Families, Mark, used_after
from rowcall.core.config import Settings
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

FOLDER = "used-refresh-tokens"
"""Name of the folder beside the key ring."""
SPARED = 3600.0
"""Seconds for which an entry is stored after its tokens have expired, because the clocks of hosts differ."""
CONNECTIONS = 4
"""Most simultaneous questions to the database."""


class RefreshTokenStore(Protocol):
    """The interface of the stores of uses of refresh tokens."""

    async def use(self, mark: Mark, keep_until: float) -> bool:
        """Record the use of the refresh token with this mark. Return True if it is the first use of the token, and no
        token of the family has been used twice. keep_until: when the record may be removed, in seconds since 1970.
        Raises `psycopg.Error`, `OSError` or `ValueError`."""


class MemoryStore:
    """Store in memory, lost at the end of the service."""

    def __init__(self) -> None:
        self._families = Families()

    async def use(self, mark: Mark, keep_until: float) -> bool:
        return self._families.use(mark, time.time(), keep_until)


class FolderStore:
    """Store in a folder, with one file for each family of tokens. The file has the name of the family, and contains the
    latest generation that was used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sweep_at = 0.0

    async def use(self, mark: Mark, keep_until: float) -> bool:
        return await asyncio.to_thread(self._use, mark, keep_until)

    def _use(self, mark: Mark, keep_until: float) -> bool:
        """Do the work of `use`. Blocks on the disk, and while another process or thread uses the same family."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()
        file = os.open(self._path / mark.family, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Other hosts and the other threads of this process wait here.
            fcntl.flock(file, fcntl.LOCK_EX)
            content = os.read(file, 32)
            first, used = used_after(int(content) if content else NONE_USED, mark.generation)
            os.pwrite(file, b"%010d" % used, 0)
            os.utime(file, (keep_until, keep_until))
            os.fsync(file)
            return first
        finally:
            os.close(file)

    def _sweep(self) -> None:
        """Delete expired files, at most every `BETWEEN_SWEEPS` seconds."""
        now = time.time()
        if now < self._sweep_at:
            return
        self._sweep_at = now + BETWEEN_SWEEPS
        for entry in os.scandir(self._path):
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime + SPARED < now:
                    os.unlink(entry.path)


class DatabaseStore:
    """Store in the database: an SQL command of the operator on the main connection records a use, and returns whether
    it is the first."""

    def __init__(self, connector: Connector, sql: str) -> None:
        self._connector = connector
        self._sql, self._takes = number_placeholders(sql)
        self._free = asyncio.Semaphore(CONNECTIONS)

    async def use(self, mark: Mark, keep_until: float) -> bool:
        until = datetime.fromtimestamp(keep_until, UTC).isoformat()
        values = dict(enumerate((mark.family, str(mark.generation), until), 1))
        async with self._free, await self._connector.open_plain() as connection:
            arguments = [values.get(number) for number in self._takes]
            cursor = await psycopg.AsyncRawCursor(connection).execute(self._sql.encode(), arguments)
            row = await cursor.fetchone()
        return row is not None and row[0] is True


def refresh_token_store_for(settings: Settings, connector: Connector) -> RefreshTokenStore:
    """Return the store that the configuration selects. To be called in the running event loop. Raises `ConfigError`."""
    command = settings.read(RefreshTokens).use_command
    if command:
        return DatabaseStore(connector, command)
    keys = settings.read(DataProtection)
    in_folder = keys.enabled and keys.storage == "FileSystem" and keys.folder
    return FolderStore(Path(in_folder) / FOLDER) if in_folder else MemoryStore()


async def record_use(store: RefreshTokenStore, mark: Mark, keep_until: float) -> bool | None:
    """Record the use of a refresh token in the store. Return the result of `RefreshTokenStore.use`, or None if
    it is unknown because of an error, which is logged; the token has to be refused then. keep_until: seconds since
    1970."""
    try:
        return await store.use(mark, keep_until)
    except (psycopg.Error, OSError, ValueError) as error:
        log.error("the use of a refresh token cannot be recorded: %s", str(error).strip())
        return None
