"""Render the text of one value as JSON, by the rules of rendering-25 to rendering-29, rendering-31 to rendering-35,
with Python strings."""

from __future__ import annotations

import re
from typing import Literal

from .arrays import Nested, parse_array
from .composites import parse_tuple
from .types import Array, Composite, Domain, MalformedText, Scalar, Type

Place = Literal["column", "element", "field"]

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
HOURS_ALONE = re.compile(r"(?<=\A[+-][0-9]{2})(?= |\Z)")
SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
ESCAPES = str.maketrans({chr(code): f"\\u{code:04X}" for code in range(0x20)} | SHORT_ESCAPES)


def json_string(text: str) -> str:
    return f'"{text.translate(ESCAPES)}"'


def moment(text: str) -> str:
    """Return a timestamp as `to_json` writes it: `T` behind the date, minutes in the offset; infinity and the era
    unchanged."""
    day, blank, clock = text.partition(" ")
    if not blank:
        return text
    without_sign = re.split("[+-]", clock, maxsplit=1)[0]
    offset = clock[len(without_sign) :]
    return f"{day}T{without_sign}{HOURS_ALONE.sub(':00', offset)}"


def render_value(kind: Type, text: str | None, place: Place = "column", resolve_nested: bool = True) -> str:
    if text is None:
        return "null"
    try:
        match kind:
            case Scalar(rule):
                return _render_scalar(rule, text, place)
            case Domain() if place != "column" and _is_rendered_as_text(base_of(kind)):
                return json_string(text)
            case Domain(base):
                return render_value(base, text, place, resolve_nested)
            case Array(element, delimiter):
                return _render_items(parse_array(text, delimiter), element, 1, resolve_nested)
            case Composite(fields):
                return _render_fields(parse_tuple(text), fields, resolve_nested)
    except MalformedText:
        return json_string(text)


def _is_rendered_as_text(base: Type) -> bool:
    return isinstance(base, Scalar) and base.rule != "datetime"


def _render_scalar(rule: str, text: str, place: Place) -> str:
    if rule == "number" and NUMBER.fullmatch(text):
        return text
    if rule == "boolean" and text in ("t", "true", "f", "false"):
        return "true" if text.startswith("t") else "false"
    if rule == "json" and text:
        return text
    if rule == "datetime":
        return json_string(moment(text))
    if rule == "record" and place == "column":
        return "[" + ",".join("null" if slot is None else json_string(slot) for slot in parse_tuple(text)) + "]"
    return json_string(text)


def _render_items(items: Nested, element: Type, dimension: int, resolve_nested: bool) -> str:
    if dimension > 1 and is_composite(element):
        element = Scalar("text")
    rendered = [
        _render_items(item, element, dimension + 1, resolve_nested)
        if isinstance(item, list)
        else render_value(element, item, "element", resolve_nested)
        for item in items
    ]
    return "[" + ",".join(rendered) + "]"


def _render_fields(slots: list[str | None], fields: tuple[tuple[str, Type], ...], resolve_nested: bool) -> str:
    if not fields and slots == [None]:
        return "{}"
    if len(slots) != len(fields):
        raise MalformedText
    rendered = [
        f"{json_string(key)}:" + render_value(kind if resolve_nested else flat(kind), slot, "field", resolve_nested)
        for (key, kind), slot in zip(fields, slots, strict=True)
    ]
    return "{" + ",".join(rendered) + "}"


def flat(kind: Type) -> Type:
    """Return the type of a field if only one level of composites is parsed."""
    match base_of(kind):
        case Composite():
            return Scalar("text")
        case Array(element, delimiter) if is_composite(element):
            return Array(Scalar("text"), delimiter)
    return kind


def base_of(kind: Type) -> Type:
    while isinstance(kind, Domain):
        kind = kind.base
    return kind


def is_composite(kind: Type) -> bool:
    return isinstance(base_of(kind), Composite)
