"""Columns of relations as JSON Schema: what requests contain, and what responses do."""

from __future__ import annotations

from rowcall.core.documents.schemas import Nulls, Schema, named_schema, nullable
from rowcall.core.postgrest.schema import Argument, Column


def type_schema(name: str, labels: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a type by its name, without null. labels: of the enum that it is, or that is below it.

    Types with a schema that are no enum may have any form in JSON: composites, and types with a cast to JSON.
    """
    if name.endswith("[]"):
        return {"type": "array", "items": type_schema(name.removesuffix("[]"))}
    if labels:
        return {"type": "string", "enum": list(labels)}
    return {} if "." in name else named_schema(name)


def column_schema(column: Column, nulls: Nulls) -> Schema:
    """Return the schema of a column, with its comment as description."""
    result = type_schema(column.base_type or column.type, column.enum)
    if column.max_length is not None and result.get("type") == "string":
        result["maxLength"] = column.max_length
    if column.nullable:
        result = nullable(result, nulls)
    if column.comment is not None:
        result["description"] = column.comment
    return result


def argument_schema(argument: Argument) -> Schema:
    return type_schema(argument.type)


def is_written(column: Column) -> bool:
    """Whether requests may give the column a value."""
    return not column.generated


def is_needed(column: Column) -> bool:
    """Whether an inserted row must have the column."""
    return is_written(column) and not column.nullable and column.default is None
