"""Names of uploaded files. They are the client's, so nothing of them may decide where something is written."""

from __future__ import annotations

import re

LONGEST = 255
"""Bytes that file systems let a name have."""
RESERVED = ".rowcall-"
"""Begins the names of what the service itself puts beside uploaded files."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\.|$)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[^./\\]{1,32}$")


def file_name(name: str) -> str:
    """A name for a file of a folder: without directories, without what ends a name or means a device, not too long."""
    bare = _CONTROL.sub("", re.split(r"[/\\]", name)[-1]).strip()
    if bare.strip(". ") == "":
        return "file"
    if bare.startswith(RESERVED) or _DEVICES.match(bare):
        bare = f"_{bare}"
    return _cut(bare)


def extension(name: str) -> str:
    """`.pdf` of `cv.pdf`; empty when there is none."""
    match = _EXTENSION.search(file_name(name))
    return "" if match is None or match.start() == 0 else match[0]


def _cut(name: str) -> str:
    """At most `LONGEST` bytes, the extension kept."""
    if len(name.encode()) <= LONGEST:
        return name
    match = _EXTENSION.search(name)
    end = "" if match is None else match[0]
    room = LONGEST - len(end.encode())
    return name[: len(name) - len(end)].encode()[:room].decode(errors="ignore") + end


def climbs(path: str) -> bool:
    """Leads out of the folder that it is below."""
    return ".." in re.split(r"[/\\]", path) or "\0" in path
