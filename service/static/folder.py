"""Which file a request path means, looked up once and kept as long as the file stays as it is.

Links are refused wherever they stand: what lies in the folder is served, and nothing that it points to.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from dataclasses import dataclass

from rowcall.core.http.files import DEFAULT_DOCUMENTS, content_type, entity_tag, last_modified, relative_path

KEPT_BYTES = 1_048_576
"""Of a file that is kept in memory as a whole; larger ones are read by the HTTP server as they are sent."""
KEPT_FILES = 1024
KEPT_IN_ALL = 33_554_432
_CODINGS = (("br", ".br"), ("gzip", ".gz"))


@dataclass(slots=True, eq=False)
class StaticFile:
    """As it is now; one that has changed is another."""

    path: str
    """On disk."""
    url: str
    """As a request would name it: with the default document, if it is one."""
    state: tuple[int, int, int, int]
    """Device, number, modification in nanoseconds, size: while they stay, it is the same file."""
    content_type: str
    tag: str
    date: str
    body: bytes | None
    """None: too large to be kept."""
    siblings: tuple[tuple[str, str], ...] = ()
    """Codings that lie beside it, and their paths."""
    known: list[tuple[str, str]] | None = None
    """Header fields with which everybody gets all of it, once that has been found out."""

    @property
    def size(self) -> int:
        return self.state[3]

    @property
    def modified(self) -> float:
        return self.state[2] / 1e9


class Folder:
    def __init__(self, root: str) -> None:
        self._root = root
        self._files: OrderedDict[str, StaticFile] = OrderedDict()
        self._bytes = 0

    def find(self, path: str) -> StaticFile | str | None:
        """The file at a request path; for a folder without a slash at its end, where it is."""
        known = self._files.get(path)
        if known is not None:
            if _state(known.path) == known.state:
                return known
            self._forget(path)
        inner = relative_path(path)
        if inner is None:
            return None
        target = os.path.join(self._root, inner)
        if not inner or inner.endswith("/"):
            return self._default_document(path, target)
        if os.path.isdir(target):
            return f"{path}/" if self._is_inside(target) and self._has_default(target) else None
        return self._read(path, path, target)

    def _default_document(self, path: str, folder: str) -> StaticFile | None:
        for name in DEFAULT_DOCUMENTS:
            found = self._read(path, path + name, os.path.join(folder, name))
            if found is not None:
                return found
        return None

    def _has_default(self, folder: str) -> bool:
        return any(os.path.isfile(os.path.join(folder, name)) for name in DEFAULT_DOCUMENTS)

    def _is_inside(self, target: str) -> bool:
        """Without a link on the way."""
        plain = os.path.normpath(target)
        return os.path.realpath(plain) == plain and (plain == self._root or plain.startswith(self._root + os.sep))

    def _read(self, path: str, url: str, target: str) -> StaticFile | None:
        state = _state(target)
        if state is None or not self._is_inside(target):
            return None
        body = _content(target, state)
        found = StaticFile(
            path=target,
            url=url,
            state=state,
            content_type=content_type(target),
            tag=entity_tag(state[2], state[3]),
            date=last_modified(state[2] / 1e9),
            body=body,
            siblings=tuple(self._siblings(target, state)),
        )
        self._keep(path, found)
        return found

    def _siblings(self, target: str, state: tuple[int, int, int, int]) -> list[tuple[str, str]]:
        """Compressed beforehand, and not older than what they were made from."""
        beside = ((coding, target + suffix) for coding, suffix in _CODINGS)
        found = ((coding, path, _state(path)) for coding, path in beside if self._is_inside(path))
        return [(coding, path) for coding, path, other in found if other is not None and other[2] >= state[2]]

    def _keep(self, path: str, file: StaticFile) -> None:
        self._files[path] = file
        self._bytes += len(file.body or b"")
        while len(self._files) > KEPT_FILES or self._bytes > KEPT_IN_ALL:
            self._forget(next(iter(self._files)))

    def _forget(self, path: str) -> None:
        gone = self._files.pop(path)
        self._bytes -= len(gone.body or b"")


def _state(path: str) -> tuple[int, int, int, int] | None:
    """None for what is no plain file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _content(path: str, state: tuple[int, int, int, int]) -> bytes | None:
    if state[3] > KEPT_BYTES:
        return None
    try:
        with open(path, "rb") as file:
            return file.read(KEPT_BYTES + 1)
    except OSError:
        return None
