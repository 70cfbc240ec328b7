"""The endpoints as a start would find them, for switches that describe them and serve nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.service.command.serve import connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.exposure_options import exposure
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader


@dataclass(frozen=True, slots=True)
class Found:
    options: WorkerOptions
    snapshot: SchemaSnapshot

    @property
    def database(self) -> str:
        """Its name."""
        return self.options.target.parameters.get("dbname", "")


@contextmanager
def endpoints_of(settings: Settings, *, demo: bool) -> Iterator[Found]:
    """While the databases can be reached. Raises ConfigError, StartupError."""
    with connections(settings, demo=demo) as opened:
        options = worker_options(settings, opened)
        reader = SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))
        yield Found(options, _Reading(reader).run())


class _Reading:
    """`asyncio.run` writes what its task gives out as text, twice (CPython's signal module): it gives nothing."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._found: list[SchemaSnapshot] = []

    def run(self) -> SchemaSnapshot:
        asyncio.run(self._read())
        return self._found[0]

    async def _read(self) -> None:
        self._found.append(await self._reader.first())
