"""A log entry as plain data, which travels from a worker to the supervisor."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from rowcall.core.text.lines import ESCAPES, printable_line

VERBOSE = 5
"""Level below DEBUG."""
OFF = logging.CRITICAL + 10
"""Level that no entry has."""

NAMES = {
    VERBOSE: "Verbose",
    logging.DEBUG: "Debug",
    logging.INFO: "Information",
    logging.WARNING: "Warning",
    logging.ERROR: "Error",
    logging.CRITICAL: "Fatal",
}
"""Names of levels in the configuration and in the log."""
LEVELS = {name.casefold(): level for level, name in NAMES.items()} | dict.fromkeys(("off", "none", "silent"), OFF)
"""Levels by case-folded name."""

NOTHING: Mapping[str, Any] = {}


class Entry(NamedTuple):
    """A log entry. time: seconds since 1970. source: name of the channel. exception: the formatted traceback; None:
    there is none. properties: structured sinks show them by name, whether or not the message contains them.
    """

    time: float
    level: int
    source: str
    message: str
    exception: str | None = None
    properties: Mapping[str, Any] = NOTHING


def level_name(level: int) -> str:
    """Return the name of the nearest named level at or below `level`; below all of them, the name of the lowest."""
    return (
        NAMES.get(level) or NAMES[max((named_level for named_level in NAMES if named_level <= level), default=VERBOSE)]
    )


_LIKE_AN_ENTRY = re.compile(r"\n(?=[\[{0-9])")
"""A line break before a time or a brace, with which the built-in forms of an entry begin."""


def escape_message(text: str) -> str:
    """Return a message, parts of which may come from routines, clients or servers, with unprintable characters escaped
    except line breaks and tabs.

    Lines that could look like a separate entry are indented, and control characters cannot affect a terminal. A text
    that comes entirely from outside is escaped by `escape_unprintable`.
    """
    if text.isprintable():
        return text
    return _LIKE_AN_ENTRY.sub("\n    ", "\n".join(map(printable_line, text.split("\n"))))


def escape_unprintable(text: str) -> str:
    """Return a text from outside with unprintable characters escaped, line breaks included, so that it can neither look
    like a log entry nor affect the terminal.
    """
    return text if text.isprintable() else text.translate(ESCAPES)


def json_line(entry: Entry) -> str:
    """Return the entry as a line of JSON, for collectors that read standard output or files:
    `{"time":…,"level":…,"source":…,"message":…}`, with `exception` and the properties if there are any."""
    moment = datetime.datetime.fromtimestamp(entry.time, datetime.UTC)
    fields = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level_name(entry.level),
        "source": entry.source,
        "message": entry.message,
    }
    if entry.exception:
        fields["exception"] = entry.exception
    return orjson.dumps({**entry.properties, **fields}, default=str, option=orjson.OPT_APPEND_NEWLINE).decode()
