"""Wake-up pipes: a named pipe for each process that wants to be woken. A write never blocks, and no wake-up is lost.

A byte in the pipe only means "read the messages"; the messages themselves are in the shared state. A full pipe already
wakes its reader, so a byte that does not fit can be dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

_AT_ONCE = 65_536


class WakeupPipe:
    """The wake-up pipe of this process, from construction until `close`. Needs a running event loop.

    path: of the named pipe, which is created. on_ring: called in the event loop after the pipe was written to, once for
    several writes in a row. Raises `OSError`.
    """

    def __init__(self, path: Path, on_ring: Callable[[], None]) -> None:
        os.mkfifo(path, 0o600)
        self._path = path
        self._on_ring = on_ring
        # Opened for reading and writing: otherwise reads would return end of file while no notifier has it open.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._answer)

    def _answer(self) -> None:
        """Empty the pipe and call `on_ring`."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe, _AT_ONCE)
        self._on_ring()

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._path.unlink(missing_ok=True)


class Notifier:
    """Writes to the wake-up pipes of a folder, by their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pipes: dict[str, int] = {}

    def ring(self, names: Iterable[str]) -> list[str]:
        """Wake the processes with these names. Return the names of pipes that no process reads any more, which are
        removed. Raises `OSError` if a pipe cannot be opened for another reason, such as no free descriptor; the
        processes after it are not woken then."""
        return [name for name in names if not self._ring(name)]

    def _ring(self, name: str) -> bool:
        """Wake the process with this name. Return False if nothing reads its pipe any more, which is then removed."""
        try:
            pipe = self._pipes.get(name)
            if pipe is None:
                pipe = self._pipes[name] = os.open(self._folder / name, os.O_WRONLY | os.O_NONBLOCK)
            os.write(pipe, b"!")
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.ENXIO, errno.ENOENT):
                self._forget(name)
                return False
            raise
        return True

    def _forget(self, name: str) -> None:
        """Close and delete the pipe with this name, as no process reads it any more."""
        pipe = self._pipes.pop(name, None)
        if pipe is not None:
            os.close(pipe)
        (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        for pipe in self._pipes.values():
            os.close(pipe)
        self._pipes.clear()
