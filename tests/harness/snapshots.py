"""Reads the schema snapshot of a service in this process, for tests that need endpoints without a service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rowcall.core.config import Settings
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections
from rowcall.service.command.switches import parse_arguments
from rowcall.service.options.from_settings import worker_options
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from tests.harness.database import Database


def settings_of(database: Database, settings: Mapping[str, str] | None = None) -> Settings:
    chosen = {"ConnectionStrings:Default": database.conninfo, "Service:RequiresAuthorization": "false"}
    chosen |= settings or {}
    return load(parse_arguments([f"--{key}={value}" for key, value in chosen.items()])).settings


def read_snapshot(database: Database, settings: Mapping[str, str] | None = None) -> SchemaSnapshot:
    database_settings = settings_of(database, settings)
    with connections(database_settings, demo=False) as opened:
        options = worker_options(database_settings, opened)
        reader = SnapshotReader(
            database_settings, options, opened.plan, exposure(database_settings, options, opened.plan)
        )
        return asyncio.run(_read(reader))


async def _read(reader: SnapshotReader) -> SchemaSnapshot:
    return await reader.first()
