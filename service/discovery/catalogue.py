"""Reads the catalogue once: connection in, frozen `Catalog` out (discovery-14).

A handful of statements, whatever the number of routines. What is found follows the privileges of the connected role.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import TupleRow, tuple_row

from rowcall.core.catalogue.catalog import (
    Attribute,
    Catalog,
    Column,
    Owner,
    Parameter,
    ParameterMode,
    Routine,
    RoutineKind,
    TypeInfo,
    TypeKind,
    Volatility,
    types_below,
)
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.discovery.filters import NameFilter, RoutineFilter, TableFilter
from rowcall.service.discovery.ignored_objects import ignored_routines, ignored_tables_of
from rowcall.service.discovery.queries import ATTRIBUTES, GROUPS, OF_GROUPS, ROUTINES, SOME_ROUTINES, TYPES
from rowcall.service.discovery.tables import TableRows, build_tables, read_tables
from rowcall.service.discovery.trust import NOBODY, Owners, Trust, left_out, read_owners

DEFAULT_SEARCH_PATH = "public"

_INPUTS = {mode.value: mode for mode in (ParameterMode.IN, ParameterMode.INOUT, ParameterMode.VARIADIC)}
_VOLATILITIES = {volatility.value: volatility for volatility in Volatility}
_TYPE_KINDS = {kind.value: kind for kind in TypeKind}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for; None: nothing of that kind."""

    routines: RoutineFilter | None = field(default_factory=RoutineFilter)
    tables: TableFilter | None = None
    unserved_routines: RoutineFilter | None = None
    """Where routines are switched off: those that ask to be served are named."""
    unserved_tables: TableFilter | None = None

    @property
    def trust(self) -> Trust:
        """For types."""
        names = self.routines or self.tables
        return Trust() if names is None else Trust.of(names)


async def discover(
    connection: AsyncConnection[Any], wanted: Wanted | None = None, search_path: str | None = None
) -> Catalog:
    """Everything the connected role may call, read or write, sorted by schema and name, with the types it needs.

    The search path decides how type names are displayed and is gone again afterwards.
    """
    return (await discover_all(connection, wanted or Wanted(), search_path)).catalog


@dataclass(frozen=True, slots=True)
class Discovered:
    """A catalogue, with what has to be known to read some of its routines anew.

    untrusted: schemas and owners of what is left out for its owner. By oid: of functions and procedures.
    """

    catalog: Catalog
    routines: Mapping[int, Routine]
    untrusted: Mapping[int, tuple[str, str]]
    ignored_objects: Mapping[int, Diagnostic]
    tables_untrusted: Sequence[tuple[str, str]]
    ignored_tables: Sequence[Diagnostic]
    table_types: frozenset[int]


async def discover_all(connection: AsyncConnection[Any], wanted: Wanted, search_path: str | None = None) -> Discovered:
    """What `discover` does."""
    tables_untrusted: dict[int, tuple[str, str]] = {}
    untrusted: dict[int, tuple[str, str]] = {}
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await _set_search_path(cursor, search_path or DEFAULT_SEARCH_PATH)
        owners = await read_owners(cursor)
        rows = await _read_routines(cursor, wanted.routines)
        rows = _trusted(rows, _ROUTINE, wanted.routines, owners, untrusted)
        table_rows = TableRows() if wanted.tables is None else await read_tables(cursor, wanted.tables)
        table_rows = table_rows.of(_trusted(table_rows.tables, _TABLE, wanted.tables, owners, tables_untrusted))
        table_types = frozenset(table_rows.types)
        types = await _load_types(cursor, [*{*_roots(rows), *table_types}], owners, wanted.trust)
        tables = await build_tables(cursor, table_rows, types, owners)
        ignored_objects = await ignored_routines(cursor, owners, _with_use(wanted.routines, wanted.unserved_routines))
        ignored_tables = await ignored_tables_of(cursor, owners, _with_use(wanted.tables, wanted.unserved_tables))
    catalog = Catalog(server_version=connection.info.server_version, types=types, tables=tables)
    routines = _Routines(types, owners).of(rows)
    return _put_together(
        Discovered(
            catalog, routines, untrusted, ignored_objects, [*tables_untrusted.values()], ignored_tables, table_types
        ),
        sorted(routines.values(), key=_order),
    )


