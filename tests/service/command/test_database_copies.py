"""Copies of databases for tests have names of their own, within the limit of PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.startup_error import StartupError
from rowcall.service.testing import templates
from rowcall.service.testing.templates import Templates
from tests.harness.database import Database, drop_database


@pytest.fixture
def long_named(own_database: Database) -> Iterator[Database]:
    """A database whose name has 63 bytes, the maximum, in 29 characters."""
    name = "\u6570" * 17 + own_database.name[-12:].rjust(12, "_")
    with psycopg.connect(own_database.server.conninfo(), autocommit=True) as connection:
        connection.execute(f'create database "{name}"'.encode())
    created = Database(own_database.server, name)
    yield created
    drop_database(created)


def test_copies_of_a_database_with_a_long_name(long_named: Database) -> None:
    parameters = {name: str(value) for name, value in conninfo_to_dict(long_named.conninfo).items()}
    requested, actual = asyncio.run(_copy_twice(Connector(ConnectionTarget(parameters))))
    assert actual == requested
    assert len({*actual, long_named.name}) == 3


async def _copy_twice(connector: Connector) -> tuple[list[str], list[str]]:
    """Return the names of two copies of a database: that they are to have, and that they have."""
    copies = Templates("rowcall")
    async with (
        copies.prepare_copies([("Default", connector)]),
        copies.copy("Default") as first,
        copies.copy("Default") as second,
    ):
        requested = [copy.target.parameters["dbname"] for copy in (first, second)]
        return requested, [await _name(copy) for copy in (first, second)]


def test_a_copy_that_cannot_be_completed_is_dropped(own_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    own_database.execute(f"revoke connect on database {own_database.name} from public")
    own_database.close()
    monkeypatch.setattr(templates, "_COPY_OF_CLOSED", (*templates._COPY_OF_CLOSED, "select 1/0"))
    parameters = {name: str(value) for name, value in conninfo_to_dict(own_database.conninfo).items()}
    connector = Connector(ConnectionTarget(parameters))

    async def prepare() -> None:
        with pytest.raises(StartupError, match="division by zero"):
            async with Templates("rowcall").prepare_copies([("Default", connector)]):
                pass

    asyncio.run(prepare())
    with psycopg.connect(own_database.server.conninfo(), autocommit=True) as connection:
        copies = "select datname from pg_database where starts_with(datname, %s)"
        begin = f"{own_database.name[: templates.LONGEST_BEGIN]}_test_c"
        assert connection.execute(copies, (begin,)).fetchall() == []


async def _name(connector: Connector) -> str:
    async with await connector.open_plain() as connection:
        row = await (await connection.execute("select current_database()")).fetchone()
    assert row is not None
    return str(row[0])
