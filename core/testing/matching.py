"""Comparison of actual and expected responses: JSON by values, with placeholders; other texts exactly, except for their
line ends, which test files cannot express. Numbers are compared exactly, so that 1.0 is 1, and 9007199254740993 is not
9007199254740992.0.

A placeholder matches values: `"{{integer}}"` the number 7, `"x-{{any}}"` the text `x-1`. An array that ends with
`"{{more}}"`, and an object with a member of that name, may have further items or members.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from rowcall.core.testing.placeholders import PLACEHOLDER, fits_text
from rowcall.core.testing.request import Answer
from rowcall.core.text import exact_json
from rowcall.core.text.lines import lines_of

MORE = "{{more}}"
_VALUES: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and Decimal(value).as_tuple().exponent == 0,
    "number": lambda value: _is_number(value),
    "boolean": lambda value: isinstance(value, bool),
}


def differences(expected: Answer, status: int, headers: Sequence[tuple[str, str]], body: str) -> list[str]:
    """Return lines that describe the differences between a response and the expected one; an empty list if the response
    matches. Headers and body are compared only if `expected` has them. If `expected` has no body and there is a
    difference, the first five lines of the actual body follow, because they usually contain the reason.

    headers: of the response, with names in any case; of a repeated header, one value has to match. body: of the
    response, as text.
    """
    lines = [] if status == expected.status else [f"status: expected {expected.status}, actual {status}"]
    for name, expected_value in expected.headers:
        values = [value for key, value in headers if key.lower() == name.lower()]
        if not any(fits_text(expected_value, value) for value in values):
            lines.append(f"header {name}: expected {expected_value!r}, actual {', '.join(map(repr, values)) or 'none'}")
    if expected.body is not None:
        lines += body_differences(expected.body, body)
    elif lines:
        # The beginning of the body usually contains the reason.
        lines += [f"body: {text}" for text in lines_of(body)[:5]]
    return lines


def body_differences(expected: str, actual: str) -> list[str]:
    """Return lines that describe the differences of two bodies: by JSON values if both are JSON, else as texts with
    placeholders, without blanks around `actual`, and with equal line ends (those of CSV are CR LF). An empty list if
    they match."""
    try:
        expected_value, actual_value = _parse_json(expected), _parse_json(actual)
    except ValueError:
        expected_lines, lines = lines_of(expected), lines_of(actual.strip())
        return [] if fits_text("\n".join(expected_lines), "\n".join(lines)) else diff(expected_lines, lines)
    filled = fill(expected_value, actual_value)
    return [] if _same(filled, actual_value) else diff(_json_lines(filled), _json_lines(actual_value))


def are_same(first: str, second: str) -> bool:
    """Return whether two texts are the same value in JSON; False also if one of them is no JSON."""
    try:
        return _same(_parse_json(first), _parse_json(second))
    except ValueError:
        return False


def _parse_json(text: str) -> Any:
    """Return the JSON value of a text, with numbers as int or Decimal. Raises ValueError if it is no JSON, has more
    than `exact_json.LEVELS` levels, or has an exponent beyond those of Decimal."""
    try:
        return exact_json.parse(text.encode(), Decimal)
    except InvalidOperation:
        raise ValueError("a number has too many digits in its exponent") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def fill(expected: Any, actual: Any) -> Any:
    """Return a copy of `expected` with matching placeholders and equal numbers replaced by the actual values, so that a
    diff shows only differences. Both are parsed JSON."""
    if isinstance(expected, str):
        return actual if _fits(expected, actual) else expected
    if isinstance(expected, dict) and isinstance(actual, dict):
        filled = {name: fill(value, actual.get(name)) for name, value in expected.items() if name != MORE}
        if MORE in expected:
            filled |= {name: value for name, value in actual.items() if name not in filled}
        return filled
    if isinstance(expected, list) and isinstance(actual, list):
        open_ended = bool(expected) and expected[-1] == MORE
        items = expected[:-1] if open_ended else expected
        filled_items = [fill(value, actual[at] if at < len(actual) else None) for at, value in enumerate(items)]
        return filled_items + actual[len(items) :] if open_ended else filled_items
    return actual if _is_number(expected) and _same(expected, actual) else expected


def _fits(expected: str, actual: Any) -> bool:
    whole = PLACEHOLDER.fullmatch(expected)
    if whole is not None and whole[1] in _VALUES:
        return _VALUES[whole[1]](actual)
    return isinstance(actual, str) and PLACEHOLDER.search(expected) is not None and fits_text(expected, actual)


def _same(expected: Any, actual: Any) -> bool:
    """Return whether two values are equal in JSON, where true is not 1."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_same(expected[name], actual[name]) for name in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(_same(a, b) for a, b in zip(expected, actual, strict=True))
    return bool(expected == actual)


def _json_lines(value: Any) -> list[str]:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    text = orjson.dumps(value, lambda number: orjson.Fragment(str(number)), options)
    return text.decode().split("\n")


def diff(expected: Iterable[str], actual: Iterable[str]) -> list[str]:
    """Return the lines of a unified diff, with `--- expected` and `+++ actual` at its begin and two lines of context,
    but without the lines that begin its hunks (`@@ … @@`). An empty list if the lines are equal."""
    lines = difflib.unified_diff(list(expected), list(actual), "expected", "actual", lineterm="", n=2)
    return [line for line in lines if not line.startswith("@@")]


def row_differences(expected: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[str]:
    """Return lines that describe the differences between rows; an empty list if they match.

    expected: lines of cells separated by `|`, with placeholders; the first line may have the names of columns, and
    lines of dashes are ignored. columns: actual names. rows: actual cells as texts; None, which is NULL, matches an
    empty cell. If a cell itself contains ` | `, the row matches a line with the same text.
    """
    expected_rows = [_cells(line.strip()) for line in expected]
    expected_rows = [cells for cells in expected_rows if not all(re.fullmatch(r"[-+:]+", cell) for cell in cells)]
    actual_rows = [["" if cell is None else cell for cell in row] for row in rows]
    if expected_rows and expected_rows[0] == list(columns):
        expected_rows = expected_rows[1:]
    if len(expected_rows) == len(actual_rows) and all(map(_row_fits, expected_rows, actual_rows)):
        return []
    return diff(map(_line, expected_rows), map(_line, actual_rows))


def _row_fits(expected: Sequence[str], actual: Sequence[str]) -> bool:
    if len(expected) == len(actual) and all(map(fits_text, expected, actual)):
        return True
    return _line(expected) == _line(actual)


def _line(cells: Sequence[str]) -> str:
    return " | ".join(cells)


def _cells(line: str) -> list[str]:
    """Return the cells of a line of psql output, or of a Markdown table, which has a bar at both ends too."""
    framed = len(line) > 1 and line.startswith("|") and line.endswith("|")
    return [cell.strip() for cell in (line[1:-1] if framed else line).split("|")]
