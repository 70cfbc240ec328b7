"""Settings → filters for discovery and defaults for endpoints, and the objects that may become endpoints, source by
source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.catalogue.catalog import Catalog, Routine
from rowcall.core.config import Settings
from rowcall.core.config.sections.sql_files import SqlFileOptions, comments_mode_of
from rowcall.core.config.tree import find
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
_PATTERN_KEYS: Mapping[Variant, str] = {
    (None, True): "ReturningUrlPattern",
    (Conflict.NOTHING, False): "OnConflictDoNothingUrlPattern",
    (Conflict.NOTHING, True): "OnConflictDoNothingReturningUrlPattern",
    (Conflict.UPDATE, False): "OnConflictDoUpdateUrlPattern",
    (Conflict.UPDATE, True): "OnConflictDoUpdateReturningUrlPattern",
}


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

    options: provide the names that annotations may use, such as those of rate limits. Logs a warning if objects of
    every owner are published.
    """
    defaults = endpoint_defaults(settings, options, plan)
    if ALL_OWNERS in (settings.texts(TRUSTED) or ()):
        message = "%s is %s: every role that can create a function can publish it with the rights of the service"
        log.warning(message, TRUSTED, ALL_OWNERS)
    patterns = {variant: settings.text(_TABLES + key) for variant, key in _PATTERN_KEYS.items()}
    operations = TableDefaults(
        operations=_operations(settings),
        patterns=patterns,
        url_path_prefix=defaults.url_path_prefix,
        kebab_case_urls=defaults.kebab_case_urls,
    )
    return Exposure(
        discovery=_discovery(settings),
        routines=defaults,
        tables=replace(defaults, comments_mode=comments_mode_of(settings.choice(_TABLES + "CommentsMode"))),
        operations=operations,
        files=_files(settings),
    )


def _files(settings: Settings) -> SqlFileOptions | None:
    options = sql_file_options(settings)
    enabled = "Service:SqlFileSource:Enabled"
    if options is None and find(settings.root, enabled) is not None and settings.flag(enabled):
        log.warning("%s is true, but Service:SqlFileSource:FilePattern is empty: no file is served", enabled)
    return options


def _discovery(settings: Settings) -> ObjectSelection:
    routines, tables = _routine_filter(settings), _table_filter(settings)
    serves_routines = settings.flag("Service:RoutineOptions:Enabled")
    serves_tables = settings.flag(_TABLES + "Enabled")
    return ObjectSelection(
        routines=routines if serves_routines else None,
        tables=tables if serves_tables else None,
        unserved_routines=None if serves_routines else routines,
        unserved_tables=None if serves_tables else tables,
    )


def _routine_filter(settings: Settings) -> RoutineFilter:
    return RoutineFilter(
        **_names(settings),
        everything=comments_mode_of(settings.choice("Service:CommentsMode")) is not CommentsMode.ONLY_ANNOTATED,
        include_languages=settings.texts("Service:RoutineOptions:IncludeLanguages"),
        exclude_languages=settings.texts("Service:RoutineOptions:ExcludeLanguages"),
    )


def _table_filter(settings: Settings) -> TableFilter:
    mode = comments_mode_of(settings.choice(_TABLES + "CommentsMode"))
    annotated = mode is CommentsMode.ONLY_ANNOTATED
    return TableFilter(**_names(settings, _TABLES), commented=annotated, everything=not annotated)


def _names(settings: Settings, own: str | None = None) -> dict[str, Any]:
    """Return the eight filters by schema and name, and the trusted owners, as arguments of `ObjectSelection`.

    own: section with filters for one kind of source, which take precedence over those of `Service`.
    """

    def text(key: str) -> str | None:
        return (settings.text_or_none(own + key) if own else None) or settings.text_or_none("Service:" + key)

    def texts(key: str) -> tuple[str, ...] | None:
        return (settings.texts(own + key) if own else None) or settings.texts("Service:" + key)

    return {
        "schema_similar_to": text("SchemaSimilarTo"),
        "schema_not_similar_to": text("SchemaNotSimilarTo"),
        "include_schemas": texts("IncludeSchemas"),
        "exclude_schemas": texts("ExcludeSchemas"),
        "name_similar_to": text("NameSimilarTo"),
        "name_not_similar_to": text("NameNotSimilarTo"),
        "include_names": texts("IncludeNames"),
        "exclude_names": texts("ExcludeNames"),
        "trusted_owners": settings.texts(TRUSTED) or (),
    }


def _operations(settings: Settings) -> frozenset[str]:
    """Return the operations of tables that `CrudTypes` enables. Raises `StartupError` for an unknown word, which
    otherwise would only show in missing endpoints."""
    names = {name.casefold(): name for name in OPERATION_NAMES}
    operations: set[str] = set()
    for word in settings.texts(_TABLES + "CrudTypes") or ("All",):
        name = names.get(word.strip().casefold())
        if name is None and word.strip().casefold() != "all":
            raise StartupError(f"{_TABLES}CrudTypes: {word!r} is none of All, {', '.join(OPERATION_NAMES)}")
        operations |= {name} if name else set(OPERATION_NAMES)
    return frozenset(operations)
