"""Reads tables and views with the privileges of the connected role: rows of the catalogue in, `Table`s out.

Part of `service.discovery.catalogue`, in whose transaction it runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from rowcall.core.catalogue.catalog import Identity, Owner, RoutineKind, Table, TableColumn, TypeInfo, TypeKind
from rowcall.core.catalogue.equality_operators import equality
from rowcall.core.text.naming import quote_identifier
from rowcall.service.discovery.filters import TableFilter
from rowcall.service.discovery.table_queries import COLUMNS, OPERATORS, TABLES
from rowcall.service.discovery.trust import Owners


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of the catalogue, before the types are known. tables: of `TABLES`. columns: of `COLUMNS`."""

    tables: Sequence[TupleRow] = ()
    columns: Sequence[TupleRow] = ()

    def of(self, tables: Sequence[TupleRow]) -> TableRows:
        """Return the rows of these tables and of their columns. tables: some of the rows in `self.tables`."""
        oids = {row[0] for row in tables}
        return TableRows(tables, [row for row in self.columns if row[0] in oids])

    @property
    def types(self) -> Iterator[int]:
        """Yield the oids of the row types and of the types of columns. A relation may have no row type."""
        yield from (row[5] for row in self.tables if row[5])
        yield from (row[3] for row in self.columns)


async def read_tables(cursor: AsyncCursor[TupleRow], tables: TableFilter) -> TableRows:
    """Read the rows of the tables and views that match the filter, and of their columns. Raises `psycopg.Error`."""
    await cursor.execute(TABLES, tables.parameters())
    relations = await cursor.fetchall()
    if not relations:
        return TableRows()
    await cursor.execute(COLUMNS, {"tables": [row[0] for row in relations], "events": [row[9] for row in relations]})
    return TableRows(relations, await cursor.fetchall())


async def build_tables(
    cursor: AsyncCursor[TupleRow], rows: TableRows, types: Mapping[int, TypeInfo], owners: Owners
) -> tuple[Table, ...]:
    """Return the tables of the rows. Reads the equality operators of their types with a query. types: all types of the
    columns, by oid. Raises `psycopg.Error`."""
    if not rows.tables:
        return ()
    operators = await _operators(cursor, types.values())
    columns: defaultdict[int, list[TupleRow]] = defaultdict(list)
    for row in rows.columns:
        columns[row[0]].append(row)
    return tuple(_table(row, columns[row[0]], types, operators, owners) for row in rows.tables)


async def _operators(cursor: AsyncCursor[TupleRow], types: Iterable[TypeInfo]) -> dict[int, str]:
    """Return the SQL of the equality operators of base types, by oid of the type. Types without one are missing."""
    base_types = [info.oid for info in types if info.kind is TypeKind.BASE]
    await cursor.execute(OPERATORS, {"types": base_types})
    return {
        oid: name if schema == "pg_catalog" else f"operator({quote_identifier(schema)}.{name})"
        for oid, schema, name in await cursor.fetchall()
    }


def _table(
    row: TupleRow,
    columns: Sequence[TupleRow],
    types: Mapping[int, TypeInfo],
    operators: Mapping[int, str],
    owners: Owners,
) -> Table:
    """Return the table of a row of `TABLES`. columns: its rows of `COLUMNS`. types: by oid. operators: as `_operators`
    returns them. The key is empty unless the role may read all of its columns and use their types.
    """
    oid, kind, schema, name, comment, row_type, key_numbers, immediate, deletable, _, owner, silent, ruled, part = row
    names = {column[1]: column[2] for column in columns if column[8] and column[11]}
    key = tuple(names[number] for number in key_numbers or () if number in names)
    return Table(
        oid=oid,
        kind=RoutineKind.VIEW if kind in "vm" else RoutineKind.TABLE,
        schema=schema,
        name=name,
        comment=comment,
        row_type_oid=row_type,
        columns=tuple(_column(column, types, operators) for column in columns),
        key=key if len(key) == len(key_numbers or ()) else (),
        key_decides=immediate,
        deletable=deletable,
        silent=silent,
        ruled=ruled,
        of_extension=part,
        owner=Owner(owners.name(owner), owner in owners.powerful),
    )


def _column(row: TupleRow, types: Mapping[int, TypeInfo], operators: Mapping[int, str]) -> TableColumn:
    """Return the column of a row of `COLUMNS`. types, operators: as for `_table`."""
    _, _, name, type_oid, display, required, identity, generated, readable, insertable, updatable, nameable = row
    kind = Identity(identity)
    return TableColumn(
        name=name,
        type_oid=type_oid,
        type_name=display,
        required=required,
        identity=kind,
        readable=readable,
        filterable=readable and nameable,
        insertable=insertable and not generated and nameable,
        updatable=updatable and not generated and nameable and kind is not Identity.ALWAYS,
        equality=equality(type_oid, types, operators),
    )
