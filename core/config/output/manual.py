"""Write the manual's page of all configuration keys from the table."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rowcall.core.config.table import KEYS
from rowcall.core.sections.keys import Key, KeyType

_HEAD = """\
# Configuration keys

After reading this page, you can find the configuration key for a purpose and the form of its value.

<!-- Written by `make docs` from the sections of the configuration. A test fails when it is out of date. -->

[Running](running.md) explains how keys are loaded and merged. The names of a key are separated by colons; `<name>` is a
name that you choose, `[]` an element of a list. A duration is a number with a unit (`us`, `ms`, `s`, `m`, `h`, `d`,
`w`, or the words for them) or `hh:mm:ss`; a bare number is seconds.

- Values of keys marked with ● are secret: `rowcall --config` and the log never show them.

`rowcall --config` prints all keys with their effective values, `rowcall --config-schema` prints a JSON Schema.
"""


def manual() -> str:
    """Return the page of the manual about the configuration, as Markdown: one chapter for each top-level section, one
    table for each section in it."""
    chapters: dict[str, list[Key]] = {}
    for key in KEYS:
        top = key.path.partition(":")[0]
        single = ":" not in key.path and key.type in _SINGLE
        chapters.setdefault("General" if single else top, []).append(key)
    return _HEAD + "".join(_chapter(name, keys) for name, keys in chapters.items())


_SINGLE = (KeyType.TEXT, KeyType.BOOL, KeyType.INT, KeyType.CHOICE, KeyType.INTERVAL)


def _chapter(name: str, keys: list[Key]) -> str:
    sections = [key.path for key in keys if key.type is KeyType.SECTION and key.path.count(":") == 1]
    tables: dict[str, list[Key]] = {name: []}
    for key in keys:
        below = next((path for path in sections if key.path == path or key.path.startswith(f"{path}:")), name)
        tables.setdefault(below, []).append(key)
    return "".join(_section(title, rows) for title, rows in tables.items())


def _section(title: str, keys: list[Key]) -> str:
    own = next((key for key in keys if key.path == title), None)
    about = "" if own is None else f"{own.meaning}\n\n"
    rows = [key for key in keys if key.type is not KeyType.SECTION]
    heading = "###" if ":" in title else "##"
    return f"\n{heading} {title}\n\n{about}" + (_table(rows) if rows else "")


def _table(keys: Iterable[Key]) -> str:
    lines = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    for key in keys:
        cells = (_name(key), _type(key), _default(key), _meaning(key))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _name(key: Key) -> str:
    return f"`{key.path}`" + " ●" * key.secret


def _meaning(key: Key) -> str:
    with_types = f" Type {' or '.join(key.only_for)} only." if key.only_for else ""
    return key.meaning + with_types


def _type(key: Key) -> str:
    words = str(key.type.value)
    if key.choices:
        words += ": " + ", ".join(f"`{word}`" for word in key.choices)
    words += f", {key.bounds}" if key.bounds else ""
    return f"{words}, or null" if key.nullable else words


def _default(key: Key) -> str:
    return f"`{json.dumps(key.default, ensure_ascii=False)}`"
