"""JSON Schema of the columns of relations, in requests and in responses."""

from __future__ import annotations

from rowcall.core.documents.options import Nulls
from rowcall.core.documents.schemas import Schema, named_schema, nullable
from rowcall.core.postgrest.schema import Argument, Column


def type_schema(name: str, labels: tuple[str, ...] = ()) -> Schema:
    """Return the schema of a type by its name, without null.

    A name with a schema, such as `shop.price`, belongs to a type of the user, which may have any form in JSON unless it
    has labels. labels: values of the enum, or of the enum on which a domain is based; empty: the type is no enum.
    """
    if name.endswith("[]"):
        return {"type": "array", "items": type_schema(name.removesuffix("[]"))}
    if labels:
        return {"type": "string", "enum": list(labels)}
    return {} if "." in name else named_schema(name)


def column_schema(column: Column, nulls: Nulls) -> Schema:
    """Return the schema of a column, with its comment as description. nulls: how null is described if the column
    allows it."""
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
    """Return whether requests may give the column a value."""
    return not column.generated


def is_needed(column: Column) -> bool:
    """Return whether an inserted row must have the column."""
    return is_written(column) and not column.nullable and column.default is None
