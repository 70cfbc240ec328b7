"""Reads constraints of values from the catalogue: NOT NULL, CHECK, enums, domains, comments, and columns of views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import psycopg

from rowcall.core.catalogue.catalog import Catalog, TypeKind
from rowcall.core.catalogue.value_constraints import (
    NO_CONSTRAINTS,
    ColumnConstraints,
    ValueConstraints,
    choices_of,
    keeps_nulls_out,
)
from rowcall.core.endpoint.endpoint import Endpoint, ResultShape
from rowcall.service.sqlfiles.describing import Question, StatementDescription, describe

_WIDTH = """(
           with recursive base as (
               select {type} as oid, {modifier} as modifier
               union all
               select t.typbasetype, t.typtypmod from base join pg_catalog.pg_type t on t.oid = base.oid
               where t.typtype = 'd'
           )
           select modifier - 4 from base where oid = 'pg_catalog.bpchar'::regtype and modifier > 4
       )"""
"""The n of `char(n)`, also below domains; NULL: of another type."""

_TYPES = f"""
select t.oid, t.typnotnull, array(
           select pg_get_constraintdef(k.oid) from pg_catalog.pg_constraint k
           where k.contypid = t.oid and k.contype = 'c' and k.convalidated
       ), array(
           select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder
       ), {_WIDTH.format(type="t.oid", modifier="-1")}
from pg_catalog.pg_type t where t.oid = any(%s)"""

_COLUMNS = f"""
select c.oid, c.reltype, c.relkind = 'v', a.attnum, a.attname, a.atttypid,
       a.attnotnull and c.relkind in ('r', 'p') and not (c.relkind = 'r' and c.relhassubclass) and not exists (
           select from pg_catalog.pg_constraint k
           where k.conrelid = c.oid and k.contype = 'n' and k.conkey[1] = a.attnum and not k.convalidated
       ), array(
           select pg_get_constraintdef(k.oid) from pg_catalog.pg_constraint k
           where c.relkind in ('r', 'p') and not (c.relkind = 'r' and c.relhassubclass)
             and k.conrelid = c.oid and k.contype = 'c' and k.convalidated and k.conkey = array[a.attnum]
       ), col_description(c.oid, a.attnum), {_WIDTH.format(type="a.atttypid", modifier="a.atttypmod")}
from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'p', 'v', 'm', 'f') and (c.reltype = any(%(rows)s) or c.oid = any(%(relations)s))"""
"""A constraint that is not validated applies only to new rows; children of a table need not have its constraints."""

_VIEWS = """
select c.oid, pg_get_viewdef(c.oid) from pg_catalog.pg_class c where c.oid = any(%s)"""

_DEEPEST = 8
"""Limit for views on views."""

_NAMES = {TypeKind.ENUM, TypeKind.DOMAIN}
"""Kinds of types that have constraints of their own."""


async def read_constraints(
    connection: psycopg.AsyncConnection[Any], catalog: Catalog, endpoints: Iterable[Endpoint]
) -> ColumnConstraints:
    """Read the constraints of the types and tables of a catalogue, and of the relations from which result columns of
    the endpoints come. Raises `psycopg.Error`.
    """
    named = [oid for oid, info in catalog.types.items() if info.kind in _NAMES]
    reader = _Reader(connection)
    await reader.read_types(named)
    rows = [oid for oid, info in catalog.types.items() if info.kind is TypeKind.COMPOSITE]
    rows += [table.row_type_oid for table in catalog.tables]
    origins = {relation for endpoint in endpoints for relation in _origins(endpoint.shape)}
    await reader.read_relations(rows, origins - {0})
    return reader.constraints()


def _origins(shape: ResultShape) -> Iterable[int]:
    """Yield the oids of the relations from which columns come, those of nested shapes included; 0: from none."""
    yield from (column.column.origin[0] for column in shape.columns)
    for part in shape.parts:
        yield from _origins(part.shape)


class _Reader:
    """Reads and collects the constraints for one schema snapshot."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._types: dict[int, ValueConstraints] = {}
        """By oid."""
        self._columns: dict[tuple[int, int], ValueConstraints] = {}
        """By oid of relation and number of column."""
        self._names: dict[tuple[int, int], tuple[int, str]] = {}
        """Oid of relation and number of column → oid of row type and name."""

    async def read_types(self, oids: Iterable[int]) -> None:
        """Read the constraints of types by oid, each once."""
        unread = [oid for oid in oids if oid not in self._types]
        for oid, not_null, checks, labels, width in await self._rows(_TYPES, (unread,)):
            self._types[oid] = ValueConstraints(not_null, tuple(labels) or _first_choices(checks, width))

    async def read_relations(self, rows: Iterable[int], relations: Iterable[int], depth: int = _DEEPEST) -> None:
        """Read the constraints of the columns of relations. rows: oids of row types. relations: oids. depth: levels of
        views that are looked through; 0: none.
        """
        columns = await self._rows(_COLUMNS, {"rows": [*rows], "relations": [*relations]})
        views: set[int] = set()
        await self.read_types({row[5] for row in columns})
        for relation, row_type, view, number, name, type_oid, not_null, checks, text, width in columns:
            own = ValueConstraints(not_null, _first_choices(checks, width), text)
            self._columns[relation, number] = own.combine(self._types.get(type_oid, NO_CONSTRAINTS))
            self._names[relation, number] = row_type, name
            if not view:
                continue
            # The NOT NULL of a domain does not hold for values that an outer join replaces.
            self._columns[relation, number] = replace(self._columns[relation, number], never_null=False)
            views.add(relation)
        if views and depth:
            await self._look_through(sorted(views), depth)

    async def _look_through(self, views: list[int], depth: int) -> None:
        """Read the constraints of columns that views take unchanged from other relations, and add them to those of the
        view columns. views: oids. depth: as for `read_relations`.
        """
        async with self._connection.transaction():
            # So that names are printed with their schemas, regardless of the search path of the role.
            await self._connection.execute("set local search_path = pg_catalog")
            texts: Mapping[int, str] = dict(await self._rows(_VIEWS, (views,)))
        answers = await describe(self._connection, [Question(texts[view], ()) for view in views], "pg_catalog")
        origins = {
            (view, number): origin
            for view, answer in zip(views, answers, strict=True)
            if isinstance(answer, StatementDescription)
            for number, origin in enumerate(answer.origins, 1)
        }
        read_relations = {relation for relation, _ in self._columns}
        unknown = {relation for relation, _ in origins.values()} - read_relations - {0}
        if unknown:
            await self.read_relations((), unknown, depth - 1)
        # The views of one round may depend on each other.
        for _ in range(_DEEPEST):
            for (view, number), origin in origins.items():
                below = self._columns.get(origin, NO_CONSTRAINTS)
                if (view, number) in self._columns:
                    never_null = below.never_null and keeps_nulls_out(texts[view])
                    combined = self._columns[view, number].combine(below)
                    self._columns[view, number] = replace(combined, never_null=never_null)

    def constraints(self) -> ColumnConstraints:
        """Return what was read."""
        attributes = {self._names[key]: constraints for key, constraints in self._columns.items()}
        return ColumnConstraints(self._types, attributes, self._columns)

    async def _rows(self, sql: str, parameters: Any) -> list[Any]:
        return await (await self._connection.execute(sql, parameters)).fetchall()


def _first_choices(checks: Iterable[str], width: int | None) -> tuple[str | int, ...]:
    """Return the values that the first CHECK constraint with a list of values allows; empty without one. checks:
    definitions of constraints. width: as for `choices_of`.
    """
    return next((choices for check in checks if (choices := choices_of(check, width))), ())
