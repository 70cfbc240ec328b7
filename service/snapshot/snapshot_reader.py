"""Reads databases and builds endpoints from the result: the content of a schema snapshot.

The supervisor does this at the start and after each change of the schema; `rowcall --endpoints` does it once. Several
databases may be read, and endpoints may run on another database than the one where they were found
(`service.options.connections`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.building.exact_types import exact_endpoint, exact_types
from rowcall.core.cache.diagnostics import unused_profiles
from rowcall.core.catalogue.catalog import Catalog, Routine, RoutineKind, TypeInfo
from rowcall.core.config import ConfigError, Settings
from rowcall.core.data.interning import clear_all
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.result_types import of_any_user_type
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.sqlfile.session_effects import DependencyGraph, Key, session_effects
from rowcall.core.sqlfile.source import FileSource
from rowcall.service.database.connector import Connector
from rowcall.service.database.first_connection import OpeningRetries
from rowcall.service.discovery.catalogue import DiscoveredCatalogue, discover_all, discover_changes
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.discovery.queries import GROUPS
from rowcall.service.discovery.routed import missing_routines, types_of_the_same_names
from rowcall.service.discovery.session_effects import read_changed_functions, read_dependency_graph
from rowcall.service.options.connections import ConnectionPlan
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.catalogue_watch import Watcher, watcher
from rowcall.service.snapshot.column_constraints import read_constraints
from rowcall.service.snapshot.configured_commands import main_commands, passkey_commands, report_refused
from rowcall.service.snapshot.endpoints import EndpointBuilder
from rowcall.service.snapshot.exposure import Exposure
from rowcall.service.snapshot.garbage_collection import keep, paused
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, reachable_types
from rowcall.service.sqlfiles.source import SqlFileSource, sql_file_source
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_SCHEMAS = "Service:IncludeSchemas"

MOST_GROUPS = GROUPS // 8
"""Most groups of changed functions that are read separately; with more, everything is read again."""
MOST_READINGS = 5
"""Attempts to read a catalogue that changes while it is read."""
MAIN = ""
"""Key of the main connection among the case-folded names of connections."""


@dataclass(slots=True)
class _RoutedEndpoints:
    """Endpoints that run on one database and were found on another, and their types."""

    endpoints: list[Endpoint] = field(default_factory=list)
    types: dict[tuple[str, str], TypeInfo] = field(default_factory=dict)
    """By schema and name, because several catalogues may have the same type."""


@dataclass(frozen=True, slots=True)
class _Database:
    """The result of reading a database. `fingerprint` was computed before the reading."""

    fingerprint: Fingerprint
    found: DiscoveredCatalogue
    dependency_graph: DependencyGraph


class _AnalysedEndpoint(NamedTuple):
    """An endpoint without and with its session effects. lasts: valid until an object that it depends on changes."""

    endpoint: Endpoint
    analysed: Endpoint
    lasts: bool


class SnapshotReader:
    def __init__(
        self,
        settings: Settings,
        options: WorkerOptions,
        plan: ConnectionPlan,
        exposure: Exposure,
        reread: Callable[[], Settings] | None = None,
    ) -> None:
        """reread: loads the settings of PostgREST's interface for each reading. None: those of the start remain."""
        self._settings = settings
        self._reread = reread
        self._options = options
        self._plan = plan
        self._exposure = exposure
        self._builder = EndpointBuilder(settings)
        self._databases: dict[str, _Database] = {}
        """The last readings, by the key of their connection."""
        self._seen: dict[str, Fingerprint] = {}
        """Fingerprints that were computed since then, for use by the next reading."""
        self._dependency_graphs: dict[str, DependencyGraph] = {}
        """Dependency graphs by case-folded name of the connection; read together with the catalogues."""
        self._affected: dict[str, frozenset[Key] | None] = {}
        """Objects whose session effects may have changed since the last reading; None: any object."""
        self._analyses: dict[int, _AnalysedEndpoint] = {}
        """By id of the endpoint."""
        self._files = sql_file_source(settings, exposure.files, exposure.routines, exposure.discovery.trust)
        self._exact = settings.flag("Service:ExactTypes")
        self._verify = settings.choice("Service:RoutineOptions:VerifyRoutedEndpoints")

    def sources(self) -> Iterator[Connector]:
        """Yield the connectors of the databases from which routines are read."""
        return (self._connector(self._key(name)) for name in self._plan.sources)

    async def first(self, *, patient: bool = True) -> SchemaSnapshot:
        """Read for the first time and test the other connections.

        patient: repeat failed attempts as `ConnectionSettings:RetryOptions` says. Every other connection is opened
        once. Raises
        `StartupError`.
        """
        opening = OpeningRetries(self._settings, patient=patient)
        snapshot = await opening.attempt("read the database", lambda: self.read(1))
        self._report_empty_schemas(snapshot.endpoints)
        if self._settings.flag("ConnectionSettings:TestConnectionStrings"):
            read = {self._key(name) for name in self._plan.sources}
            # An unavailable replica does not delay the start.
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

    def _report_empty_schemas(self, endpoints: Sequence[Endpoint]) -> None:
        """Warn of configured schemas without an endpoint, because a misspelt name has no other symptom."""
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
            await report_refused(self._connector(passkeys.connection.casefold()), others)
            others = []
        await report_refused(self._connector(MAIN), [*commands, *others])

    def watcher(self) -> Watcher | None:
        """Return the watcher of these sources, or None. Raises `StartupError` if there is nothing to watch."""
        return watcher(self._settings, self._exposure, tuple(self.sources()))

    @property
    def has_files(self) -> bool:
        return self._files is not None

    async def has_changed(self) -> bool:
        """Return whether a catalogue has changed since the last reading. Raises `psycopg.Error`."""
        for name in self._plan.sources:
            key = self._key(name)
            async with await self._connector(key).open_plain() as connection:
                fingerprint = await catalogue_fingerprint(connection)
            database = self._databases.get(key)
            if database is None or fingerprint != database.fingerprint:
                self._seen[key] = fingerprint
                return True
        return False

    async def read(
        self, number: int, *, only_files: bool = False, whole: bool = False, seen: bool = False
    ) -> SchemaSnapshot:
        """Read everything and return the next snapshot.

        only_files: assume that the databases are unchanged. whole: read everything again; otherwise functions and
        procedures with an unchanged fingerprint are not read. seen: use the fingerprint of the last `has_changed`.

        Raises `psycopg.Error`, and `StartupError` for configurations that must not be served.
        """
        if whole:
            self._databases = {}
        if not seen:
            self._seen = {}
        with paused():
            try:
                snapshot = await self._read_until_stable(number, only_files=only_files)
            finally:
                clear_all()
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
            self._dependency_graphs, self._affected = {}, {}
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
        groups: list[Sequence[Endpoint]] = list(built.endpoints)
        if self._exact:
            for index, (key, catalog, endpoints) in enumerate(zip(keys, catalogs, groups, strict=True)):
                catalogs[index], groups[index] = await self._exactly(key, catalog, endpoints)
        types: dict[str, dict[int, TypeInfo]] = {MAIN: {}}
        routed: dict[str, _RoutedEndpoints] = {}
        for key, catalog, endpoints in zip(keys, catalogs, groups, strict=True):
            for place, placed in self._by_place(endpoints).items():
                reached = reachable_types(tuple(placed), catalog.types)
                if place == key:
                    types.setdefault(place, {}).update(reached)
                else:
                    routed_here = routed.setdefault(place, _RoutedEndpoints())
                    routed_here.endpoints += placed
                    routed_here.types |= {(info.schema, info.name): info for info in reached.values()}
        await self._look_at_targets(routed, types)
        if number == 1:
            for name in unused_profiles(self._options.cache, (endpoint for group in groups for endpoint in group)):
                log.info("cache profile '%s' is used by no endpoint", name)
        main = types.pop(MAIN)
        analysed = self._all_judged(zip(keys, groups, strict=True))
        looked_at = tuple(self._looked_at(catalogs))
        postgrest = await self._read_postgrest()
        return SchemaSnapshot(number, analysed, main, types, built.left_out, looked_at, postgrest=postgrest)

    async def _read_postgrest(self) -> PostgRestCatalogue | None:
        """Read what PostgREST's interface needs, if it is served. Its module is imported here, as most services do not
        need it."""
        options = self._options.postgrest
        if options is None:
            return None
        from rowcall.core.postgrest.options import InvalidOptionError
        from rowcall.service.options.server.postgrest import postgrest_options
        from rowcall.service.postgrest.catalogue.reading import read_catalogue

        if self._reread is not None:
            try:
                options = postgrest_options(self._reread()) or options
            except ConfigError as error:
                raise StartupError(str(error)) from None
        async with await self._connector(MAIN).open_plain() as connection:
            try:
                return await read_catalogue(connection, options)
            except InvalidOptionError as error:
                raise StartupError(f"PostgRest: {error}") from None

    async def _exactly(
        self, key: str, catalog: Catalog, endpoints: Sequence[Endpoint]
    ) -> tuple[Catalog, Sequence[Endpoint]]:
        """Return catalogue and endpoints with the constraints of values."""
        async with await self._connector(key).open_plain() as connection:
            constraints = await read_constraints(connection, catalog, endpoints)
        return (
            replace(catalog, types=exact_types(catalog.types, constraints)),
            [exact_endpoint(endpoint, catalog.types, constraints) for endpoint in endpoints],
        )

    def _looked_at(self, catalogs: Sequence[Catalog]) -> Iterator[str]:
        """Yield descriptions of where endpoints were searched, for users who miss an endpoint."""
        target = self._options.target.parameters
        where = f"database {target.get('dbname', '')}" if len(self._plan.sources) == 1 else "these databases"
        filters = self._exposure.discovery
        if filters.routines is None:
            yield "no functions and procedures (Service:RoutineOptions:Enabled is false)"
        else:
            schemas = sorted({routine.schema for catalog in catalogs for routine in catalog.routines})
            count = sum(len(catalog.routines) for catalog in catalogs)
            within = f" in the schemas {', '.join(schemas[:10])}{' …' * (len(schemas) > 10)}" if schemas else ""
            yield f"{count} functions and procedures that the role may execute{within} of {where}"
        if filters.tables is None:
            yield "no tables (Service:CrudSource:Enabled is false)"
        else:
            yield f"{sum(len(catalog.tables) for catalog in catalogs)} tables and views"
        if self._files is None:
            yield "no files (Service:SqlFileSource:Enabled and FilePattern)"
        else:
            yield f"files that fit {self._files.options.pattern}"

    def _at_its_place(self, key: str, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint for the database where it runs: there, types of users have other oids."""
        if self._place(endpoint) == key:
            return endpoint
        table = endpoint.table_shape
        return replace(
            endpoint,
            shape=of_any_user_type(endpoint.shape),
            table_shape=None if table is None else of_any_user_type(table),
        )

    async def _discover(self, key: str) -> None:
        previous = self._databases.pop(key, None)
        async with await self._connector(key).open_plain() as connection:
            for attempt in range(1, MOST_READINGS + 1):
                database = await self._read_in_one_snapshot(key, connection, previous)
                # Functions such as has_function_privilege() look objects up in their present state, not in that of
                # the snapshot, and return NULL for a dropped object. So changes during the reading are read again.
                if attempt == MOST_READINGS or await catalogue_fingerprint(connection) == database.fingerprint:
                    break
                log.debug("the catalogue changed while it was read (attempt %d)", attempt)
        self._databases[key] = database
        self._dependency_graphs[key] = database.dependency_graph

    async def _read_in_one_snapshot(
        self, key: str, connection: psycopg.AsyncConnection[Any], known: _Database | None
    ) -> _Database:
        """Read fingerprint and catalogue in one REPEATABLE READ transaction.

        known: the result of the previous reading, if only the changes since then have to be read.
        """
        schema = self._settings.text_or_none("ConnectionSettings:MetadataQuerySchema")
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        async with connection.transaction():
            # A change of the catalogue by a later statement is found by the next poll.
            fingerprint = self._seen.pop(key, None) or await catalogue_fingerprint(connection)
            database = None if known is None else await self._changes(connection, key, schema, known, fingerprint)
            if database is None:
                if known is None:
                    discovered, dependency_graph = await self._at_once(key, connection, schema)
                else:
                    discovered = await discover_all(connection, self._exposure.discovery, schema)
                    dependency_graph = await read_dependency_graph(connection)
                    dependency_graph.remember(known.dependency_graph)
                database = _Database(fingerprint, discovered, dependency_graph)
                self._affected[key] = None
        return database

    async def _at_once(
        self, key: str, connection: psycopg.AsyncConnection[Any], schema: str | None
    ) -> tuple[DiscoveredCatalogue, DependencyGraph]:
        """Read catalogue and dependency graph at the start over two connections, in the same exported snapshot.

        So two processors of the server work at once, and this process parses one result while the other is computed.
        """
        exported = await (await connection.execute("select pg_catalog.pg_export_snapshot()")).fetchone()
        assert exported is not None  # noqa: S101 (a function call returns one row)
        async with await self._connector(key).open_plain() as other:
            dependency_graph = asyncio.ensure_future(_read_world_in(other, str(exported[0])))
            try:
                return await discover_all(connection, self._exposure.discovery, schema), await dependency_graph
            finally:
                dependency_graph.cancel()
                # If the server is lost, both fail; one of the two errors suffices.
                await asyncio.gather(dependency_graph, return_exceptions=True)

    async def _changes(
        self,
        connection: psycopg.AsyncConnection[Any],
        key: str,
        schema: str | None,
        known: _Database,
        fingerprint: Fingerprint,
    ) -> _Database | None:
        """Return the database after reading only the changes. None: everything has to be read."""
        groups = fingerprint.changed_groups(known.fingerprint)
        # Names are sorted here as on the server, which requires the encoding.
        if groups is None or len(groups) > MOST_GROUPS or connection.info.encoding != "utf-8":
            return None
        if not groups:
            self._affected[key] = frozenset()
            return known
        discovered = await discover_changes(connection, self._exposure.discovery, schema, known.found, groups)
        changed = (
            None if discovered is None else await read_changed_functions(connection, known.dependency_graph, groups)
        )
        if discovered is None or changed is None:
            return None
        self._affected[key] = changed.affected
        return _Database(fingerprint, discovered, changed.dependency_graph)

    async def _read_files(self, files: SqlFileSource, *, only_files: bool) -> dict[str, Catalog]:
        """Return the catalogues of files by the connections on which they are described."""

        async def open_at(place: str) -> psycopg.AsyncConnection[Any]:
            connection = await self._connector(place).open_plain()
            if place not in self._dependency_graphs:
                self._dependency_graphs[place] = await read_dependency_graph(connection)
            return connection

        return await files.read(self._home_of_files, self._usable, open_at, only_files=only_files)

    def _usable(self, name: str) -> str | None:
        """Return the key of the connection with this name for endpoints; None if endpoints cannot run on it."""
        key = self._key(name)
        return key if key == MAIN or (self._plan.routable and key in self._options.others) else None

    @property
    def _home_of_files(self) -> str:
        """The key of the connection on which files are described: the connection for metadata, or the main one if
        routines have several sources."""
        return MAIN if self._plan.runs_at_home else self._key(self._plan.sources[0])

    def _exposed(self, key: str, catalog: Catalog) -> Iterator[tuple[Routine, EndpointDefaults]]:
        """Return the candidates for endpoints, with the connection on which they run by default."""
        objects = self._exposure.objects(catalog)
        if key == MAIN or not self._plan.runs_at_home:
            return objects
        name = self._options.others[key].name
        # Equal defaults are one object, so that caches keyed by it are effective.
        placed: dict[int, EndpointDefaults] = {}
        return (
            (routine, placed.get(id(defaults)) or placed.setdefault(id(defaults), replace(defaults, connection=name)))
            for routine, defaults in objects
        )

    def _all_judged(self, groups: Iterable[tuple[str, Iterable[Endpoint]]]) -> tuple[Endpoint, ...]:
        """Return all endpoints with their session effects.

        groups: the key of the connection on which endpoints were found, and the endpoints. An endpoint with unchanged
        effects is the same object as before, by which the change for the workers is computed.
        """
        before, self._analyses = self._analyses, {}
        analysed: list[Endpoint] = []
        for key, endpoints in groups:
            affected = self._affected.get(key)
            touched = frozenset(oid for _, oid in affected or ())
            for endpoint in endpoints:
                analysis = before.get(id(endpoint))
                if analysis is None or not analysis.lasts or affected is None or endpoint.routine.oid in touched:
                    analysis = self._analysed(key, endpoint, analysis)
                self._analyses[id(endpoint)] = analysis
                analysed.append(analysis.analysed)
        return tuple(analysed)

    def _analysed(self, key: str, endpoint: Endpoint, former: _AnalysedEndpoint | None) -> _AnalysedEndpoint:
        place = self._place(endpoint)
        dependency_graph = self._dependency_graphs.get(place)
        placed = self._at_its_place(key, endpoint) if former is None else former.analysed
        session = (
            endpoint.session
            if dependency_graph is None
            else session_effects(placed, dependency_graph, by_name=place != key)
        )
        if former is not None and former.analysed.session == session:
            return former
        lasts = dependency_graph is not None and place == key and not isinstance(endpoint.routine.source, FileSource)
        return _AnalysedEndpoint(endpoint, replace(placed, session=session), lasts)

    # --- places ----------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        folded = name.casefold()
        return MAIN if folded in self._plan.main_names else folded

    def _place(self, endpoint: Endpoint) -> str:
        """Return the key of the connection on which the endpoint runs."""
        return self._place_of(endpoint.options.connection)

    def _place_of(self, connection: str | None) -> str:
        return MAIN if connection is None else self._key(connection)

    def _by_place(self, endpoints: Sequence[Endpoint]) -> dict[str, Sequence[Endpoint]]:
        names = {endpoint.options.connection for endpoint in endpoints}
        if len(names) == 1:
            # The usual case.
            return {self._place_of(*names): endpoints}
        places: dict[str, list[Endpoint]] = {}
        for endpoint in endpoints:
            places.setdefault(self._place(endpoint), []).append(endpoint)
        return {**places}

    def _connector(self, key: str) -> Connector:
        return Connector(self._options.target if key == MAIN else self._options.others[key].target)

    async def _look_at_targets(
        self, routed: Mapping[str, _RoutedEndpoints], types: dict[str, dict[int, TypeInfo]]
    ) -> None:
        """Read the types that routed endpoints use where they run, and check that their routines exist there."""
        missing: list[str] = []
        checked = 0
        for place, here in routed.items():
            if place != MAIN and place not in self._options.others:
                continue  # The endpoint has a diagnostic.
            try:
                async with await self._connector(place).open_plain() as connection:
                    types_there = await types_of_the_same_names(connection, here.types.values())
                    types.setdefault(place, {}).update(types_there)
                    if place not in self._dependency_graphs:
                        self._dependency_graphs[place] = await read_dependency_graph(connection)
                    if self._verify != "None":
                        checked += len(here.endpoints)
                        missing += _missing(place, here, await missing_routines(connection, _called(here.endpoints)))
            except psycopg.Error as error:
                if place == MAIN or self._verify == "Fail":
                    raise
                log.warning("connection %s: its types cannot be read: %s", place, str(error).strip())
        self._report_missing(missing, checked)

    def _report_missing(self, missing: Sequence[str], count: int) -> None:
        if missing and self._verify == "Fail":
            raise StartupError(
                "\n  ".join(("these endpoints are routed to connections on which they cannot run:", *missing))
            )
        for message in missing:
            log.warning("%s", message)
        if self._verify != "None" and not missing:
            log.info("the routines of %d endpoints exist on the connections to which these are routed", count)


async def _read_world_in(connection: psycopg.AsyncConnection[Any], snapshot: str) -> DependencyGraph:
    """Run `read_dependency_graph` in a snapshot that another session has exported."""
    await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        await connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
        return await read_dependency_graph(connection)


def _called(endpoints: Iterable[Endpoint]) -> list[Routine]:
    """Return the distinct routines and relations of endpoints, without files, which contain their SQL."""
    routines = {
        endpoint.routine.identity: endpoint.routine
        for endpoint in endpoints
        if endpoint.routine.kind is not RoutineKind.FILE
    }
    return list(routines.values())


def _missing(place: str, routed: _RoutedEndpoints, routines: Iterable[Routine]) -> Iterator[str]:
    for routine in routines:
        names = [endpoint.name for endpoint in routed.endpoints if endpoint.routine.identity == routine.identity]
        where = "the main connection" if place == MAIN else f"connection {place}"
        yield f"{routine.identity} is not there on {where}, needed by {', '.join(names)}"
