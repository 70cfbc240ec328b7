"""Whether an answer is what was expected: JSON by its values, with placeholders; text as it stands.

A placeholder stands for whatever fits it: `"{{integer}}"` for the number 7, `"x-{{any}}"` for the text `x-1`. An array
that ends with `"{{more}}"` and an object with a member of that name may have more than is written.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from rowcall.core.testing.placeholders import PLACEHOLDER, fits_text
from rowcall.core.testing.request import Answer

MORE = "{{more}}"
_VALUES: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
}


def differences(expected: Answer, status: int, headers: Sequence[tuple[str, str]], body: str) -> list[str]:
    """Lines that tell what is different; none where the answer is as expected."""
    found = [] if status == expected.status else [f"status: expected {expected.status}, actual {status}"]
    for name, wanted in expected.headers:
        values = [value for key, value in headers if key.lower() == name.lower()]
        if not any(fits_text(wanted, value) for value in values):
            found.append(f"header {name}: expected {wanted!r}, actual {', '.join(map(repr, values)) or 'none'}")
    if expected.body is not None:
        found += body_differences(expected.body, body)
    elif found:
        # What it says is the first that anybody would ask.
        found += [f"body: {line}" for line in body.splitlines()[:5]]
    return found


def body_differences(expected: str, actual: str) -> list[str]:
    try:
        wanted, given = orjson.loads(expected), orjson.loads(actual)
    except orjson.JSONDecodeError:
        return [] if fits_text(expected, actual.strip()) else diff(expected.splitlines(), actual.strip().splitlines())
    filled = fill(wanted, given)
    return [] if _same(filled, given) else diff(_shown(filled), _shown(given))


def fill(expected: Any, actual: Any) -> Any:
    """`expected` with its placeholders replaced by what fits them: what is left is what differs."""
    if isinstance(expected, str):
        return actual if _fits(expected, actual) else expected
    if isinstance(expected, dict) and isinstance(actual, dict):
        filled = {name: fill(value, actual.get(name)) for name, value in expected.items() if name != MORE}
        if MORE in expected:
            filled |= {name: value for name, value in actual.items() if name not in filled}
        return filled
    if isinstance(expected, list) and isinstance(actual, list):
        open_ended = bool(expected) and expected[-1] == MORE
        wanted = expected[:-1] if open_ended else expected
        filled_items = [fill(value, actual[at] if at < len(actual) else None) for at, value in enumerate(wanted)]
        return filled_items + actual[len(wanted) :] if open_ended else filled_items
    return expected


def _fits(expected: str, actual: Any) -> bool:
    whole = PLACEHOLDER.fullmatch(expected)
    if whole is not None and whole[1] in _VALUES:
        return _VALUES[whole[1]](actual)
    return isinstance(actual, str) and PLACEHOLDER.search(expected) is not None and fits_text(expected, actual)


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _shown(value: Any) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def diff(expected: Iterable[str], actual: Iterable[str]) -> list[str]:
    lines = difflib.unified_diff(list(expected), list(actual), "expected", "actual", lineterm="", n=2)
    return [line for line in lines if not line.startswith("@@")]


def row_differences(expected: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[str]:
    """expected: lines of cells; the first may be the names of the columns. NULL is an empty cell."""
    wanted = [_cells(line.strip()) for line in expected]
    wanted = [cells for cells in wanted if not all(re.fullmatch(r"[-+:]+", cell) for cell in cells)]
    given = [["" if cell is None else cell for cell in row] for row in rows]
    if wanted and wanted[0] == list(columns):
        wanted = wanted[1:]
    fitting = len(wanted) == len(given) and all(
        len(one) == len(other) and all(map(fits_text, one, other)) for one, other in zip(wanted, given, strict=True)
    )
    return [] if fitting else diff((" | ".join(cells) for cells in wanted), (" | ".join(cells) for cells in given))


def _cells(line: str) -> list[str]:
    """As psql writes them, or as Markdown does, with a bar on both sides."""
    framed = len(line) > 1 and line.startswith("|") and line.endswith("|")
    return [cell.strip() for cell in (line[1:-1] if framed else line).split("|")]
