"""Writes as SQL: a data-modifying CTE, and a read of the rows that it returns.

Source: PostgREST's documentation, Tables and Views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.plan import Node, Plan
from rowcall.core.postgrest.request.payload import Payload
from rowcall.core.postgrest.request.tree import Condition, Field, LogicNode, Operation, SelectColumn
from rowcall.core.postgrest.schema import Column, Relation, Schema
from rowcall.core.postgrest.sql.array_elements import array_element
from rowcall.core.postgrest.sql.output import NO_BODY, ROW, SOURCE, Output, Parameters, Statement, result_columns
from rowcall.core.postgrest.sql.reads import Renderer
from rowcall.core.text.naming import quote_identifier, quote_qualified

WRITTEN = "pgrst_written"
BODY = "pgrst_body"
_COUNTER = "coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0)"
"""Number of rows that the statement has inserted so far. It is a setting, because views have no xmax."""
_ONE_MORE = f"set_config('pgrst.inserted', ({_COUNTER} + 1)::text, true) <> '0'"
_ONE_LESS = f"set_config('pgrst.inserted', ({_COUNTER} - 1)::text, true) <> '-1'"


@dataclass(frozen=True, slots=True)
class Returning:
    """What a write returns. plan: how the written rows are selected and rendered. representation: whether the written
    rows are returned. keys: whether the primary key is returned, if exactly one row was written."""

    plan: Plan
    output: Output = NO_BODY
    representation: bool = False
    keys: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """What an insert does with rows that exist already. columns: of the unique constraint. merge: the rows are
    updated; otherwise they stay as they are."""

    columns: tuple[str, ...]
    merge: bool


def insert_statement(
    schema: Schema,
    relation: Relation,
    payload: Payload,
    returning: Returning,
    *,
    conflict: Conflict | None = None,
    defaults: bool = False,
    key: Sequence[tuple[str, str]] = (),
) -> Statement:
    """Return the statement that inserts the rows of a payload, for POST and PUT.

    conflict: None: an existing row is an error. defaults: a column whose key is in `payload.keys` but missing in an
    object gets its default if True, NULL if False. A column outside `payload.keys` always gets its default. key: names
    and values of columns; only rows with these values are written (PUT). Raises `ApiError` (`PGRST204`) for a key of
    the payload that is no column.
    """
    parameters = Parameters()
    columns = written_columns(relation, payload)
    merges = conflict is not None and conflict.merge and bool(columns)
    rows = _rows(schema, columns, payload, parameters, defaults)
    if key:
        renderer = Renderer(schema, parameters)
        conditions = (Condition(Field(name), Operation("eq", value)) for name, value in key)
        where = " AND ".join(renderer.condition(BODY, relation, condition, None) for condition in conditions)
        # OFFSET, so that only the rows that pass are counted, whatever the condition costs.
        rows = f"SELECT * FROM ({rows}) {BODY} WHERE {where} OFFSET 0"
    if merges:
        rows = f"SELECT * FROM ({rows}) {BODY} WHERE {_ONE_MORE}"
    names = ", ".join(quote_identifier(column.name) for column in columns)
    listed = f"({names})" if columns else ""
    table = quote_qualified(relation.schema, relation.name)
    written = f"INSERT INTO {table}{listed} {rows}{_on_conflict(conflict, columns)}"
    inserted = "nullif(current_setting('pgrst.inserted', true), '')" if merges else "count(*)"
    return _statement(schema, relation, written, returning, parameters, inserted)


def update_statement(
    schema: Schema,
    relation: Relation,
    payload: Payload,
    filters: Sequence[LogicNode],
    returning: Returning,
    *,
    defaults: bool = False,
) -> Statement:
    """Return the statement that sets columns of the rows that pass the filters to the values of a payload, for PATCH. A
    payload without keys or rows changes nothing.

    defaults: as in `insert_statement`. Raises `ApiError` (`PGRST204`) for a key of the payload that is no column.
    """
    parameters = Parameters()
    columns = written_columns(relation, payload)
    table = quote_qualified(relation.schema, relation.name)
    if not columns or (payload.is_array and not payload.rows):
        return _statement(schema, relation, None, returning, parameters)
    assigned = ", ".join(
        f"{quote_identifier(column.name)} = {BODY}.{quote_identifier(column.name)}" for column in columns
    )
    body = _rows(schema, columns, payload, parameters, defaults)
    written = f"UPDATE {table} SET {assigned} FROM ({body}) {BODY}{_where(schema, relation, filters, parameters)}"
    return _statement(schema, relation, written, returning, parameters)


def delete_statement(
    schema: Schema, relation: Relation, filters: Sequence[LogicNode], returning: Returning
) -> Statement:
    """Return the statement that deletes the rows that pass the filters; without filters, all rows."""
    parameters = Parameters()
    table = quote_qualified(relation.schema, relation.name)
    written = f"DELETE FROM {table}{_where(schema, relation, filters, parameters)}"
    return _statement(schema, relation, written, returning, parameters)


def written_columns(relation: Relation, payload: Payload) -> list[Column]:
    """Return the columns that the keys of a payload name. Raises `ApiError` (`PGRST204`) for the first unknown one in
    alphabetical order."""
    result: list[Column] = []
    for key in sorted(payload.keys):
        column = relation.column(key)
        if column is None:
            raise errors.no_column(key, relation.name)
        result.append(column)
    return result


def _rows(schema: Schema, columns: Sequence[Column], payload: Payload, parameters: Parameters, defaults: bool) -> str:
    """Return a SELECT of the rows of a payload. columns: those to write. defaults: as in `insert_statement`."""
    if payload.arrays is not None:
        return _rows_of_arrays(columns, payload, payload.arrays, parameters)
    document = f"{parameters.add(payload.text)}::json"
    if not columns:
        count = f"json_array_length({document})" if payload.is_array else f"1 + 0 * length({document}::text)"
        return f"SELECT FROM generate_series(1, {count}) {BODY}"
    is_array = payload.is_array
    if defaults:
        with_default = [column for column in columns if column.default is not None]
        document, is_array = _with_defaults(document, with_default, parameters, is_array), True
    kind = "jsonb" if document.startswith("(") else "json"
    reader = f"{kind}_to_recordset" if is_array else f"{kind}_to_record"
    represented = {column.name: schema.representations.get(("json", column.domain or "")) for column in columns}
    types = ", ".join(
        f"{quote_identifier(column.name)} {'json' if represented[column.name] else column.type}" for column in columns
    )
    values: list[str] = []
    for column in columns:
        value = f"{BODY}.{quote_identifier(column.name)}"
        representation = represented[column.name]
        if representation is not None:
            value = f"{quote_qualified(*representation.function)}({value}) AS {quote_identifier(column.name)}"
        values.append(value)
    return f"SELECT {', '.join(values)} FROM {reader}({document}) AS {BODY}({types})"


def _rows_of_arrays(columns: Sequence[Column], payload: Payload, arrays: Sequence[str], parameters: Parameters) -> str:
    """Return a SELECT whose rows are the elements of arrays, which have equal lengths. arrays: of the keys of the
    payload. Raises ValueError for a column that may not be passed as an array."""
    literals = dict(zip(payload.keys, arrays, strict=True))
    values: list[str] = []
    for column in columns:
        element = array_element(column)
        if element is None:
            raise ValueError(f"values of type {column.type} cannot be passed as an array")
        # In the output list, PostgreSQL need not store the rows of `unnest`.
        placeholder = parameters.add(literals[column.name])
        values.append(f"unnest({placeholder}::{element.type}[]) AS {quote_identifier(column.name)}")
    return f"SELECT {', '.join(values)}"


def _with_defaults(document: str, columns: Iterable[Column], parameters: Parameters, is_array: bool) -> str:
    """Return SQL for the payload as an array of jsonb in which missing members have the defaults of these columns.
    Repeated members become one, because the document becomes jsonb.

    document: SQL of the payload as JSON. columns: columns with a default. is_array: the document is an array already;
    otherwise it is one object.
    """
    pairs = ", ".join(f"{parameters.add(column.name)}::text, {column.default}" for column in columns)
    plain = document.removesuffix("::json")
    elements = f"{plain}::jsonb" if is_array else f"jsonb_build_array({plain}::jsonb)"
    whole = f"jsonb_agg(jsonb_build_object({pairs}) || element)"
    return f"(SELECT {whole} FROM jsonb_array_elements({elements}) AS _(element))"


def _on_conflict(conflict: Conflict | None, columns: Sequence[Column]) -> str:
    """Return the ON CONFLICT clause; empty for None. columns: those that the insert sets."""
    if conflict is None:
        return ""
    target = ", ".join(map(quote_identifier, conflict.columns))
    if not conflict.merge or not columns:
        return f" ON CONFLICT({target}) DO NOTHING"
    assigned = ", ".join(
        f"{quote_identifier(column.name)} = EXCLUDED.{quote_identifier(column.name)}" for column in columns
    )
    return f" ON CONFLICT({target}) DO UPDATE SET {assigned} WHERE {_ONE_LESS}"


def _where(schema: Schema, relation: Relation, filters: Sequence[LogicNode], parameters: Parameters) -> str:
    """Return the WHERE clause of the filters; empty without filters."""
    renderer = Renderer(schema, parameters)
    table = quote_qualified(relation.schema, relation.name)
    conditions = [renderer.condition(table, relation, item, None) for item in filters]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _statement(
    schema: Schema,
    relation: Relation,
    written: str | None,
    returning: Returning,
    parameters: Parameters,
    inserted: str = "NULL",
) -> Statement:
    """Return the statement of a request: a write as a CTE, and a SELECT of what is returned.

    written: the INSERT, UPDATE or DELETE, without RETURNING; None: nothing is written, and no row is returned.
    inserted: SQL expression for the number of inserted rows; NULL: not counted.
    """
    returned = _returning_list(relation, returning)
    table = quote_qualified(relation.schema, relation.name)
    source = f"SELECT {returned} FROM {table} WHERE false" if written is None else f"{written} RETURNING {returned}"
    ctes = f"{WRITTEN} AS ({source})"
    if returning.representation:
        root = replace(returning.plan.root, columns=_selected_columns(relation, returning.plan.root))
        root.filters, root.range = [], type(root.range)()
        renderer = Renderer(schema, parameters, _whole_row(relation, root))
        ctes += f", {SOURCE} AS ({renderer.level(root, source=WRITTEN)})"
    else:
        ctes += f", {SOURCE} AS (SELECT * FROM {WRITTEN})"
    keys = _keys(relation, parameters) if returning.keys else "NULL"
    columns = result_columns(returning.output, inserted=inserted, keys=keys)
    return Statement(f"WITH {ctes} SELECT {columns} FROM (SELECT * FROM {SOURCE}) {ROW}", tuple(parameters.values))


def _returning_list(relation: Relation, returning: Returning) -> str:
    """Return the output list of RETURNING: only what the representation and the key need, so that the role needs no
    other privilege; `1` if they need nothing. The columns are in the order of the relation if all are selected, else in
    alphabetical order, which is that of the key in `Location`."""
    if not returning.representation and not returning.keys:
        return "1"
    root = returning.plan.root
    table = quote_qualified(relation.schema, relation.name)
    names = [*_needed_columns(root)]
    if returning.keys:
        names += relation.key
    known = {column.name for column in relation.columns}
    listed = sorted(set(names) - {"*"})
    if "*" in names:
        return ", ".join((f"{table}.*", *(f"{table}.{quote_identifier(name)}" for name in listed if name not in known)))
    return ", ".join(f"{table}.{quote_identifier(name)}" for name in listed) or "1"


def _selected_columns(relation: Relation, root: Node) -> list[SelectColumn]:
    """Return the columns that the representation selects, with the names of the columns of the relation in place of `*`
    if RETURNING has further ones."""
    names = [column.name for column in relation.columns]
    if set(_needed_columns(root)) <= {"*", *names}:
        return root.columns
    every = [SelectColumn(Field(name)) for name in names]
    return [item for column in root.columns for item in (every if column.field.name == "*" else [column])]


def _whole_row(relation: Relation, root: Node) -> tuple[str, str]:
    """Return the quoted name of the top level, and the SQL of a written row as a row of the relation: without the
    computed fields that RETURNING has beside the columns."""
    table = quote_identifier(root.alias)
    return table, f"ROW({', '.join(f'{table}.{quote_identifier(column.name)}' for column in relation.columns)})"


def _needed_columns(root: Node) -> Iterable[str]:
    """Yield the columns of the written relation that the representation reads: those that its top level selects, sorts
    by, or joins embeds by. `*` stands for all columns."""
    for column in root.columns:
        if column.field.name:
            yield column.field.name
    for term in root.order:
        if term.relation is None:
            yield term.field.name
    for child in root.children:
        relationship = child.relationship
        if relationship is None:
            continue
        if relationship.function is not None:
            yield "*"
        pairs = relationship.columns if relationship.junction is None else relationship.junction.columns
        for outer, _ in pairs:
            yield outer


def _keys(relation: Relation, parameters: Parameters) -> str:
    """Return the SQL expression for the primary key of the written row: a JSON array of pairs of name and value, in the
    order of the columns. Its value is NULL if no row or several rows are returned. If the relation has no primary key,
    the expression is `NULL`."""
    names = ", ".join(f"{parameters.add(name)}::text" for name in relation.key)
    return (
        f"CASE WHEN count({ROW}) = 1 THEN (SELECT json_agg(json_build_array(member.key, member.value)) "
        f"FROM (SELECT * FROM {WRITTEN} LIMIT 1) first, json_each_text(row_to_json(first.*)) member "
        f"WHERE member.key IN ({names})) END"
        if names
        else "NULL"
    )
