"""Types of PostgreSQL as JSON Schema (documents-8, mcp-4)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.documents.options import Nulls
from rowcall.core.endpoint.endpoint import (
    Endpoint,
    EndpointParameter,
    Field,
    NullText,
    ResultColumn,
    ResultPart,
    ResultPath,
    ResultShape,
    ValueKind,
)
from rowcall.core.text.naming import nested_name

Schema = dict[str, Any]
"""A JSON Schema."""
Types = Mapping[int, TypeInfo]
"""Types of a database, by oid."""

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
    "timestamp with time zone": {"type": "string", "format": "date-time"},
    "timestamptz": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "uuid": {"type": "string", "format": "uuid"},
    "json": {},
    "jsonb": {},
}
"""A timestamp without time zone has no `format`: that of `date-time` requires an offset (RFC 3339, 5.6)."""
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


@functools.cache
def _plain_name(type_name: str) -> str:
    return " ".join(_MODIFIER.sub("", type_name).replace('"', "").lower().split())


def named_schema(type_name: str) -> Schema:
    """Return a new schema for a type of PostgreSQL, without null. All types except numbers, boolean, timestamptz, date,
    uuid, json and jsonb are strings.

    type_name: in any case, also with a modifier, such as `numeric(10,2)`. With `[]` at its end it is an array, of one
    dimension.
    """
    name = _plain_name(type_name)
    if name.endswith("[]"):
        return {"type": "array", "items": named_schema(name.rstrip("[]"))}
    return dict(_NAMED.get(name, {"type": "string"}))


def parameter_schema(parameter: EndpointParameter) -> Schema:
    """Return the schema of a parameter's value in a JSON body, without null."""
    item = _kind_schema(parameter.kind, parameter.cast, parameter.fields)
    return with_constraints({"type": "array", "items": item} if parameter.array else item, parameter.constraints)


def query_schema(parameter: EndpointParameter) -> Schema:
    """Return the schema of a parameter's value in a path or a query string, where a value of type json is a string.

    If `travels_as_json` is true for the parameter, its schema in a query string is `parameter_schema` instead.
    """
    if parameter.kind is not ValueKind.JSON:
        return parameter_schema(parameter)
    item: Schema = {"type": "string"}
    return with_constraints({"type": "array", "items": item} if parameter.array else item, parameter.constraints)


def travels_as_json(parameter: EndpointParameter) -> bool:
    """Return whether a query string contains the value as one JSON text: composites with known fields, arrays of these,
    and single values of type json."""
    if parameter.kind is ValueKind.COMPOSITE and parameter.fields:
        return True
    return parameter.kind is ValueKind.JSON and not parameter.array


def _kind_schema(kind: ValueKind, type_text: str, fields: Sequence[Field]) -> Schema:
    if kind is ValueKind.COMPOSITE and fields:
        return {"type": "object", "properties": {item.api_name: _field_schema(item) for item in fields}}
    if kind is ValueKind.FLOAT:
        return named_schema("real" if type_text in ("real", "float4") else "double precision")
    return named_schema(_KINDS.get(kind, "text"))


def _field_schema(field: Field) -> Schema:
    """Return the schema of an attribute of a composite in a request.

    It does not allow null, because an attribute that is left out is NULL.
    """
    item = _kind_schema(field.kind, field.type_text, field.fields)
    return {"type": "array", "items": item} if field.array else item


def with_constraints(schema: Schema, constraints: ValueConstraints) -> Schema:
    """Set `enum` and `description` from the constraints of a column or parameter in the schema, and return it.

    The allowed values become `enum` if all of them have the type of the schema, with null in addition if the schema
    allows null. In an array, they are those of the innermost items.
    """
    if constraints is NO_CONSTRAINTS:
        return schema
    inner = schema
    while "items" in inner:
        inner = inner["items"]
    kind = inner.get("type")
    null = isinstance(kind, list) or "nullable" in inner
    response = {"string": str, "integer": int}.get(kind[0] if isinstance(kind, list) else kind or "")
    if response is not None and constraints.choices and all(isinstance(item, response) for item in constraints.choices):
        inner["enum"] = [*constraints.choices, *[None] * null]
    if constraints.text is not None:
        schema["description"] = constraints.text
    return schema


def nullable(schema: Schema, nulls: Nulls) -> Schema:
    """Return a copy of the schema that allows null too, in the form that `nulls` selects. The schema itself is returned
    if `nulls` is `OMITTED`, or if the schema has no `type` and therefore allows null already."""
    if nulls is Nulls.OMITTED or "type" not in schema:
        return schema
    kind = schema["type"]
    kinds = kind if isinstance(kind, list) else [kind]
    result = {**schema, "nullable": True} if nulls is Nulls.KEYWORD else {**schema, "type": [*kinds, "null"]}
    if "enum" in schema:
        result["enum"] = [*schema["enum"], None]
    return result


def body_member_schema(parameter: EndpointParameter, nulls: Nulls) -> Schema:
    """Return the schema of a member of a JSON body; null is allowed unless the constraints exclude it."""
    schema = parameter_schema(parameter)
    return schema if parameter.constraints.never_null else nullable(schema, nulls)