async def discover_changes(
    connection: AsyncConnection[Any],
    wanted: Wanted,
    search_path: str | None,
    known: Discovered,
    groups: frozenset[int],
) -> Discovered | None:
    """What `discover_all` would find, where nothing but functions and procedures of these groups has changed since
    `known` was found (`service.discovery.fingerprint`). None: it has to be asked, as one has another name, which the
    text of others may mention.
    """
    untrusted: dict[int, tuple[str, str]] = {}
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await _set_search_path(cursor, search_path or DEFAULT_SEARCH_PATH)
        owners = await read_owners(cursor)
        await cursor.execute(OF_GROUPS.encode(), {"groups": sorted(groups)})
        listed = [row[0] for row in await cursor.fetchall()]
        rows = await _read_routines(cursor, wanted.routines, listed)
        rows = _trusted(rows, _ROUTINE, wanted.routines, owners, untrusted)
        if any(_is_renamed(row, known.routines) for row in rows):
            return None
        types, roots = known.catalog.types, _roots(rows)
        if not types.keys() >= roots:
            # What is known is the same still, and whoever has it goes on with it.
            types = {**await _load_types(cursor, [*roots], owners, wanted.trust), **types}
        ignored_objects = await ignored_routines(
            cursor, owners, _with_use(wanted.routines, wanted.unserved_routines), listed
        )
    # What has only met the others of its group stays the same object: whoever has it knows what was made of it.
    read = {oid: _same(known.routines.get(oid), one) for oid, one in _Routines(types, owners).of(rows).items()}
    routines = _others(known.routines, groups) | read
    before = [routine for oid, routine in known.routines.items() if oid % GROUPS in groups]
    if not set().union(*map(_types_of, before)) <= roots:
        types = types_below({*known.table_types}.union(*map(_types_of, routines.values())), types)
    ordered = [one for one in known.catalog.routines if one.oid % GROUPS not in groups]
    for one in read.values():
        bisect.insort(ordered, one, key=_order)
    return _put_together(
        replace(
            known,
            catalog=replace(known.catalog, types=types),
            routines=routines,
            untrusted=_others(known.untrusted, groups) | untrusted,
            ignored_objects=_others(known.ignored_objects, groups) | ignored_objects,
        ),
        ordered,
    )


_Value = TypeVar("_Value")
Part = TypeVar("Part", tuple[Column, ...], Parameter)


def _others(values: Mapping[int, _Value], groups: frozenset[int]) -> dict[int, _Value]:
    return {oid: value for oid, value in values.items() if oid % GROUPS not in groups}


def _is_renamed(row: TupleRow, known: Mapping[int, Routine]) -> bool:
    before = known.get(row[0])
    return before is not None and (before.schema, before.name) != (row[2], row[3])


def _same(before: Routine | None, now: Routine) -> Routine:
    return before if before is not None and before == now else now


def _order(routine: Routine) -> tuple[str, str, int]:
    """That of the server, which is that of UTF-8."""
    return routine.schema, routine.name, routine.oid


def _put_together(found: Discovered, routines: Iterable[Routine]) -> Discovered:
    """With the catalogue that follows from the parts. routines: all of them in their order."""
    untrusted = (*found.untrusted.values(), *found.tables_untrusted)
    ignored_objects = sorted(found.ignored_objects.values(), key=lambda one: (one.object, one.message))
    catalog = replace(
        found.catalog,
        routines=tuple(routines),
        left_out=(*left_out(untrusted), *ignored_objects, *found.ignored_tables),
    )
    return replace(found, catalog=catalog)


def _types_of(routine: Routine) -> set[int]:
    """Those that it refers to itself."""
    return {
        routine.return_type_oid,
        *(one.type_oid for one in routine.parameters),
        *(one.type_oid for one in routine.out_parameters),
        *(one.type_oid for one in routine.columns),
    }


_Filter = TypeVar("_Filter", RoutineFilter, TableFilter)


def _with_use(served: _Filter | None, unserved: _Filter | None) -> tuple[_Filter, bool] | None:
    """The filter, and whether what passes it is served."""
    if served is not None:
        return served, True
    return None if unserved is None else (unserved, False)


