"""Statements of table operations, with quoted names and values as parameters.

An update that names a part of the key changes all matching rows (tables-7). A delete without columns would remove all
rows, so it is only possible for an endpoint annotated `allow_unfiltered`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import Identity, RoutineKind, Table, TableColumn
from rowcall.core.endpoint.call import UncallableError
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.tables.operations import Command, Conflict, Operation
from rowcall.core.text.naming import quote_identifier, quote_qualified


@dataclass(frozen=True, slots=True)
class _Value:
    """A column whose value the request supplies."""

    column: TableColumn
    api_name: str
    sql: str
    """`$1::integer`."""

    @property
    def name(self) -> str:
        return quote_identifier(self.column.name)

    @property
    def assignment(self) -> str:
        return f"{self.name} = {self.sql}"

    @property
    def condition(self) -> str:
        """The condition that the column has the value. If the type has no equality operator, texts are compared."""
        if self.column.equality is None:
            return f"{self.name}::text = {self.sql}::text"
        return f"{self.name} {self.column.equality} {self.sql}"


def statement(
    operation: Operation, table: Table, columns: Sequence[TableColumn], endpoint: Endpoint, present: int
) -> str:
    """Return the SQL of an operation: `update "shop"."item" set "name" = $2::text where "id" = $1::integer returning
    …`.

    columns: by `EndpointParameter.position`. present: bit mask of the parameters that the request has, with bit i for
    parameter i; the n-th of them is `$n`.

    Raises `UncallableError` for an insert or update without a column to write, an update without a column of the key,
    and a delete without a column unless the endpoint is annotated `allow_unfiltered`.
    """
    version = None if operation.command is Command.INSERT else _Version.of(table, endpoint, present)
    creates = _creates_only(endpoint, present) if operation.command is Command.INSERT else ""
    values = list(_values(columns, endpoint, present))
    target = quote_qualified(table.schema, table.name)
    results = _join_parts(column.expression for column in endpoint.shape.columns)
    match operation.command:
        case Command.SELECT:
            return f"select {results} from {target}{_where(values)}"
        case Command.UPDATE:
            text = _update(target, table, values, endpoint, version)
        case Command.DELETE:
            text = _delete(target, values, endpoint, version)
        case Command.INSERT:
            conflict = Conflict.NOTHING if creates else operation.conflict
            text = f"{_insert(target, table, values, creates)}{_on_conflict(conflict, table, endpoint)}"
    if (version is not None or creates) and not results:
        # The number of rows shows whether the version was found, or whether a row was inserted.
        results = "1"
    return f"{text} returning {results}" if results else text


def _creates_only(endpoint: Endpoint, present: int) -> str:
    """Return the condition of an insert that leaves an existing row unchanged (`If-None-Match: *`), which is true;
    empty for other inserts. present: as in `statement`.
    """
    index = endpoint.version_index
    if index is None or not present >> index & 1:
        return ""
    # PostgreSQL refuses a parameter that the statement does not use.
    return f"${(present & ((1 << index) - 1)).bit_count() + 1}::{endpoint.parameters[index].cast}"


def _values(columns: Sequence[TableColumn], endpoint: Endpoint, present: int) -> Iterator[_Value]:
    """Yield the columns whose values the request supplies, except the version. Arguments as in `statement`."""
    number = 0
    for index, parameter in enumerate(endpoint.parameters):
        if present >> index & 1 and index == endpoint.version_index:
            number += 1
        elif present >> index & 1:
            number += 1
            yield _Value(columns[parameter.position], parameter.api_name, f"${number}::{parameter.cast}")


def _where(values: Sequence[_Value]) -> str:
    """Return the WHERE clause for rows that have all of the values; empty for no values."""
    return f" where {' and '.join(value.condition for value in values)}" if values else ""


@dataclass(frozen=True, slots=True)
class _Version:
    """The version column of a write.

    condition: empty if any version may be written. assignment: of the next version; empty if a trigger sets it.
    """

    name: str
    condition: str
    assignment: str

    @classmethod
    def of(cls, table: Table, endpoint: Endpoint, present: int) -> _Version | None:
        """Return the SQL for the version column of a write; None: the endpoint has no version column.

        present: bit mask of the parameters that the request has.
        """
        index = endpoint.version_index
        if index is None:
            return None
        version_column = (endpoint.options.version_column or "").lower()
        column = next(column for column in table.columns if column.name.lower() == version_column)
        name = quote_identifier(column.name)
        number = (present & ((1 << index) - 1)).bit_count() + 1
        condition = f"{name} = any (${number}::{endpoint.parameters[index].cast})" if present >> index & 1 else ""
        following = NEXT_VERSIONS.get(column.type_name, "").format(name=name)
        return cls(name, condition, f"{name} = {following}" if following else "")


NEXT_VERSIONS: Mapping[str, str] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "{name} + 1"),
    **dict.fromkeys(("timestamp with time zone", "timestamp without time zone"), "pg_catalog.clock_timestamp()"),
    "uuid": "pg_catalog.gen_random_uuid()",
}
"""Type of a version column → expression of the next version. For other types, a trigger has to set it."""


def _and_version(where: str, version: _Version | None) -> str:
    """Return a WHERE clause with the condition of the version added. where: a WHERE clause or empty."""
    if version is None or not version.condition:
        return where
    return f"{where} and {version.condition}" if where else f" where {version.condition}"


def _update(target: str, table: Table, values: Sequence[_Value], endpoint: Endpoint, version: _Version | None) -> str:
    """Return the UPDATE without RETURNING. target: the quoted table. Raises `UncallableError` if there is no value of
    the key, or only of the key."""
    keys = [value for value in values if value.column.name in table.key]
    assigned = [value for value in values if value.column.name not in table.key]
    if not assigned:
        raise UncallableError("an update needs a column besides those of the key")
    if not keys:
        names = [parameter.api_name for parameter in endpoint.parameters if parameter.db_name in table.key]
        raise UncallableError(f"an update needs a column of the key: {', '.join(names)}")
    assignments = [value.assignment for value in assigned]
    if version is not None and version.assignment:
        assignments.append(version.assignment)
    return f"update {target} set {_join_parts(assignments)}{_and_version(_where(keys), version)}"


def _delete(target: str, values: Sequence[_Value], endpoint: Endpoint, version: _Version | None) -> str:
    """Return the DELETE without RETURNING. target: the quoted table. Raises `UncallableError` if there are no values,
    unless the endpoint is annotated `allow_unfiltered`."""
    if not values and not endpoint.options.allow_unfiltered:
        raise UncallableError("a delete needs a column that says which rows are meant")
    return f"delete from {target}{_and_version(_where(values), version)}"


def _insert(target: str, table: Table, values: Sequence[_Value], condition: str) -> str:
    """Return the INSERT without RETURNING. target: the quoted table. condition: of the insertion; empty: none. Raises
    `UncallableError` if there are no values.

    `overriding system value` is always included for views. The catalogue does not show whether a column of a view is an
    identity of the underlying table.
    """
    if not values:
        raise UncallableError("an insert needs a column")
    overriding = table.kind is RoutineKind.VIEW or any(value.column.identity is Identity.ALWAYS for value in values)
    supplied = _join_parts(value.sql for value in values)
    return (
        f"insert into {target} ({_join_parts(value.name for value in values)})"
        f"{' overriding system value' if overriding else ''} "
        + (f"select {supplied} where {condition}" if condition else f"values ({supplied})")
    )


def _on_conflict(conflict: Conflict | None, table: Table, endpoint: Endpoint) -> str:
    """Return the ON CONFLICT clause (tables-9); empty without `conflict`.

    For an update, all columns are set that the role may read and update, except the key; those without a value to their
    defaults. A version column gets the next version of the existing row. If there are no such columns, existing rows
    are not changed.
    """
    if conflict is None:
        return ""
    changed = [
        f"{quote_identifier(column.name)} = {_value_on_conflict(column, table, endpoint)}"
        for column in table.columns
        if column.updatable and column.readable and column.name not in table.key
    ]
    target = f" on conflict ({_join_parts(map(quote_identifier, table.key))})"
    if conflict is Conflict.NOTHING or not changed:
        return f"{target} do nothing"
    return f"{target} do update set {_join_parts(changed)}"


def _value_on_conflict(column: TableColumn, table: Table, endpoint: Endpoint) -> str:
    """Return the expression for a column of an existing row that an upsert replaces."""
    name = quote_identifier(column.name)
    is_version = column.name.lower() == (endpoint.options.version_column or "").lower()
    following = NEXT_VERSIONS.get(column.type_name, "") if is_version else ""
    return following.format(name=f"{quote_identifier(table.name)}.{name}") if following else f"excluded.{name}"


def _join_parts(parts: Iterable[str]) -> str:
    return ", ".join(parts)
