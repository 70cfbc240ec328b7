"""Safe names for uploaded files. They come from clients, so they must not determine where a file is written."""

from __future__ import annotations

import re

LONGEST = 255
"""Maximum length of a file name in bytes."""
RESERVED = ".rowcall-"
"""Prefix of the names that the service itself uses in folders for uploaded files."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[^./\\]{1,32}$")


def file_name(name: str) -> str:
    """Return a safe file name: without directories and control characters, and cut to `LONGEST` bytes. Names of Windows
    devices, and those that begin with `RESERVED`, get a `_` in front. If only dots and blanks remain, the name is
    `file`."""
    bare = _CONTROL.sub("", re.split(r"[/\\]", name)[-1]).strip()
    if bare.strip(". ") == "":
        return "file"
    if bare.startswith(RESERVED) or _DEVICES.match(bare):
        bare = f"_{bare}"
    return _truncate_name(bare)


def extension(name: str) -> str:
    """Return the extension of a file name, which is made safe first: `.pdf` of `cv.pdf`; empty if it has none."""
    match = _EXTENSION.search(file_name(name))
    return "" if match is None or match.start() == 0 else match[0]


def _truncate_name(name: str) -> str:
    """Return a name, cut to `LONGEST` bytes of UTF-8 without changing its extension."""
    if len(name.encode()) <= LONGEST:
        return name
    match = _EXTENSION.search(name)
    end = "" if match is None else match[0]
    room = LONGEST - len(end.encode())
    return name[: len(name) - len(end)].encode()[:room].decode(errors="ignore") + end


def climbs(path: str) -> bool:
    """Return whether a path may lead out of the folder to which it is relative, or into a folder in which the service
    stores files until their request has succeeded: it has a segment `..` or one that begins with `RESERVED`, or
    contains a NUL."""
    segments = re.split(r"[/\\]", path)
    return any(segment == ".." or segment.startswith(RESERVED) for segment in segments) or "\0" in path
