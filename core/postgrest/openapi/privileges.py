"""What a role may access, for the description of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rowcall.core.postgrest.sql.output import Statement

_TABLES = (
    "SELECT json_agg(c.relname ORDER BY c.relname) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid "
    "AND c.relkind IN ('v', 'r', 'm', 'f', 'p') AND ({visible})"
)
_VISIBLE_TABLE = (
    "pg_catalog.pg_has_role(c.relowner, 'USAGE') OR pg_catalog.has_table_privilege(c.oid, "
    "'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') "
    "OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')"
)
_FUNCTIONS = (
    "SELECT json_object_agg(p.oid, ARRAY(SELECT pg_catalog.format_type(a.type, NULL) "
    "FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a(type, place) ORDER BY a.place)) "
    "FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid AND p.prokind = 'f' AND ({visible})"
)
_VISIBLE_FUNCTION = "pg_catalog.has_function_privilege(p.oid, 'EXECUTE')"


@dataclass(frozen=True, slots=True)
class Accessible:
    """What a role may access in a schema: sorted names of relations, functions, and the comment of the schema.

    functions: for each oid the types of the arguments, as they are written with the search path of the request.
    """

    relations: Sequence[str]
    functions: Mapping[int, Sequence[str]]
    comment: str | None


def privileges_statement(schema: str, *, all_visible: bool) -> Statement:
    """Return the statement that selects what the role may access in a schema, as one JSON text for `read_privileges`.

    all_visible: everything in the schema is selected, regardless of privileges.
    """
    tables = _TABLES.format(visible="true" if all_visible else _VISIBLE_TABLE)
    functions = _FUNCTIONS.format(visible="true" if all_visible else _VISIBLE_FUNCTION)
    return Statement(
        f"SELECT json_build_array(({tables}), ({functions}), "
        "pg_catalog.obj_description(n.oid, 'pg_namespace'))::text "
        "FROM pg_catalog.pg_namespace n WHERE n.nspname = $1::text",
        (schema,),
    )


def read_privileges(value: bytes) -> Accessible:
    """Parse the JSON text that the statement of `privileges_statement` selects; empty: nothing is accessible."""
    relations: list[str] | None
    functions: dict[str, list[str]] | None
    content: Any = orjson.loads(value) if value else [None, None, None]
    relations, functions, comment = content
    return Accessible(relations or (), {int(oid): types for oid, types in (functions or {}).items()}, comment)
