"""Read the schema snapshot as a start does, for switches that describe endpoints without serving them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.service.codegen.describing import SourceConnector
from rowcall.service.command.serve import connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader


@dataclass(frozen=True, slots=True)
class SnapshotWithOptions:
    """The schema snapshot with the options that it was built with."""

    options: WorkerOptions
    snapshot: SchemaSnapshot
    source_connector: SourceConnector

    @property
    def database(self) -> str:
        """Name of the database."""
        return self.options.target.parameters.get("dbname", "")


@contextmanager
def endpoints_of(settings: Settings, *, demo: bool) -> Iterator[SnapshotWithOptions]:
    """Read the schema snapshot; the databases are available while the context is open. demo: with the schema of the
    demo. Raises ConfigError, StartupError.
    """
    with connections(settings, demo=demo) as opened:
        options = worker_options(settings, opened)
        reader = SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))
        yield SnapshotWithOptions(options, _SnapshotTask(reader).run(), reader.source_connector)


class _SnapshotTask:
    """Runs the reader in a task that returns None, and stores the snapshot.

    `asyncio.run` formats the result of its task as text twice (signal handling of CPython), which is slow for a
    snapshot.
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._found: list[SchemaSnapshot] = []

    def run(self) -> SchemaSnapshot:
        asyncio.run(self._read())
        return self._found[0]

    async def _read(self) -> None:
        self._found.append(await self._reader.first())
