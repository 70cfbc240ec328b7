"""Types of PostgreSQL as JSON Schema (reference 03, 12.1 and 13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultColumn, ResultPath, ResultShape, ValueKind
from rowcall.core.text.naming import nested_name

Schema = dict[str, Any]
Types = Mapping[int, TypeInfo]

_MODIFIER = re.compile(r"\(.*?\)")
_NAMED: dict[str, Schema] = {
    "smallint": {"type": "integer", "format": "int32"},
    "integer": {"type": "integer", "format": "int32"},
    "int": {"type": "integer", "format": "int32"},
    "int2": {"type": "integer", "format": "int32"},
    "int4": {"type": "integer", "format": "int32"},
    "bigint": {"type": "integer", "format": "int64"},
    "int8": {"type": "integer", "format": "int64"},
    "numeric": {"type": "number"},
    "decimal": {"type": "number"},
    "real": {"type": "number", "format": "float"},
    "float4": {"type": "number", "format": "float"},
    "double precision": {"type": "number", "format": "double"},
    "float8": {"type": "number", "format": "double"},
    "boolean": {"type": "boolean"},
    "bool": {"type": "boolean"},
    "timestamp without time zone": {"type": "string", "format": "date-time"},
    "timestamp with time zone": {"type": "string", "format": "date-time"},
    "timestamp": {"type": "string", "format": "date-time"},
    "timestamptz": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "uuid": {"type": "string", "format": "uuid"},
    "json": {"type": "object"},
    "jsonb": {"type": "object"},
}
_KINDS = {
    ValueKind.SMALLINT: "smallint",
    ValueKind.INTEGER: "integer",
    ValueKind.BIGINT: "bigint",
    ValueKind.NUMERIC: "numeric",
    ValueKind.BOOLEAN: "boolean",
    ValueKind.UUID: "uuid",
    ValueKind.TIMESTAMP: "timestamp",
    ValueKind.TIMESTAMPTZ: "timestamptz",
    ValueKind.DATE: "date",
    ValueKind.JSON: "json",
}


def named_schema(type_name: str) -> Schema:
    """By the name of a type; whatever is not known is a string."""
    name = " ".join(_MODIFIER.sub("", type_name).replace('"', "").lower().split())
    if name.endswith("[]"):
        return {"type": "array", "items": named_schema(name.rstrip("[]"))}
    return dict(_NAMED.get(name, {"type": "string"}))


def parameter_schema(parameter: EndpointParameter) -> Schema:
    name = _KINDS.get(parameter.kind)
    if parameter.kind is ValueKind.FLOAT:
        name = "real" if parameter.cast in ("real", "float4") else "double precision"
    one = named_schema(name or "text")
    return {"type": "array", "items": one} if parameter.array else one


def column_schema(oid: int, type_name: str, types: Types, *, camel: bool, depth: int = 8) -> Schema:
    """What a value is in a response: composites are objects, wherever they stand."""
    info = types.get(oid)
    while info is not None and info.kind is TypeKind.DOMAIN:
        base = types.get(info.base)
        type_name = base.display if base is not None else "text"
        info = base
    if info is not None and info.kind is TypeKind.ARRAY:
        element = types.get(info.element)
        if element is not None and element.kind is TypeKind.DOMAIN:
            return {"type": "array", "items": {"type": "string"}}
        if element is not None:
            items = column_schema(element.oid, element.display, types, camel=camel, depth=depth)
            return {"type": "array", "items": items}
    if info is not None and info.kind is TypeKind.COMPOSITE and info.attributes and depth:
        inner = {}
        for one in info.attributes:
            told = column_schema(one.type_oid, one.type_name, types, camel=camel, depth=depth - 1)
            inner[nested_name(one.name, camel)] = told
        return {"type": "object", "properties": inner}
    if info is not None and info.kind is TypeKind.ENUM:
        return {"type": "string"}
    return named_schema(type_name)


def row_schema(shape: ResultShape, types: Types, *, camel: bool) -> Schema:
    return {
        "type": "object",
        "properties": {one.key.decode(): _column(one, types, camel) for one in shape.columns},
    }


def _column(column: ResultColumn, types: Types, camel: bool) -> Schema:
    return column_schema(column.column.type_oid, column.column.type_name, types, camel=camel)


def result_schema(endpoint: Endpoint, types: Types, *, camel: bool) -> Schema | None:
    """Of a JSON body; None for nothing."""
    shape = endpoint.shape
    if shape.path is ResultPath.VOID:
        return None
    if shape.path is ResultPath.OBJECT:
        parts = {
            part.key.decode(): _rows(endpoint, part.shape, types, single=part.single, camel=camel)
            for part in shape.parts
            if part.key is not None
        }
        return {"type": "object", "properties": parts}
    if shape.path is ResultPath.SCALAR:
        return _bare(endpoint, shape, types, camel)
    return _rows(endpoint, shape, types, single=endpoint.options.single, camel=camel)


def _rows(endpoint: Endpoint, shape: ResultShape, types: Types, *, single: bool, camel: bool) -> Schema:
    if shape.path is ResultPath.VOID:
        return {"type": "integer"}
    row = row_schema(shape, types, camel=camel) if shape.named else _bare(endpoint, shape, types, camel)
    return {"type": "array", "items": row} if shape.is_set and not single else row


def _bare(endpoint: Endpoint, shape: ResultShape, types: Types, camel: bool) -> Schema:
    if shape.columns:
        return _column(shape.columns[0], types, camel)
    routine = endpoint.routine
    if routine.return_type_name == "record":
        return {"type": "array", "items": {"type": "string"}}
    return column_schema(routine.return_type_oid, routine.return_type_name, types, camel=camel)
