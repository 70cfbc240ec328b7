"""PostgreSQL array literals from the texts of elements (`{1,NULL}`, `{"a","b\\"c"}`, `{{1,2},{3,4}}`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

Nested: TypeAlias = "str | list[Nested] | None"
"""The text of an element, None for NULL, or a list of such elements, which is one more dimension."""

MAX_DIMENSIONS = 6
"""`MAXDIM` of PostgreSQL."""


class ArrayShapeError(ValueError):
    """Nested lists for which PostgreSQL has no array."""


def literal(items: list[Nested], *, quoted: bool, delimiter: str = ",") -> str:
    """Return the array literal of `items`.

    items: if there is no element in any dimension, the result is `{}`. quoted: every element is put in quotes, which is
    needed unless all elements are like numbers. delimiter: character between elements. Raises `ArrayShapeError` if the
    lists are not rectangular or nested deeper than PostgreSQL allows.
    """
    if not _check_shape(items):
        return "{}"
    return _text(items, quote if quoted else str, delimiter)


def quote(text: str) -> str:
    """Return the text of an element in double quotes, with escaped quotes and backslashes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(items: Sequence[Nested], write: Callable[[str], str], delimiter: str) -> str:
    parts = (
        "NULL" if item is None else write(item) if isinstance(item, str) else _text(item, write, delimiter)
        for item in items
    )
    return "{" + delimiter.join(parts) + "}"


def _check_shape(items: list[Nested]) -> int:
    """Return the number of elements in all dimensions together. Raises `ArrayShapeError` if the lists are not
    rectangular or nested too deeply."""
    level: list[Nested] = items
    for _ in range(MAX_DIMENSIONS - 1):
        lists = [item for item in level if isinstance(item, list)]
        if not lists:
            return len(level)
        if len(lists) != len(level) or len({len(inner) for inner in lists}) != 1:
            raise ArrayShapeError("nested arrays must be of equal length and depth")
        level = [element for inner in lists for element in inner]
    if any(isinstance(item, list) for item in level):
        raise ArrayShapeError(f"arrays have at most {MAX_DIMENSIONS} dimensions")
    return len(level)


_ELEMENT = re.compile(r'[{},]*(?:"((?:\\.|[^"\\])*)"|([^{},"\\]+))', re.DOTALL)


def elements(text: str) -> list[str | None]:
    """Return the texts of all elements, in order and without nesting, of a literal of any dimension; None for NULL.

    text: as the server prints it, which is not checked. Not for types whose elements are separated by a semicolon
    (`box[]`).
    """
    body = text.partition("=")[2] if text.startswith("[") else text
    result: list[str | None] = []
    for match in _ELEMENT.finditer(body):
        quoted, bare = match.groups()
        if quoted is not None:
            result.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            result.append(None if bare == "NULL" else bare)
    return result


def count_elements(text: str, delimiter: str = ",") -> int:
    """Return the number of elements of an array literal in its first dimension, also of one that a client has written.

    text: beginning with `{`; whether PostgreSQL accepts it is not checked. delimiter: character between elements.
    """
    if not text.strip("{} \t\n\r\v\f"):
        return 0
    count, depth = 1, 0
    for match in re.finditer(rf'"(?:\\.|[^"\\])*"|\\.|[{{}}{re.escape(delimiter)}]', text, re.DOTALL):
        sign = match[0]
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
        elif sign == delimiter and depth == 1:
            count += 1
    return count


def parse(text: str, delimiter: str = ",") -> list[Nested]:
    """Return the texts of the elements, nested by dimension, of a literal that the server printed; None for NULL.

    delimiter: character between elements. Raises ValueError if the text is not one array literal with balanced braces
    and quotes. The places of delimiters are not checked.
    """
    body = text.partition("=")[2] if text.startswith("[") else text
    if body == "{}":
        return []
    stack: list[list[Nested]] = []
    position = 0
    token = re.compile(
        rf'\{{|\}}|{re.escape(delimiter)}|"((?:\\.|[^"\\])*)"|([^{{}}"\\{re.escape(delimiter)}]+)', re.DOTALL
    )
    while match := token.match(body, position):
        position = match.end()
        quoted, bare = match.groups()
        if match[0] == "{":
            stack.append([])
        elif not stack:
            break
        elif match[0] == "}":
            closed = stack.pop()
            if not stack:
                if position != len(body):
                    break
                return closed
            stack[-1].append(closed)
        elif quoted is not None:
            stack[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        elif bare is not None:
            stack[-1].append(None if bare == "NULL" else bare)
    raise ValueError("not an array")
