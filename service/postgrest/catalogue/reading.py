"""Reads the catalogue of PostgREST's interface over a plain connection, with one query for each kind of object."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.options import PostgRestOptions, changed_options
from rowcall.core.postgrest.relationships import relationships
from rowcall.core.postgrest.schema import Column, ForeignKey, Relation, Representation, Schema, ViewColumn
from rowcall.core.postgrest.view_columns import base_columns
from rowcall.service.postgrest.authentication import Authentication
from rowcall.service.postgrest.catalogue import queries
from rowcall.service.postgrest.catalogue.functions import Types, read_functions
from rowcall.service.postgrest.configuration import read_database_configuration

Connection = psycopg.AsyncConnection[Any]
Name = tuple[str, str]
"""Schema and name."""
Numbers = Mapping[int, Mapping[int, str]]
"""Names of columns by oid of the relation and number."""


async def read_catalogue(connection: Connection, options: PostgRestOptions) -> PostgRestCatalogue:
    """Read everything that the interface needs to know, in one snapshot.

    connection: no transaction is open; its isolation level is REPEATABLE READ from then on. options: those of the
    configuration; settings of the database take precedence, for which the function `db-pre-config` is run. Raises
    `psycopg.Error`, and `InvalidOptionError` for a setting of the database that cannot be used.
    """
    options = changed_options(options, await read_database_configuration(connection, options))
    Authentication(options)  # An unusable key is reported here, and not by each worker.
    began = time.monotonic()
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        # So that names of types and sequences are printed with their schemas. Without compilation of the queries, which
        # takes longer than they do.
        await connection.execute("set local search_path to ''; set local jit to off")
        schema = await read_schema(connection, options.schemas, options.extra_search_path)
        roles = await read_role_settings(connection)
        timeouts = await _rows(connection, queries.TIMEOUT, {})
    timeout = timeouts[0][0] if timeouts else "0"
    return PostgRestCatalogue(options, schema, roles, timeout, time.monotonic() - began)


async def read_schema(connection: Connection, schemas: Sequence[str], extra_search_path: Sequence[str]) -> Schema:
    """Read relations, functions and types of PostgREST's interface. connection: in a transaction with an empty search
    path, so that names of types and sequences are read with their schemas. schemas: exposed ones. extra_search_path:
    further schemas, whose relations and row types are read too, but are not exposed; their functions are left out.
    Raises `psycopg.Error`."""
    exposed = list(schemas)
    values = {"exposed": exposed, "searched": list(dict.fromkeys((*schemas, *extra_search_path)))}
    types = Types(
        {row[0]: row for row in await _rows(connection, queries.DOMAINS, values)},
        dict(await _rows(connection, queries.ENUMS, values)),
        {row[0]: (row[2], row[3]) for row in await _rows(connection, queries.ROW_TYPES, values)},
    )
    rows = await _rows(connection, queries.RELATIONS, values)
    names: dict[int, Name] = {row[0]: (row[1], row[2]) for row in rows}
    constraints = [row for row in await _rows(connection, queries.CONSTRAINTS, values) if row[3] in names]
    columns, numbers = await _columns(connection, values, types)
    constrained = {row[3] for row in constraints} | {row[5] for row in constraints if row[5]}
    views = dict(await _rows(connection, queries.VIEWS, values))
    shown = [*base_columns(views)]
    hidden = (constrained | {origin for _, _, (origin, _) in shown}) - numbers.keys()
    for relation, number, name in await _rows(connection, queries.COLUMN_NAMES, {"relations": list(hidden)}):
        numbers[relation][number] = name
    keys, uniques = _keys(constraints, numbers)
    view_columns = _view_columns(shown, names, numbers)
    relations = _relations(rows, columns, keys, view_columns, names, values["searched"])
    functions, computed, handlers = await read_functions(connection, values, types, exposed)
    return Schema(
        relations,
        relationships(relations, _foreign_keys(constraints, names, numbers, uniques), view_columns, computed, exposed),
        functions,
        await _representations(connection, values),
        handlers,
    )


async def read_role_settings(connection: Connection) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the settings (name and value) by role, for the roles of which the login role is a direct member. Settings
    that the login role may not set are left out. Raises `psycopg.Error`."""
    granted = queries.GRANTED if connection.info.server_version >= 150_000 else ""
    result: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for role, setting in await _rows(connection, queries.ROLES.format(granted=granted), {}):
        name, _, value = setting.partition("=")
        result[role].append((name, value))
    return {role: tuple(settings) for role, settings in result.items()}


