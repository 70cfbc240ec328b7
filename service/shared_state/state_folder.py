"""The folder of the shared state: made by the supervisor at the start of the service, removed at its end.

It is in shared memory if the system has some. A service that was killed leaves its folder; the next start detects that
its lock is free, and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

PREFIX = f"rowcall-store-{os.getuid()}-"
_UNLOCKED = f"rowcall-begun-{os.getuid()}-"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (a private folder is created in it)
_LOCK = "owner"
_BEGUN_SECONDS = 600
"""Age of a folder that is not locked yet from which its service is assumed to have been killed."""
LEAST = 16 << 20
"""Bytes that have to be free in shared memory: for messages, leases, limits and a few responses."""

log = logging.getLogger("rowcall")


class StateFolder:
    """The folder of the shared state, at `path`: created by construction, removed by `remove`. Raises `OSError`."""

    def __init__(self) -> None:
        base = _base()
        # It has a name that other services ignore until it is locked; the lock survives renaming.
        folder = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=base))
        self._lock = _lock_folder(folder)
        self.path = folder.rename(base / (PREFIX + folder.name.removeprefix(_UNLOCKED)))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _base() -> Path:
    """Return the folder in which to create the state folder: shared memory if it has room for `LEAST` bytes, otherwise
    the folder for temporary files. Abandoned state folders in it are removed before.
    """
    if _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        _remove_abandoned(_SHARED_MEMORY)
        space = os.statvfs(_SHARED_MEMORY)
        free = space.f_bavail * space.f_frsize
        if free >= LEAST:
            return _SHARED_MEMORY
        log.warning(
            "%s has %.1f MB free; what workers share is in %s instead, which is slower. Give it %d MB at least (docker "
            "run --shm-size, shm_size in a compose file)",
            *(_SHARED_MEMORY, free / (1 << 20), tempfile.gettempdir(), LEAST >> 20),
        )
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    return base


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder. Return a descriptor that holds the lock, or None if another process holds it. Raises `OSError`,
    also if the lock is a symbolic link.
    """
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(base: Path) -> None:
    """Remove the state folders of services in `base` that have ended without doing so."""
    for folder in (*base.glob(PREFIX + "*"), *base.glob(_UNLOCKED + "*")):
        with contextlib.suppress(OSError):
            descriptor = _lock_folder(folder) if _may_be_abandoned(folder) else None
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _may_be_abandoned(folder: Path) -> bool:
    """Return whether a free lock would mean that this state folder is abandoned. False if it belongs to another user,
    or if a process is creating or removing it now. Raises `OSError`."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
        return False  # another user may have prepared links in it
    if folder.name.startswith(_UNLOCKED):
        # Its service is between creating and locking it.
        return time.time() - state.st_mtime > _BEGUN_SECONDS
    # Without a lock file, another process is removing it.
    return (folder / _LOCK).exists()
