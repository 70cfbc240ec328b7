"""A server whose results do not match the executions: results are never swapped; the connection ends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rowcall.ext.driver.connection import ConnectionState
from rowcall.ext.driver.execution import Execution, Loss
from tests.ext.wire import connected, execution, outcome, rows_of, run, statement, until
from tests.harness.database import Database
from tests.harness.hostile_postgres import ADDED, READY, HostilePostgres, Rule, message


@dataclass(frozen=True)
class Behind(Database):
    """The database, reached through the proxy."""

    port: int

    @property
    def conninfo(self) -> str:
        return super().conninfo.replace(f":{self.server.port}/", f":{self.port}/")


@pytest.fixture(scope="module")
def proxy(database: Database) -> Iterator[HostilePostgres]:
    made = HostilePostgres(database.server.port, b"hostile")
    try:
        yield made
    finally:
        made.close()


def changed_at(kind: bytes, *, before: bytes = b"", behind: bytes = b"") -> Rule:
    return lambda result, whole: before + whole + behind if result == kind else whole


ENDING: dict[str, Rule] = {
    "surplus result": changed_at(READY, before=ADDED["command complete"]),
    "surplus rows": changed_at(READY, before=ADDED["another description"] + ADDED["a row"] + ADDED["command complete"]),
    "two surplus results": changed_at(READY, before=ADDED["command complete"] * 2),
    "early Sync": changed_at(b"T", before=ADDED["ready"]),
    "Sync between rows": changed_at(b"D", before=ADDED["ready"]),
    "Sync instead of the end of the rows": lambda kind, whole: ADDED["ready"] if kind == b"C" else whole,
    "two Syncs": changed_at(READY, behind=ADDED["ready"]),
    "surplus answer behind the last": changed_at(
        READY, behind=ADDED["bind complete"] + ADDED["command complete"] + ADDED["ready"]
    ),
    "no Sync": lambda kind, whole: b"" if kind == READY else whole,
    "surplus row": changed_at(
        b"T", behind=message(b"D", struct.pack("!hi", 2, 1) + b"7" + struct.pack("!i", 4) + b"junk")
    ),
    "no rows": lambda kind, whole: b"" if kind == b"D" else whole,
    "each row twice": lambda kind, whole: whole * 2 if kind == b"D" else whole,
    "error of libpq": changed_at(b"D", before=ADDED["a row of many columns"]),
    "error without SQLSTATE": changed_at(b"T", before=ADDED["an error without SQLSTATE"]),
}


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("count", [1, 3])
def test_unexpected_results_end_the_connection(
    database: Database, proxy: HostilePostgres, name: str, count: int
) -> None:
    if name == "surplus answer behind the last":
        # In front of a request that waits, it cannot be reported from that request's own.
        count = 1
    elif name == "no Sync":
        # Detected with the next execution.
        count = max(count, 2)
    echo = statement("select $1::int as n, 'hostile' as v from generate_series(1, 2)", 1)

    async def work() -> list[Execution]:
        proxy.rule = None
        async with connected(Behind(database.server, database.name, proxy.port)) as connection:
            warm = execution(echo, "0")
            connection.submit(warm)
            await outcome(warm)
            proxy.rule = ENDING[name]
            made = [execution(echo, str(number)) for number in range(1, count + 1)]
            for item in made:
                assert connection.submit(item)
            await asyncio.gather(*(outcome(item) for item in made))
            await until(lambda: connection.state == ConnectionState.CLOSED)
            return made

    for number, item in enumerate(run(work()), 1):
        if item.succeeded:
            assert rows_of(item) == [{"n": number, "v": "hostile"}] * 2


FATAL = ADDED["a fatal error"]


@pytest.fixture(scope="module")
def written(database: Database) -> Database:
    database.execute(
        "create table written (id int);"
        " create function write_hostile(_id int) returns int language sql as"
        " 'insert into written values (_id) returning id'"
    )
    return database


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        # The server goes on behind its FATAL error: all of them may have run.
        ("continues", [Loss.IN_DOUBT, Loss.IN_DOUBT, Loss.IN_DOUBT]),
        # Nothing follows, and the connection stays open.
        ("silent", [Loss.IN_DOUBT, Loss.IN_DOUBT, Loss.IN_DOUBT]),
        # As a server does it.
        ("ends", [Loss.ROLLED_BACK, Loss.NOT_STARTED, Loss.NOT_STARTED]),
    ],
)
def test_a_fatal_error_is_conclusive_only_if_the_connection_ends(
    written: Database, proxy: HostilePostgres, behaviour: str, expected: list[Loss]
) -> None:
    write = statement("select write_hostile($1::int) as n", 1)
    sent = False

    def rule(kind: bytes, whole: bytes) -> bytes | None:
        nonlocal sent
        if behaviour == "continues":
            return FATAL + whole if kind == b"T" else whole
        if sent:
            return None if behaviour == "ends" else b""
        sent = kind == b"T"
        return FATAL if sent else whole

    async def work() -> list[Execution]:
        proxy.rule = None
        async with connected(Behind(written.server, written.name, proxy.port)) as connection:
            warm = execution(write, "0")
            connection.submit(warm)
            await outcome(warm)
            proxy.rule = rule
            made = [execution(write, str(number)) for number in range(1, 4)]
            for item in made:
                assert connection.submit(item)
            await until(lambda: connection.state != ConnectionState.READY)
            assert not connection.submit(execution(write, "4"))
            await asyncio.gather(*(outcome(item) for item in made))
            assert connection.state == ConnectionState.CLOSED
            return made

    assert [item.loss for item in run(work())] == expected
