"""Values for example requests: those of the comment (`openapi example`), else generated ones (documents-3)."""

from __future__ import annotations

import functools
import json
from typing import Any

from rowcall.core.binding.written_values import BARE, read_value
from rowcall.core.documents.schemas import Schema
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind

_WORDS = ("ABC", "XYZ", "IJK")
_WHOLE = (ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.NUMERIC)


def example_text(endpoint: Endpoint, parameter: EndpointParameter) -> str | None:
    """Return the example that the comment gives for a parameter, as text; None: it gives none.

    The comment may use the name in requests or in the database, in any case. The last of several examples counts.
    """
    requested = endpoint.options.document
    examples = requested.examples if requested is not None else ()
    names = (parameter.api_name.lower(), parameter.db_name.lower())
    return next((text for name, text in reversed(examples) if name in names), None)


def sample_text(endpoint: Endpoint, parameter: EndpointParameter) -> str | None:
    """Return the value that the comment gives for example requests, as text: the example, or else the default that it
    declares. None: it gives none."""
    shown = example_text(endpoint, parameter)
    return parameter.default if shown is None and parameter.defaulted else shown


def value_of(parameter: EndpointParameter, text: str) -> Any:
    """Return the text, converted to the JSON value of the parameter's type for `orjson`, with unchanged numbers; the
    text itself if it is invalid for that type."""
    try:
        return read_value(parameter, text)
    except ValueError:
        return text


def with_default(schema: Schema, parameter: EndpointParameter) -> Schema:
    """Return the schema with the default that the comment declares; unchanged if it declares none, or NULL. Defaults of
    the routine are not shown."""
    if not parameter.defaulted or parameter.default is None:
        return schema
    return {**schema, "default": value_of(parameter, parameter.default)}


def texts(parameter: EndpointParameter, index: int) -> list[str]:
    """Return generated values of a parameter as texts: three for an array, else one. index: position of the parameter,
    from 0; the values of most types depend on it."""
    if parameter.array:
        return [_text(parameter, index + step) for step in range(3)]
    return [_text(parameter, index)]


def json_text(parameter: EndpointParameter, index: int) -> str:
    """Return a generated value of a parameter as JSON text; an array has three elements. index: as in `texts`."""
    quoted = [text if parameter.kind in BARE else json.dumps(text) for text in texts(parameter, index)]
    return f"[{', '.join(quoted)}]" if parameter.array else quoted[0]


def _text(parameter: EndpointParameter, i: int) -> str:
    kind = parameter.kind
    if kind in _WHOLE:
        return str(i + 1)
    result = {
        ValueKind.FLOAT: f"{i + 1}.{i + 2}",
        ValueKind.BOOLEAN: str(i % 2 == 1).lower(),
        ValueKind.UUID: "00000000-0000-0000-0000-000000000000",
        ValueKind.TIMESTAMP: _timestamp(i),
        ValueKind.TIMESTAMPTZ: _timestamp(i),
        ValueKind.DATE: _timestamp(i)[:10],
        ValueKind.TIME: _timestamp(i)[11:18],
        ValueKind.TIMETZ: f"{_timestamp(i)[11:18]}+01:00",
        ValueKind.JSON: "{}",
    }.get(kind)
    return result if result is not None else _text_by_type(parameter, i)


@functools.cache
def _timestamp(i: int) -> str:
    return f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}T{i % 24:02}:{i % 60:02}:{i % 60:02}.00"


def _text_by_type(parameter: EndpointParameter, i: int) -> str:
    match parameter.cast.removesuffix("[]"):
        case "interval":
            return f"{i} minutes {i + 1} seconds"
        case "inet":
            return f"192.168.5.{i}"
        case "macaddr":
            return "00-B0-D0-63-C2-26"
        case "bit varying" | "varbit":
            return "101"
        case "bytea":
            return "\\xDEADBEEF"
        case "jsonpath":
            return "$.user.addresses[0].city"
    return _WORDS[i % 3]
