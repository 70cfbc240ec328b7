"""Paths of PostgREST's interface in the OpenAPI document of the service.

Privileges play no role: the document is the same for all readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from rowcall.core.documents.options import Nulls
from rowcall.core.documents.postgrest.columns import argument_schema, column_schema, is_needed, is_written, type_schema
from rowcall.core.documents.schemas import Schema
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.schema import Function, Relation

SECURITY = "postgrestToken"
SECURITY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "Token of PostgREST's interface; its role decides what a request may do",
}
ERROR = "PostgRestError"
ERROR_SCHEMA: Schema = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("code", "message")}
    | {name: {} for name in ("details", "hint")},
    "required": ["code", "message"],
}
_JSON = "application/json"
_BODIES = {"json": _JSON, "jsonb": _JSON, "text": "text/plain", "xml": "text/xml", "bytea": "application/octet-stream"}
_COMPONENT = re.compile(r"[^A-Za-z0-9._-]")
_FILTER = "Filter: an operator and a value, such as eq.5"
_PAGING: tuple[tuple[str, str, Schema], ...] = (
    ("select", "Columns of the result, and embedded relations", {"type": "string"}),
    ("order", "Columns, each with .asc or .desc, and .nullsfirst or .nullslast", {"type": "string"}),
    ("limit", "Most rows of the response", {"type": "integer", "minimum": 0}),
    ("offset", "Rows to skip", {"type": "integer", "minimum": 0}),
)
_RESERVED = frozenset(name for name, _, _ in _PAGING) | {"columns", "on_conflict", "and", "or"}
_PREFERENCES = {
    "get": "count=exact, count=planned or count=estimated",
    "post": "return=representation, return=minimal, resolution=merge-duplicates, missing=default",
    "patch": "return=representation, return=minimal, max-affected=1 with handling=strict",
    "delete": "return=representation, return=minimal, max-affected=1 with handling=strict",
}


@dataclass(frozen=True, slots=True)
class InterfacePaths:
    """Path items by path, and the schemas to which they refer by name. Each operation has an operation id."""

    paths: Mapping[str, Mapping[str, Any]]
    schemas: Mapping[str, Schema]


def interface_paths(
    catalogue: PostgRestCatalogue, nulls: Nulls, shown: Iterable[tuple[str, str]] | None = None
) -> InterfacePaths:
    """Return the paths of exposed relations and functions.

    nulls: how the schemas describe null. shown: (schema, name) of the relations and functions to include; None: all.
    If several schemas have a relation or function of one name, its path describes that of the first schema; requests
    to the others need a header.
    """
    return _Describer(catalogue, nulls, None if shown is None else frozenset(shown)).describe_interface()


def exposed_names(catalogue: PostgRestCatalogue) -> Iterator[tuple[str, str]]:
    """Yield (schema, name) of the exposed relations, then of the exposed functions."""
    schemas = catalogue.options.schemas
    yield from (name for name in catalogue.schema.relations if name[0] in schemas)
    yield from (name for name in catalogue.schema.functions if name[0] in schemas)


class _Describer:
    """Collects the path items of one catalogue, and the schemas to which they refer. shown: as in `interface_paths`."""

    def __init__(self, catalogue: PostgRestCatalogue, nulls: Nulls, shown: frozenset[tuple[str, str]] | None) -> None:
        self._schema = catalogue.schema
        self._options = catalogue.options
        self._base = catalogue.options.path.rstrip("/")
        self._nulls = nulls
        self._shown = shown
        self._paths: dict[str, dict[str, Any]] = {}
        self._schemas: dict[str, Schema] = {}
        self._components: dict[tuple[str, ...], str] = {}

    def describe_interface(self) -> InterfacePaths:
        for schema in self._options.schemas:
            for name in sorted(item for namespace, item in self._schema.relations if namespace == schema):
                if self._is_shown((schema, name)):
                    self._add(schema, quote(name, safe=""), self._relation(self._schema.relations[schema, name]))
            for name in sorted(item for namespace, item in self._schema.functions if namespace == schema):
                if self._is_shown((schema, name)):
                    self._add(
                        schema, f"rpc/{quote(name, safe='')}", self._function(self._schema.functions[schema, name])
                    )
        return InterfacePaths(self._paths, self._schemas)

    def _is_shown(self, name: tuple[str, str]) -> bool:
        return self._shown is None or name in self._shown

    def _add(self, schema: str, path: str, operations: dict[str, dict[str, Any]]) -> None:
        full = f"{self._base}/{path}"
        if full in self._paths:
            return
        for method, operation in operations.items():
            operation["operationId"] = f"postgrest_{schema}_{path.replace('/', '_')}_{method}"
            operation["tags"] = [schema]
            if schema != self._options.schemas[0]:
                name = "Accept-Profile" if method == "get" else "Content-Profile"
                operation["parameters"] = [_profile(name, schema), *operation.get("parameters", ())]
            operation["responses"]["default"] = {
                "description": "Error",
                "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{ERROR}"}}},
            }
            token: list[dict[str, list[str]]] = [{SECURITY: []}]
            operation["security"] = token if self._options.anonymous_role is None else [{}, *token]
        self._paths[full] = operations

    # --- relations -------------------------------------------------------------------------------------------------

    def _relation(self, relation: Relation) -> dict[str, dict[str, Any]]:
        row = self._row(relation)
        rows: Schema = {"type": "array", "items": row}
        filters = [
            {"name": item.name, "in": "query", "description": item.comment or _FILTER, "schema": {"type": "string"}}
            for item in relation.columns
            if item.name not in _RESERVED
        ]
        paging = [
            {"name": name, "in": "query", "description": text, "schema": schema} for name, text, schema in _PAGING
        ]
        answer = {_JSON: {"schema": rows}}
        result: dict[str, dict[str, Any]] = {
            "get": {
                **_texts(relation.comment, f"Rows of {relation.name}"),
                "parameters": [*filters, *paging, _prefer("get")],
                "responses": {
                    "200": {"description": "Rows", "content": answer},
                    "206": {"description": "A part of the rows", "content": answer},
                },
            }
        }
        selected = [item for item in paging if item["name"] == "select"]
        written = {"description": "The written rows, with return=representation", "content": answer}
        nothing = {"description": "Written"}
        if relation.insertable:
            inserted = self._insert_schema(relation)
            result["post"] = {
                "summary": f"Insert rows into {relation.name}",
                "parameters": [*selected, _prefer("post")],
                "requestBody": _body({"anyOf": [inserted, {"type": "array", "items": inserted}]}),
                "responses": {"201": {"description": "Inserted", "content": answer}},
            }
        if relation.updatable:
            result["patch"] = {
                "summary": f"Update rows of {relation.name}",
                "parameters": [*filters, *selected, _prefer("patch")],
                "requestBody": _body(row),
                "responses": {"200": written, "204": nothing},
            }
        if relation.deletable:
            result["delete"] = {
                "summary": f"Delete rows of {relation.name}",
                "parameters": [*filters, *selected, _prefer("delete")],
                "responses": {"200": written, "204": nothing},
            }
        return result

    def _row(self, relation: Relation) -> Schema:
        """Add the schema of a row to the collected ones, and return a reference to it. No column is required, because
        requests select columns."""
        schema: Schema = {
            "type": "object",
            "properties": {item.name: column_schema(item, self._nulls) for item in relation.columns},
        }
        if relation.comment is not None:
            schema["description"] = relation.comment
        return self._reference((relation.schema, relation.name), schema)

    def _insert_schema(self, relation: Relation) -> Schema:
        columns = [item for item in relation.columns if is_written(item)]
        schema: Schema = {
            "type": "object",
            "properties": {item.name: column_schema(item, self._nulls) for item in columns},
        }
        needed = [item.name for item in columns if is_needed(item)]
        if needed:
            schema["required"] = needed
        return self._reference((relation.schema, relation.name, "insert"), schema)

    def _reference(self, key: tuple[str, ...], schema: Schema) -> Schema:
        name = self._components.get(key)
        if name is None:
            plain = name = _COMPONENT.sub("_", ".".join(key))
            number = 1
            while name in self._schemas:
                number += 1
                name = f"{plain}_{number}"
            self._components[key] = name
            self._schemas[name] = schema
        return {"$ref": f"#/components/schemas/{name}"}

    # --- functions -------------------------------------------------------------------------------------------------

    def _function(self, overloads: Sequence[Function]) -> dict[str, dict[str, Any]]:
        first = overloads[0]
        texts = _texts(first.comment, f"Call {first.name}")
        responses = self._results(overloads)
        result: dict[str, dict[str, Any]] = {"post": {**texts, "responses": responses}}
        body = _arguments_body(overloads)
        if body is not None:
            result["post"]["requestBody"] = body
        if all(item.volatility != "v" for item in overloads):
            result["get"] = {**texts, "parameters": _query(overloads), "responses": dict(responses)}
        return result

    def _results(self, overloads: Sequence[Function]) -> dict[str, Any]:
        schemas: list[Schema] = []
        for item in overloads:
            if not item.returns_void and (schema := self._result(item)) not in schemas:
                schemas.append(schema)
        result: dict[str, Any] = {}
        if schemas:
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            result["200"] = {"description": "Result", "content": {_JSON: {"schema": schema}}}
        if any(item.returns_void for item in overloads):
            result["204"] = {"description": "Done"}
        return result

    def _result(self, function: Function) -> Schema:
        relation = None if function.relation is None else self._schema.relations.get(function.relation)
        if relation is not None:
            schema = self._row(relation)
        elif function.outputs:
            properties = {item.name: argument_schema(item) for item in function.outputs if item.name}
            schema = {"type": "object", "properties": properties}
        else:
            schema = {} if function.returns_composite else type_schema(function.return_type)
        return {"type": "array", "items": schema} if function.returns_set else schema


def _texts(comment: str | None, default: str) -> dict[str, str]:
    """Return the first line of a comment as summary, and the rest, if any, as description. default: summary if there
    is no comment."""
    first, _, rest = (comment or "").partition("\n")
    result = {"summary": first or default}
    return {**result, "description": rest.strip()} if rest.strip() else result


def _prefer(method: str) -> dict[str, Any]:
    return {"name": "Prefer", "in": "header", "description": _PREFERENCES[method], "schema": {"type": "string"}}


def _profile(name: str, schema: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "description": "Schema of the path",
        "required": True,
        "schema": {"type": "string", "enum": [schema]},
    }


def _body(schema: Schema, media_type: str = _JSON) -> dict[str, Any]:
    return {"required": True, "content": {media_type: {"schema": schema}}}


def _arguments_body(overloads: Sequence[Function]) -> dict[str, Any] | None:
    """Return the `requestBody` of a call by POST; None: no overload has a parameter. overloads: of one function."""
    contents: dict[str, list[Schema]] = {}
    for item in overloads:
        if len(item.arguments) == 1 and not item.arguments[0].name:
            kind = item.arguments[0].type
            media_type = _BODIES.get(kind, _JSON)
            contents.setdefault(media_type, []).append({} if media_type == _JSON else {"type": "string"})
        elif item.arguments:
            contents.setdefault(_JSON, []).append(_arguments_schema(item))
    if not contents:
        return None
    required = all(any(argument.required for argument in item.arguments) for item in overloads)
    return {
        "required": required,
        "content": {
            media_type: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
            for media_type, schemas in contents.items()
        },
    }


def _arguments_schema(function: Function) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {item.name: argument_schema(item) for item in function.arguments},
    }
    required = [item.name for item in function.arguments if item.required]
    return {**schema, "required": required} if required else schema


def _query(overloads: Sequence[Function]) -> list[dict[str, Any]]:
    """Return the parameter objects of a call by GET: those of all overloads of a function. A parameter is required if
    all overloads require it."""
    result: dict[str, dict[str, Any]] = {}
    for item in overloads:
        for argument in item.arguments:
            if argument.name and argument.name not in result:
                required = all(
                    any(other.name == argument.name and other.required for other in each.arguments)
                    for each in overloads
                )
                kind = argument.type
                # Arrays and values of own types are texts in a query string.
                plain = kind.endswith("[]") and not argument.variadic
                schema = {"type": "string"} if plain or "." in kind else argument_schema(argument) or {"type": "string"}
                result[argument.name] = {"name": argument.name, "in": "query", "required": required, "schema": schema}
    return list(result.values())
