"""Watch folders for changes of files: the kernel reports them, and if it cannot, the folders are polled.

Used only while a developer works on the service (`Watch:Enabled`, `--watch`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles import Change

_POLLING = 0.3
"""Seconds between two scans of the folders."""
_SHARE = 10
"""The pause between two scans is at least as many times as long as a scan."""

_Files = Mapping[str, tuple[int, int, int]]
"""Time of the last change, size and inode of each file, by path."""


async def file_changes(
    *folders: str,
    fits: Callable[[Change, str], bool],
    quiet: int,
    longest: int,
    channel: str,
    interval: int | None = None,
    recursive: bool = True,
) -> AsyncGenerator[set[tuple[Change, str]], None]:
    """Yield sets of changes of files in the folders, without end. Watching begins in the first step of the iteration.

    If the kernel has no more watches, or this user may not read a subfolder, the folders are polled, which is logged as
    a warning; what the user may not read is left out. If polling begins later, when changes may have been missed, the
    folders themselves are yielded as modified.

    fits: whether a change of a path matters. quiet: milliseconds without a further event after which the changes are
    yielded; if the folders are polled, they are yielded after a scan without changes. longest: milliseconds after which
    changes are yielded even if events continue. channel: name of the log channel. interval: milliseconds without a
    change after which an empty set is yielded; None: never. recursive: also for subfolders.

    Raises:
        FileNotFoundError: a folder does not exist.
        OSError: a folder cannot be read.
    """
    # Imported here, because only watching needs it.
    from watchfiles import Change, awatch

    waiting = False
    try:
        async for changes in awatch(
            *folders,
            watch_filter=fits,
            debounce=longest,
            step=quiet,
            rust_timeout=interval,
            yield_on_timeout=interval is not None,
            recursive=recursive,
        ):
            yield changes
    except Exception as raised:
        # While it waits for changes, `awatch` raises its errors in a group.
        waiting = isinstance(raised, ExceptionGroup)
        error = raised.exceptions[0] if isinstance(raised, ExceptionGroup) else raised
        if isinstance(error, FileNotFoundError) or not isinstance(error, OSError | RuntimeError):
            raise error from None
        # `awatch` could ignore folders that may not be read, but then it also leaves out folders behind them, and hides
        # that the kernel has no more watches.
        before = _scan(folders, recursive, must_exist=True)
        where = ", ".join(folders)
        logging.getLogger(channel).warning(
            "files in %s are polled, because the kernel cannot watch them: %s", where, error
        )
    if waiting:
        # Any file in them may have changed at this moment.
        yield {(Change.modified, folder) for folder in folders}
    clock = asyncio.get_running_loop().time
    pause = _POLLING
    found: set[tuple[Change, str]] = set()
    reported = changed = clock()
    while True:
        await asyncio.sleep(pause)
        began = clock()
        after = await asyncio.to_thread(_scan, folders, recursive)
        pause = max(_POLLING, _SHARE * (clock() - began))
        new = {change for change in _differences(before, after) if fits(*change)}
        before = after
        changed = changed if found else began
        found |= new
        complete = not new or (clock() - changed) * 1000 >= longest
        if (found and complete) or (not found and interval is not None and (clock() - reported) * 1000 >= interval):
            yield found
            found = set()
            reported = clock()


def _scan(folders: Sequence[str], recursive: bool, *, must_exist: bool = False) -> _Files:
    """Return the files in the folders, with time, size and inode. What this user may not read is left out. must_exist:
    raise `OSError` if one of the folders themselves cannot be read. recursive: also the files of subfolders."""
    files = {}
    for top in folders:
        if must_exist:
            os.scandir(top).close()
        for folder, subfolders, names in os.walk(top):
            if not recursive:
                subfolders.clear()
            for name in names:
                path = os.path.join(folder, name)
                try:
                    state = os.stat(path)
                except OSError:
                    continue
                files[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
    return files


def _differences(before: _Files, after: _Files) -> set[tuple[Change, str]]:
    """Return the files that have been added, changed and deleted between two scans."""
    from watchfiles import Change

    return {
        *((Change.deleted, path) for path in before.keys() - after.keys()),
        *((Change.added, path) for path in after.keys() - before.keys()),
        *((Change.modified, path) for path in before.keys() & after.keys() if before[path] != after[path]),
    }
