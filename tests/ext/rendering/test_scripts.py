"""Several statements as one execution: order, segments, values, and state after an error."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import psycopg
import pytest

from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution, Part, Script, Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.ext.rendering.script_results import AffectedRows, NamedRows, key_prefix
from tests.ext import wire
from tests.harness.database import Database

Value = TypeVar("Value")


@pytest.fixture(scope="module")
def server(every_database: Database) -> Database:
    every_database.execute("create table note (n int check (n < 100))")
    return every_database


def rows(key: str, *, first: bool = False, is_set: bool = True) -> NamedRows:
    return NamedRows(Renderer(Codecs(), "rows", is_set, False, []), key_prefix(key.encode(), first))


def part(
    sql: str, writer: Any, picks: tuple[int, ...] = (), *, last: bool = False, values: int = 2, **more: Any
) -> Part:
    statement = Statement(abs(hash((sql, picks))) % 2**31, sql.encode(), values, writer, picks=picks, **more)
    return Part(statement, last, False)


async def run(server: Database, *requests: Execution) -> None:
    opened = await psycopg.AsyncConnection.connect(server.conninfo, autocommit=True)
    connection = Connection(opened.pgconn, asyncio.get_running_loop())
    connection.owner = opened
    for request in requests:
        request.waiter = waiter = asyncio.get_running_loop().create_future()
        assert connection.submit(request)
        await waiter
    connection.close("the test is over")


def finish(work: Coroutine[Any, Any, Value]) -> Value:
    return asyncio.run(work)


def test_each_statement_of_a_script_has_its_own_values_and_types(server: Database) -> None:
    script = Script(
        1,
        2,
        (
            part("select $1", rows("a", first=True), (1,), types=(23,)),
            part("select coalesce($1::text, 'none')", rows("b"), (-1,)),
            part("select $2::int - $1::int", rows("c", is_set=False), (0, 1), last=True),
        ),
        b"}",
    )
    request = Execution(script, [b"1", b"7"])
    finish(run(server, request))
    assert request.succeeded
    assert request.body == b'{"a":[7],"b":["none"],"c":6}'


def test_a_segment_is_sent_after_the_previous_one_has_succeeded(server: Database) -> None:
    server.execute("truncate note")
    script = Script(
        2,
        1,
        (
            part("insert into note values ($1::int)", AffectedRows(key_prefix(b"n", True)), (0,), last=True, values=1),
            part("insert into note values (1000)", None, last=True, values=1),
            part("insert into note values (2)", None, last=True, values=1),
        ),
        b"}",
    )
    request = Execution(script, [b"1"])
    again = Execution(Statement(3, b"select count(*) from note", 0, Renderer(Codecs(), "scalar", False, False, [])), [])
    finish(run(server, request, again))
    assert request.error is not None
    assert request.error.sqlstate == "23514"
    assert request.committed
    assert request.body is None
    assert again.body == b"1"


def test_a_failed_transaction_is_ended_with_its_execution(server: Database) -> None:
    parts = (part("begin", None, values=0), part("select 1/0", None, last=True, values=0))
    request = Execution(Script(4, 0, parts, b"{}"), [])
    again = Execution(Statement(5, b"select 1", 0, Renderer(Codecs(), "scalar", False, False, [])), [])
    finish(run(server, request, again))
    assert request.error is not None
    assert not request.committed
    assert again.body == b"1"


def test_a_script_without_an_end_of_its_last_segment_is_refused() -> None:
    with pytest.raises(ValueError, match="last"):
        Script(6, 0, (part("select 1", None, values=0),), b"{}")
    with pytest.raises(ValueError, match="same request"):
        Script(7, 1, (part("select 1", None, values=0, last=True),), b"{}")


def test_picks_and_types_without_values_are_refused() -> None:
    with pytest.raises(ValueError, match="do not have"):
        Statement(8, b"select $1", 1, picks=(1,))
    with pytest.raises(ValueError, match="takes 1 values, not 2"):
        Statement(9, b"select $1", 1, types=(23, 23))


def test_a_statement_with_only_a_comment_is_a_separate_part(server: Database) -> None:
    """It ends with its part: the next statement is counted and written under its own key."""
    parts = (
        part("select 1", rows("a", first=True, is_set=False), values=0),
        part("/* nothing */", AffectedRows(key_prefix(b"b", False)), values=0),
        part("select 2", rows("c", is_set=False), last=True, values=0),
    )
    request = Execution(Script(10, 0, parts, b"}"), [])
    finish(run(server, request))
    assert request.succeeded
    assert request.body == b'{"a":1,"b":-1,"c":2}'


async def watch(server: Database, script: Script) -> Execution:
    """Run it while another session holds the lock that its last statement waits for, until the first one has ended."""
    async with wire.connected(server) as connection:
        request = wire.execution(script, unlimited=True)
        with server.locked(4242):
            assert connection.submit(request)
            await wire.until(lambda: request.seconds > 0)
            assert not request.finished
        return await wire.outcome(request)


def test_the_end_of_each_statement_is_reported_before_that_of_its_segment(server: Database) -> None:
    """The caller that limits the time gives each statement the whole of it."""
    parts = (
        part("select 1", rows("a", first=True, is_set=False), values=0),
        part("select pg_advisory_lock(4242)", None, last=True, values=0),
    )
    request = wire.run(watch(server, Script(7, 0, parts, b"}")))
    assert request.succeeded
    assert request.body == b'{"a":1}'
