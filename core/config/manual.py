"""The manual's page of all keys, written from the table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

from rowcall.core.config.keys import Key, KeyType
from rowcall.core.config.table import KEYS

_HEAD = """\
# Configuration keys

<!-- Written by `make docs` from core/config/rows/. A test fails when it is out of date. -->

How keys are loaded and merged is told in [Running](running.md). A colon stands between the names of a key; `<name>` is
a name of your own. A duration is a number with a unit (`us`, `ms`, `s`, `m`, `h`, `d`, `w`, or the words for them) or
`hh:mm:ss`; a bare number is seconds.
"""


def manual() -> str:
    """The whole page as Markdown, one table for each top-level section."""
    groups = itertools.groupby(KEYS, key=lambda key: key.path.partition(":")[0] if ":" in key.path else _top(key))
    return _HEAD + "".join(_group(name, tuple(keys)) for name, keys in groups)


def _top(key: Key) -> str:
    return key.path if key.type in (KeyType.SECTION, KeyType.TEXT_MAP) else "General"


def _group(name: str, keys: tuple[Key, ...]) -> str:
    about = next((key.meaning for key in keys if key.path == name), "")
    rows = [key for key in keys if key.type is not KeyType.SECTION]
    return f"\n## {name}\n\n" + (f"{about}\n\n" if about else "") + _table(rows)


def _table(keys: Iterable[Key]) -> str:
    lines = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    for key in keys:
        cells = (f"`{key.path}`", _type(key), _default(key), key.meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _type(key: Key) -> str:
    words = str(key.type.value)
    if key.choices:
        words += ": " + ", ".join(f"`{word}`" for word in key.choices)
    return f"{words}, or null" if key.nullable else words


def _default(key: Key) -> str:
    return f"`{json.dumps(key.default, ensure_ascii=False)}`"
