"""One thing to be logged, as plain data: it travels from a worker to the supervisor, which writes it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

VERBOSE = 5
OFF = logging.CRITICAL + 10

NAMES = {
    VERBOSE: "Verbose",
    logging.DEBUG: "Debug",
    logging.INFO: "Information",
    logging.WARNING: "Warning",
    logging.ERROR: "Error",
    logging.CRITICAL: "Fatal",
}
LEVELS = {name.casefold(): level for level, name in NAMES.items()} | dict.fromkeys(("off", "none", "silent"), OFF)

NOTHING: Mapping[str, Any] = {}


class Entry(NamedTuple):
    """time: seconds since the epoch. properties: what sinks with structure show by name, message or not."""

    time: float
    level: int
    source: str
    message: str
    exception: str | None = None
    properties: Mapping[str, Any] = NOTHING


def level_name(level: int) -> str:
    """The nearest name at or below `level`; the lowest one for what lies below it."""
    return NAMES.get(level) or NAMES[max((known for known in NAMES if known <= level), default=VERBOSE)]


class _Escapes(dict[int, str]):
    """For `str.translate`: what is not printable, as Python would write it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        return character if character.isprintable() else repr(character)[1:-1]


_FREQUENT = _Escapes({code: _Escapes()[code] for code in range(256)})
_BUT_TABS = _Escapes(_FREQUENT | {ord("\t"): "\t"})
_LIKE_AN_ENTRY = re.compile(r"\n(?=[\[{0-9])")
"""With a time in front, or a brace: what the built-in forms of an entry begin with."""


def harmless(text: str) -> str:
    """Routines, clients and servers have a say in many messages. None of its lines looks like an entry of its own, as
    those that could are indented, and nothing in it steers a terminal. Where all of a text comes from elsewhere, it is
    told in `one_line`.
    """
    if text.isprintable():
        return text
    lines = (line if line.isprintable() else line.translate(_BUT_TABS) for line in text.split("\n"))
    return _LIKE_AN_ENTRY.sub("\n    ", "\n".join(lines))


def one_line(text: str) -> str:
    """What a client has sent must not look like a line of the log's own, nor steer the terminal."""
    return text if text.isprintable() else text.translate(_FREQUENT)
