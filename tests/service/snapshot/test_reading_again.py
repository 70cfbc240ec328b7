"""A reading after a change reuses what is unchanged, and finds what a first reading would find."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.command.serve import connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from tests.harness.database import Database
from tests.harness.snapshots import settings_of

SQL = """
create type point2 as (x int, y int);
create table shelf (id int primary key, label text not null);
comment on table shelf is 'HTTP';
create function one(_id int) returns int language sql as 'select _id';
create function spot() returns point2 language sql as 'select 1, 2';
comment on function one(int) is 'HTTP GET';
comment on function spot() is 'HTTP GET';
"""
CHANGES = {
    "nothing": "select 1",
    "a comment": "comment on function one(int) is 'HTTP GET /uno'",
    "a source": "create or replace function one(_id int) returns int language sql as 'select lastval()::int + _id'",
    "a parameter": "drop function one(int); create function one(_id text) returns int language sql as 'select 1';"
    "comment on function one(text) is 'HTTP GET'",
    "an attribute": "alter type point2 add attribute z text",
    "a new type": "create type mood as enum ('good'); create function mood() returns mood language sql as"
    " $$select 'good'::mood$$; comment on function mood() is 'HTTP GET'",
    "a value of an enum": "alter type mood add value 'bad'",
    "a column": "alter table shelf add column width numeric",
    "a mistake": "comment on function spot() is E'HTTP GET\\ntimeout never'",
    "a mended mistake": "comment on function spot() is 'HTTP GET'",
    "nothing any more": "drop function spot(); drop table shelf",
}


@pytest.fixture(scope="module")
def shelves(database: Database) -> Database:
    database.execute(SQL)
    return database


@pytest.mark.slow
def test_every_change_of_the_catalogue_is_detected(shelves: Database) -> None:
    settings = settings_of(shelves)

    async def work() -> None:
        again = reader()
        former = (await again.first()).endpoints
        for number, (what, sql) in enumerate(CHANGES.items(), 2):
            await asyncio.to_thread(shelves.execute, sql)
            result = await again.read(number)
            anew = await reader().read(number)
            assert (result.endpoints, result.types) == (anew.endpoints, anew.types), what
            if what == "a comment":
                assert unchanged_names(former, result.endpoints) == {item.name for item in former} - {"GET /api/one"}
            former = result.endpoints

    with connections(settings, demo=False) as opened:
        options = worker_options(settings, opened)

        def reader() -> SnapshotReader:
            return SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))

        asyncio.run(work())


def unchanged_names(former: Sequence[Endpoint], later: Sequence[Endpoint]) -> set[str]:
    """Return the names of endpoints that were not created again."""
    shapes = {id(item.shape) for item in former}
    return {item.name for item in later if id(item.shape) in shapes}
