"""One LMDB environment of the host's store: an ordered map from bytes to bytes that all workers see alike.

LMDB because a reader takes no lock and a writer's death leaves the last complete state: pages are written beside those
in use, a commit is one word, and the writers' lock is given on by the kernel. On shared memory a commit of a few keys
costs 2 µs, a read 1.7 µs (bench/micro/test_store.py). Everything stands in the environment's main table, whose keys
begin with the letter of their kind: each further LMDB table would double the cost of a commit.
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
LONGEST_KEY = 511
PAGE = 4096
HEADROOM = 1.5
"""A write copies pages, and pages that a reader may still see are not free yet."""
LEAST = 524_288
"""Bytes of an environment, however little there is."""

log = logging.getLogger("rowcall")


class Cursor(Protocol):
    def set_range(self, key: bytes) -> bool: ...
    def prev(self) -> bool: ...
    def last(self) -> bool: ...
    def key(self) -> bytes: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __enter__(self) -> Cursor: ...
    def __exit__(self, *error: object) -> None: ...


class Transaction(Protocol):
    """What is used of LMDB's: it may give views instead of bytes, which nobody here asks for."""

    def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, value: bytes, *, append: bool = ...) -> bool: ...
    def pop(self, key: bytes) -> bytes | None: ...
    def delete(self, key: bytes) -> bool: ...
    def cursor(self) -> Cursor: ...
    def stat(self) -> dict[str, int]: ...


class Environment:
    """size: bytes that its pages may take; it has fewer where there is not so much memory. What makes room is the
    user's own business (`used`).
    """

    def __init__(self, path: Path, size: int) -> None:
        """Raises OSError where there is next to none."""
        self.path = path
        with agreed(path, size, _map_size) as self.size:
            self._lmdb = self._opened()
            if self.size < size:
                _reserve_all(path / "data.mdb")
        self._lmdb.reader_check()
        self.begin: Callable[..., AbstractContextManager[Transaction]] = cast("Any", self._lmdb).begin

    def _opened(self) -> lmdb.Environment:
        return lmdb.open(
            str(self.path),
            map_size=_map_size(self.size),
            max_readers=READERS,
            max_spare_txns=4,
            # Nothing has to outlive the machine, so nothing is ever waited for.
            sync=False,
            metasync=False,
            writemap=True,
            readahead=False,
            meminit=False,
            mode=0o600,
        )

    def get(self, key: bytes) -> bytes | None:
        """As of the last commit."""
        with self.begin() as transaction:
            return transaction.get(key)

    def write(self) -> AbstractContextManager[Transaction]:
        """To be used with `with`: commits at its end, or does nothing when that is an exception.

        Writers of all processes follow one another, so nothing is waited for inside.
        """
        return self.begin(write=True)

    def forget_readers(self) -> None:
        """Frees the pages that processes which are gone were reading."""
        self._lmdb.reader_check()

    def close(self) -> None:
        self._lmdb.close()


def _map_size(size: int) -> int:
    page = max(PAGE, os.sysconf("SC_PAGE_SIZE"))
    return (int(size * HEADROOM) + 64 * PAGE + page - 1) // page * page


@contextlib.contextmanager
def agreed(path: Path, size: int, whole: Callable[[int], int]) -> Iterator[int]:
    """The size of what lies in this folder, the same for all processes: that of the first one. Nobody else makes it
    ready meanwhile. whole: bytes of shared memory that a size takes."""
    path.mkdir(mode=0o700, exist_ok=True)
    with locked(path / "size") as file:
        result = file.read()
        fitting = int(result) if result else _fitting(path, size, whole)
        yield fitting
        if not result:
            file.write(b"%d" % fitting)


def _fitting(folder: Path, size: int, whole: Callable[[int], int]) -> int:
    """As much as half of what is free, at most: others come after us, and a page that cannot be had when it is written
    to ends the process (SIGBUS).
    """
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if whole(size) <= free // 2:
        return size
    fitting = max(LEAST, int((free // 2 - whole(0)) * size / (whole(size) - whole(0))))
    log.warning(
        "%s has %d MB free, which is too little for the %d MB of '%s': it has %.1f MB; give it more room (docker run "
        "--shm-size, shm_size in a compose file, a volume of medium Memory in Kubernetes), or ask for less",
        *(folder.parent.parent, free >> 20, size >> 20, folder.name, fitting / (1 << 20)),
    )
    return fitting


def _reserve_all(path: Path) -> None:
    with path.open("r+b") as file:
        reserve(file, path.stat().st_size)


def reserve(file: BinaryIO, size: int) -> None:
    """Its pages are there from now on. macOS cannot: there it is as long, and they come when they are written to.

    Raises OSError, which names the file, where they cannot be had.
    """
    if sys.platform == "darwin":
        os.truncate(file.fileno(), max(size, os.fstat(file.fileno()).st_size))
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}, of which {size} bytes are needed", file.name) from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """A file, made where there is none, that one process has at a time; written to at its end."""
    with path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        try:
            yield cast("BinaryIO", file)
        finally:
            # Not by closing: a map of it has the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)


@contextlib.contextmanager
def shared_memory(path: Path, size: int) -> Iterator[mmap.mmap]:
    """Memory that all processes share, zeros at first, in a folder of its own and of the size that they have agreed on.
    Whoever makes it ready does so in the `with`, alone. Pages come when they are written to, where enough are free."""
    with agreed(path, size, int) as fitting, (path / "memory").open("a+b", buffering=0) as file:
        if fitting < size:
            reserve(cast("BinaryIO", file), fitting)
        else:
            os.truncate(file.fileno(), fitting)
        yield mmap.mmap(file.fileno(), fitting)


def used(transaction: Transaction) -> int:
    """Bytes of the pages in use, as this transaction sees them."""
    pages = transaction.stat()
    return int(PAGE * (pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"]))


def between(transaction: Transaction, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values from `first` up to but not including `end`, in order."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(first):
            return
        for key, value in cursor:
            if key >= end:
                return
            yield key, value


def last_before(transaction: Transaction, end: bytes, kind: bytes) -> bytes | None:
    """The highest key below `end` that begins with `kind`."""
    with transaction.cursor() as cursor:
        result = cursor.prev() if cursor.set_range(end) else cursor.last()
        key = cursor.key()
        return key if result and key.startswith(kind) else None
