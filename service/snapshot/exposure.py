"""Derives from the settings which routines, tables and SQL files may become endpoints, with the defaults of each of
these sources."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.building.service import ServiceOptions
from rowcall.core.catalogue.catalog import Catalog, Routine
from rowcall.core.config import Settings
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.sections.tables import CrudSource
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.tables.operations import NAMES as OPERATION_NAMES
from rowcall.core.tables.operations import Conflict, Variant
from rowcall.core.tables.routines import TableDefaults, table_routines
from rowcall.service.discovery.catalogue import ObjectSelection
from rowcall.service.discovery.filters import RoutineFilter, TableFilter
from rowcall.service.discovery.trust import ALL_OWNERS
from rowcall.service.options.connections import ConnectionPlan
from rowcall.service.options.from_settings import endpoint_defaults
from rowcall.service.options.sql_files import sql_file_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")
_TABLES = "Service:CrudSource:"
TRUSTED = "Service:TrustedOwners"
_PATTERNS: Mapping[Variant, str] = {
    (None, True): "returning",
    (Conflict.NOTHING, False): "on_conflict_do_nothing",
    (Conflict.NOTHING, True): "on_conflict_do_nothing_returning",
    (Conflict.UPDATE, False): "on_conflict_do_update",
    (Conflict.UPDATE, True): "on_conflict_do_update_returning",
}
"""Fields of `CrudSource` with the patterns of the paths, by variant of an operation."""
_FILTERS = (
    *("schema_similar_to", "schema_not_similar_to", "include_schemas", "exclude_schemas"),
    *("name_similar_to", "name_not_similar_to", "include_names", "exclude_names"),
)
"""Fields with filters, of `ServiceOptions`, `CrudSource` and the filters of discovery."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """Which objects may become endpoints, and the defaults of their endpoints."""

    discovery: ObjectSelection = field(default_factory=ObjectSelection)
    routines: EndpointDefaults = field(default_factory=EndpointDefaults)
    tables: EndpointDefaults = field(default_factory=EndpointDefaults)
    """Differs from the defaults of routines only in the comments mode."""
    operations: TableDefaults = field(default_factory=TableDefaults)
    files: SqlFileOptions | None = None
    """None: files are not served."""

    def objects(self, catalog: Catalog) -> Iterator[tuple[Routine, EndpointDefaults]]:
        """Yield the candidates for endpoints with the defaults of their source. Of two with the same method and path,
        the later one is served (routing-10)."""
        for routine in catalog.routines:
            yield routine, self.routines
        for routine in table_routines(catalog.tables, self.operations):
            yield routine, self.tables
        defaults = self.routines if self.files is None else self.files.defaults(self.routines)
        for routine in catalog.files:
            yield routine, defaults


def exposure(settings: Settings, options: WorkerOptions, plan: ConnectionPlan) -> Exposure:
    """Return which routines, tables and files are published, and the defaults of their endpoints. Raises StartupError.

    options: provide the names that annotations may use, such as those of rate limits. plan: provides those of
    connections. Logs a warning if objects of every owner are published, and if SQL files are enabled without a pattern.
    """
    defaults = endpoint_defaults(settings, options, plan)
    service, tables = defaults.service, settings.read(CrudSource)
    if ALL_OWNERS in service.trusted_owners:
        message = "%s is %s: every role that can create a function can publish it with the rights of the service"
        log.warning(message, TRUSTED, ALL_OWNERS)
    operations = TableDefaults(
        operations=_operations(tables),
        patterns={variant: getattr(tables, field) for variant, field in _PATTERNS.items()},
        url_path_prefix=service.url_path_prefix,
        kebab_case_urls=service.kebab_case_urls,
    )
    return Exposure(
        discovery=_discovery(service, tables),
        routines=defaults,
        tables=defaults.of_source(tables.comments_mode),
        operations=operations,
        files=_files(settings),
    )


def _files(settings: Settings) -> SqlFileOptions | None:
    """Return the options of SQL files; None: files are not served. Logs a warning if only the pattern is missing."""
    options = sql_file_options(settings)
    if options is None and settings.contains(SqlFileOptions) and settings.is_enabled(SqlFileOptions):
        enabled = "Service:SqlFileSource:Enabled"
        log.warning("%s is true, but Service:SqlFileSource:FilePattern is empty: no file is served", enabled)
    return options


def _discovery(service: ServiceOptions, keys: CrudSource) -> ObjectSelection:
    """Return the filters of routines and tables for discovery. If routines or tables are disabled, their filter is that
    of `unserved_routines` or `unserved_tables` instead. keys: the section of tables."""
    routines = RoutineFilter(
        **_names(service),
        everything=service.comments_mode is not CommentsMode.ONLY_ANNOTATED,
        include_languages=service.routines.include_languages,
        exclude_languages=service.routines.exclude_languages,
    )
    annotated = keys.comments_mode is CommentsMode.ONLY_ANNOTATED
    tables = TableFilter(**_names(service, keys), commented=annotated, everything=not annotated)
    return ObjectSelection(
        routines=routines if service.routines.enabled else None,
        tables=tables if keys.enabled else None,
        unserved_routines=None if service.routines.enabled else routines,
        unserved_tables=None if keys.enabled else tables,
    )


def _names(service: ServiceOptions, own: CrudSource | None = None) -> dict[str, Any]:
    """Return the eight filters by schema and name, and the trusted owners, as arguments of filters.

    own: filters for one kind of source. Those that are set take precedence over those of `Service`.
    """
    filters = {name: getattr(own, name, None) or getattr(service, name) for name in _FILTERS}
    return {**filters, "trusted_owners": service.trusted_owners}


def _operations(tables: CrudSource) -> frozenset[str]:
    """Return the operations of tables that `CrudTypes` enables. Raises `StartupError` for an unknown word, which
    otherwise would only show in missing endpoints."""
    names = {name.casefold(): name for name in OPERATION_NAMES}
    operations: set[str] = set()
    for word in tables.operations:
        name = names.get(word.strip().casefold())
        if name is None and word.strip().casefold() != "all":
            raise StartupError(f"{_TABLES}CrudTypes: {word!r} is none of All, {', '.join(OPERATION_NAMES)}")
        operations |= {name} if name else set(OPERATION_NAMES)
    return frozenset(operations)
