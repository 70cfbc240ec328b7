"""Storing files in folders, all files of a request or none: a request that fails, or is killed, leaves no files.

For each folder, a request has a hidden and locked folder of its own in it, and writes there. A complete file gets its
name in the target folder as a second hard link; a file that had the name before is retained in the hidden folder. When
the request has succeeded, the hidden folder is renamed, which makes all its files permanent at once, and later removed.
When it fails, the new names are removed, and replaced files are restored.

The lock ends with the process. At the start, and before the first file of a worker for a folder, hidden folders that no
process locks are found, and their requests are undone (`remove_orphaned_files`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

from rowcall.core.uploads.names import RESERVED
from rowcall.core.uploads.protected_folders import ProtectedFolders
from rowcall.service.log.entry import escape_unprintable

log = logging.getLogger("rowcall")

MOST_LOOKED_AFTER = 4096
"""Folders that a process remembers as free of orphaned files. Beyond it, all of them are forgotten and searched again:
values of requests may name any number of folders.
"""
MOST_NAMED = 20
"""Most files of an upload that a warning lists."""
_BEFORE = ".before"
"""Suffix of a retained file, which the name had before."""
_NEW = ".new"
"""Suffix of the link that replaces the name."""
_SETTLED = ".settled"
"""Suffix of a hidden folder whose files are permanent."""
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
"""Errors of file systems without hard links."""


class MissingFolderError(Exception):
    """The target folder does not exist, and must not be created."""


class ProtectedFolderError(Exception):
    """The target folder holds code, configuration, keys or SQL files of the service."""


class Folders:
    """The target folders of one request. All methods block on the disk."""

    _looked_after: ClassVar[set[str]] = set()
    """Folders in which this process has removed orphaned files."""

    def __init__(self, protected: ProtectedFolders) -> None:
        self._protected = protected
        self._open: dict[str, _HiddenFolder] = {}
        self._created: list[Path] = []
        """Folders that this request has created, the outer ones first."""

    def begin(self, folder: str, *, create: bool) -> Incomplete:
        """Open a new file to write to. create: create the folder if it is missing. Raises `MissingFolderError`,
        `ProtectedFolderError` and `OSError`.
        """
        hidden = self._open.get(folder)
        if hidden is None:
            self._check(folder)
            if create:
                self._create(Path(folder))
            elif not Path(folder).is_dir():
                raise MissingFolderError(folder)
            if folder not in self._looked_after:
                remove_orphaned_files(folder)
                if len(self._looked_after) >= MOST_LOOKED_AFTER:
                    self._looked_after.clear()
                self._looked_after.add(folder)
            hidden = self._open[folder] = self._create_hidden_folder(Path(folder), create=create)
        return hidden.begin()

    def _create(self, folder: Path) -> None:
        """Create a folder and its missing parents, and record them. Raises `OSError`."""
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another request was faster
                path.mkdir()
                self._created.append(path)

    def _create_hidden_folder(self, folder: Path, *, create: bool) -> _HiddenFolder:
        """Create the hidden folder in a folder. create: create the folder again if another request has removed it.
        Raises `OSError`.
        """
        try:
            return _HiddenFolder(folder)
        except FileNotFoundError:
            if not create:
                raise
            # The request that had created the folder has failed meanwhile, and has removed it.
            self._create(folder)
            return _HiddenFolder(folder)

    def _check(self, folder: str) -> None:
        """Raise `ProtectedFolderError`, and log why, if the folder is protected: values of the request, and symbolic
        links made since the start, may lead to a folder of the service.
        """
        reason = self._protected.conflict(os.path.realpath(folder))
        if reason is not None:
            log.error("uploaded files must not be written into %s: %s", escape_unprintable(folder), reason)
            raise ProtectedFolderError(folder)

    def settle(self) -> None:
        """Make the files permanent, before the commit, folder by folder. A crash after this no longer removes them: a
        surplus file is better than a row without its file. `undo` still removes them. Raises `OSError`.

        If the process is killed before the commit has ended, the files of all folders that were settled remain, even if
        the transaction is rolled back; the next process logs them. They cannot be checked later: the outcome is known
        only to the server of the transaction (`pg_xact_status`), and the configured server may by then be a restored
        copy, in which the same transaction number has another outcome.
        """
        for hidden in self._open.values():
            hidden.settle()

    def finish(self) -> None:
        """Remove the hidden folders after success."""
        for hidden in self._open.values():
            hidden.finish()
        self._open.clear()
        self._created.clear()

    def leave(self) -> None:
        """Leave the files although it is not known whether the transaction took effect, and log them: a surplus file is
        better than a row without its file."""
        for hidden in self._open.values():
            hidden.log("the outcome of an upload is not known, because its commit was not confirmed")
        self.finish()

    def undo(self) -> None:
        """Remove the files after an error, also after one that follows `settle`; restore the files that they replaced,
        and remove the folders that the request has created, if they are empty."""
        for hidden in self._open.values():
            hidden.undo()
        for folder in reversed(self._created):
            with contextlib.suppress(OSError):  # another request has put a file there
                folder.rmdir()


class Incomplete:
    """A file that is being written. target: the file, open for writing and unbuffered."""

    def __init__(self, hidden: _HiddenFolder, path: Path, target: BinaryIO) -> None:
        self._hidden = hidden
        self._path = path
        self.target = target

    def place(self, name: str) -> None:
        """Complete the file: give it its name in the folder. A file that had the name is restored if the request fails,
        unless the file system has no hard links. Raises `OSError`."""
        self.target.close()
        self._hidden.place(self._path, name)

    def drop(self) -> None:
        """Close and remove a file that is not completed."""
        self.target.close()
        self._path.unlink(missing_ok=True)


class _HiddenFolder:
    """The hidden and locked folder of one request, which construction creates. folder: the target folder, which
    contains it. Raises `OSError`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._placed: list[tuple[Path, str | None, int]] = []
        """Target paths of the files, each with the name of the retained previous file in this folder, and its inode."""
        self._count = 0
        while True:
            self._path = folder / f"{RESERVED}{uuid.uuid4().hex}"
            self._path.mkdir(mode=0o700)
            try:
                lock = _lock(self._path)
            except OSError:
                with contextlib.suppress(OSError):
                    self._path.rmdir()
                raise
            if lock is not None and self._path.is_dir():
                break
        self._lock: int | None = lock

    def begin(self) -> Incomplete:
        """Open a new file in this folder. Raises `OSError`."""
        self._count += 1
        path = self._path / str(self._count)
        return Incomplete(self, path, path.open("xb", buffering=0))

    def place(self, path: Path, name: str) -> None:
        """Give a file its name in the target folder, and retain the file that had the name, which is lost if the file
        system has no hard links. path: the file in this folder. Raises `OSError`."""
        final = self._folder / name
        before = path.with_suffix(_BEFORE)
        inode = path.stat().st_ino
        try:
            os.link(path, final, follow_symlinks=False)
        except FileExistsError:
            os.link(final, before, follow_symlinks=False)
            # With a third name, because replacing is atomic, and the first name is still needed to undo it.
            os.link(path, path.with_suffix(_NEW), follow_symlinks=False)
            os.replace(path.with_suffix(_NEW), final)
            self._placed.append((final, before.name, inode))
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # The file system has no hard links: a replaced file cannot be retained.
            os.replace(path, final)
            self._placed.append((final, None, inode))
        else:
            self._placed.append((final, None, inode))

    def settle(self) -> None:
        """Make the files permanent in one step. They can still be removed, and the replaced ones restored, until the
        request has ended. Raises `OSError`.
        """
        self._path = self._path.rename(self._path.with_suffix(_SETTLED))
        # After a power failure the folder could have its former name, although the commit that follows is durable.
        with contextlib.suppress(OSError):  # raised by file systems that cannot, and without the right to list
            opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def finish(self) -> None:
        self._remove()

    def log(self, why: str) -> None:
        """Log the files that stay, as `_log_files` does. Raises nothing."""
        with contextlib.suppress(OSError):
            _log_files(self._folder, self._path, why)

    def undo(self) -> None:
        """Remove the placed files, restore the replaced ones, and remove this folder. Raises nothing. A replaced file
        is lost if the file system has no hard links. A file that another request has stored under the name meanwhile
        stays."""
        for final, before, inode in reversed(self._placed):
            with contextlib.suppress(OSError):
                if final.lstat().st_ino != inode:
                    continue
                if before is None:
                    final.unlink()
                else:
                    os.replace(self._path / before, final)
        self._remove()

    def _remove(self) -> None:
        """Remove this folder with its files, and release its lock. Raises nothing."""
        with contextlib.suppress(OSError):
            _remove_folder(self._path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_orphaned_files(folder: str) -> bool:
    """Undo the requests of processes that were killed before they settled, and log the files of those that were killed
    later: it is not known whether their transactions took effect. Return False if other processes still lock hidden
    folders in this folder. Raises nothing."""
    count = held = 0
    for path in _find_hidden_folders(Path(folder)):
        with contextlib.suppress(OSError):
            lock = _lock(path)
            if lock is None:
                held += path.exists()
                continue
            try:
                if path.suffix == _SETTLED:
                    _log_files(Path(folder), path, "a worker was ended while it committed an upload")
                    _remove_folder(path)
                else:
                    _undo_killed(Path(folder), path)
                    count += 1
            finally:
                os.close(lock)
    if count:
        log.warning("%s: files of %d uploads that were cut off by the end of a worker have been removed", folder, count)
    return not held


def _log_files(folder: Path, hidden: Path, why: str) -> None:
    """Log the files of a request that stay although it is not known whether its transaction took effect. hidden: its
    hidden folder, which the caller has locked. why: its outcome is not known. Raises `OSError`.
    """
    own = {path.stat().st_ino for path in hidden.iterdir() if path.suffix == ""}
    with os.scandir(folder) as entries:
        names = sorted(escape_unprintable(entry.name) for entry in entries if entry.inode() in own)
    if names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        log.warning(
            "%s: %s; its files stay, although it may have been rolled back: %s%s",
            *(folder, why, ", ".join(names[:MOST_NAMED]), more),
        )


def _undo_killed(folder: Path, hidden: Path) -> None:
    """Undo the request of a killed process, and remove its hidden folder, which the caller has locked. A name in the
    folder belongs to a file of the hidden folder if both are links to the same file. Raises `OSError`.
    """
    unfinished = {path.stat().st_ino: path for path in hidden.iterdir() if path.suffix == ""}
    if unfinished:
        with os.scandir(folder) as entries:
            placed = [(Path(entry.path), entry.inode()) for entry in entries]
        for path, inode in placed:
            if inode in unfinished and not path.is_dir():
                before = _file_before_request(inode, unfinished)
                if before is None:
                    path.unlink()
                else:
                    os.replace(before, path)
    _remove_folder(hidden)


def _file_before_request(inode: int, unfinished: Mapping[int, Path]) -> Path | None:
    """Return the retained file that had the name of a placed file before the request; None if there was none. inode: of
    the placed file. unfinished: the files of the request, by inode.

    If a request stores several files of one name, each one replaces the file of the same request before it.
    """
    before = None
    while inode in unfinished:
        before = unfinished[inode].with_suffix(_BEFORE)
        if not before.exists():
            return None
        inode = before.stat().st_ino
    return before


def _find_hidden_folders(folder: Path) -> Iterator[Path]:
    """Yield the hidden folders in a folder; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(RESERVED)]
    except OSError:
        return
    for name in names:
        path = folder / name
        if not path.is_symlink() and path.is_dir():
            yield path


def _lock(folder: Path) -> int | None:
    """Lock the folder. Return its descriptor, or None if another process holds the lock or the folder is gone. Raises
    `OSError` if it cannot be opened, or if its file system has no locks.
    """
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(opened)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return opened


def _remove_folder(path: Path) -> None:
    """Remove a folder and the files in it. Raises `OSError`."""
    for inside in path.iterdir():
        inside.unlink()
    path.rmdir()
