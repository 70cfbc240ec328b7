"""The folder of the host's store: made by the supervisor when the service starts, gone when it ends.

It lies on shared memory where the system has some. A service that was killed leaves its folder behind; the next one to
start finds it by its lock, which nobody holds any more, and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = f"rowcall-store-{os.getuid()}-"
_UNLOCKED = f"rowcall-begun-{os.getuid()}-"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of our own is made in it, readable for nobody else)
_LOCK = "owner"
LEAST = 16 << 20
"""Bytes that have to be free there: for messages, leases, limits and a few answers."""

log = logging.getLogger("rowcall")


class StateFolder:
    """Exists from construction until `remove`."""

    def __init__(self) -> None:
        base = _base()
        # Under a name that no other service looks at, until it is locked: the lock stays when it is renamed.
        made = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=base))
        self._lock = _locked(made)
        self.path = made.rename(base / (PREFIX + made.name.removeprefix(_UNLOCKED)))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _base() -> Path:
    """A place with room, where nobody's abandoned folders are any more."""
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


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None where somebody else holds it."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(PREFIX + "*"):
        # Without a lock file somebody is removing it.
        if not (folder / _LOCK).exists():
            continue
        with contextlib.suppress(OSError):
            descriptor = _locked(folder)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)
