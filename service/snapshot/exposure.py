"""Filters for discovery, and the objects that may become endpoints, source by source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.catalogue.catalog import Catalog, Routine
from rowcall.core.config.sections.sql_files import SqlFileOptions
from rowcall.core.tables.routines import TableDefaults, table_routines
from rowcall.service.discovery.catalogue import ObjectSelection


@dataclass(frozen=True, slots=True)
class Exposure:
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
