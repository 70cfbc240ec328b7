"""Definitions, parameters and paths of relations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rowcall.core.postgrest.openapi.types import default_of, reference, type_members
from rowcall.core.postgrest.schema import Cardinality, Column, Relation, Schema


def definition(schema: Schema, relation: Relation) -> dict[str, Any]:
    """Return the OpenAPI schema of a row of the relation."""
    targets = _targets(schema, relation)
    result: dict[str, Any] = {
        "type": "object",
        "properties": {column.name: _property(relation, column, targets) for column in relation.columns},
    }
    required = [column.name for column in relation.columns if not column.nullable]
    if required:
        result["required"] = required
    if relation.comment is not None:
        result["description"] = relation.comment
    return result


def _targets(schema: Schema, relation: Relation) -> dict[str, tuple[str, str]]:
    """Return column → name of the target relation and its column, for columns that are foreign keys by themselves to a
    relation of the same schema. If a column has several targets, tables have precedence over views.
    """
    result: dict[str, tuple[str, str]] = {}
    items = schema.relationships.get((relation.schema, relation.name), ())
    for item in sorted(items, key=lambda item: item.target_is_view):
        to_one = item.cardinality in (Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_ONE) and not item.referenced
        if to_one and len(item.columns) == 1 and item.function is None and item.target[0] == relation.schema:
            outer, inner = item.columns[0]
            result.setdefault(outer, (item.target[1], inner))
    return result


def _property(relation: Relation, column: Column, targets: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the schema of a column. targets: from `_targets`."""
    # A type of PostgreSQL itself, also one below a domain, is shown without its modifiers; others by their own name.
    name = column.type if "." in column.base_type or not column.base_type else column.base_type
    result = type_members(name)
    default = default_of(name, column.default)
    if default is not None:
        result["default"] = default
    if column.max_length is not None:
        result["maxLength"] = column.max_length
    if column.enum:
        result["enum"] = list(column.enum)
    description = _description(relation, column, targets)
    if description is not None:
        result["description"] = description
    return result


def _description(relation: Relation, column: Column, targets: dict[str, tuple[str, str]]) -> str | None:
    """Return the comment of a column with notes about its keys; None: it has neither. targets: from `_targets`."""
    notes: list[str] = []
    if column.name in relation.key:
        notes.append("This is a Primary Key.<pk/>")
    target = targets.get(column.name)
    if target is not None:
        table, inner = target
        notes.append(f"This is a Foreign Key to `{table}.{inner}`.<fk table='{table}' column='{inner}'/>")
    if not notes:
        return column.comment
    before = "" if column.comment is None else f"{column.comment}\n\n"
    return before + "\n".join(("Note:", *notes))


def parameters_of(relation: Relation) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and definition of each parameter of a relation: its body, and a filter for each column."""
    yield (
        f"body.{relation.name}",
        {
            "name": relation.name,
            "description": relation.name,
            "required": False,
            "in": "body",
            "schema": reference("definitions", relation.name),
        },
    )
    for column in relation.columns:
        value: dict[str, Any] = {"name": column.name, "required": False, "in": "query", "type": "string"}
        if column.comment is not None:
            value["description"] = column.comment
        yield f"rowFilter.{relation.name}.{column.name}", value


def relation_path(relation: Relation, summary: str | None, description: str | None) -> dict[str, Any]:
    """Return the path item of a relation. summary, description: of its operations; None: left out."""
    name = relation.name
    filters = [f"rowFilter.{name}.{column.name}" for column in relation.columns]

    def operation(parameters: list[str], responses: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"tags": [name]}
        if summary is not None:
            result["summary"] = summary
        if description is not None:
            result["description"] = description
        result["parameters"] = [reference("parameters", item) for item in parameters]
        result["responses"] = responses
        return result

    rows = {"type": "array", "items": reference("definitions", name)}
    no_content = {"204": {"description": "No Content"}}
    result = {
        "get": operation(
            [*filters, "select", "order", "range", "rangeUnit", "offset", "limit", "preferCount"],
            {"200": {"description": "OK", "schema": rows}, "206": {"description": "Partial Content"}},
        )
    }
    if relation.insertable or relation.updatable or relation.deletable:
        created = {"201": {"description": "Created"}}
        result["post"] = operation([f"body.{name}", "select", "preferPost"], created)
        result["delete"] = operation([*filters, "preferReturn"], no_content)
        result["patch"] = operation([*filters, f"body.{name}", "preferReturn"], no_content)
    return result
