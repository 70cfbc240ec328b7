"""`Log:OutputTemplate`: the format of lines for people, in the syntax of NpgsqlRest (logging-2).

The placeholders are `{Timestamp:HH:mm:ss.fff}` (with a date format of .NET), `{Level}` (`{Level:u3}` and `{Level:w3}`
are short names in upper and lower case), `{Message:lj}`, `{SourceContext}`, `{NewLine}`, `{Exception}`, `{Properties}`,
and the name of any property. A width, as in `{Level,-11}`, pads the text. The name of a property that an entry does not
have becomes an empty text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import orjson

from rowcall.service.log.entry import Entry, level_name

Part = Callable[[Entry], str]
"""Returns a part of the line of an entry."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{@?(?P<name>\w+)(?:,(?P<width>-?\d+))?(?::(?P<format>[^}]*))?\}")
_FOUR = {"Verbose": "VERB", "Debug": "DBUG", "Information": "INFO", "Warning": "WARN", "Error": "EROR", "Fatal": "FATL"}
_THREE = {"Verbose": "VRB", "Debug": "DBG", "Information": "INF", "Warning": "WRN", "Error": "ERR", "Fatal": "FTL"}
_COLOURS = {"Verbose": "90", "Debug": "90", "Information": "32", "Warning": "33", "Error": "31", "Fatal": "1;31"}

_DATE = re.compile(
    r"yyyy|yy|MMMM|MMM|MM|M|dddd|ddd|dd|d|HH|H|hh|h|mm|m|ss|s|[fF]{1,7}|tt|zzz|zz|K|'[^']*'|\"[^\"]*\"|\\."
)
_STRFTIME = {
    "yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%-m", "dddd": "%A", "ddd": "%a",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M",
    "ss": "%S", "s": "%-S", "tt": "%p",
}  # fmt: skip


def has_message(text: str) -> bool:
    """Return whether a template contains `{Message}`. A misspelt name is not detected elsewhere: it counts as the name
    of a property that no entry has, and log lines then have no message."""
    return any(match["name"] == "Message" for match in _PLACEHOLDER.finditer(text))


class Template:
    """Formats entries as text that ends with a line break. text: the template. colour: names of levels are coloured,
    for a terminal.
    """

    def __init__(self, text: str, *, colour: bool = False) -> None:
        self._parts = _parse(text, colour)

    def __call__(self, entry: Entry) -> str:
        text = "".join([part if isinstance(part, str) else part(entry) for part in self._parts])
        return text if text.endswith("\n") else text + "\n"


def _parse(text: str, colour: bool) -> list[Part | str]:
    """Return the parts of a template: a function, or a text that is the same for all entries."""
    parts: list[Part | str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        end = match.end()
        name = match["name"]
        if name is None:
            parts.append(match[0][0])
            continue
        part = _part(name, match["format"] or "", colour)
        width = match["width"]
        parts.append(part if isinstance(part, str) or not width else _pad(part, int(width)))
    return [*parts, text[end:]]


def _pad(part: Part, width: int) -> Part:
    """Return a part that pads another one with spaces. width: number of characters; positive: aligned to the right,
    negative: to the left.
    """
    return (lambda entry: part(entry).rjust(width)) if width > 0 else (lambda entry: part(entry).ljust(-width))


def _part(name: str, form: str, colour: bool) -> Part | str:
    """Return what fills a placeholder: a function of the entry, or a text that is the same for all entries. form: text
    behind the colon of the placeholder; may be empty. colour: as for `Template`."""
    match name:
        case "Timestamp":
            return Timestamp(form or "yyyy-MM-dd HH:mm:ss.fff zzz")
        case "Level":
            return _level(form, colour)
        case "Message":
            return lambda entry: entry.message
        case "SourceContext":
            return lambda entry: entry.source
        case "NewLine":
            return "\n"
        case "Exception":
            return lambda entry: f"{entry.exception}\n" if entry.exception else ""
        case "Properties":
            return lambda entry: orjson.dumps(entry.properties, default=str).decode()
        case _:
            return lambda entry: _property(entry.properties.get(name, ""))


def _property(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _level(form: str, colour: bool) -> Part:
    """Return the part for the level. form: as for `_short`."""
    texts = {name: _short(name, form) for name in _COLOURS}
    if colour:
        texts = {name: f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" for name, text in texts.items()}
    return lambda entry: texts[level_name(entry.level)]


def _short(name: str, form: str) -> str:
    """Return the name of a level in a format: `u` (capitals), `w` (small letters) or `t` (title case), followed by the
    number of letters, as in `u3`. `u` and `w` alone stand for the whole name. In any other format, the name is
    unchanged."""
    case, width = form[:1], form[1:]
    if case not in ("u", "w", "t") or not width.isdigit():
        return name.upper() if case == "u" else name.lower() if case == "w" else name
    text = {3: _THREE, 4: _FOUR}.get(int(width), {}).get(name, name[: int(width)])
    return text.upper() if case == "u" else text.lower() if case == "w" else text.title()


class Timestamp:
    """Returns the local time of an entry as text. form: .NET date format. The text of a second is cached, because most
    entries share it with the previous one.
    """

    def __init__(self, form: str) -> None:
        self._pieces: list[str | int] = []
        end = 0
        for match in _DATE.finditer(form):
            self._pieces.append(form[end : match.start()].replace("%", "%%"))
            self._pieces.append(_date_piece(match[0]))
            end = match.end()
        self._pieces.append(form[end:].replace("%", "%%"))
        self._second = -1
        self._shown: list[str | int] = []

    def __call__(self, entry: Entry) -> str:
        second = int(entry.time)
        if second != self._second:
            moment = time.localtime(second)
            self._shown = [p if isinstance(p, int) else _strftime(p, moment) for p in self._pieces]
            self._second = second
        fraction = f"{entry.time - second:.7f}"[2:]
        return "".join([fraction[:piece] if isinstance(piece, int) else piece for piece in self._shown])


def _date_piece(token: str) -> str | int:
    """Return the format of `strftime` for a token of a .NET date format; for a fraction, the number of its digits; for
    an offset, a mark that `_strftime` replaces.
    """
    if token[0] in "fF":
        return len(token)
    if token in ("zzz", "zz", "K"):
        return "\0z"
    if token[0] in "'\"\\":
        return token.strip("'\"\\").replace("%", "%%")
    return _STRFTIME[token]


def _strftime(piece: str, moment: time.struct_time) -> str:
    """Return the text of a piece from `_date_piece`. An offset is `+02:00`."""
    if piece == "\0z":
        offset = time.strftime("%z", moment)
        return f"{offset[:3]}:{offset[3:]}"
    return time.strftime(piece, moment)
