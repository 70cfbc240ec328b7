"""One LMDB environment of the host's store: an ordered map from bytes to bytes that all workers see alike.

LMDB because a reader takes no lock and a writer's death leaves the last complete state: pages are written beside those
in use, a commit is one word, and the writers' lock is given on by the kernel. On shared memory a commit of a few keys
costs 2 µs, a read 1.7 µs (bench/micro/test_store.py). Everything stands in the environment's main table, whose keys
begin with the letter of their kind: each further LMDB table would double the cost of a commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

import lmdb

READERS = 1022
LONGEST_KEY = 511
PAGE = 4096
HEADROOM = 1.5
"""A write copies pages, and pages that a reader may still see are not free yet."""


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
    """size: bytes that its pages may take. What makes room is the user's own business (`used`)."""

    def __init__(self, path: Path, size: int) -> None:
        path.mkdir(mode=0o700, exist_ok=True)
        self.path = path
        self.size = size
        self._lmdb = lmdb.open(
            str(path),
            map_size=_pages(int(size * HEADROOM) + 64 * PAGE),
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
        self._lmdb.reader_check()
        self.begin: Callable[..., AbstractContextManager[Transaction]] = cast("Any", self._lmdb).begin

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


@contextlib.contextmanager
def mapped(path: Path, size: int) -> Iterator[mmap.mmap]:
    """Memory that all processes share, zeros at first. Whoever makes it ready does so in the `with`, alone."""
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.posix_fallocate(file.fileno(), 0, size)
        try:
            yield mmap.mmap(file.fileno(), size)
        finally:
            # Not by closing: the map has the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)


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
        found = cursor.prev() if cursor.set_range(end) else cursor.last()
        key = cursor.key()
        return key if found and key.startswith(kind) else None


def _pages(size: int) -> int:
    page = max(PAGE, os.sysconf("SC_PAGE_SIZE"))
    return (size + page - 1) // page * page