def column_schema(
    oid: int,
    type_name: str,
    types: Types,
    *,
    camel: bool,
    depth: int = 8,
    nulls: Nulls = Nulls.OMITTED,
    within: bool = False,
    spread: bool = False,
) -> Schema:
    """Return the schema of a value in a response, without null at the top.

    oid, type_name: of the value's type. camel: keys of composites are in camel case. depth: maximum number of nested
    composites; a deeper one is a string. nulls: how null is described in elements and attributes. within: the value is
    an element of an array or an attribute of a composite, where domains are described as texts. spread: the value is a
    nested composite whose attributes are rendered like columns of the row, so that `within` is not true of them.
    """
    if type_name == "record":
        return {"type": "array", "items": nullable({"type": "string"}, nulls)}
    info = base_of(oid, types)
    if info is not None and info.kind is TypeKind.ARRAY:
        element = types.get(info.element)
        if element is not None:
            items = column_schema(
                element.oid, element.display, types, camel=camel, depth=depth, nulls=nulls, within=True
            )
            return {"type": "array", "items": nullable(items, nulls)}
    if info is not None and info.kind is TypeKind.COMPOSITE and info.attributes and depth:
        inner = {}
        for item in info.attributes:
            result = column_schema(
                item.type_oid, item.type_name, types, camel=camel, depth=depth - 1, nulls=nulls, within=not spread
            )
            inner[nested_name(item.name, camel)] = nullable(with_constraints(result, item.constraints), nulls)
        return {"type": "object", "properties": inner}
    if info is not None and info.kind is TypeKind.ENUM:
        return {"type": "string"}
    if info is not None and info.oid != oid:
        type_name = "text" if within else info.display
    return _with_null_items(named_schema(type_name), nulls)


def _with_null_items(schema: Schema, nulls: Nulls) -> Schema:
    return {**schema, "items": nullable(schema["items"], nulls)} if "items" in schema else schema


def row_schema(shape: ResultShape, types: Types, *, camel: bool, nulls: Nulls = Nulls.OMITTED) -> Schema:
    """Return the schema of a row that is sent as an object. All columns are `required`, unless `nulls` is `OMITTED`.
    camel, nulls: as in `column_schema`."""
    properties = {item.key.decode(): _column(item, shape, types, camel, nulls) for item in shape.columns}
    if nulls is Nulls.OMITTED:
        return {"type": "object", "properties": properties}
    return {"type": "object", "properties": properties, "required": [*properties]}


def _column(column: ResultColumn, shape: ResultShape, types: Types, camel: bool, nulls: Nulls) -> Schema:
    item, taken_out = column.column, column.position is not None
    result = column_schema(
        item.type_oid, item.type_name, types, camel=camel, nulls=nulls, within=taken_out, spread=shape.blank_is_null
    )
    schema = with_constraints(result, item.constraints)
    return schema if item.constraints.never_null else nullable(schema, nulls)


def result_schema(endpoint: Endpoint, types: Types, *, camel: bool, nulls: Nulls = Nulls.OMITTED) -> Schema | None:
    """Return the schema of an endpoint's JSON response, which allows null if the endpoint may send it; None: the
    response has no body. camel, nulls: as in `column_schema`."""
    shape = endpoint.shape
    if shape.path is ResultPath.VOID:
        return None
    if shape.path is ResultPath.OBJECT:
        parts = {
            part.key.decode(): _part(endpoint, part, types, camel, nulls)
            for part in shape.parts
            if part.key is not None
        }
        return {"type": "object", "properties": parts, **({} if nulls is Nulls.OMITTED else {"required": [*parts]})}
    if shape.path is ResultPath.SCALAR:
        return _scalar(endpoint, types, camel, nulls)
    single = endpoint.options.single
    schema = _rows(endpoint, shape, types, single=single, camel=camel, nulls=nulls)
    return nullable(schema, nulls) if single and endpoint.options.null_text is not NullText.NOT_FOUND else schema


def _part(endpoint: Endpoint, part: ResultPart, types: Types, camel: bool, nulls: Nulls) -> Schema:
    """Return the schema of one of several results of an endpoint; a `single` result without a row is null."""
    schema = _rows(endpoint, part.shape, types, single=part.single, camel=camel, nulls=nulls)
    return nullable(schema, nulls) if part.single else schema


def _rows(endpoint: Endpoint, shape: ResultShape, types: Types, *, single: bool, camel: bool, nulls: Nulls) -> Schema:
    if shape.path is ResultPath.VOID:
        return {"type": "integer"}
    named = shape.named
    row = row_schema(shape, types, camel=camel, nulls=nulls) if named else _bare(endpoint, shape, types, camel, nulls)
    return {"type": "array", "items": row} if shape.is_set and not single else row


def _scalar(endpoint: Endpoint, types: Types, camel: bool, nulls: Nulls) -> Schema:
    """Return the schema of a scalar that is sent as JSON: an array, or a value of type json. It allows null only if the
    endpoint sends NULL as JSON."""
    schema = _bare(endpoint, endpoint.shape, types, camel, nulls)
    sent = endpoint.options.null_text is NullText.EMPTY_STRING and endpoint.null_is_json
    return schema if sent else _without_null(schema)


def _without_null(schema: Schema) -> Schema:
    """Return a copy of the schema without null as outermost value, for a scalar whose NULL is not sent as JSON."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        schema = {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}
    return {name: value for name, value in schema.items() if name != "nullable"}


def cast_schema(shape: ResultShape, nulls: Nulls) -> Schema:
    """Return the schema of the type to which the whole result is cast, such as text[] for arrays of composites.

    shape: its `cast` is not empty. nulls: how null is described in the elements of an array.
    """
    return _with_null_items(named_schema(shape.cast.removeprefix("::")), nulls)


def _bare(endpoint: Endpoint, shape: ResultShape, types: Types, camel: bool, nulls: Nulls) -> Schema:
    if shape.columns:
        return _column(shape.columns[0], shape, types, camel, nulls)
    if shape.cast:
        return nullable(cast_schema(shape, nulls), nulls)
    routine = endpoint.routine
    result = column_schema(routine.return_type_oid, routine.return_type_name, types, camel=camel, nulls=nulls)
    return nullable(with_constraints(result, shape.constraints), nulls)
