"""Endpoints that run on another database than the one where they were found: their types there, and whether their
routines exist there.

Names are the same there, but oids are not, and types of results are identified by oid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection

from rowcall.core.catalogue.catalog import FIRST_USER_OID, Routine, RoutineKind, TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.text.naming import quote_qualified
from rowcall.service.discovery.catalogue import DEFAULT_SEARCH_PATH, load_types
from rowcall.service.snapshot.reading.catalogues import Catalogues
from rowcall.service.snapshot.reading.places import MAIN, Places
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


_SAME_NAMES = """
select t.oid from unnest(%s::text[], %s::text[]) wanted(schema, name)
join pg_catalog.pg_namespace n on n.nspname = wanted.schema
join pg_catalog.pg_type t on t.typnamespace = n.oid and t.typname = wanted.name
"""
_MISSING = """
select wanted.number from unnest(%s::text[], %s::text[]) with ordinality wanted(signature, relation, number)
where case when wanted.signature is not null then pg_catalog.to_regprocedure(wanted.signature)::oid
           else pg_catalog.to_regclass(wanted.relation)::oid end is null
order by wanted.number
"""


@dataclass(slots=True)
class RoutedEndpoints:
    """Endpoints that run on one database and were found on others, and their types."""

    endpoints: list[Endpoint] = field(default_factory=list)
    types: dict[tuple[str, str], TypeInfo] = field(default_factory=dict)
    """By schema and name, because several catalogues may have the same type."""


class RoutedChecks:
    """Checks endpoints on the databases where they run. verify: value of
    `Service:RoutineOptions:VerifyRoutedEndpoints`: `None`, `Warn` or `Fail`. search_path: the schema that was the
    search path while the endpoints were read; None: `DEFAULT_SEARCH_PATH`.
    """

    def __init__(self, places: Places, catalogues: Catalogues, verify: str, search_path: str | None) -> None:
        self._places = places
        self._catalogues = catalogues
        self._verify = verify
        self._search_path = search_path or DEFAULT_SEARCH_PATH
        self._types: dict[str, Mapping[int, TypeInfo]] = {}
        """The types that were found by the last reading of each place, by oid there."""

    async def check(self, routed: Mapping[str, RoutedEndpoints], types: dict[str, dict[int, TypeInfo]]) -> bool:
        """Look up the types of routed endpoints on the databases where they run, and check that their routines exist
        there. Return whether all of these databases could be read.

        routed: by place where they run. types: by place and oid; the types are added to it. The dependency graphs of
        the databases are added to the catalogues.

        If a database cannot be read: raises `psycopg.Error` if `verify` is `Fail` or the place is the main connection;
        otherwise this is logged, and the types of the last successful reading stay. If a routine is missing: raises
        `StartupError` with `Fail`, logs a warning with `Warn`. With `None`, routines are not checked.
        """
        missing: list[str] = []
        checked = 0
        complete = True
        for place, here in routed.items():
            if not self._places.exists(place):
                continue  # The endpoint has a diagnostic.
            try:
                async with await self._places.connector(place).open_plain() as connection:
                    self._types[place] = await _types_of_the_same_names(connection, here.types.values())
                    await self._catalogues.add_dependency_graph(place, connection)
                    if self._verify != "None":
                        checked += len(here.endpoints)
                        routines = _routines_of(here.endpoints)
                        absent = await _missing_routines(connection, routines, self._search_path)
                        missing += _missing_routine_messages(place, here, absent)
            except psycopg.Error as error:
                if place == MAIN or self._verify == "Fail":
                    raise
                complete = False
                log.warning("connection %s: its types cannot be read: %s", place, str(error).strip())
            types.setdefault(place, {}).update(self._types.get(place, {}))
        self._report_missing(missing, checked)
        return complete

    def _report_missing(self, missing: Sequence[str], count: int) -> None:
        """Log the missing routines, or raise `StartupError` for all of them if the configuration says so. If none is
        missing and the check is on, log the number of checked endpoints. missing: a message for each. count: checked
        endpoints."""
        if missing and self._verify == "Fail":
            raise StartupError(
                "\n  ".join(("these endpoints are routed to connections on which they cannot run:", *missing))
            )
        for message in missing:
            log.warning("%s", message)
        if self._verify != "None" and not missing:
            log.info("the routines of %d endpoints exist on the connections to which these are routed", count)


def _routines_of(endpoints: Iterable[Endpoint]) -> list[Routine]:
    """Return the distinct routines of endpoints, which may be operations on relations. SQL files are left out, because
    nothing of them has to exist in the database.
    """
    routines = {
        endpoint.routine.identity: endpoint.routine
        for endpoint in endpoints
        if endpoint.routine.kind is not RoutineKind.FILE
    }
    return list(routines.values())


def _missing_routine_messages(place: str, routed: RoutedEndpoints, routines: Iterable[Routine]) -> Iterator[str]:
    """Yield a message for each of the routines that are missing at a place, with the endpoints in `routed` that need
    it.
    """
    for routine in routines:
        names = [endpoint.name for endpoint in routed.endpoints if endpoint.routine.identity == routine.identity]
        where = "the main connection" if place == MAIN else f"connection {place}"
        yield f"{routine.identity} is not there on {where}, needed by {', '.join(names)}"


async def _types_of_the_same_names(
    connection: AsyncConnection[Any], types: Iterable[TypeInfo]
) -> Mapping[int, TypeInfo]:
    """Return the types of the database of `connection` that have the names of `types`, which are of another database;
    by oid in this database. Built-in types are omitted, because their oids are the same everywhere.
    """
    user_types = [info for info in types if info.oid >= FIRST_USER_OID]
    if not user_types:
        return {}
    names = ([info.schema for info in user_types], [info.name for info in user_types])
    rows = await (await connection.execute(_SAME_NAMES, names)).fetchall()
    return await load_types(connection, [row[0] for row in rows]) if rows else {}


async def _missing_routines(
    connection: AsyncConnection[Any], routines: Sequence[Routine], search_path: str
) -> list[Routine]:
    """Return the routines that this database lacks, or has with other parameter types, with a single query.
    search_path: the schema under which the names of types were read."""
    async with connection.transaction():
        path = "pg_catalog.set_config('search_path', pg_catalog.quote_ident(%s), true)"
        await connection.execute(f"select {path}".encode(), (search_path,))
        signatures = [_signature(routine) if routine.source is None else None for routine in routines]
        relations = [quote_qualified(routine.schema, routine.name) for routine in routines]
        rows = await (await connection.execute(_MISSING, (signatures, relations))).fetchall()
    return [routines[row[0] - 1] for row in rows]


def _signature(routine: Routine) -> str:
    """Return name and parameter types of a routine as `to_regprocedure` reads them."""
    types = ",".join(parameter.type_name for parameter in routine.parameters)
    return f"{quote_qualified(routine.schema, routine.name)}({types})"
