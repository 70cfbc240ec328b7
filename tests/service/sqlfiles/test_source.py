"""A database whose connection is lost when it has described its files, but has not been read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.service.discovery.installation import INSTALLED
from rowcall.service.sqlfiles.building import Naming
from rowcall.service.sqlfiles.source import Connection, SqlFileSource
from tests.ext.wire import run
from tests.harness.database import Database
from tests.harness.sql_files import write_files


class _LostConnection(psycopg.AsyncConnection[Any]):
    """Is ended by the server before it reads the installation, which is the last query of a reading."""

    async def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if query == f"select {INSTALLED}".encode():
            query = b"select pg_terminate_backend(pg_backend_pid())"
        return await super().execute(query, *arguments, **options)


def test_files_of_an_unreachable_database_are_left_out_until_it_is_read(database: Database, tmp_path: Path) -> None:
    folder = write_files(
        tmp_path, {"here.sql": "-- HTTP GET\nselect 1", "there.sql": "-- HTTP GET\n-- connection there\nselect 2"}
    )
    kinds: dict[str, type[Connection]] = {"home": psycopg.AsyncConnection, "there": _LostConnection}

    async def open_at(place: str) -> Connection:
        return await kinds[place].connect(database.conninfo, autocommit=True)

    async def names() -> dict[str, list[str]]:
        catalogs = await source.read("home", lambda name: name, open_at, only_files=True)
        return {place: [routine.name for routine in catalog.files] for place, catalog in catalogs.items()}

    source = SqlFileSource(SqlFileOptions(pattern=f"{folder}/*.sql", strict=False), Naming("api", kebab=True), "public")
    assert run(names()) == {"home": ["here"]}
    assert not source.complete
    kinds["there"] = psycopg.AsyncConnection
    assert run(names()) == {"home": ["here"], "there": ["there"]}
    assert source.complete
