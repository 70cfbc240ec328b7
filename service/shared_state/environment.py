"""LMDB environments of the shared state: ordered maps from bytes to bytes that all workers of the host see alike.

LMDB is used because readers take no lock, and because the death of a writer leaves the last complete state: pages are
written beside those in use, a commit is one word, and the kernel passes on the writers' lock. In shared memory a commit
of a few keys costs 2 µs, a read 1.7 µs (bench/micro/test_store.py). All data is in the main table of the environment,
with keys that begin with the letter of their kind: each further LMDB table would double the cost of a commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import lmdb

READERS = 1022
"""Maximum number of processes and threads that read at the same time."""
LONGEST_KEY = 511
"""Maximum length of a key in bytes."""
HEADROOM = 1.5
"""Factor for the size of the map: a write copies pages, and pages that a reader may still use are not free yet."""
LEAST = 524_288
"""Minimum size of an environment in bytes, however little memory is free."""

log = logging.getLogger("rowcall")


class Cursor(Protocol):
    """The part of LMDB's cursors that is used here."""

    def set_range(self, key: bytes) -> bool: ...
    def prev(self) -> bool: ...
    def last(self) -> bool: ...
    def key(self) -> bytes: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __enter__(self) -> Cursor: ...
    def __exit__(self, *error: object) -> None: ...


class Transaction(Protocol):
    """The part of LMDB's transactions that is used here. LMDB can also return views instead of bytes, which is not
    used.
    """

    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, value: bytes, *, append: bool = ...) -> bool: ...
    def pop(self, key: bytes) -> bytes | None: ...
    def delete(self, key: bytes) -> bool: ...
    def cursor(self) -> Cursor: ...
    def stat(self) -> dict[str, int]: ...


class Environment:
    """An open LMDB environment.

    path: its folder. size: requested bytes of data; if there is not enough memory, the attribute `size` is smaller.
    LMDB does not enforce it: the user of the environment removes data when `bytes_in_use` exceeds it.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Open or create the environment. Raises OSError if there is almost no memory."""
        self.path = path
        with agree_on_size(path, size, _map_size) as self.size:
            self._lmdb = self._open_environment()
            if self.size < size:
                _reserve_all(path / "data.mdb")
        self._lmdb.reader_check()
        self.begin: Callable[..., AbstractContextManager[Transaction]] = cast("Any", self._lmdb).begin

    def _open_environment(self) -> lmdb.Environment:
        """Open the environment with a map for the agreed size."""
        return lmdb.open(
            str(self.path),
            map_size=_map_size(self.size),
            max_readers=READERS,
            max_spare_txns=4,
            # The data need not survive a restart of the machine, so commits do not wait for synchronisation.
            sync=False,
            metasync=False,
            writemap=True,
            readahead=False,
            meminit=False,
            mode=0o600,
        )

    def get(self, key: bytes) -> bytes | None:
        """Return the value of the key as of the last commit, or None."""
        with self.begin() as transaction:
            return transaction.get(key)

    def write(self) -> AbstractContextManager[Transaction]:
        """Return a write transaction, for `with`: it commits at the end, or rolls back on an exception.

        Writers of all processes run one after the other, so the block must not wait for anything. Writing raises
        `lmdb.MapFullError` if there is no room.
        """
        return self.begin(write=True)

    def forget_readers(self) -> None:
        """Release the pages that are held by readers whose process has ended."""
        self._lmdb.reader_check()

    def close(self) -> None:
        self._lmdb.close()


def _map_size(size: int) -> int:
    """Return the bytes of the map of an environment with `size` bytes of data, in whole pages."""
    page = os.sysconf("SC_PAGE_SIZE")
    return (int(size * HEADROOM) + 64 * page + page - 1) // page * page


