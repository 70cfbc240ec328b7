"""What changes while tests are watched: files of SQL, and the catalogue of the database."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

import psycopg

from rowcall.core.testing.watching import Change
from rowcall.service.discovery.fingerprint import Fingerprint

QUIET = 300
"""Milliseconds without another event, after which those before are one change."""
LONGEST = 2_000

Look = Callable[[], Awaitable[Fingerprint]]
"""The fingerprint of the catalogue."""


class Watch:
    """`async with watch: changes = await watch.next()`; None stands for a change of the catalogue. From the beginning
    of the block on nothing is missed.
    """

    def __init__(self, folders: Sequence[str], look: Look, every: float, channel: str) -> None:
        """folders: as patterns spell them; what is none is left out. every: seconds between two looks at the catalogue;
        0: none.
        """
        self._folders = {str(Path(folder).absolute()): folder for folder in folders if is_folder(folder)}
        self._look = look
        self._every = every
        self._log = logging.getLogger(channel)
        self._known: Fingerprint | None = None
        self._found: asyncio.Queue[list[Change] | None] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = asyncio.Event()

    async def __aenter__(self) -> Watch:
        self._tasks.append(asyncio.ensure_future(self._watch_files()))
        await self._looking.wait()
        if self._every:
            await self.rebase()
            self._tasks.append(asyncio.ensure_future(self._poll()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()

    async def next(self) -> list[Change] | None:
        return await self._found.get()

    async def rebase(self) -> None:
        """What the tests themselves have changed is no reason to run them again."""
        if self._every:
            self._known = await self._seen()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            before = self._known
            seen = await self._seen()
            if seen is not None and before is not None and before == self._known and seen != before:
                self._known = seen
                self._found.put_nowait(None)
            self._known = self._known or seen

    async def _seen(self) -> Fingerprint | None:
        try:
            return await self._look()
        except (psycopg.Error, OSError) as error:
            self._log.debug("the catalogue cannot be looked at: %s", str(error).strip())
            return None

    async def _watch_files(self) -> None:
        # Loads what only watching needs.
        from watchfiles import Change as Kind
        from watchfiles import awatch

        spelled = self._folders
        events = awatch(
            *spelled,
            # Of a folder that is moved here nothing but itself is told.
            watch_filter=lambda kind, path: _is_sql(path) or (kind is Kind.added and is_folder(path)),
            debounce=LONGEST,
            step=QUIET,
        )
        while True:
            coming = asyncio.ensure_future(anext(events))
            # Its first step, in which the kernel is asked to tell.
            await asyncio.sleep(0)
            self._looking.set()
            found = {(kind, file) for kind, path in await coming for file in _files_at(path)}
            if found:
                self._found.put_nowait(
                    [Change(_spelled(path, spelled), kind is Kind.deleted) for kind, path in sorted(found)]
                )


def _is_sql(path: str) -> bool:
    return path.lower().endswith(".sql")


def _files_at(path: str) -> Iterable[str]:
    """Itself, or those in the folder that it is."""
    if not is_folder(path):
        return (path,) if _is_sql(path) else ()
    return (str(file) for file in Path(path).rglob("*") if _is_sql(file.name) and file.is_file())


def is_folder(path: str) -> bool:
    return Path(path).is_dir()


def _spelled(path: str, folders: dict[str, str]) -> str:
    """The path as the pattern of its folder spells it: `tests/a.sql`."""
    for absolute, folder in folders.items():
        if path.startswith(absolute + os.sep):
            below = path[len(absolute) + 1 :].replace(os.sep, "/")
            return below if folder == "." else f"{folder.rstrip('/')}/{below}"
    return path
