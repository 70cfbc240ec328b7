"""Types of PostgreSQL in Swagger 2.0."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

_IN_FRAGMENT = "~!$&'()*+,;=:@/?"
"""Characters beside letters, digits, `-`, `.` and `_` that a fragment may contain (RFC 3986, 3.5)."""

_TYPES = {
    "character varying": "string",
    "character": "string",
    "text": "string",
    "boolean": "boolean",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "numeric": "number",
    "real": "number",
    "double precision": "number",
    "json": None,
    "jsonb": None,
}
_FORMATS = {"integer": "int32", "bigint": "int64"}


def reference(section: str, name: str) -> dict[str, str]:
    """Return the reference to a member of a section, as a JSON pointer in a URI (RFC 6901, 6)."""
    return {"$ref": f"#/{section}/{quote(name.replace('~', '~0').replace('/', '~1'), _IN_FRAGMENT)}"}


def swagger_type(name: str) -> str | None:
    """Return the type of a value in Swagger; None: a JSON value, which may have any type. name: of a type of
    PostgreSQL."""
    return "array" if name.endswith("[]") else _TYPES.get(name, "string")


def format_of(name: str) -> str:
    """Return the format of a type: its name, or the one of OpenAPI for integers."""
    return _FORMATS.get(name, name)


def type_members(name: str) -> dict[str, Any]:
    """Return the members that describe a type: `format`, `type` (not for json and jsonb), and for an array `items`."""
    result: dict[str, Any] = {"format": format_of(name)}
    kind = swagger_type(name)
    if kind is not None:
        result["type"] = kind
    if kind == "array":
        inner = swagger_type(name.removesuffix("[]"))
        result["items"] = {} if inner is None else {"type": inner}
    return result


def default_of(name: str, expression: str | None) -> Any:
    """Return the default of a column as a JSON value; None: it has none, or one that is not a constant of JSON. name:
    of its type.

    For types that are strings in JSON, an expression that is no constant is returned as text.
    """
    if expression is None:
        return None
    if swagger_type(name) == "string":
        text = expression.removesuffix(f"::{name}")
        return text.strip("'") if text != expression else expression
    try:
        return orjson.loads(expression)
    except orjson.JSONDecodeError:
        return None
