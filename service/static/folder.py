"""The file of a request path, cached for a second, unless the file changes.

Symbolic links are refused anywhere in the path: only files inside the folder are served.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rowcall.core.http.files import DEFAULT_DOCUMENTS, content_type, entity_tag, last_modified, relative_path

LARGEST_CACHED_FILE = 1_048_576
"""Most bytes of a file that is cached as a whole. The HTTP server reads larger files while it sends them."""
CACHED_SECONDS = 1.0
"""Seconds after which a cached file is read again, so that compressed files are noticed that are added beside it."""
MOST_CACHED_FILES = 1024
"""Most cached files."""
MOST_CACHED_BYTES = 33_554_432
"""Most bytes of all cached files."""
_CODINGS = (("br", ".br"), ("gzip", ".gz"))

State = tuple[int, int, int, int]
"""Device, inode, modification time in nanoseconds, and size of a regular file. If they are equal, it is unchanged."""


class Sibling(NamedTuple):
    """A compressed file beside a served file."""

    coding: str
    """Content coding."""
    path: str
    """Path on disk."""
    state: State

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is still there as it was found."""
        return _state(self.path) == self.state


@dataclass(slots=True, eq=False)
class StaticFile:
    """A served file, with its content if it is small. After the file has changed, a new object replaces it.

    tag, date: values of the headers `ETag` and `Last-Modified`.
    """

    path: str
    """Path on disk."""
    url: str
    """Request path, with the name of a default document."""
    state: State
    content_type: str
    tag: str
    date: str
    body: bytes | None
    """None: too large for the cache."""
    siblings: tuple[Sibling, ...] = ()
    until: float = 0.0
    """Time of the monotonic clock at which it is read again."""
    known: list[tuple[str, str]] | None = None
    """Headers of a complete response, cached after the first one, if they are the same for all callers."""

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.state[3]

    @property
    def modified(self) -> float:
        """Time of modification in seconds since the epoch."""
        return self.state[2] / 1e9


def without_compression_suffix(url: str) -> str:
    """Return a request path without the suffix of a compressed file (`.br`, `.gz`), so the path of the original file;
    any other path is returned as it is."""
    suffix = next((suffix for _, suffix in _CODINGS if url.endswith(suffix)), "")
    return url.removesuffix(suffix)


class Folder:
    """A served folder with its cache. root: its absolute path; if that contains a symbolic link, no file is found."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: OrderedDict[str, StaticFile] = OrderedDict()
        self._bytes = 0

    def find(self, path: str) -> StaticFile | str | None:
        """Return the file at a request path; None if there is none. For a folder with a default document, return that
        document, or, if the path does not end with a slash, the path with a slash, to redirect to. The parameter and
        the returned path are percent-decoded already."""
        cached = self._files.get(path)
        if cached is not None:
            if _state(cached.path) == cached.state and time.monotonic() < cached.until:
                return cached
            self._forget(path)
        inner = relative_path(path)
        if inner is None:
            return None
        target = os.path.join(self._root, inner)
        if not inner or inner.endswith("/"):
            return self._default_document(path, target)
        # Most requests are for a route: what is not there costs one system call.
        status = _status(target)
        if status is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            return f"{path}/" if self._is_inside(target) and self._has_default(target) else None
        return self._read(path, path, target, _regular(status))

    def _default_document(self, path: str, folder: str) -> StaticFile | None:
        """Return the first default document in a folder, or None. path: of the request."""
        for name in DEFAULT_DOCUMENTS:
            target = os.path.join(folder, name)
            file = self._read(path, path + name, target, _state(target))
            if file is not None:
                return file
        return None

    def _has_default(self, folder: str) -> bool:
        return any(os.path.isfile(os.path.join(folder, name)) for name in DEFAULT_DOCUMENTS)

    def _is_inside(self, target: str) -> bool:
        """Return whether a path on disk is in the folder and contains no symbolic link below it."""
        plain = os.path.normpath(target)
        return os.path.realpath(plain) == plain and (plain == self._root or plain.startswith(self._root + os.sep))

    def _read(self, path: str, url: str, target: str, state: State | None) -> StaticFile | None:
        """Return the file, and cache it; None if it is no regular file in this folder.

        path: of the request. url: the same, with the name of a default document. target: path on disk. state: of the
        target; None: it is no regular file.
        """
        if state is None or not self._is_inside(target):
            return None
        body = _content(target, state)
        file = StaticFile(
            path=target,
            url=url,
            state=state,
            content_type=content_type(target),
            tag=entity_tag(state[2], state[3]),
            date=last_modified(state[2] / 1e9),
            body=body,
            siblings=tuple(self._siblings(target, state)),
            until=time.monotonic() + CACHED_SECONDS,
        )
        self._keep(path, file)
        return file

    def _siblings(self, target: str, state: State) -> Iterator[Sibling]:
        """Yield the compressed files beside the file that are not older. target: path of the file on disk. state: of
        the file.
        """
        for coding, suffix in _CODINGS:
            path = target + suffix
            beside = _state(path) if self._is_inside(path) else None
            if beside is not None and beside[2] >= state[2]:
                yield Sibling(coding, path, beside)

    def _keep(self, path: str, file: StaticFile) -> None:
        """Cache a file under the path of its request, and remove the oldest ones above the limits."""
        self._files[path] = file
        self._bytes += len(file.body or b"")
        while len(self._files) > MOST_CACHED_FILES or self._bytes > MOST_CACHED_BYTES:
            self._forget(next(iter(self._files)))

    def _forget(self, path: str) -> None:
        file = self._files.pop(path)
        self._bytes -= len(file.body or b"")


def _status(path: str) -> os.stat_result | None:
    """Return the `stat` of a path, for a symbolic link that of the link; None: nothing is there, or it cannot be
    read."""
    try:
        return os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def _state(path: str) -> State | None:
    """Return the state of the regular file at a path; None if there is none."""
    status = _status(path)
    return None if status is None else _regular(status)


def _regular(status: os.stat_result) -> State | None:
    """Return the state of a file; None unless it is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _content(path: str, state: State) -> bytes | None:
    """Return the content of a file; None if it is larger than `LARGEST_CACHED_FILE` or cannot be read. state: of the
    file."""
    if state[3] > LARGEST_CACHED_FILE:
        return None
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_CACHED_FILE + 1)
    except OSError:
        return None
