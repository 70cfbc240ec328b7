"""Watch folders for changes of files: the kernel reports them, and if it has no more watches, the folders are polled.

Used only while a developer works on the service (`Watch:Enabled`, `--watch`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles import Change


async def file_changes(
    *folders: str,
    fits: Callable[[Change, str], bool],
    quiet: int,
    longest: int,
    channel: str,
    interval: int | None = None,
    recursive: bool = True,
) -> AsyncGenerator[set[tuple[Change, str]], None]:
    """Yield the changes of files in the folders, without end. Watching begins in the first step of the iteration.

    Subfolders that this user may not read are not watched. If the kernel has no more watches, the folders are polled.
    Both are logged as a warning. If that happens after the beginning, the folders themselves are yielded as modified.

    fits: whether a change of a path matters. quiet: milliseconds without an event that complete a change. longest:
    milliseconds after which a change is reported even if events continue. channel: name of the log channel.
    interval: milliseconds without a change after which an empty set is yielded; None: never. recursive: also for
    subfolders.

    Raises:
        FileNotFoundError: a folder does not exist.
        OSError, RuntimeError: the folders cannot be watched, not even by polling.
    """
    # Imported here, because only watching needs it.
    from watchfiles import Change, awatch

    log = logging.getLogger(channel)
    # None: the default of watchfiles, which environment variables change.
    polling: bool | None = None
    ignoring: bool | None = None
    while True:
        waiting = False
        try:
            async for changes in awatch(
                *folders,
                watch_filter=fits,
                debounce=longest,
                step=quiet,
                rust_timeout=interval,
                yield_on_timeout=interval is not None,
                force_polling=polling,
                recursive=recursive,
                ignore_permission_denied=ignoring,
            ):
                yield changes
        except Exception as raised:
            # While it waits for changes, `awatch` raises its errors in a group.
            waiting = isinstance(raised, ExceptionGroup)
            error = raised.exceptions[0] if isinstance(raised, ExceptionGroup) else raised
            if isinstance(error, PermissionError) and not ignoring:
                # Not from the beginning: it would hide also that the kernel has no more watches.
                ignoring = True
                log.warning("what this user may not read is not watched: %s", error)
            elif polling or isinstance(error, FileNotFoundError | PermissionError):
                raise error from None
            elif isinstance(error, OSError | RuntimeError):
                polling = True
                where = ", ".join(folders)
                log.warning("files in %s are polled, because the kernel cannot watch them: %s", where, error)
            else:
                raise error from None
        if waiting:
            # Any file in them may have changed at this moment.
            yield {(Change.modified, folder) for folder in folders}
