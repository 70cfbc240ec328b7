"""The configuration in force as JSON with comments, whole or as far as it matches a word (command-5).

What is printed can be read again as a configuration file.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rowcall.core.config.keys import JsonValue
from rowcall.core.config.output.effective import Entry

_WIDTH = 116
_SHORT = 100
"""Characters up to which a list or a section of the user's own stands on one line."""


def printed(entries: Iterable[Entry]) -> str:
    """JSON with a `//` comment above each key that has one; ends with a newline."""
    lines = ["{", *_lines(tuple(entries), 1), "}"]
    return "\n".join(lines) + "\n"


def matching(entries: Iterable[Entry], word: str) -> tuple[Entry, ...]:
    """The keys that are called `word`; if no key is, those with `word` in the name, the comment or the line.

    `word` is the name of a key, its path (`Service:UrlPathPrefix`) or the end of its path, in any case. The sections
    around a key are kept, and a section that matches by itself stays whole.
    """
    entries = tuple(entries)
    return _named(entries, word.casefold()) or _mentioning(entries, word)


def _named(entries: Iterable[Entry], word: str, path: str = "") -> tuple[Entry, ...]:
    return tuple(found for entry in entries if (found := _named_entry(entry, word, path)) is not None)


def _named_entry(entry: Entry, word: str, above: str) -> Entry | None:
    path = f"{above}:{entry.name.casefold()}"
    if path.endswith(f":{word}"):
        return entry
    if entry.entries is not None:
        below = _named(entry.entries, word, path)
        return replace(entry, entries=below) if below else None
    value = _named_value(entry.value, word, path)
    return replace(entry, value=value) if value else None


def _named_value(value: JsonValue, word: str, above: str) -> dict[str, JsonValue]:
    """The members of a user-defined section that are called `word`."""
    if not isinstance(value, Mapping):
        return {}
    members = {}
    for name, inner in value.items():
        path = f"{above}:{name.casefold()}"
        found = inner if path.endswith(f":{word}") else _named_value(inner, word, path)
        if found is inner or found:
            members[name] = found
    return members


def _mentioning(entries: Iterable[Entry], word: str) -> tuple[Entry, ...]:
    kept = (_matching(entry, word.casefold()) for entry in entries)
    return tuple(entry for entry in kept if entry is not None)


def _matching(entry: Entry, word: str) -> Entry | None:
    if word in entry.comment.casefold():
        return entry
    first, *rest = ["{"] if entry.entries is not None else _value_lines(entry.value)
    if any(word in line.casefold() for line in (_start(entry) + first, *rest)):
        return entry
    if entry.entries is None:
        return None
    below = _mentioning(entry.entries, word)
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
    return json.dumps(value, ensure_ascii=False, indent=2).splitlines()
