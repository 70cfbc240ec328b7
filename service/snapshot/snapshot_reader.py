"""Reads databases and builds endpoints from the result: the content of a schema snapshot.

The supervisor does this at the start and after each change of the schema; `rowcall --endpoints` does it once. Several
databases may be read, and endpoints may run on another database than the one where they were found
(`service.options.connections`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.building.exact_types import exact_endpoint, exact_types
from rowcall.core.building.service import RoutineOptions, ServiceOptions
from rowcall.core.cache.diagnostics import unused_profiles
from rowcall.core.catalogue.catalog import Catalog, Routine, TypeInfo
from rowcall.core.config import ConfigError, Settings
from rowcall.core.config.sections.connections import ConnectionSettings
from rowcall.core.data.interning import clear_all
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.database.connector import Connector
from rowcall.service.database.first_connection import OpeningRetries
from rowcall.service.options.connections import ConnectionPlan
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.catalogue_watch import Watcher, watcher
from rowcall.service.snapshot.endpoints import EndpointBuilder
from rowcall.service.snapshot.exposure import Exposure
from rowcall.service.snapshot.garbage_collection import keep, pause_collection
from rowcall.service.snapshot.reading.catalogues import MOST_READINGS, Catalogues
from rowcall.service.snapshot.reading.column_constraints import read_constraints
from rowcall.service.snapshot.reading.places import MAIN, Places
from rowcall.service.snapshot.reading.routed_endpoints import RoutedChecks, RoutedEndpoints
from rowcall.service.snapshot.reading.session_analyses import SessionAnalyses
from rowcall.service.snapshot.reading.start_checks import (
    check_statistics_pattern,
    report_empty_schemas,
    report_missing_rights,
    report_refused_commands,
)
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, reachable_types
from rowcall.service.sqlfiles.source import SqlFileSource, sql_file_source
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


class SnapshotReader:
    """Reads the schema snapshots of one service."""

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
        self._places = Places(options, plan)
        self._exposure = exposure
        self._builder = EndpointBuilder(settings)
        schema = settings.read(ConnectionSettings).metadata_schema
        selection = exposure.discovery
        exposes = not (selection.routines is None and selection.tables is None and exposure.files is None)
        self._catalogues = Catalogues(self._places, selection, schema, graphs=exposes)
        self._analyses = SessionAnalyses(self._places, self._catalogues)
        verify = settings.read(RoutineOptions).verify_routed
        self._routed = RoutedChecks(self._places, self._catalogues, verify, schema)
        self._files = sql_file_source(settings, exposure.files, exposure.routines, exposure.discovery.trust)
        self._exact = settings.read(ServiceOptions).exact_types
        self.complete = True
        """Whether the last reading could read all databases. If not, parts of its snapshot are missing, or those of an
        earlier one.
        """

    def sources(self) -> Iterator[Connector]:
        """Yield the connectors of the databases from which routines are read."""
        return (self._places.connector(place) for place in self._places.sources)

    async def first(self, *, patient: bool = True) -> SchemaSnapshot:
        """Read the first snapshot, and, if `TestConnectionStrings` is on, open every other connection but replicas once
        to test it. Mistakes that do not prevent the start are logged. Raises `StartupError`.

        patient: repeat failed attempts as `ConnectionSettings:RetryOptions` says; otherwise, there is one attempt.
        """
        opening = OpeningRetries(self._settings, patient=patient)
        snapshot = await opening.attempt("read the database", lambda: self.read(1))
        report_empty_schemas(self._settings, snapshot.endpoints)
        if self._settings.read(ConnectionSettings).tested:
            # An unavailable replica does not delay the start.
            replicas = {self._places.key(name) for name in self._plan.replicas}
            for place in {MAIN, *self._options.others} - {*self._places.sources} - replicas:
                await opening.test(place or self._plan.main, self._places.connector(place))
        await check_statistics_pattern(self._options)
        await report_missing_rights(self._options, self._places.connector(MAIN))
        await report_refused_commands(self._settings, self._options, self._places, snapshot.endpoints)
        return snapshot

    def source_connector(self, name: str | None) -> Connector:
        """Return the connector of the database where routines were found. name: `Endpoint.catalogue_connection`."""
        return self._places.source_connector(name)

    def watcher(self) -> Watcher | None:
        """Return the watcher of these sources; None: watching is off. Raises `StartupError` if there is nothing to
        watch, or a folder does not exist."""
        return watcher(self._settings, self._exposure, tuple(self.sources()))

    @property
    def has_files(self) -> bool:
        """Whether SQL files are read."""
        return self._files is not None

    async def has_changed(self) -> bool:
        """Return whether a catalogue has changed since the last reading; if so, its fingerprint is stored for `read`.
        Raises `psycopg.Error`.
        """
        return await self._catalogues.has_changed()

    async def read(
        self, number: int, *, only_files: bool = False, whole: bool = False, seen: bool = False
    ) -> SchemaSnapshot:
        """Read the databases and files, and return the next snapshot.

        number: of the snapshot; 1: that of the start. only_files: assume that the databases are unchanged. whole: read
        everything again; otherwise functions and procedures with an unchanged fingerprint are not read. seen: use the
        fingerprint of the last `has_changed`; otherwise a new one is computed.

        Raises `psycopg.Error`, and `StartupError` for configurations that must not be served.
        """
        if whole:
            self.forget()
        if not seen:
            self._catalogues.forget_seen()
        with pause_collection():
            try:
                snapshot = await self._read_until_stable(number, only_files=only_files)
            except Exception:
                # What this reading has found to be changed would be taken for known by the next one.
                self.forget()
                raise
            finally:
                clear_all()
            keep(first=number == 1)
            return snapshot

    def forget(self) -> None:
        """Make the next reading read everything, because no worker serves the result of this one."""
        self._catalogues.forget()

    async def _read_until_stable(self, number: int, *, only_files: bool) -> SchemaSnapshot:
        """Read the snapshot, and again if a lookup in the system caches fails: an object was dropped between two
        lookups. Raises `psycopg.errors.InternalError_` if this happens `MOST_READINGS` times in a row. only_files: as
        for `read`.
        """
        for attempt in range(1, MOST_READINGS):
            try:
                return await self._read(number, only_files=only_files)
            except psycopg.errors.InternalError_ as error:
                log.info("the catalogue changed while it was read (attempt %d): %s", attempt, str(error).strip())
                self._catalogues.forget()
        return await self._read(number, only_files=only_files)

    async def _read(self, number: int, *, only_files: bool) -> SchemaSnapshot:
        """Read the snapshot once, as `read` does. If the catalogue is changed meanwhile, it may fail."""
        await self._catalogues.read(only_files=only_files)
        keys = [*self._places.sources]
        catalogs = [self._catalogues[key] for key in keys]
        exposed = [self._endpoint_candidates(key, catalog) for key, catalog in zip(keys, catalogs, strict=True)]
        if self._files is not None:
            for place, catalog in (await self._read_files(self._files, only_files=only_files)).items():
                keys.append(place)
                catalogs.append(catalog)
                exposed.append(self._exposure.objects(catalog))
        built = self._builder.build(zip(catalogs, exposed, strict=True), first=number == 1)
        groups: list[Sequence[Endpoint]] = list(built.endpoints)
        if self._exact:
            for index, (key, catalog, endpoints) in enumerate(zip(keys, catalogs, groups, strict=True)):
                catalogs[index], groups[index] = await self._with_constraints(key, catalog, endpoints)
        types: dict[str, dict[int, TypeInfo]] = {MAIN: {}}
        routed: dict[str, RoutedEndpoints] = {}
        for key, catalog, endpoints in zip(keys, catalogs, groups, strict=True):
            for place, placed in self._places.group(endpoints).items():
                reached = reachable_types(tuple(placed), catalog.types)
                if place == key:
                    types.setdefault(place, {}).update(reached)
                else:
                    # Types have other oids in another database, so they are looked up there by name.
                    routed_here = routed.setdefault(place, RoutedEndpoints())
                    routed_here.endpoints += placed
                    routed_here.types |= {(info.schema, info.name): info for info in reached.values()}
        self.complete = await self._routed.check(routed, types) and (self._files is None or self._files.complete)
        if number == 1:
            for name in unused_profiles(self._options.cache, (endpoint for group in groups for endpoint in group)):
                log.info("cache profile '%s' is used by no endpoint", name)
        main = types.pop(MAIN)
        analysed = self._analyses.analyse(zip(keys, groups, strict=True))
        looked_at = tuple(self._searched_places(catalogs))
        postgrest = await self._read_postgrest()
        return SchemaSnapshot(number, analysed, main, types, built.left_out, looked_at, postgrest=postgrest)

    async def _read_postgrest(self) -> PostgRestCatalogue | None:
        """Read what PostgREST's interface needs; None: it is not served. Raises `psycopg.Error` and `StartupError`.

        Its module is imported here, as most services do not need it.
        """
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
        async with await self._places.connector(MAIN).open_plain() as connection:
            try:
                return await read_catalogue(connection, options)
            except InvalidOptionError as error:
                raise StartupError(f"PostgRest: {error}") from None

    async def _with_constraints(
        self, key: str, catalog: Catalog, endpoints: Sequence[Endpoint]
    ) -> tuple[Catalog, Sequence[Endpoint]]:
        """Return catalogue and endpoints with the constraints of values, such as NOT NULL and lists of choices, in the
        types. key: the place where the catalogue was read.
        """
        async with await self._places.connector(key).open_plain() as connection:
            constraints = await read_constraints(connection, catalog, endpoints)
        return (
            replace(catalog, types=exact_types(catalog.types, constraints)),
            [exact_endpoint(endpoint, catalog.types, constraints) for endpoint in endpoints],
        )

    def _searched_places(self, catalogs: Sequence[Catalog]) -> Iterator[str]:
        """Yield descriptions of where endpoints were searched, for users who miss an endpoint. catalogs: of all
        sources.
        """
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

    async def _read_files(self, files: SqlFileSource, *, only_files: bool) -> dict[str, Catalog]:
        """Return the catalogues of SQL files by the place where they are described. only_files: as for `read`."""

        async def open_at(place: str) -> psycopg.AsyncConnection[Any]:
            connection = await self._places.connector(place).open_plain()
            await self._catalogues.add_dependency_graph(place, connection)
            return connection

        return await files.read(self._places.home, self._places.usable, open_at, only_files=only_files)

    def _endpoint_candidates(self, key: str, catalog: Catalog) -> Iterator[tuple[Routine, EndpointDefaults]]:
        """Yield the candidates for endpoints with their defaults, which contain the connection on which they run. key:
        the place where the catalogue was read.
        """
        objects = self._exposure.objects(catalog)
        name = self._places.default_connection(key)
        if name is None:
            return objects
        # Equal defaults are one object, so that caches keyed by it are effective.
        placed: dict[int, EndpointDefaults] = {}
        return (
            (routine, placed.get(id(defaults)) or placed.setdefault(id(defaults), replace(defaults, connection=name)))
            for routine, defaults in objects
        )
