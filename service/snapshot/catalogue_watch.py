"""Notices what a developer changes: files of SQL as they are saved, the catalogue by looking at it again and again.

Files are told of by the kernel (watchfiles, inotify); a few events of one save are one change. Of the catalogue the
server works out one number, over what discovery reads and what it depends on, so that a look costs next to nothing and
nothing has to be installed in the database, as an event trigger would.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psycopg

from rowcall.core.config import Settings
from rowcall.core.config.tree import find
from rowcall.core.text.globs import is_recursive
from rowcall.service.background import Background, pause
from rowcall.service.database.connector import Connector
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.options.sql_files import SqlFileOptions
from rowcall.service.snapshot.exposure import Exposure
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

INTERVAL = "Watch:DatabasePollingInterval"
SOON = 0.25
"""Seconds between two looks at the catalogue where the configuration does not say: a change is served in one."""
_QUIET = 20
"""Milliseconds without an event after which a save is complete."""
_LONGEST = 300
_LOOK_AGAIN = 1000
"""Milliseconds after which the folder itself is looked at: an editor or a checkout may have replaced it."""


class Watcher:
    """`start` returns when nothing can be missed any more; then `on_files` and `on_catalogue` are called."""

    def __init__(self, settings: Settings, exposure: Exposure, sources: Sequence[Connector]) -> None:
        self._files = exposure.files
        self._exposure = exposure
        self._sources = sources
        asked = find(settings.root, INTERVAL) is not None
        self._every = settings.seconds(INTERVAL) if asked else SOON
        if self._files is None and not self._every:
            raise StartupError("Watch:Enabled is true, but there is nothing to watch: no files, and no polling")
        if self._files is not None and not Path(self._files.folder).is_dir():
            raise StartupError(f"Watch:Enabled is true, but the folder {self._files.folder} does not exist")

    async def start(
        self, background: Background, on_files: Callable[[], None], on_catalogue: Callable[[], None]
    ) -> None:
        if self._files is not None:
            background.keep("watching the files", partial(_watch_files, self._files, on_files))
        if self._every:
            looked = [asyncio.Event() for _ in self._sources]
            for source, event in zip(self._sources, looked, strict=True):
                background.keep("watching the catalogue", partial(self._poll, source, on_catalogue, event))
            await asyncio.gather(*(event.wait() for event in looked))

    async def _poll(self, source: Connector, on_change: Callable[[], None], looked: asyncio.Event) -> None:
        """looked: set when the first look has succeeded or failed. Whatever a failed one has missed is a change."""
        known: Fingerprint | None = None
        attempt = 0
        while True:
            try:
                async with await source.open_plain() as connection:
                    attempt = 0
                    while True:
                        seen = await catalogue_fingerprint(connection)
                        if seen != known and looked.is_set():
                            on_change()
                        known = seen
                        looked.set()
                        await asyncio.sleep(self._every)
            except (psycopg.Error, OSError) as error:
                log.debug("the catalogue cannot be watched, once more: %s", str(error).strip())
            looked.set()
            await asyncio.sleep(max(self._every, pause(attempt)))
            attempt += 1


async def _watch_files(options: SqlFileOptions, on_change: Callable[[], None]) -> None:
    folder = options.folder
    while True:
        if _identity(folder) is None:
            await asyncio.sleep(_LOOK_AGAIN / 1000)
            continue
        # What was saved while nobody looked.
        on_change()
        with contextlib.suppress(OSError):
            await _watch_folder(folder, on_change, recursive=is_recursive(options.pattern))


async def _watch_folder(folder: str, on_change: Callable[[], None], *, recursive: bool) -> None:
    """Until the folder is another one."""
    # Loads what only watching needs.
    from watchfiles import Change, awatch

    which = _identity(folder)
    changes = awatch(
        folder,
        watch_filter=lambda change, path: _may_matter(path, gone=change is Change.deleted),
        debounce=_LONGEST,
        step=_QUIET,
        rust_timeout=_LOOK_AGAIN,
        yield_on_timeout=True,
        recursive=recursive,
    )
    async for found in changes:
        if _identity(folder) != which:
            return
        if found:
            on_change()


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        state = os.stat(folder)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _may_matter(path: str, *, gone: bool) -> bool:
    """A file of SQL; or a folder, which has come or gone with all that is in it. What is gone may have been one."""
    name = os.path.basename(path)
    if name.startswith("."):
        return False
    return name.lower().endswith(".sql") or "." not in name or (gone and not name.endswith("~")) or os.path.isdir(path)


def watcher(settings: Settings, exposure: Exposure, sources: Sequence[Connector]) -> Watcher | None:
    """None: nothing is to be watched. Raises `StartupError` where nothing can be."""
    return Watcher(settings, exposure, sources) if settings.flag("Watch:Enabled") else None
