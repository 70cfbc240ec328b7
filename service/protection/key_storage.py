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


_OTHERS_WRITE, _OTHERS_READ = 0o022, 0o055


def _is_ours(state: os.stat_result) -> bool:
    """Nobody but us and root, who can do anything anyway, can have written it."""
    return state.st_uid in (os.geteuid(), 0) and not state.st_mode & _OTHERS_WRITE


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
            self._look_at(self._path.stat())
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
