"""PostgreSQL array literals from the texts of elements (`{1,NULL}`, `{"a","b\\"c"}`, `{{1,2},{3,4}}`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

Nested: TypeAlias = "str | list[Nested] | None"
"""The text of an element, None for NULL, or a list of such elements, which is one more dimension."""

MAX_DIMENSIONS = 6
"""`MAXDIM` of PostgreSQL."""


class ArrayShapeError(ValueError):
    """Nested lists for which PostgreSQL has no array."""


def literal(items: list[Nested], *, quoted: bool, delimiter: str = ",") -> str:
    """Return the array literal of `items`.

    items: if there is no element in any dimension, the result is `{}`. quoted: every element except NULL is put in
    quotes, which is needed unless all elements are like numbers. delimiter: character between elements. Raises
    `ArrayShapeError` if the lists are not rectangular or nested deeper than PostgreSQL allows.
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


_BLANKS = " \t\n\r\v\f"
"""Characters that PostgreSQL ignores around elements and braces."""


@lru_cache(maxsize=4)
def _token(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of a token with blanks around it: a brace or delimiter, the inside of a quoted element, or an
    element without quotes. delimiter: character between elements."""
    blanks = f"[{_BLANKS}]"
    word = rf'(?:[^{{}}"\\{re.escape(delimiter)}{_BLANKS}]++|\\.)++'
    tokens = rf'([{{}}{re.escape(delimiter)}])|"((?:[^"\\]++|\\.)*+)"|({word}(?:{blanks}++{word})*+)'
    return re.compile(f"{blanks}*+(?:{tokens}){blanks}*+", re.DOTALL)


def parse(text: str, delimiter: str = ",") -> list[Nested]:
    """Return the texts of the elements, nested by dimension, of an array literal, as PostgreSQL reads them; None for
    NULL.

    text: as the server prints it, or of a client. delimiter: character between elements. Raises ValueError if the text
    is no array literal or has too many dimensions; lists of different lengths and depths are not refused.
    """
    body = text.partition("=")[2] if text.startswith("[") else text
    token = _token(delimiter)
    stack: list[list[Nested]] = []
    position, complete = 0, False
    while (match := token.match(body, position)) and _may_follow(match[1], stack, complete):
        position = match.end()
        sign, quoted, bare = match.groups()
        if sign == "{":
            stack.append([])
        elif sign == "}":
            closed = stack.pop()
            if not stack and position == len(body):
                return closed
            if not stack:
                break
            stack[-1].append(closed)
        elif sign is None:
            is_null = bare is not None and bare.upper() == "NULL"
            stack[-1].append(None if is_null else re.sub(r"\\(.)", r"\1", bare or quoted or "", flags=re.DOTALL))
        complete = sign is None or sign == "}"
    raise ValueError("not an array")


def _may_follow(sign: str | None, stack: list[list[Nested]], complete: bool) -> bool:
    """Return whether a token may follow. sign: a brace or delimiter; None: an element. stack: the lists that are open.
    complete: whether the last token was an element or the end of a list."""
    if sign == "{":
        return not complete and len(stack) < MAX_DIMENSIONS
    if not stack:
        return False
    if sign == "}":
        return complete or not stack[-1]
    return complete == (sign is not None)
