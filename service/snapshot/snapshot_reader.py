"""Reads databases and makes endpoints of what it finds: what an edition is made of.

The supervisor does it at the start and whenever the schema has changed; `rowcall --endpoints` does it once. There may
be several databases to read, and endpoints may run elsewhere than where they were found
(`service.options.connections`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.building.exact_types import exact_endpoint, exact_types
from rowcall.core.cache.diagnostics import unused_profiles
from rowcall.core.catalogue.catalog import Catalog, Routine, RoutineKind, TypeInfo
from rowcall.core.config import Settings
from rowcall.core.data.interning import forget
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.result_types import of_any_user_type
from rowcall.core.sqlfile.session_effects import DependencyGraph, Key, session_effects
from rowcall.core.sqlfile.source import FileSource
from rowcall.service.database.connector import Connector
from rowcall.service.database.first_connection import Opening
from rowcall.service.discovery.catalogue import Discovered, discover_all, discover_changes
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.discovery.queries import GROUPS
from rowcall.service.discovery.routed import missing_routines, types_of_the_same_names
from rowcall.service.discovery.session_effects import read_changed_functions, read_dependency_graph
from rowcall.service.options.connections import ConnectionPlan
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.catalogue_watch import Watcher, watcher
from rowcall.service.snapshot.column_constraints import read_constraints
from rowcall.service.snapshot.configured_commands import main_commands, passkey_commands, tell_refused
from rowcall.service.snapshot.endpoints import EndpointBuilder
from rowcall.service.snapshot.exposure import Exposure
from rowcall.service.snapshot.garbage_collection import keep, paused
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, reachable_types
from rowcall.service.sqlfiles.source import SqlFileSource, sql_file_source
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_SCHEMAS = "Service:IncludeSchemas"

MOST_GROUPS = GROUPS // 8
"""Of functions that have changed: beyond it everything is read anew."""
MOST_READINGS = 5
"""Attempts to read a catalogue that changes while it is read."""
MAIN = ""
"""Stands for the main connection among the case-folded names of connections."""


@dataclass(slots=True)
class _Routed:
    """What runs on one database and was found on another one."""

    endpoints: list[Endpoint] = field(default_factory=list)
    types: dict[tuple[str, str], TypeInfo] = field(default_factory=dict)
    """By schema and name: the same type may come from several catalogues."""


@dataclass(frozen=True, slots=True)
class _Database:
    """What was found in a database, and when: `fingerprint` is from before."""

    fingerprint: Fingerprint
    found: Discovered
    dependency_graph: DependencyGraph


class _Judged(NamedTuple):
    """An endpoint, and the same with what it may leave. lasts: for as long as nothing that it leads to changes."""

    endpoint: Endpoint
    judged: Endpoint
    lasts: bool


class SnapshotReader:
    def __init__(self, settings: Settings, options: WorkerOptions, plan: ConnectionPlan, exposure: Exposure) -> None:
        self._settings = settings
        self._options = options
        self._plan = plan
        self._exposure = exposure
        self._builder = EndpointBuilder(settings)
        self._databases: dict[str, _Database] = {}
        """As they were read last, by the key of their connection."""
        self._seen: dict[str, Fingerprint] = {}
        """Where somebody has looked since then: what the next reading begins with."""
        self._worlds: dict[str, DependencyGraph] = {}
        """What statements can reach, by case-folded name of the connection; read together with the catalogues."""
        self._affected: dict[str, frozenset[Key] | None] = {}
        """What may be judged differently than at the last reading; None: anything."""
        self._judgements: dict[int, _Judged] = {}
        """By id of the endpoint."""
        self._files = sql_file_source(settings, exposure.files, exposure.routines, exposure.wanted.trust)
        self._exact = settings.flag("Service:ExactTypes")
        self._verify = settings.choice("Service:RoutineOptions:VerifyRoutedEndpoints")

    def sources(self) -> Iterator[Connector]:
        """To those that routines are read from."""
        return (self._connector(self._key(name)) for name in self._plan.sources)

    async def first(self, *, patient: bool = True) -> SchemaSnapshot:
        """The first reading, tried as often as `ConnectionSettings:RetryOptions` says where `patient`; and every other
        connection is opened once, to see that it can be. Raises `StartupError`.
        """
        opening = Opening(self._settings, patient=patient)
        snapshot = await opening.attempt("read the database", lambda: self.read(1))
        self._tell_empty_schemas(snapshot.endpoints)
        if self._settings.flag("ConnectionSettings:TestConnectionStrings"):
            read = {self._key(name) for name in self._plan.sources}
            # A replica that is away is none that anybody has to wait for.
            replicas = {self._key(name) for name in self._plan.replicas}
            for key in {MAIN, *self._options.others} - read - replicas:
                await opening.test(key or self._plan.main, self._connector(key))
        await self._check_statistics_pattern()
        await self._look_at_commands(snapshot)
        return snapshot

    async def _check_statistics_pattern(self) -> None:
        """Have PostgreSQL read `Stats:SchemaSimilarTo`: an invalid pattern would fail each report with 500.

        A connection that cannot be opened is reported by the reports. Raises `StartupError`.
        """
        statistics = self._options.statistics
        if statistics is None or statistics.schemas is None:
            return
        try:
            async with await Connector(statistics.target).open_plain() as connection:
                await connection.execute("select '' similar to %s::text", (statistics.schemas,))
        except psycopg.errors.DataError as error:
            message = f"Stats:SchemaSimilarTo {statistics.schemas!r} is not a pattern: {error.diag.message_primary}"
            raise StartupError(message) from None
        except (psycopg.Error, OSError) as error:
            log.warning("Stats:SchemaSimilarTo cannot be checked: %s", " ".join(str(error).split()))

    def _tell_empty_schemas(self, endpoints: Sequence[Endpoint]) -> None:
        """A name that is misspelt would only show in what is not there."""
        served = {endpoint.routine.schema for endpoint in endpoints}
        for schema in self._settings.texts(_SCHEMAS) or ():
            if schema not in served:
                log.warning(
                    "%s names %s, where no endpoint is found: is the schema spelled so? Case counts", _SCHEMAS, schema
                )

    async def _look_at_commands(self, snapshot: SchemaSnapshot) -> None:
        commands = [*main_commands(self._settings, self._options, snapshot.endpoints)]
        passkeys = self._options.passkeys
        others = [] if passkeys is None else [*passkey_commands(passkeys)]
        if passkeys is not None and passkeys.connection is not None:
            await tell_refused(self._connector(passkeys.connection.casefold()), others)
            others = []
        await tell_refused(self._connector(MAIN), [*commands, *others])

    def watcher(self) -> Watcher | None:
        """Of what is read here. Raises `StartupError` where there is nothing to watch."""
        return watcher(self._settings, self._exposure, tuple(self.sources()))

    @property
    def has_files(self) -> bool:
        return self._files is not None

    async def has_changed(self) -> bool:
        """A catalogue is not what it was when it was last read. Raises `psycopg.Error`."""
        for name in self._plan.sources:
            key = self._key(name)
            async with await self._connector(key).open_plain() as connection:
                found = await catalogue_fingerprint(connection)
            known = self._databases.get(key)
            if known is None or found != known.fingerprint:
                self._seen[key] = found
                return True
        return False

    async def read(
        self, number: int, *, only_files: bool = False, whole: bool = False, seen: bool = False
    ) -> SchemaSnapshot:
        """One reading. only_files: the databases are taken to be as they were at the last one. whole: nothing is taken
        to be as it was; otherwise functions and procedures are, that the fingerprint says nothing has happened to.
        seen: the fingerprint is that of the last look (`has_changed`).

        Raises `psycopg.Error`, and `StartupError` for what must not be served.
        """
        if whole:
            self._databases = {}
        if not seen:
            self._seen = {}
        with paused():
            try:
                snapshot = await self._read_until_stable(number, only_files=only_files)
            finally:
                forget()
            keep(first=number == 1)
            return snapshot

    async def _read_until_stable(self, number: int, *, only_files: bool) -> SchemaSnapshot:
        """Read again if a lookup in the system caches fails: an object was dropped between two lookups.

        Raises `psycopg.errors.InternalError_` if this happens `MOST_READINGS` times in a row.
        """
        for attempt in range(1, MOST_READINGS):
            try:
                return await self._read(number, only_files=only_files)
            except psycopg.errors.InternalError_ as error:
                log.info("the catalogue changed while it was read (attempt %d): %s", attempt, str(error).strip())
                self._databases, self._seen = {}, {}
        return await self._read(number, only_files=only_files)

    async def _read(self, number: int, *, only_files: bool) -> SchemaSnapshot:
        keys = [self._key(name) for name in self._plan.sources]
        if only_files and self._databases.keys() == set(keys):
            self._affected = dict.fromkeys(self._databases, frozenset())
        else:
            self._worlds, self._affected = {}, {}
            for key in keys:
                await self._discover(key)
        catalogs = [self._databases[key].found.catalog for key in keys]
        exposed = [self._exposed(key, catalog) for key, catalog in zip(keys, catalogs, strict=True)]
        if self._files is not None:
            for place, catalog in (await self._read_files(self._files, only_files=only_files)).items():
                keys.append(place)
                catalogs.append(catalog)
                exposed.append(self._exposure.objects(catalog))
        built = self._builder.build(zip(catalogs, exposed, strict=True), first=number == 1)
        found: list[Sequence[Endpoint]] = list(built.endpoints)
        if self._exact:
            for index, (key, catalog, endpoints) in enumerate(zip(keys, catalogs, found, strict=True)):
                catalogs[index], found[index] = await self._exactly(key, catalog, endpoints)
        types: dict[str, dict[int, TypeInfo]] = {MAIN: {}}
        routed: dict[str, _Routed] = {}
        for key, catalog, endpoints in zip(keys, catalogs, found, strict=True):
            for place, there in self._by_place(endpoints).items():
                reached = reachable_types(tuple(there), catalog.types)
                if place == key:
                    types.setdefault(place, {}).update(reached)
                else:
                    one = routed.setdefault(place, _Routed())
                    one.endpoints += there
                    one.types |= {(info.schema, info.name): info for info in reached.values()}
        await self._look_at_targets(routed, types)
        if number == 1:
            for name in unused_profiles(self._options.cache, (one for group in found for one in group)):
                log.info("cache profile '%s' is used by no endpoint", name)
        main = types.pop(MAIN)
        judged = self._all_judged(zip(keys, found, strict=True))
        looked_at = tuple(self._looked_at(catalogs))
        return SchemaSnapshot(number, judged, main, types, built.left_out, looked_at)

    async def _exactly(
        self, key: str, catalog: Catalog, endpoints: Sequence[Endpoint]
    ) -> tuple[Catalog, Sequence[Endpoint]]:
        """With what is proven about values."""
        async with await self._connector(key).open_plain() as connection:
            constraints = await read_constraints(connection, catalog, endpoints)
        return (
            replace(catalog, types=exact_types(catalog.types, constraints)),
            [exact_endpoint(one, catalog.types, constraints) for one in endpoints],
        )

    def _looked_at(self, catalogs: Sequence[Catalog]) -> Iterator[str]:
        """What a user has to know who wonders why there is no endpoint."""
        target = self._options.target.parameters
        where = f"database {target.get('dbname', '')}" if len(self._plan.sources) == 1 else "these databases"
        wanted = self._exposure.wanted
        if wanted.routines is None:
            yield "no functions and procedures (Service:RoutineOptions:Enabled is false)"
        else:
            schemas = sorted({routine.schema for catalog in catalogs for routine in catalog.routines})
            count = sum(len(catalog.routines) for catalog in catalogs)
            within = f" in the schemas {', '.join(schemas[:10])}{' …' * (len(schemas) > 10)}" if schemas else ""
            yield f"{count} functions and procedures that the role may execute{within} of {where}"
        if wanted.tables is None:
            yield "no tables (Service:CrudSource:Enabled is false)"
        else:
            yield f"{sum(len(catalog.tables) for catalog in catalogs)} tables and views"
        if self._files is None:
            yield "no files (Service:SqlFileSource:Enabled and FilePattern)"
        else:
            yield f"files that fit {self._files.options.pattern}"

    def _at_its_place(self, key: str, endpoint: Endpoint) -> Endpoint:
        """Where it is found on one database and runs on another one, the types of users have other oids there."""
        if self._place(endpoint) == key:
            return endpoint
        table = endpoint.table_shape
        return replace(
            endpoint,
            shape=of_any_user_type(endpoint.shape),
            table_shape=None if table is None else of_any_user_type(table),
        )

    async def _discover(self, key: str) -> None:
        known = self._databases.pop(key, None)
        async with await self._connector(key).open_plain() as connection:
            for attempt in range(1, MOST_READINGS + 1):
                found = await self._read_in_one_snapshot(key, connection, known)
                # Functions such as has_function_privilege() look objects up in their present state, not in that of
                # the snapshot, and return NULL for a dropped object. So what changed meanwhile is read again.
                if attempt == MOST_READINGS or await catalogue_fingerprint(connection) == found.fingerprint:
                    break
                log.debug("the catalogue changed while it was read (attempt %d)", attempt)
        self._databases[key] = found
        self._worlds[key] = found.dependency_graph

    async def _read_in_one_snapshot(
        self, key: str, connection: psycopg.AsyncConnection[Any], known: _Database | None
    ) -> _Database:
        """Read fingerprint and catalogue in one REPEATABLE READ transaction.

        known: the result of the previous reading, if only what has changed since then has to be read.
        """
        schema = self._settings.text_or_none("ConnectionSettings:MetadataQuerySchema")
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        async with connection.transaction():
            # If a statement changes the catalogue later than this, the next look finds it.
            fingerprint = self._seen.pop(key, None) or await catalogue_fingerprint(connection)
            found = None if known is None else await self._changes(connection, key, schema, known, fingerprint)
            if found is None:
                if known is None:
                    discovered, dependency_graph = await self._at_once(key, connection, schema)
                else:
                    discovered = await discover_all(connection, self._exposure.wanted, schema)
                    dependency_graph = await read_dependency_graph(connection)
                    dependency_graph.remember(known.dependency_graph)
                found = _Database(fingerprint, discovered, dependency_graph)
                self._affected[key] = None
        return found

    async def _at_once(
        self, key: str, connection: psycopg.AsyncConnection[Any], schema: str | None
    ) -> tuple[Discovered, DependencyGraph]:
        """Both readings of a start, when there are no other connections yet: one processor of the server reads while
        another one does, or while what has come is made into something. Both read the same snapshot.
        """
        exported = await (await connection.execute("select pg_catalog.pg_export_snapshot()")).fetchone()
        assert exported is not None  # noqa: S101 (a function call returns one row)
        async with await self._connector(key).open_plain() as other:
            dependency_graph = asyncio.ensure_future(_read_world_in(other, str(exported[0])))
            try:
                return await discover_all(connection, self._exposure.wanted, schema), await dependency_graph
            finally:
                dependency_graph.cancel()
                # Where the server goes, both fail, and one of the two errors is enough.
                await asyncio.gather(dependency_graph, return_exceptions=True)

    async def _changes(
        self,
        connection: psycopg.AsyncConnection[Any],
        key: str,
        schema: str | None,
        known: _Database,
        fingerprint: Fingerprint,
    ) -> _Database | None:
        """By what has changed alone. None: everything has to be read."""
        groups = fingerprint.changed_groups(known.fingerprint)
        # Names are sorted here as the server would.
        if groups is None or len(groups) > MOST_GROUPS or connection.info.encoding != "utf-8":
            return None
        if not groups:
            self._affected[key] = frozenset()
            return known
        found = await discover_changes(connection, self._exposure.wanted, schema, known.found, groups)
        changed = None if found is None else await read_changed_functions(connection, known.dependency_graph, groups)
        if found is None or changed is None:
            return None
        self._affected[key] = changed.affected
        return _Database(fingerprint, found, changed.dependency_graph)

    async def _read_files(self, files: SqlFileSource, *, only_files: bool) -> dict[str, Catalog]:
        """By the places where they are described."""

        async def open_at(place: str) -> psycopg.AsyncConnection[Any]:
            connection = await self._connector(place).open_plain()
            if place not in self._worlds:
                self._worlds[place] = await read_dependency_graph(connection)
            return connection

        return await files.read(self._home_of_files, self._usable, open_at, only_files=only_files)

    def _usable(self, name: str) -> str | None:
        """Where an endpoint runs that names this connection; None where it cannot."""
        key = self._key(name)
        return key if key == MAIN or (self._plan.routable and key in self._options.others) else None

    @property
    def _home_of_files(self) -> str:
        """Where they are described: on the connection for metadata, or on the main one where routines have several."""
        return MAIN if self._plan.runs_at_home else self._key(self._plan.sources[0])

    def _exposed(self, key: str, catalog: Catalog) -> Iterator[tuple[Routine, EndpointDefaults]]:
        """What may become an endpoint, with the place where it runs unless its comment says otherwise."""
        objects = self._exposure.objects(catalog)
        if key == MAIN or not self._plan.runs_at_home:
            return objects
        name = self._options.others[key].name
        # One object for all that have the same: what is worked out for it is found again.
        placed: dict[int, EndpointDefaults] = {}
        return (
            (routine, placed.get(id(defaults)) or placed.setdefault(id(defaults), replace(defaults, connection=name)))
            for routine, defaults in objects
        )

    def _all_judged(self, groups: Iterable[tuple[str, Iterable[Endpoint]]]) -> tuple[Endpoint, ...]:
        """With what they may leave in their sessions, where they run; each group comes with the key of the connection
        that it was found on. Whoever is judged as before stays the same object: what is sent to workers is told by
        that.
        """
        before, self._judgements = self._judgements, {}
        judged: list[Endpoint] = []
        for key, endpoints in groups:
            affected = self._affected.get(key)
            touched = frozenset(oid for _, oid in affected or ())
            for endpoint in endpoints:
                known = before.get(id(endpoint))
                if known is None or not known.lasts or affected is None or endpoint.routine.oid in touched:
                    known = self._judged(key, endpoint, known)
                self._judgements[id(endpoint)] = known
                judged.append(known.judged)
        return tuple(judged)

    def _judged(self, key: str, endpoint: Endpoint, former: _Judged | None) -> _Judged:
        place = self._place(endpoint)
        dependency_graph = self._worlds.get(place)
        placed = self._at_its_place(key, endpoint) if former is None else former.judged
        session = (
            endpoint.session
            if dependency_graph is None
            else session_effects(placed, dependency_graph, by_name=place != key)
        )
        if former is not None and former.judged.session == session:
            return former
        lasts = dependency_graph is not None and place == key and not isinstance(endpoint.routine.source, FileSource)
        return _Judged(endpoint, replace(placed, session=session), lasts)

    # --- places ----------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        folded = name.casefold()
        return MAIN if folded in self._plan.main_names else folded

    def _place(self, endpoint: Endpoint) -> str:
        """Where it runs."""
        return self._place_of(endpoint.options.connection)

    def _place_of(self, connection: str | None) -> str:
        return MAIN if connection is None else self._key(connection)

    def _by_place(self, endpoints: Sequence[Endpoint]) -> dict[str, Sequence[Endpoint]]:
        names = {one.options.connection for one in endpoints}
        if len(names) == 1:
            # As nearly always.
            return {self._place_of(*names): endpoints}
        places: dict[str, list[Endpoint]] = {}
        for endpoint in endpoints:
            places.setdefault(self._place(endpoint), []).append(endpoint)
        return {**places}

    def _connector(self, key: str) -> Connector:
        return Connector(self._options.target if key == MAIN else self._options.others[key].target)

    async def _look_at_targets(self, routed: Mapping[str, _Routed], types: dict[str, dict[int, TypeInfo]]) -> None:
        """Reads the types that routed endpoints meet where they run, and looks whether their routines are there."""
        missing: list[str] = []
        checked = 0
        for place, one in routed.items():
            if place != MAIN and place not in self._options.others:
                continue  # reported with the endpoint
            try:
                async with await self._connector(place).open_plain() as connection:
                    found = await types_of_the_same_names(connection, one.types.values())
                    types.setdefault(place, {}).update(found)
                    if place not in self._worlds:
                        self._worlds[place] = await read_dependency_graph(connection)
                    if self._verify != "None":
                        checked += len(one.endpoints)
                        missing += _missing(place, one, await missing_routines(connection, _called(one.endpoints)))
            except psycopg.Error as error:
                if place == MAIN or self._verify == "Fail":
                    raise
                log.warning("connection %s: its types cannot be read: %s", place, str(error).strip())
        self._report_missing(missing, checked)

    def _report_missing(self, missing: Sequence[str], count: int) -> None:
        if missing and self._verify == "Fail":
            raise StartupError("\n  ".join(("these endpoints are routed to where they cannot run:", *missing)))
        for message in missing:
            log.warning("%s", message)
        if self._verify != "None" and not missing:
            log.info("%d routed endpoints have what they need where they run", count)


async def _read_world_in(connection: psycopg.AsyncConnection[Any], snapshot: str) -> DependencyGraph:
    """`read_world` in a snapshot that another session has exported."""
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        await connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
        return await read_dependency_graph(connection)


def _called(endpoints: Iterable[Endpoint]) -> list[Routine]:
    """Routines and relations, each once. A file brings its SQL along."""
    routines = {
        endpoint.routine.identity: endpoint.routine
        for endpoint in endpoints
        if endpoint.routine.kind is not RoutineKind.FILE
    }
    return list(routines.values())


def _missing(place: str, routed: _Routed, routines: Iterable[Routine]) -> Iterator[str]:
    for routine in routines:
        names = [one.name for one in routed.endpoints if one.routine.identity == routine.identity]
        where = "the main connection" if place == MAIN else f"connection {place}"
        yield f"{routine.identity} is not there on {where}, needed by {', '.join(names)}"
