"""Finds SQL files and reads their texts, with rules for all special cases of a folder.

A file that is deleted before it is read is ignored. Anything but a plain file (a folder, a pipe) is skipped. A link is
followed if it stays in the folder; otherwise it is refused, because the pattern defines the served folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.text.globs import base_folder, has_wildcard, is_recursive, matches

SIZE_LIMIT = 16 * 1024 * 1024
"""Maximum size of a file in bytes."""
_UTF_8_MARK = b"\xef\xbb\xbf"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file. error: why the text cannot be used; None: it can be used. With an error, `text` contains what
    could be decoded, or is empty if the file was not read (a refused link, a file that is too large, an error of the
    system).

    line: number of the line with the error, from 1; None: the error is not in one line.
    """

    path: str
    """With forward slashes, in the spelling of the folder."""
    text: str
    error: str | None = None
    line: int | None = None


def find_files(pattern: str, skip: str) -> list[str]:
    """Return the paths of the files that match `pattern`, sorted, without those that match `skip` and those in
    subfolders with a leading dot. A pattern without wildcard is the path of one file, to which `skip` does not apply.
    """
    if not has_wildcard(pattern):
        return [pattern] if os.path.isfile(pattern) else []
    return sorted(path for path in _walk(pattern) if matches(path, pattern) and not _is_skipped(path, pattern, skip))


def _is_skipped(path: str, pattern: str, skip: str) -> bool:
    """Return whether `skip` matches a path that `pattern` has found. If `pattern` begins with its wildcard, as
    `**/*.sql` does, paths of subfolders are also compared with `./` in front, so that `./drafts/**` and `*/drafts/*`
    skip them too."""
    if matches(path, skip):
        return True
    without_folder = base_folder(pattern) == "." and not pattern.startswith("./")
    return without_folder and "/" in path and matches(f"./{path}", skip)


def _walk(pattern: str) -> Iterator[str]:
    """Yield the paths of all files in the folder of a pattern, as the pattern spells it, and in its subfolders if the
    pattern is recursive. Subfolders with a leading dot are left out."""
    for folder, folders, names in os.walk(base_folder(pattern)):
        # Folders with a leading dot belong to tools.
        folders[:] = [name for name in folders if is_recursive(pattern) and not name.startswith(".")]
        # As the pattern spells it: paths begin with `./` for `./sql/*.sql`, and not for `sql/*.sql` and `**/*.sql`.
        prefix = folder.replace(os.sep, "/").rstrip("/")
        paths = (f"{prefix}/{name}" for name in names)
        yield from paths if pattern.startswith("./") else (path.removeprefix("./") for path in paths)


def read_text(path: str, folder: str) -> FileText | None:
    """Return the text of a file, or the reason why it cannot be read; None if it does not exist or is not a plain file.
    folder: a link that leads out of it is refused.
    """
    try:
        if _leads_out(path, folder):
            return FileText(path, "", f"a link that leads out of the folder {folder} is not followed")
        return _read(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        return FileText(path, "", f"it cannot be read: {error.strerror}")


def _leads_out(path: str, folder: str) -> bool:
    """Return whether the file is outside the folder once all links in both paths are resolved. Raises OSError if it
    does not exist, or if the links form a circle."""
    # Not `Path.resolve`, which raises RuntimeError for a circle of links before Python 3.13.
    target = Path(os.path.realpath(path, strict=True))
    return not target.is_relative_to(Path(folder).resolve())


def _read(path: str) -> FileText | None:
    """Return the text of a file, or why it cannot be used; None if it is not a plain file. Raises OSError."""
    # A pipe without a writer would block for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            return None
        if state.st_size > SIZE_LIMIT:
            return FileText(path, "", f"it is larger than {SIZE_LIMIT >> 20} MB")
        return decode(path, file.read(SIZE_LIMIT + 1))


def decode(path: str, data: bytes) -> FileText:
    """Return the text of a file in UTF-8, with or without byte order mark. If the data has another encoding or contains
    a NUL byte, the result has an error. data: content of the file."""
    if data.startswith(_UTF_16_MARKS):
        return FileText(path, data.decode("utf-16", "replace"), "it is UTF-16; save it as UTF-8")
    data = data.removeprefix(_UTF_8_MARK)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        return FileText(path, data.decode("utf-8", "replace"), "it is no text: it holds a NUL byte", line)
    try:
        return FileText(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return FileText(path, data.decode("utf-8", "replace"), "it is not valid UTF-8", line)
