"""Where the keys of the ring are kept: memory, a folder, or the database (reference 04, 13).

A storage holds texts by name and never drops one. Every host that shares it uses the same keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Protocol

import psycopg

from rowcall.service.database.connector import Connector
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


class Storage(Protocol):
    shared: bool
    """Others may add to it."""

    async def elements(self) -> list[str]:
        """Every stored text. Raises `psycopg.Error` or `OSError`."""

    async def store(self, name: str, text: str) -> None:
        """Raises `psycopg.Error` or `OSError`."""


class Memory:
    """Lost when the service ends, and every session with it."""

    shared = False

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def elements(self) -> list[str]:
        return list(self._texts.values())

    async def store(self, name: str, text: str) -> None:
        self._texts[name] = text


class Folder:
    """One file for each key, readable for its owner alone."""

    shared = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reported: set[str] = set()

    async def elements(self) -> list[str]:
        return await asyncio.to_thread(self._read)

    async def store(self, name: str, text: str) -> None:
        await asyncio.to_thread(self._write, name, text)

    def _read(self) -> list[str]:
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = sorted(self._path.glob("key-*.json"))
        except OSError as error:
            raise StartupError(f"DataProtection:FileSystemPath cannot be read: {error}") from None
        return [text for file in files if (text := self._text(file)) is not None]

    def _text(self, file: Path) -> str | None:
        """None for what is no text: one damaged file must not take the other keys away."""
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            if file.name not in self._reported:
                self._reported.add(file.name)
                log.error("the key file %s cannot be read and is left out: %s", file, error)
            return None

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

    def __init__(self, connector: Connector, get_all: str, store: str) -> None:
        self._connector = connector
        self._get_all = get_all
        self._store = store

    async def elements(self) -> list[str]:
        async with self._connector.errand() as connection:
            try:
                cursor = await psycopg.AsyncRawCursor(connection).execute(self._get_all.encode())
                return [str(row[0]) for row in await cursor.fetchall() if row[0] is not None]
            except psycopg.ProgrammingError as error:
                raise StartupError(f"DataProtection:GetAllElementsCommand failed: {error}") from None

    async def store(self, name: str, text: str) -> None:
        async with self._connector.errand() as connection:
            try:
                await psycopg.AsyncRawCursor(connection).execute(self._store.encode(), [name, text])
            except psycopg.ProgrammingError as error:
                raise StartupError(f"DataProtection:StoreElementCommand failed: {error}") from None
