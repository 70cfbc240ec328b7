"""Watch mode for developers: detects changes of SQL files and of the catalogue.

Several events of one save of a file count as one change. For the catalogue, the server computes one number from
everything that discovery reads and depends on. This polling costs next to nothing, and unlike an event trigger it needs
no installation in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial

import psycopg

from rowcall.core.config import Settings
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.sections.watch import WatchOptions
from rowcall.core.text.globs import is_recursive
from rowcall.service.background import Background, pause
from rowcall.service.database.connector import Connector
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.file_changes import file_changes
from rowcall.service.snapshot.exposure import Exposure
from rowcall.service.startup_error import StartupError, require_folder

log = logging.getLogger("rowcall")

INTERVAL = "Watch:DatabasePollingInterval"
"""Configuration key of the polling interval."""
SOON = 0.25
"""Default polling interval of the catalogue in seconds, so that a change is served within one second."""
_QUIET = 20
"""Milliseconds without an event after which a save is complete."""
_LONGEST = 300
"""Milliseconds after which a change is reported even if events continue."""
_LOOK_AGAIN = 1000
"""Milliseconds after which the folder itself is checked, because an editor or a checkout may have replaced it."""


class Watcher:
    """Watches the SQL files and catalogues of one service. After `start` has returned, no change is missed. Raises
    `StartupError` if there is nothing to watch, or a folder does not exist.
    """

    def __init__(self, settings: Settings, exposure: Exposure, sources: Sequence[Connector]) -> None:
        """sources: connectors of the databases whose catalogues are polled."""
        self._files = exposure.files
        self._exposure = exposure
        self._sources = sources
        self._every = settings.read(WatchOptions).polling if settings.is_set(WatchOptions, "polling") else SOON
        if self._files is None and not self._every:
            raise StartupError("Watch:Enabled is true, but there is nothing to watch: no files, and no polling")
        if self._files is not None:
            require_folder("Watch:Enabled", self._files.folder)

    async def start(
        self, background: Background, on_files: Callable[[], None], on_catalogue: Callable[[], None]
    ) -> None:
        """Start to watch, and return when each catalogue has been polled once.

        background: runs the tasks. on_files, on_catalogue: called after a change of files or of a catalogue, and
        sometimes without one.
        """
        if self._files is not None:
            background.keep("watching the files", partial(_watch_files, self._files, on_files))
        if self._every:
            polled_events = [asyncio.Event() for _ in self._sources]
            for source, event in zip(self._sources, polled_events, strict=True):
                background.keep("watching the catalogue", partial(self._poll, source, on_catalogue, event))
            await asyncio.gather(*(event.wait() for event in polled_events))

    async def _poll(self, source: Connector, on_change: Callable[[], None], looked: asyncio.Event) -> None:
        """Poll the catalogue without end and call `on_change` after changes. A failed poll is repeated on a new
        connection.

        looked: set when the first poll has succeeded or failed. If it failed, the first success counts as a change.
        """
        previous: Fingerprint | None = None
        attempt = 0
        while True:
            try:
                async with await source.open_plain() as connection:
                    attempt = 0
                    while True:
                        current = await catalogue_fingerprint(connection)
                        if current != previous and looked.is_set():
                            on_change()
                        previous = current
                        looked.set()
                        await asyncio.sleep(self._every)
            except (psycopg.Error, OSError) as error:
                log.debug("the catalogue cannot be watched and is tried again: %s", str(error).strip())
            looked.set()
            await asyncio.sleep(max(self._every, pause(attempt)))
            attempt += 1


async def _watch_files(options: SqlFileOptions, on_change: Callable[[], None]) -> None:
    """Call `on_change` for changes of files, without end, also while the folder is missing, unreadable or replaced, and
    whenever watching begins. Raises the errors of `file_changes`.
    """
    folder = options.folder
    while True:
        if _identity(folder) is not None:
            # Files may have been saved while the folder was not watched.
            on_change()
            # The folder may be removed before watching begins.
            with contextlib.suppress(FileNotFoundError):
                await _watch_folder(folder, on_change, recursive=is_recursive(options.pattern))
                continue
        await asyncio.sleep(_LOOK_AGAIN / 1000)


async def _watch_folder(folder: str, on_change: Callable[[], None], *, recursive: bool) -> None:
    """Call `on_change` for changes in the folder until the folder is replaced, removed or made unreadable. recursive:
    also for those in its subfolders. Raises the errors of `file_changes`.
    """
    # Imported here, because only watch mode needs it.
    from watchfiles import Change

    identity = _identity(folder)
    changes = file_changes(
        folder,
        fits=lambda change, path: _may_matter(path, gone=change is Change.deleted),
        quiet=_QUIET,
        longest=_LONGEST,
        channel=log.name,
        interval=_LOOK_AGAIN,
        recursive=recursive,
    )
    async for events in changes:
        if _identity(folder) != identity:
            return
        if events:
            on_change()


def _identity(folder: str) -> tuple[int, int] | None:
    """Return device and inode of a folder; None: it does not exist, or this user may not read it."""
    try:
        with os.scandir(folder):
            state = os.stat(folder)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _may_matter(path: str, *, gone: bool) -> bool:
    """Return whether a change of this path may concern SQL files: a `.sql` file, or a folder. gone: the path was
    deleted, so that it may have been a folder.
    """
    name = os.path.basename(path)
    if name.startswith("."):
        return False
    return name.lower().endswith(".sql") or "." not in name or (gone and not name.endswith("~")) or os.path.isdir(path)


def watcher(settings: Settings, exposure: Exposure, sources: Sequence[Connector]) -> Watcher | None:
    """Return the watcher, or None if watching is disabled. Parameters and `StartupError` as for `Watcher`."""
    return Watcher(settings, exposure, sources) if settings.is_enabled(WatchOptions) else None
