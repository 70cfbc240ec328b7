"""Paths of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rowcall.core.postgrest.openapi.types import swagger_type, type_members
from rowcall.core.postgrest.schema import Argument, Function, Schema

_TYPES = [
    "application/json",
    "application/vnd.pgrst.object+json;nulls=stripped",
    "application/vnd.pgrst.object+json",
]


def described_functions(schema: Schema, name: str, types: Mapping[int, Sequence[str]]) -> Iterator[Function]:
    """Yield the functions of a schema that are described: of several with the same name the one with most parameters,
    as a path has one description. name: of the schema. types: of the arguments, as the description has them, for the
    oids of accessible functions.
    """
    for (namespace, _), overloads in schema.functions.items():
        accessible = [item for item in overloads if item.oid in types] if namespace == name else []
        if accessible:
            yield _with_types(max(accessible, key=_sort_key), types)


def _sort_key(function: Function) -> tuple[object, ...]:
    """Return the sort key of a function among those of its name; the function with the greatest key is described."""
    arguments = [(item.name, item.type) for item in function.arguments]
    return len(arguments), function.comment or "", arguments


def _with_types(function: Function, types: Mapping[int, Sequence[str]]) -> Function:
    """Return the function with other texts of the types of its arguments; unchanged if their number differs from that
    of the arguments. types: by oid of the function."""
    texts = types[function.oid]
    if len(texts) != len(function.arguments):
        return function  # It was replaced after the schema had been read.
    arguments = tuple(replace(item, type=text) for item, text in zip(function.arguments, texts, strict=True))
    return replace(function, arguments=arguments)


def function_path(function: Function, summary: str | None, description: str | None) -> dict[str, Any]:
    """Return the path item of a function. summary, description: of its operations; None: left out."""
    shared: dict[str, Any] = {"tags": [f"(rpc) {function.name}"]}
    if summary is not None:
        shared["summary"] = summary
    if description is not None:
        shared["description"] = description
    shared["produces"] = _TYPES
    shared["responses"] = {"200": {"description": "OK"}}
    result: dict[str, Any] = {
        "post": {**shared, "parameters": [_body(function), {"$ref": "#/parameters/preferParams"}]}
    }
    if function.volatility != "v":
        result["get"] = {**shared, "parameters": [_query(item) for item in function.arguments if item.name]}
    return result


def _body(function: Function) -> dict[str, Any]:
    """Return the parameter for the body of a POST."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {item.name: type_members(item.type) for item in function.arguments if item.name},
    }
    required = [item.name for item in function.arguments if item.required and item.name]
    if required:
        schema["required"] = required
    if function.comment is not None:
        schema["description"] = function.comment
    return {"name": "args", "required": True, "in": "body", "schema": schema}


def _query(argument: Argument) -> dict[str, Any]:
    """Return the parameter of the query string for an argument."""
    result: dict[str, Any] = {"name": argument.name, "required": argument.required, "in": "query"}
    if argument.variadic:
        element = argument.type.removesuffix("[]")
        items = {"format": element, "type": swagger_type(element) or "string"}
        result |= {"type": "array", "items": items, "collectionFormat": "multi"}
        return result
    kind = type_members(argument.type)
    kind.setdefault("type", "string")
    if kind["type"] == "array":
        kind = {"type": "string", "format": argument.type}
    return result | kind
