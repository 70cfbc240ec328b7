"""Reads the catalogue once: connection in, frozen `Catalog` out (discovery-14).

It takes a handful of statements, whatever the number of routines. The result depends on the privileges of the connected
role.
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
from rowcall.core.catalogue.installation import NOT_INSTALLED, Installation
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.discovery.filters import NameFilter, RoutineFilter, TableFilter
from rowcall.service.discovery.ignored_objects import ignored_routines, ignored_tables_of
from rowcall.service.discovery.installation import INSTALLED, installation_of
from rowcall.service.discovery.queries import ATTRIBUTES, GROUPS, OF_GROUPS, ROUTINES, SOME_ROUTINES, TYPES
from rowcall.service.discovery.tables import TableRows, build_tables, read_tables
from rowcall.service.discovery.trust import NO_TRUST, Owners, Trust, read_owners, untrusted_owner_diagnostics

DEFAULT_SEARCH_PATH = "public"
"""Schema that is set as search path while reading if the configuration names none."""

_INPUTS = {mode.value: mode for mode in (ParameterMode.IN, ParameterMode.INOUT, ParameterMode.VARIADIC)}
_VOLATILITIES = {volatility.value: volatility for volatility in Volatility}
_TYPE_KINDS = {kind.value: kind for kind in TypeKind}


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """The filters of the objects to read. None: objects of this kind are not read."""

    routines: RoutineFilter | None = field(default_factory=RoutineFilter)
    tables: TableFilter | None = None
    unserved_routines: RoutineFilter | None = None
    """Filter for diagnostics if routines are switched off: annotated routines are reported."""
    unserved_tables: TableFilter | None = None
    """The same for tables and views."""

    @property
    def trust(self) -> Trust:
        """Whose comments on types are read: the trust of the filter of routines, or else of the filter of tables; the
        default trust without both."""
        names = self.routines or self.tables
        return Trust() if names is None else Trust.of(names)


@dataclass(frozen=True, slots=True)
class DiscoveredCatalogue:
    """A catalogue, with the data that `discover_changes` needs to read only changed routines again.

    routines, ignored_objects: by oid.
    """

    catalog: Catalog
    routines: Mapping[int, Routine]
    untrusted: Mapping[int, tuple[str, str]]
    """Schema and owner, by oid, of functions and procedures that are left out because their owner is not trusted."""
    ignored_objects: Mapping[int, Diagnostic]
    tables_untrusted: Sequence[tuple[str, str]]
    """The same for tables and views."""
    ignored_tables: Sequence[Diagnostic]
    table_types: frozenset[int]
    """Oids of the types that tables refer to directly."""


async def discover_all(
    connection: AsyncConnection[Any], selection: ObjectSelection, search_path: str | None = None
) -> DiscoveredCatalogue:
    """Read the catalogue. The result depends on the privileges of the connected role. selection: which objects are
    read. search_path: the schema that is set as search path while reading; None: `DEFAULT_SEARCH_PATH`. Raises
    `psycopg.Error`.
    """
    tables_untrusted: dict[int, tuple[str, str]] = {}
    untrusted: dict[int, tuple[str, str]] = {}
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        installation = await _set_search_path(cursor, search_path or DEFAULT_SEARCH_PATH)
        owners = await read_owners(cursor)
        rows = await _read_routines(cursor, selection.routines)
        rows = _rows_of_trusted_owners(rows, _ROUTINE, selection.routines, owners, untrusted)
        table_rows = TableRows() if selection.tables is None else await read_tables(cursor, selection.tables)
        table_rows = table_rows.of(
            _rows_of_trusted_owners(table_rows.tables, _TABLE, selection.tables, owners, tables_untrusted)
        )
        table_types = frozenset(table_rows.types)
        types = await _load_types(cursor, [*{*_roots(rows), *table_types}], owners, selection.trust)
        tables = await build_tables(cursor, table_rows, types, owners)
        ignored_objects = await ignored_routines(
            cursor, owners, _filter_and_use(selection.routines, selection.unserved_routines)
        )
        ignored_tables = await ignored_tables_of(
            cursor, owners, _filter_and_use(selection.tables, selection.unserved_tables)
        )
    catalog = Catalog(
        server_version=connection.info.server_version, types=types, tables=tables, installation=installation
    )
    routines = _Routines(types, owners).of(rows)
    return _with_routines(
        DiscoveredCatalogue(
            catalog, routines, untrusted, ignored_objects, [*tables_untrusted.values()], ignored_tables, table_types
        ),
        sorted(routines.values(), key=_order),
    )


async def discover_changes(
    connection: AsyncConnection[Any],
    selection: ObjectSelection,
    search_path: str | None,
    known: DiscoveredCatalogue,
    groups: frozenset[int],
) -> DiscoveredCatalogue | None:
    """Return the result of `discover_all` after a change of functions and procedures in `groups` only. None: everything
    has to be read, because a routine has another name or schema, and the text of others may contain the name.

    selection, search_path: as for `discover_all`. known: the result of the previous reading; unchanged routines and
    types stay the same objects. groups: as `Fingerprint.changed_groups` returns them. Raises `psycopg.Error`.
    """
    untrusted: dict[int, tuple[str, str]] = {}
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        installation = await _set_search_path(cursor, search_path or DEFAULT_SEARCH_PATH)
        owners = await read_owners(cursor)
        await cursor.execute(OF_GROUPS.encode(), {"groups": sorted(groups)})
        listed = [row[0] for row in await cursor.fetchall()]
        rows = await _read_routines(cursor, selection.routines, listed)
        rows = _rows_of_trusted_owners(rows, _ROUTINE, selection.routines, owners, untrusted)
        if any(_is_renamed(row, known.routines) for row in rows):
            return None
        types, roots = known.catalog.types, _roots(rows)
        if not types.keys() >= roots:
            # Types that are known are unchanged, and stay the same objects.
            types = {**await _load_types(cursor, [*roots], owners, selection.trust), **types}
        ignored_objects = await ignored_routines(
            cursor, owners, _filter_and_use(selection.routines, selection.unserved_routines), listed
        )
    # An unchanged routine in a changed group stays the same object, by which callers recognize it.
    read = {oid: _same(known.routines.get(oid), routine) for oid, routine in _Routines(types, owners).of(rows).items()}
    routines = _without_groups(known.routines, groups) | read
    before = [routine for oid, routine in known.routines.items() if oid % GROUPS in groups]
    if not set().union(*map(_types_of, before)) <= roots:
        types = types_below({*known.table_types}.union(*map(_types_of, routines.values())), types)
    ordered = [routine for routine in known.catalog.routines if routine.oid % GROUPS not in groups]
    for routine in read.values():
        bisect.insort(ordered, routine, key=_order)
    return _with_routines(
        replace(
            known,
            catalog=replace(known.catalog, types=types, installation=installation),
            routines=routines,
            untrusted=_without_groups(known.untrusted, groups) | untrusted,
            ignored_objects=_without_groups(known.ignored_objects, groups) | ignored_objects,
        ),
        ordered,
    )


_Value = TypeVar("_Value")
Part = TypeVar("Part", tuple[Column, ...], Parameter)


def _without_groups(values: Mapping[int, _Value], groups: frozenset[int]) -> dict[int, _Value]:
    """Return the values of objects that are in none of the groups. values: by oid. groups: remainders of oids by
    `GROUPS`.
    """
    return {oid: value for oid, value in values.items() if oid % GROUPS not in groups}


def _is_renamed(row: TupleRow, known: Mapping[int, Routine]) -> bool:
    """Return whether a routine had another name or schema before. row: of `SOME_ROUTINES`. known: routines by oid."""
    before = known.get(row[0])
    return before is not None and (before.schema, before.name) != (row[2], row[3])


def _same(before: Routine | None, now: Routine) -> Routine:
    """Return `before` if it equals `now`, so that an unchanged routine stays the same object."""
    return before if before is not None and before == now else now


def _order(routine: Routine) -> tuple[str, str, int]:
    """Return the key that sorts routines as the server does: by the bytes of schema and name in UTF-8, and by oid."""
    return routine.schema, routine.name, routine.oid


def _with_routines(discovered: DiscoveredCatalogue, routines: Iterable[Routine]) -> DiscoveredCatalogue:
    """Return a copy of `discovered` whose catalogue has these routines and the diagnostics of all objects that are left
    out. routines: all that are served, in order."""
    untrusted = (*discovered.untrusted.values(), *discovered.tables_untrusted)
    ignored_objects = sorted(
        discovered.ignored_objects.values(), key=lambda diagnostic: (diagnostic.object, diagnostic.message)
    )
    catalog = replace(
        discovered.catalog,
        routines=tuple(routines),
        left_out=(*untrusted_owner_diagnostics(untrusted), *ignored_objects, *discovered.ignored_tables),
    )
    return replace(discovered, catalog=catalog)


def _types_of(routine: Routine) -> set[int]:
    """Return the oids of the types that a routine refers to directly."""
    return {
        routine.return_type_oid,
        *(item.type_oid for item in routine.parameters),
        *(item.type_oid for item in routine.out_parameters),
        *(item.type_oid for item in routine.columns),
    }


_Filter = TypeVar("_Filter", RoutineFilter, TableFilter)


def _filter_and_use(served: _Filter | None, unserved: _Filter | None) -> tuple[_Filter, bool] | None:
    """Return the filter of the objects to read, and whether these are served: `served` with True if there is one, else
    `unserved` with False; None without both. unserved: filter of objects that are only reported."""
    if served is not None:
        return served, True
    return None if unserved is None else (unserved, False)


async def load_types(
    connection: AsyncConnection[Any], roots: Sequence[int], trust: Trust = NO_TRUST
) -> Mapping[int, TypeInfo]:
    """Read the types `roots` (oids) and all types of their elements, bases and attributes. Return them by oid. trust:
    whose comments of types are read. Raises `psycopg.Error`.
    """
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await _set_search_path(cursor, DEFAULT_SEARCH_PATH)
        return await _load_types(cursor, roots, await read_owners(cursor), trust)


class _Places(NamedTuple):
    """Indexes of the columns of a query that trust depends on."""

    schema: int
    comment: int
    owner: int


_ROUTINE = _Places(2, 4, 16)
_TABLE = _Places(2, 4, 10)


def _rows_of_trusted_owners(
    rows: Sequence[TupleRow],
    places: _Places,
    names: NameFilter | None,
    owners: Owners,
    untrusted: dict[int, tuple[str, str]],
) -> list[TupleRow]:
    """Return the rows of objects whose owner is trusted. Other objects that would be published are added to
    `untrusted`: their schema and owner by oid.

    rows: the first column is the oid. places: of the other columns that are needed. names: the filter, with the trust
    of the configuration; None: only powerful owners are trusted.
    """
    trust = Trust() if names is None else Trust.of(names)
    trusted: list[TupleRow] = []
    for row in rows:
        schema, owner = row[places.schema], row[places.owner]
        if owners.trusts(trust, schema, owner):
            trusted.append(row)
        elif (names is not None and names.everything) or _PUBLISHED.search(row[places.comment] or ""):
            untrusted[row[0]] = schema, owners.name(owner)
    return trusted


_PUBLISHED = re.compile(r"^[ \t]*@?http(?:[ \t]|$)", re.IGNORECASE | re.MULTILINE)
"""The annotation of an endpoint in a comment."""


async def _set_search_path(cursor: AsyncCursor[TupleRow], schema: str) -> Installation:
    """Set the search path for the transaction. Return the state of the schema `rowcall`."""
    path = "pg_catalog.set_config('search_path', pg_catalog.quote_ident(%s), true)"
    await cursor.execute(f"select {path}, {INSTALLED}".encode(), [schema])
    row = await cursor.fetchone()
    return NOT_INSTALLED if row is None else installation_of(*row[1:])


async def _read_routines(
    cursor: AsyncCursor[TupleRow], routines: RoutineFilter | None, oids: Sequence[int] | None = None
) -> list[TupleRow]:
    """Return the rows of the routines that match the filter. routines: the filter; None: no rows are read. oids: read
    only these routines; None: all.
    """
    if routines is None:
        return []
    if oids is None:
        await cursor.execute(ROUTINES, routines.parameters())
    else:
        await cursor.execute(SOME_ROUTINES, {**routines.parameters(), "oids": list(oids)})
    return await cursor.fetchall()


def _roots(rows: Sequence[TupleRow]) -> set[int]:
    """Return the oids of the types of all results and arguments. rows: of `ROUTINES`."""
    oids = {row[9] for row in rows}
    for row in rows:
        oids.update(_argument_types(row))
    return oids


async def _load_types(
    cursor: AsyncCursor[TupleRow], roots: Sequence[int], owners: Owners, trust: Trust
) -> dict[int, TypeInfo]:
    """Read the types `roots` (oids) and all types that they refer to, as `load_types` does, with this search path."""
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
    """Return the type of a row of `TYPES`. Its comment may be an HTTP request, so it is omitted if the owner is not
    trusted, as with a routine. attributes: of a composite; empty for other types.
    """
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
    """One argument of a routine, as the catalogue has it. name: None if it has none."""

    name: str | None
    type_oid: int
    mode: str
    """As in `proargmodes`: i, o, b, v or t."""


def _argument_types(row: TupleRow) -> Iterator[int]:
    """Return the oids of the types of all arguments of a row of `ROUTINES`, parsed from `{25,23}` if there are OUT
    arguments, else from the input vector `25 23`.
    """
    inputs, everything = row[11], row[12]
    return map(int, everything.strip("{}").split(",") if everything else inputs.split())


@dataclass(frozen=True, slots=True)
class _Signature:
    """The parts that routines with equal arguments and results share."""

    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    returns_composite: bool
    out_parameters: tuple[Parameter, ...]


class _Routines:
    """Creates routines from rows. Routines with the same signature, also in other schemas, share its parts; different
    signatures share columns and single parameters."""

    def __init__(self, types: Mapping[int, TypeInfo], owners: Owners) -> None:
        self._types = types
        self._owners = owners
        self._signatures: dict[tuple[object, ...], _Signature] = {}
        self._parts: dict[Any, Any] = {}
        self._owned: dict[int, Owner] = {}

    def of(self, rows: Iterable[TupleRow]) -> dict[int, Routine]:
        """Return the routines by oid. rows: of `ROUTINES`."""
        return {row[0]: self._routine(row) for row in rows}

    def _routine(self, row: TupleRow) -> Routine:
        """Return the routine of a row of `ROUTINES`."""
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
        """Return the owner with this oid; one object for all routines."""
        owner = self._owned.get(oid)
        if owner is None:
            owner = self._owned[oid] = Owner(self._owners.name(oid), oid in self._owners.powerful)
        return owner

    def _signature(self, row: TupleRow) -> _Signature:
        """Return the signature of a row, which is the same object as that of an earlier row with an equal one."""
        names: list[str] = row[14] or []
        key = (row[1], row[9], row[11], row[12], row[13], row[15], *names)
        shared = self._signatures.get(key)
        if shared is None:
            unshared = _signature(row, names, self._types)
            parameters = tuple(map(self._intern, unshared.parameters))
            shared = replace(unshared, parameters=parameters, columns=self._intern(unshared.columns))
            self._signatures[key] = shared
        return shared

    def _intern(self, part: Part) -> Part:
        """Return one object for equal parts."""
        shared: Part = self._parts.setdefault(part, part)
        return shared


def _signature(row: TupleRow, names: Sequence[str], types: Mapping[int, TypeInfo]) -> _Signature:
    """Return the signature of a row of `ROUTINES`. names: of its arguments; empty, or missing at the end, for arguments
    without a name. types: by oid.
    """
    modes: str | None = row[13]
    arguments = [
        _Argument((names[index] if index < len(names) else "") or None, oid, modes[index] if modes else "i")
        for index, oid in enumerate(_argument_types(row))
    ]
    procedure: bool = row[1]
    return_type = _base_type(types[row[9]], types)
    outputs = () if procedure else tuple(_columns(arguments, types))
    direct = not outputs and not procedure and return_type.kind is TypeKind.COMPOSITE
    return _Signature(
        parameters=tuple(_inputs(arguments, defaults=row[15], types=types)),
        columns=tuple(_attribute_columns(return_type)) if direct else outputs,
        returns_composite=direct and bool(return_type.attributes),
        out_parameters=tuple(_pure_outputs(arguments, types)) if procedure else (),
    )


def _base_type(info: TypeInfo, types: Mapping[int, TypeInfo]) -> TypeInfo:
    """Return the type below all domains; the type itself if it is no domain. FROM expands a domain over a composite
    like the composite itself.
    """
    while info.kind is TypeKind.DOMAIN:
        info = types[info.base]
    return info


def _inputs(arguments: Sequence[_Argument], defaults: int, types: Mapping[int, TypeInfo]) -> Iterator[Parameter]:
    """Yield the input parameters. arguments: all, in order. defaults: number of parameters at the end that have a
    default, whose expression is not read. types: by oid.
    """
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
    """Yield the OUT arguments, without INOUT and TABLE ones. arguments: all, in order. types: by oid."""
    for index, argument in enumerate(arguments):
        if argument.mode == "o":
            display = types[argument.type_oid].display
            yield Parameter(argument.name, argument.type_oid, display, ParameterMode.OUT, False, index)


def _columns(arguments: Sequence[_Argument], types: Mapping[int, TypeInfo]) -> Iterator[Column]:
    """Yield the OUT, INOUT and TABLE arguments as result columns. PostgreSQL names an argument without a name
    `columnN`. If the only such argument has no name, nothing is yielded: the result is a scalar."""
    outputs = [argument for argument in arguments if argument.mode in "obt"]
    if len(outputs) == 1 and outputs[0].name is None:
        return
    for number, argument in enumerate(outputs, 1):
        yield Column(argument.name or f"column{number}", argument.type_oid, types[argument.type_oid].display)


def _attribute_columns(composite: TypeInfo) -> Iterator[Column]:
    for attribute in composite.attributes:
        yield Column(attribute.name, attribute.type_oid, attribute.type_name)
