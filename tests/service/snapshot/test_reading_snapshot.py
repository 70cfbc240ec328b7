"""The catalogue is read in one snapshot of PostgreSQL: objects that are replaced meanwhile are found."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot

READINGS = 12
REPLACED = 8
NAMES = [f"replaced{number}" for number in range(REPLACED)]


def create(name: str) -> bytes:
    return (
        f"create function {name}() returns int language sql as 'select 1'; comment on function {name}() is 'HTTP GET'"
    ).encode()


@pytest.mark.slow
def test_reading_finds_routines_that_are_replaced_at_the_same_time(own_database: Database) -> None:
    with psycopg.connect(own_database.conninfo, autocommit=True) as connection:
        for name in NAMES:
            connection.execute(create(name))
    done = threading.Event()

    def replace() -> None:
        with psycopg.connect(own_database.conninfo, autocommit=True) as connection:
            while not done.is_set():
                for name in NAMES:
                    with connection.transaction():
                        connection.execute(f"drop function {name}()".encode())
                        connection.execute(create(name))
                # The reader needs a moment without changes now and then.
                done.wait(0.3)

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        for _ in range(READINGS):
            snapshot = read_snapshot(own_database)
            assert {endpoint.routine.name for endpoint in snapshot.endpoints} >= set(NAMES)
    finally:
        done.set()
        replacing.join()
