"""Watches SQL files and the catalogue for changes while tests are watched."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from rowcall.core.testing.watching import Change
from rowcall.service.discovery.fingerprint import Fingerprint
from rowcall.service.file_changes import file_changes

QUIET = 300
"""Milliseconds without an event that end a change."""
LONGEST = 2_000
"""Milliseconds after which a change is reported even if events continue."""

Look = Callable[[], Awaitable[Fingerprint]]
"""Returns the fingerprint of the catalogue."""


class Watch:
    """Source of changes: `async with watch: changes = await watch.next()`; None is a change of the catalogue.

    No change is missed from the beginning of the block on.
    """

    def __init__(self, folders: Sequence[str], look: Look, every: float, channel: str) -> None:
        """folders: in the spelling of patterns; those that do not exist are left out. look: returns the fingerprint of
        the catalogue. every: polling interval of the catalogue in seconds; 0: no polling. channel: name of the log
        channel.
        """
        self._folders = {str(Path(folder).absolute()): folder for folder in folders if is_folder(folder)}
        self._look = look
        self._every = every
        self._log = logging.getLogger(channel)
        self._known: Fingerprint | None = None
        self._found: asyncio.Queue[list[Change] | Exception | None] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = asyncio.Event()

    async def __aenter__(self) -> Watch:
        self._start(self._watch_files())
        await self._looking.wait()
        if self._every:
            await self.rebase()
            self._start(self._poll())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()

    async def next(self) -> list[Change] | None:
        """Wait for the next change, and return the changed files; None: the catalogue has changed. Raises the error
        that has ended watching, such as those of `file_changes`.
        """
        found = await self._found.get()
        if isinstance(found, Exception):
            raise found
        return found

    async def rebase(self) -> None:
        """Accept the current catalogue as unchanged, because changes by the tests themselves must not start them
        again.
        """
        if self._every:
            self._known = await self._read_fingerprint()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in a task until the block ends. Its error is raised by `next`."""

        async def run_and_report() -> None:
            try:
                await work
            except Exception as error:
                self._found.put_nowait(error)

        self._tasks.append(asyncio.ensure_future(run_and_report()))

    async def _poll(self) -> None:
        """Poll the catalogue without end, and report changes to `next`."""
        while True:
            await asyncio.sleep(self._every)
            before = self._known
            current = await self._read_fingerprint()
            if current is not None and before is not None and before == self._known and current != before:
                self._known = current
                self._found.put_nowait(None)
            self._known = self._known or current

    async def _read_fingerprint(self) -> Fingerprint | None:
        """Return the fingerprint of the catalogue; None if it cannot be read, which is logged."""
        try:
            return await self._look()
        except (psycopg.Error, OSError) as error:
            self._log.debug("the catalogue cannot be polled: %s", str(error).strip())
            return None

    async def _watch_files(self) -> None:
        """Watch the folders without end, and report changes of SQL files to `next`."""
        # Imported here, because only watch mode needs it.
        from watchfiles import Change as Kind

        spelled = self._folders
        events = file_changes(
            *spelled,
            # For a folder that is moved here, only the folder itself is reported.
            fits=lambda kind, path: _is_sql(path) or (kind is Kind.added and is_folder(path)),
            quiet=QUIET,
            longest=LONGEST,
            channel=self._log.name,
        )
        while True:
            coming = asyncio.ensure_future(anext(events))
            # The first step of the iteration, in which the kernel begins to report changes.
            await asyncio.sleep(0)
            self._looking.set()
            events_of_files = {(kind, file) for kind, path in await coming for file in _files_at(path)}
            if events_of_files:
                self._found.put_nowait(
                    [
                        Change(_display_path(path, spelled), kind is Kind.deleted)
                        for kind, path in sorted(events_of_files)
                    ]
                )


def _is_sql(path: str) -> bool:
    return path.lower().endswith(".sql")


def _files_at(path: str) -> Iterable[str]:
    """Return the path if it is that of a SQL file; if it is a folder, the paths of all SQL files in it and its
    subfolders."""
    if not is_folder(path):
        return (path,) if _is_sql(path) else ()
    return (str(file) for file in Path(path).rglob("*") if _is_sql(file.name) and os.path.isfile(file))


def is_folder(path: str) -> bool:
    return os.path.isdir(path)


def _display_path(path: str, folders: dict[str, str]) -> str:
    """Return an absolute path in the spelling of the pattern of its folder: `tests/a.sql`. folders: absolute path → its
    spelling. A path in none of them is returned unchanged.
    """
    for absolute, folder in folders.items():
        if path.startswith(absolute + os.sep):
            below = path[len(absolute) + 1 :].replace(os.sep, "/")
            return below if folder == "." else f"{folder.rstrip('/')}/{below}"
    return path