async def load_types(
    connection: AsyncConnection[Any], roots: Sequence[int], trust: Trust = NOBODY
) -> Mapping[int, TypeInfo]:
    """These types and all that their elements, bases and attributes refer to."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await _set_search_path(cursor, DEFAULT_SEARCH_PATH)
        return await _load_types(cursor, roots, await read_owners(cursor), trust)


class _Places(NamedTuple):
    """Where rows of a query have what trust is about."""

    schema: int
    comment: int
    owner: int


_ROUTINE = _Places(2, 4, 16)
_TABLE = _Places(2, 4, 10)


def _trusted(
    rows: Sequence[TupleRow],
    places: _Places,
    names: NameFilter | None,
    owners: Owners,
    untrusted: dict[int, tuple[str, str]],
) -> list[TupleRow]:
    """Those whose owner may publish. Of the others, what would be published is added to `untrusted`, by its oid."""
    trust = Trust() if names is None else Trust.of(names)
    found: list[TupleRow] = []
    for row in rows:
        schema, owner = row[places.schema], row[places.owner]
        if owners.trusts(trust, schema, owner):
            found.append(row)
        elif (names is not None and names.everything) or _PUBLISHED.search(row[places.comment] or ""):
            untrusted[row[0]] = schema, owners.name(owner)
    return found


_PUBLISHED = re.compile(r"^[ \t]*@?http(?:[ \t]|$)", re.IGNORECASE | re.MULTILINE)


async def _set_search_path(cursor: AsyncCursor[TupleRow], schema: str) -> None:
    await cursor.execute("select pg_catalog.set_config('search_path', pg_catalog.quote_ident(%s), true)", [schema])


async def _read_routines(
    cursor: AsyncCursor[TupleRow], routines: RoutineFilter | None, oids: Sequence[int] | None = None
) -> list[TupleRow]:
    """oids: only these."""
    if routines is None:
        return []
    if oids is None:
        await cursor.execute(ROUTINES, routines.parameters())
    else:
        await cursor.execute(SOME_ROUTINES, {**routines.parameters(), "oids": list(oids)})
    return await cursor.fetchall()


def _roots(rows: Sequence[TupleRow]) -> set[int]:
    oids = {row[9] for row in rows}
    for row in rows:
        oids.update(_argument_types(row))
    return oids


async def _load_types(
    cursor: AsyncCursor[TupleRow], roots: Sequence[int], owners: Owners, trust: Trust
) -> dict[int, TypeInfo]:
    await cursor.execute(TYPES, {"roots": list(roots)})
    rows = await cursor.fetchall()
    composites = [row[0] for row in rows if row[4] == TypeKind.COMPOSITE.value]
    attributes: defaultdict[int, list[Attribute]] = defaultdict(list)
    if composites:
        await cursor.execute(ATTRIBUTES, {"composites": composites})
        for type_oid, name, attribute_type, display in await cursor.fetchall():
            attributes[type_oid].append(Attribute(name, attribute_type, display))
    return {row[0]: _type(row, tuple(attributes.get(row[0], ())), owners, trust) for row in rows}


def _type(row: TupleRow, attributes: tuple[Attribute, ...], owners: Owners, trust: Trust) -> TypeInfo:
    """The comment of a type may say where requests are sent, so it counts like that of a routine."""
    oid, schema, name, display, kind, element, delimiter, base, comment, owner = row
    type_kind = _TYPE_KINDS[kind]
    return TypeInfo(
        oid=oid,
        schema=schema,
        name=name,
        display=display,
        kind=type_kind,
        element=element if type_kind is TypeKind.ARRAY else 0,
        delimiter=delimiter,
        base=base,
        attributes=attributes,
        comment=comment if comment is not None and owners.trusts(trust, schema, owner) else None,
    )


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str | None
    type_oid: int
    mode: str
    """As in `proargmodes`: i, o, b, v or t."""


def _argument_types(row: TupleRow) -> Iterator[int]:
    """Oids of all arguments: `{25,23}` where there are OUT arguments, else the input vector `25 23`."""
    inputs, everything = row[11], row[12]
    return map(int, everything.strip("{}").split(",") if everything else inputs.split())


@dataclass(frozen=True, slots=True)
class _Signature:
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    returns_composite: bool
    out_parameters: tuple[Parameter, ...]


class _Routines:
    """Makes routines of rows. Those with the same signature, be it in other schemas, share its parts, and different
    signatures share columns and single parameters.
    """

    def __init__(self, types: Mapping[int, TypeInfo], owners: Owners) -> None:
        self._types = types
        self._owners = owners
        self._signatures: dict[tuple[object, ...], _Signature] = {}
        self._parts: dict[Any, Any] = {}
        self._owned: dict[int, Owner] = {}

    def of(self, rows: Iterable[TupleRow]) -> dict[int, Routine]:
        """By their oids."""
        return {row[0]: self._routine(row) for row in rows}

    def _routine(self, row: TupleRow) -> Routine:
        signature = self._signature(row)
        return Routine(
            oid=row[0],
            kind=RoutineKind.PROCEDURE if row[1] else RoutineKind.FUNCTION,
            schema=row[2],
            name=row[3],
            comment=row[4],
            language=row[5],
            strict=row[6],
            volatility=_VOLATILITIES[row[7]],
            returns_set=row[8],
            return_type_oid=row[9],
            return_type_name=row[10],
            parameters=signature.parameters,
            columns=signature.columns,
            returns_composite=signature.returns_composite,
            out_parameters=signature.out_parameters,
            sets_response=row[18],
            owner=self._owner(row[16]),
            may_commit=row[17],
            version=row[19],
            of_extension=row[20],
        )

    def _owner(self, oid: int) -> Owner:
        found = self._owned.get(oid)
        if found is None:
            found = self._owned[oid] = Owner(self._owners.name(oid), oid in self._owners.powerful)
        return found

    def _signature(self, row: TupleRow) -> _Signature:
        names: list[str] = row[14] or []
        key = (row[1], row[9], row[11], row[12], row[13], row[15], *names)
        found = self._signatures.get(key)
        if found is None:
            made = _signature(row, names, self._types)
            parameters = tuple(map(self._shared, made.parameters))
            found = replace(made, parameters=parameters, columns=self._shared(made.columns))
            self._signatures[key] = found
        return found

    def _shared(self, part: Part) -> Part:
        """The same object for what is equal."""
        shared: Part = self._parts.setdefault(part, part)
        return shared


def _signature(row: TupleRow, names: Sequence[str], types: Mapping[int, TypeInfo]) -> _Signature:
    modes: str | None = row[13]
    arguments = [
        _Argument((names[index] if index < len(names) else "") or None, oid, modes[index] if modes else "i")
        for index, oid in enumerate(_argument_types(row))
    ]
    procedure: bool = row[1]
    return_type = _below_domains(types[row[9]], types)
    outputs = () if procedure else tuple(_columns(arguments, types))
    direct = not outputs and not procedure and return_type.kind is TypeKind.COMPOSITE
    return _Signature(
        parameters=tuple(_inputs(arguments, defaults=row[15], types=types)),
        columns=tuple(_attribute_columns(return_type)) if direct else outputs,
        returns_composite=direct and bool(return_type.attributes),
        out_parameters=tuple(_pure_outputs(arguments, types)) if procedure else (),
    )


def _below_domains(info: TypeInfo, types: Mapping[int, TypeInfo]) -> TypeInfo:
    """FROM takes a domain over a composite apart like the composite itself."""
    while info.kind is TypeKind.DOMAIN:
        info = types[info.base]
    return info


def _inputs(arguments: Sequence[_Argument], defaults: int, types: Mapping[int, TypeInfo]) -> Iterator[Parameter]:
    """The last `defaults` of the input arguments have one; expressions are never looked at."""
    inputs = [(index, argument) for index, argument in enumerate(arguments) if argument.mode in _INPUTS]
    first_default = len(inputs) - defaults
    for number, (index, argument) in enumerate(inputs):
        yield Parameter(
            name=argument.name,
            type_oid=argument.type_oid,
            type_name=types[argument.type_oid].display,
            mode=_INPUTS[argument.mode],
            has_default=number >= first_default,
            argument=index,
        )


def _pure_outputs(arguments: Sequence[_Argument], types: Mapping[int, TypeInfo]) -> Iterator[Parameter]:
    for index, argument in enumerate(arguments):
        if argument.mode == "o":
            display = types[argument.type_oid].display
            yield Parameter(argument.name, argument.type_oid, display, ParameterMode.OUT, False, index)


def _columns(arguments: Sequence[_Argument], types: Mapping[int, TypeInfo]) -> Iterator[Column]:
    """OUT, INOUT and TABLE arguments. PostgreSQL calls an unnamed one `columnN`, and a lone one has no name at all."""
    outputs = [argument for argument in arguments if argument.mode in "obt"]
    if len(outputs) == 1 and outputs[0].name is None:
        return
    for number, argument in enumerate(outputs, 1):
        yield Column(argument.name or f"column{number}", argument.type_oid, types[argument.type_oid].display)


def _attribute_columns(composite: TypeInfo) -> Iterator[Column]:
    for attribute in composite.attributes:
        yield Column(attribute.name, attribute.type_oid, attribute.type_name)
