"""Print the effective configuration as JSON with comments, all of it or the keys that match a word (command-5).

The output is a valid configuration file.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rowcall.core.config.output.effective import Entry
from rowcall.core.sections.keys import JsonValue

_WIDTH = 116
_SHORT = 100
"""Maximum length in characters of a list or user-defined section on one line."""


def format_entries(entries: Iterable[Entry]) -> str:
    """Return the entries as JSON with `//` comments above the keys; ends with a newline."""
    lines = ["{", *_lines(tuple(entries), 1), "}"]
    return "\n".join(lines) + "\n"


def find_entries(entries: Iterable[Entry], word: str) -> tuple[Entry, ...]:
    """Return the keys named `word`. If there are none, return those with `word` in the name, the comment or the printed
    line.

    `word` is the name of a key, its path (`Service:UrlPathPrefix`) or the end of its path, in any case. The result
    includes the sections that contain a key. A section that matches itself is complete.
    """
    entries = tuple(entries)
    return _entries_by_name(entries, word.casefold()) or _entries_by_text(entries, word)


def _entries_by_name(entries: Iterable[Entry], word: str, path: str = "") -> tuple[Entry, ...]:
    return tuple(match for entry in entries if (match := _named_entry(entry, word, path)) is not None)


def _named_entry(entry: Entry, word: str, above: str) -> Entry | None:
    path = f"{above}:{entry.name.casefold()}"
    if path.endswith(f":{word}"):
        return entry
    if entry.entries is not None:
        below = _entries_by_name(entry.entries, word, path)
        return replace(entry, entries=below) if below else None
    value = _named_value(entry.value, word, path)
    return replace(entry, value=value) if value else None


def _named_value(value: JsonValue, word: str, above: str) -> dict[str, JsonValue]:
    """Return the members of a user-defined section that are named `word`, with the sections that contain them; empty if
    there are none. word: case-folded, a name or the end of a path. above: case-folded path of the section."""
    if not isinstance(value, Mapping):
        return {}
    members = {}
    for name, inner in value.items():
        path = f"{above}:{name.casefold()}"
        match = inner if path.endswith(f":{word}") else _named_value(inner, word, path)
        if match is inner or match:
            members[name] = match
    return members


def _entries_by_text(entries: Iterable[Entry], word: str) -> tuple[Entry, ...]:
    matches = (_filter_entry(entry, word.casefold()) for entry in entries)
    return tuple(entry for entry in matches if entry is not None)


def _filter_entry(entry: Entry, word: str) -> Entry | None:
    if word in entry.comment.casefold():
        return entry
    first, *rest = ["{"] if entry.entries is not None else _value_lines(entry.value)
    if any(word in line.casefold() for line in (_start(entry) + first, *rest)):
        return entry
    if entry.entries is None:
        return None
    below = _entries_by_text(entry.entries, word)
    return replace(entry, entries=below) if below else None


def _lines(entries: Sequence[Entry], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for index, entry in enumerate(entries):
        yield from (f"{indent}// {line}" for line in textwrap.wrap(entry.comment, _WIDTH - len(indent)))
        body = list(_body(entry, depth))
        if index < len(entries) - 1:
            body[-1] += ","
        yield from body


def _body(entry: Entry, depth: int) -> Iterator[str]:
    indent = "  " * depth
    start = indent + _start(entry)
    if entry.entries:
        yield start + "{"
        yield from _lines(entry.entries, depth + 1)
        yield indent + "}"
        return
    first, *rest = ["{}"] if entry.entries is not None else _value_lines(entry.value)
    yield start + first
    yield from (indent + line for line in rest)


def _start(entry: Entry) -> str:
    return f"{json.dumps(entry.name, ensure_ascii=False)}: "


def _value_lines(value: JsonValue) -> list[str]:
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= _SHORT or not isinstance(value, dict | list | tuple):
        return [short]
    return json.dumps(value, ensure_ascii=False, indent=2).split("\n")
