"""The configuration in force as JSON with comments, whole or as far as it matches a word (reference 06, 2.5).

What is printed can be read again as a configuration file.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
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
    """What has `word` in its name, its comment or its line, in any case, with the sections around it.

    A section that matches by itself stays whole.
    """
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
    below = matching(entry.entries, word)
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
