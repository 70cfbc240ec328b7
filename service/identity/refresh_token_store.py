"""Where it is written down which refresh tokens have been used: one truth for all workers, kept by the supervisor.

In memory by default. Where the key ring is kept in a folder, the uses are kept beside it and so outlive a restart and
hold for all hosts that share the folder; with a command of the operator's they are kept in the database.
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

from rowcall.core.auth.commands import numbered
from rowcall.core.auth.token_families import BETWEEN_SWEEPS, NONE_USED, Families, Mark, used_after
from rowcall.core.config import Settings
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

FOLDER = "used-refresh-tokens"
SPARED = 3600.0
"""Seconds for which an entry outlives its tokens, as the clocks of hosts differ."""
CONNECTIONS = 4
"""Uses that the database is asked about at the same time."""


class RefreshTokenStore(Protocol):
    async def use(self, mark: Mark, keep_until: float) -> bool:
        """Whether this is the first use. Raises `psycopg.Error` or `OSError`."""


class InMemory:
    """Forgotten when the service ends."""

    def __init__(self) -> None:
        self._families = Families()

    async def use(self, mark: Mark, keep_until: float) -> bool:
        return self._families.use(mark, time.time(), keep_until)


class InFolder:
    """A file for each family: its name, and in it the latest generation that was used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sweep_at = 0.0

    async def use(self, mark: Mark, keep_until: float) -> bool:
        return await asyncio.to_thread(self._use, mark, keep_until)

    def _use(self, mark: Mark, keep_until: float) -> bool:
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()
        file = os.open(self._path / mark.family, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Other hosts wait here, and so do the other threads of this process.
            fcntl.flock(file, fcntl.LOCK_EX)
            written = os.read(file, 32)
            first, used = used_after(int(written) if written else NONE_USED, mark.generation)
            os.pwrite(file, b"%010d" % used, 0)
            os.utime(file, (keep_until, keep_until))
            os.fsync(file)
            return first
        finally:
            os.close(file)

    def _sweep(self) -> None:
        now = time.time()
        if now < self._sweep_at:
            return
        self._sweep_at = now + BETWEEN_SWEEPS
        for entry in os.scandir(self._path):
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime + SPARED < now:
                    os.unlink(entry.path)


class InDatabase:
    """A command of the operator's own, on the default connection: writes the use down and tells if it is the first."""

    def __init__(self, connector: Connector, sql: str) -> None:
        self._connector = connector
        self._sql, self._takes = numbered(sql)
        self._free = asyncio.Semaphore(CONNECTIONS)

    async def use(self, mark: Mark, keep_until: float) -> bool:
        until = datetime.fromtimestamp(keep_until, UTC).isoformat()
        values = dict(enumerate((mark.family, str(mark.generation), until), 1))
        async with self._free, await self._connector.open_plain() as connection:
            taken = [values.get(number) for number in self._takes]
            cursor = await psycopg.AsyncRawCursor(connection).execute(self._sql.encode(), taken)
            row = await cursor.fetchone()
        return row is not None and row[0] is True


def refresh_token_store_for(settings: Settings, connector: Connector) -> RefreshTokenStore:
    """To be made in the running event loop. Raises `ConfigError`."""
    command = settings.text_or_none("Auth:RefreshTokenUseCommand")
    if command:
        return InDatabase(connector, command)
    path = settings.text_or_none("DataProtection:FileSystemPath")
    kept = settings.flag("DataProtection:Enabled") and settings.choice("DataProtection:Storage") == "FileSystem"
    return InFolder(Path(path) / FOLDER) if kept and path else InMemory()


async def judged(uses: RefreshTokenStore, mark: Mark, keep_until: float) -> bool | None:
    """None where nobody can tell: what may be a second use is then not taken."""
    try:
        return await uses.use(mark, keep_until)
    except (psycopg.Error, OSError, ValueError) as error:
        log.error("the use of a refresh token cannot be written down: %s", str(error).strip())
        return None
