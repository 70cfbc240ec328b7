"""Endpoint parameters from a name and a type, and binding of single values, for the tests of binding."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.core.binding.binding import Binder
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, Field, QueryNull, ValueKind
from rowcall.core.errors.binding_error import BindingError

TYPES = {
    "smallint": ValueKind.SMALLINT,
    "integer": ValueKind.INTEGER,
    "bigint": ValueKind.BIGINT,
    "real": ValueKind.FLOAT,
    "double precision": ValueKind.FLOAT,
    "numeric": ValueKind.NUMERIC,
    "boolean": ValueKind.BOOLEAN,
    "uuid": ValueKind.UUID,
    "timestamp with time zone": ValueKind.TIMESTAMPTZ,
    "timestamp without time zone": ValueKind.TIMESTAMP,
    "date": ValueKind.DATE,
    "time without time zone": ValueKind.TIME,
    "time with time zone": ValueKind.TIMETZ,
    "text": ValueKind.TEXT,
    "character varying": ValueKind.TEXT,
    "character varying(2)": ValueKind.TEXT,
    "name": ValueKind.TEXT,
    '"char"': ValueKind.TEXT,
    "jsonpath": ValueKind.TEXT,
    "money": ValueKind.NUMERIC,
    "pair": ValueKind.COMPOSITE,
    "jsonb": ValueKind.JSON,
    "json": ValueKind.JSON,
}


PAIR = (
    Field("n", "n", ValueKind.INTEGER, False, "integer"),
    Field("some_texts", "someTexts", ValueKind.TEXT, True, "text[]"),
)
"""Attributes of `pair`, the composite of these tests."""


def parameter(name: str, type_name: str = "integer", **options: Any) -> EndpointParameter:
    element = type_name.removesuffix("[]")
    return EndpointParameter(
        db_name=f"_{name}",
        api_name=name,
        kind=TYPES.get(element, ValueKind.OTHER),
        array=type_name.endswith("[]"),
        cast=type_name,
        delimiter=";" if element == "box" else ",",
        has_default=options.pop("default", False),
        position=options.pop("position", 0),
        fields=PAIR if element == "pair" else (),
        **options,
    )


def binder(*parameters: EndpointParameter, query_null: QueryNull = QueryNull.IGNORE, **options: Any) -> Binder:
    return Binder(parameters, Transport.QUERY, query_null, **options)


def query_value(type_name: str, query: str, **options: Any) -> bytes | None:
    [value] = binder(parameter("x", type_name), **options).bind_query(query).values
    return value


def json_value(type_name: str, text: str) -> bytes | None:
    [value] = binder(parameter("x", type_name)).bind_body(b'{"x":%s}' % text.encode()).values
    return value


def refusal(run: Any, *arguments: Any) -> tuple[int, str]:
    with pytest.raises(BindingError) as caught:
        run(*arguments)
    return caught.value.status, caught.value.detail


def faults(run: Any, *arguments: Any) -> tuple[int, list[tuple[str, str, str]]]:
    """Return the status, and parameter, path and message of all faults."""
    with pytest.raises(BindingError) as caught:
        run(*arguments)
    return caught.value.status, [(fault.parameter, fault.path, fault.message) for fault in caught.value.faults]