@contextlib.contextmanager
def agree_on_size(path: Path, size: int, memory_for: Callable[[int], int]) -> Iterator[int]:
    """Yield how many bytes of data this folder has for all processes: `size`, or fewer if the first process finds too
    little free memory for it (`_fit_free_memory`). The first process stores the number; later ones read it.

    Other processes wait until the `with` ends, so that only one prepares the data. path: the folder, created if it is
    missing. size: requested bytes. memory_for: function from bytes of data to the bytes of shared memory that they
    take.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    with open_locked(path / "size") as file:
        result = file.read()
        fitting = int(result) if result else _fit_free_memory(path, size, memory_for)
        yield fitting
        if not result:
            file.write(b"%d" % fitting)


def _fit_free_memory(folder: Path, size: int, memory_for: Callable[[int], int]) -> int:
    """Return `size`; if that takes more than half of the free memory, return as many bytes of data as fit into that
    half, at least `LEAST`, and log a warning. folder: of the data. memory_for: as for `agree_on_size`.

    Other programs need memory later, and a page that is not available when it is written to ends the process (SIGBUS).
    """
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if memory_for(size) <= free // 2:
        return size
    fitting = max(LEAST, int((free // 2 - memory_for(0)) * size / (memory_for(size) - memory_for(0))))
    log.warning(
        "%s has %d MB free, which is too little for the %d MB of '%s': it has %.1f MB; give it more room (docker run "
        "--shm-size, shm_size in a compose file, a volume of medium Memory in Kubernetes), or ask for less",
        *(folder.parent.parent, free >> 20, size >> 20, folder.name, fitting / (1 << 20)),
    )
    return fitting


def _reserve_all(path: Path) -> None:
    """Allocate all pages of an existing file now. Raises `OSError`."""
    with path.open("r+b") as file:
        reserve(file, path.stat().st_size)


def reserve(file: BinaryIO, size: int) -> None:
    """Allocate the pages of the first `size` bytes of a file now. macOS cannot: there the file gets its length, and
    pages are allocated when written to.

    Raises:
        OSError: the pages are not available; the error names the file.
    """
    if sys.platform == "darwin":
        os.truncate(file.fileno(), max(size, os.fstat(file.fileno()).st_size))
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}, of which {size} bytes are needed", file.name) from None


@contextlib.contextmanager
def open_locked(path: Path) -> Iterator[BinaryIO]:
    """Open a file under an exclusive lock, which is released at the end of the `with`. If another process has the lock,
    wait. A missing file is created; writes go to the end of the file."""
    with path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        try:
            yield cast("BinaryIO", file)
        finally:
            # Closing would not release it: a memory map of the file holds it open as well.
            fcntl.flock(file, fcntl.LOCK_UN)


@contextlib.contextmanager
def shared_memory(path: Path, size: int) -> Iterator[mmap.mmap]:
    """Yield a memory map that all processes share, initially zeros. Other processes wait until the `with` ends, so that
    one process at a time initialises the memory. The map can be used after that.

    path: folder for this memory alone, created if it is missing. size: requested bytes; the map is smaller if there is
    too little free memory. Pages of a map of the requested size are allocated when they are written to, those of a
    smaller one now; raises `OSError` if they are not available.
    """
    with agree_on_size(path, size, int) as fitting, (path / "memory").open("a+b", buffering=0) as file:
        if fitting < size:
            reserve(cast("BinaryIO", file), fitting)
        else:
            os.truncate(file.fileno(), fitting)
        yield mmap.mmap(file.fileno(), fitting)


def bytes_in_use(transaction: Transaction) -> int:
    """Return the bytes of the pages in use, as this transaction sees them."""
    pages = transaction.stat()
    return pages["psize"] * (pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"])


def items_between(transaction: Transaction, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values from `first` up to but not including `end`, in order."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(first):
            return
        for key, value in cursor:
            if key >= end:
                return
            yield key, value


def last_before(transaction: Transaction, end: bytes, kind: bytes) -> bytes | None:
    """Return the highest key below `end`; None if there is none, or if it does not begin with `kind`."""
    with transaction.cursor() as cursor:
        is_positioned = cursor.prev() if cursor.set_range(end) else cursor.last()
        key = cursor.key()
        return key if is_positioned and key.startswith(kind) else None