async def _rows(connection: Connection, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(query, values)
    return await cursor.fetchall()


async def _columns(
    connection: Connection, values: Mapping[str, Any], types: Types
) -> tuple[dict[int, list[Column]], dict[int, dict[int, str]]]:
    """Return the columns of each relation in order, and their names by number, both by oid of the relation. values:
    parameters of `queries.COLUMNS`.
    """
    columns: dict[int, list[Column]] = defaultdict(list)
    numbers: dict[int, dict[int, str]] = defaultdict(dict)
    # Tables of a large schema resemble each other: equal columns are one object, here and in each worker.
    known: dict[tuple[Any, ...], Column] = {}
    for row in await _rows(connection, queries.COLUMNS, values):
        relation, number, name = row[:3]
        properties = row[2:]
        column = known.get(properties)
        if column is None:
            column = known[properties] = _column(properties, types)
        columns[relation].append(column)
        numbers[relation][number] = name
    return columns, numbers


def _column(properties: tuple[Any, ...], types: Types) -> Column:
    """Return a column. properties: a row of `queries.COLUMNS` without oid of the relation and number."""
    name, type_name, plain, oid, required, default, generated, length, comment = properties
    domain = types.domains.get(oid)
    base, base_name = types.base_of(oid, plain)
    return Column(
        name,
        type_name,
        base_name,
        not (required or types.is_required(oid)),
        default if default is not None or domain is None or generated else domain[7],
        generated,
        length,
        tuple(types.enums.get(base, ())),
        comment,
        None if domain is None else domain[5],
    )


def _keys(
    constraints: Sequence[tuple[Any, ...]], numbers: Numbers
) -> tuple[dict[int, tuple[str, ...]], dict[int, set[frozenset[int]]]]:
    """Return by oid of the relation: the names of the columns of its primary key, in the order of the columns; and the
    sets of column numbers of its unique constraints, the primary key included. constraints: rows of
    `queries.CONSTRAINTS`.
    """
    keys: dict[int, tuple[str, ...]] = {}
    uniques: dict[int, set[frozenset[int]]] = defaultdict(set)
    for _, _, kind, relation, columns, _, _ in constraints:
        if kind in "pu":
            uniques[relation].add(frozenset(columns))
        if kind == "p":
            keys[relation] = tuple(numbers[relation][column] for column in sorted(columns))
    return keys, uniques


def _foreign_keys(
    constraints: Sequence[tuple[Any, ...]],
    names: Mapping[int, Name],
    numbers: Numbers,
    uniques: Mapping[int, set[frozenset[int]]],
) -> list[ForeignKey]:
    """Return the foreign keys whose target is among the relations of `names`. constraints: rows of
    `queries.CONSTRAINTS`. names: of relations, by oid. uniques: as the second result of `_keys`.
    """
    result: list[ForeignKey] = []
    for _, name, kind, relation, columns, target, target_columns in constraints:
        if kind != "f" or target not in names:
            continue
        result.append(
            ForeignKey(
                name,
                names[relation],
                tuple(numbers[relation][column] for column in columns),
                names[target],
                tuple(numbers[target][column] for column in target_columns),
                frozenset(columns) in uniques.get(relation, ()),
            )
        )
    return result


def _view_columns(
    shown: Sequence[tuple[int, int, tuple[int, int]]], names: Mapping[int, Name], numbers: Numbers
) -> list[ViewColumn]:
    """Return the columns of views, each with the column of a relation that it shows. Columns without a known name are
    left out. shown: tuples of oid of the view, number of its column, and a pair of oid of the relation and number of
    its column. names: of relations, by oid."""
    result: list[ViewColumn] = []
    for view, number, (base, base_number) in shown:
        column = numbers.get(view, {}).get(number)
        base_column = numbers.get(base, {}).get(base_number)
        if column is not None and base_column is not None and base in names:
            result.append(ViewColumn(names[view], column, names[base], base_column))
    return result


def _relations(
    rows: Sequence[tuple[Any, ...]],
    columns: Mapping[int, list[Column]],
    keys: Mapping[int, tuple[str, ...]],
    view_columns: Sequence[ViewColumn],
    names: Mapping[int, Name],
    searched: Sequence[str],
) -> dict[Name, Relation]:
    """Return the relations of the schemas `searched`, and relations of other schemas that have a primary key, as they
    can be junction tables.

    rows: of `queries.RELATIONS`. columns, keys, names: by oid of the relation; keys are the names of the columns of
    primary keys. A view has the key of each relation all of whose key columns it shows (`_inherited_keys`).
    """
    by_name = {names[relation]: key for relation, key in keys.items()}
    inherited = _inherited_keys(view_columns, by_name)
    result: dict[Name, Relation] = {}
    for oid, schema, name, kind, comment, writes in rows:
        if schema not in searched and oid not in keys:
            continue
        whole = kind in "rp"
        bits = 0 if writes is None else writes
        result[schema, name] = Relation(
            schema,
            name,
            tuple(columns.get(oid, ())),
            keys.get(oid) or inherited.get((schema, name), ()),
            kind in "vm",
            whole or bool(bits & 8),
            whole or bool(bits & 4),
            whole or bool(bits & 16),
            comment,
        )
    return result


def _inherited_keys(
    view_columns: Sequence[ViewColumn], keys: Mapping[Name, tuple[str, ...]]
) -> dict[Name, tuple[str, ...]]:
    """Return for each view the columns that show the primary keys of its relations. If a view shows a key column
    several times, the first column counts. A key of which a column is not shown is left out, and so is a view that
    shows no key. keys: primary keys by relation."""
    shown: dict[Name, dict[Name, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for item in view_columns:
        shown[item.view][item.relation].setdefault(item.base_column, item.column)
    result: dict[Name, tuple[str, ...]] = {}
    for view, bases in shown.items():
        columns: list[str] = []
        for base, names in bases.items():
            key = keys.get(base, ())
            if key and all(column in names for column in key):
                columns += (names[column] for column in key)
        if columns:
            result[view] = tuple(dict.fromkeys(columns))
    return result


async def _representations(connection: Connection, values: Mapping[str, Any]) -> dict[tuple[str, str], Representation]:
    """Read the casts of domains by names of source and target type. values: parameters of `queries.CASTS`."""
    return {
        (source, target): Representation(source, target, (schema, name))
        for _, _, source, target, schema, name in await _rows(connection, queries.CASTS, values)
    }
