"""Array text (rendering-31): parsed into nested lists, printed from them as `array_out` does."""

from __future__ import annotations

import re

from .types import MalformedText

MAX_DIMENSIONS = 6
BOUNDS = re.compile(r"(?:\[-?[0-9]+:-?[0-9]+\])+=")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
SPACE = " \t\n\r\v\f"

Nested = list["Nested | str | None"]


def parse_array(text: str, delimiter: str = ",") -> Nested:
    """Return the elements as texts, None for NULL. Raises MalformedText if the text is not an array."""
    body = text
    if text.startswith("["):
        bounds = BOUNDS.match(text)
        if bounds is None:
            raise MalformedText(text)
        body = text[bounds.end() :]
    items, rest = _read_body(body, delimiter, 1)
    if rest:
        raise MalformedText(text)
    return items


def _read_body(text: str, delimiter: str, dimension: int) -> tuple[Nested, str]:
    if not text.startswith("{") or dimension > MAX_DIMENSIONS:
        raise MalformedText(text)
    if text.startswith("{}"):
        return [], text[2:]
    items: Nested = []
    rest = text[1:]
    while True:
        item, rest = _read_item(rest, delimiter, dimension)
        items.append(item)
        if rest.startswith("}"):
            return items, rest[1:]
        if not rest.startswith(delimiter):
            raise MalformedText(text)
        rest = rest[1:]


def _read_item(text: str, delimiter: str, dimension: int) -> tuple[Nested | str | None, str]:
    if text.startswith("{"):
        return _read_body(text, delimiter, dimension + 1)
    if text.startswith('"'):
        quoted = QUOTED.match(text)
        if quoted is None:
            raise MalformedText(text)
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL), text[quoted.end() :]
    bare = re.match(rf'[^"\\{{}}{re.escape(delimiter)}]+', text)
    if bare is None:
        raise MalformedText(text)
    return None if bare[0] == "NULL" else bare[0], text[bare.end() :]


def print_array(items: Nested, delimiter: str = ",") -> str:
    return "{" + delimiter.join(_print_item(item, delimiter) for item in items) + "}"


def _print_item(item: Nested | str | None, delimiter: str) -> str:
    if isinstance(item, list):
        return print_array(item, delimiter)
    if item is None:
        return "NULL"
    if item and item.upper() != "NULL" and not any(byte in '{}"\\' + delimiter + SPACE for byte in item):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
