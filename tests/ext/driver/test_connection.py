"""Segments on one connection: each execution gets its own result, whatever the others do
(docs/internals/behaviour/driver.md)."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Any

import pytest

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Loss, Part, Script, Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from tests.ext.wire import answer, connected, execution, outcome, rows_of, run, statement, until
from tests.harness.database import Database

SQL = """
create table written (id int);
create table deferred (id int unique deferrable initially deferred);
create function noisy(_text text) returns int language plpgsql as $$ begin raise notice '%', _text; return 1; end $$;
"""

SETTINGS = b"select pg_catalog.set_config($1, $2, true)"


@pytest.fixture(scope="module")
def server(every_database: Database) -> Database:
    every_database.execute(SQL)
    return every_database


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_every_execution_of_a_pipeline_gets_its_own_result(server: Database, named: bool) -> None:
    async def work() -> None:
        echo = statement("select $1::int as n", 1)
        async with connected(server, named=named) as connection:
            requests = [execution(echo, str(n)) for n in range(500)]
            assert all(connection.submit(item) for item in requests)
            assert connection.in_flight == 500
            for n, item in enumerate(requests):
                await outcome(item)
                assert rows_of(item) == [{"n": n}]
            assert connection.in_flight == 0
            assert connection.head is None

    run(work())


def test_an_error_affects_only_its_segment(server: Database) -> None:
    async def work() -> None:
        divide = statement("select 10 / $1::int as n", 1)
        async with connected(server) as connection:
            requests = [execution(divide, value) for value in ("1", "0", "x", "2")]
            for item in requests:
                connection.submit(item)
            for item in requests:
                await outcome(item)
            first, zero, text, last = requests
            assert rows_of(first) == [{"n": 10}]
            assert (zero.error and zero.error.sqlstate, zero.succeeded) == ("22012", False)
            assert text.error
            assert text.error.sqlstate == "22P02"
            assert rows_of(last) == [{"n": 5}]

    run(work())


def test_an_error_of_the_commit_replaces_the_success(server: Database) -> None:
    """The row has been read by then (driver-14)."""

    async def work() -> None:
        insert = statement("insert into deferred values ($1::int), ($1::int) returning id", 1)
        async with connected(server) as connection:
            item = execution(insert, "1")
            connection.submit(item)
            await outcome(item)
            assert item.error
            assert item.error.sqlstate == "23505"
            assert item.body is None
            assert await answer(connection, "select count(*) as n from deferred") == [{"n": 0}]

    run(work())


def test_an_error_after_rows_discards_the_body(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            item = execution("select 1 / (100 - n) as n from generate_series(1, 200) n")
            connection.submit(item)
            await outcome(item)
            assert item.error
            assert item.error.sqlstate == "22012"
            assert item.seen_result
            assert item.body is None
            assert await answer(connection, "select 1 as n") == [{"n": 1}]

    run(work())


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 150])
def test_executions_may_have_any_number_of_parameters(server: Database, count: int) -> None:
    async def work() -> None:
        values = [None if n % 7 == 3 else f"v{n}" for n in range(count)]
        columns = ", ".join(f"${n + 1}::text as c{n}" for n in range(count)) or "1 as c"
        async with connected(server) as connection:
            expected: dict[str, object] = {f"c{n}": value for n, value in enumerate(values)} or {"c": 1}
            assert await answer(connection, f"select {columns}", *values) == [expected]

    run(work())


def test_large_parameters_are_sent_among_small_ones(server: Database) -> None:
    async def work() -> None:
        length = statement("select length($1::text) as n", 1)
        async with connected(server) as connection:
            sizes = [1, 1_000_000, 5, 8192, 3_000_000, 2]
            requests = [execution(length, "x" * size) for size in sizes]
            for item in requests:
                connection.submit(item)
            assert [rows_of(await outcome(item))[0]["n"] for item in requests] == sizes

    run(work())


@pytest.mark.parametrize(
    "values",
    [[b"a\0b"], [], [b"1", b"2"], ["text"]],
    ids=["NUL", "too few", "too many", "not bytes"],
)
def test_values_that_cannot_be_sent_fail_their_execution_only(server: Database, values: list[Any]) -> None:
    async def work() -> None:
        echo = statement("select $1::text as v", 1)
        local = Statement(-1, SETTINGS, 2)
        async with connected(server) as connection:
            before, behind = execution(echo, "before"), execution(echo, "behind")
            connection.submit(before)
            with pytest.raises((ValueError, TypeError)):
                connection.submit(Execution(echo, values, ((local, [b"my.name", b"x"]),)))
            connection.submit(behind)
            assert rows_of(await outcome(before)) == [{"v": "before"}]
            assert rows_of(await outcome(behind)) == [{"v": "behind"}]

    run(work())


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("count", [2, 100])
def test_a_statement_can_send_bytes_unchanged(server: Database, count: int, named: bool) -> None:
    every = bytes(range(256)) * 300

    async def work() -> None:
        texts = " || ".join(f"${place}::text" for place in range(2, count + 1))
        sql = f"select encode($1::bytea, 'hex') as bytes, {texts} as texts".encode()
        picks = tuple(reversed(range(count)))
        echo = Statement(-2, sql, count, Renderer(Codecs(), "rows", True, True, []), picks=picks, binary=(count - 1,))
        async with connected(server, named=named) as connection:
            for item in (echo, echo.next_generation()):
                sent = Execution(item, [*[b"a"] * (count - 1), every])
                sent.waiter = asyncio.get_running_loop().create_future()
                assert connection.submit(sent)
                await outcome(sent)
                assert rows_of(sent) == [{"bytes": every.hex(), "texts": "a" * (count - 1)}]
            with pytest.raises(ValueError, match="NUL"):
                connection.submit(Execution(echo, [*[b"\0"] * (count - 1), every]))

    run(work())


def test_settings_apply_to_their_own_execution_only(server: Database) -> None:
    async def work() -> None:
        show = statement("select current_setting('my.name', true) as v")
        local = Statement(-1, SETTINGS, 2)
        async with connected(server) as connection:
            mine = Execution(show, [], ((local, [b"my.name", b"alice"]),))
            mine.waiter = asyncio.get_running_loop().create_future()
            next_one = execution(show)
            connection.submit(mine)
            connection.submit(next_one)
            assert rows_of(await outcome(mine)) == [{"v": "alice"}]
            assert rows_of(await outcome(next_one)) == [{"v": ""}]

    run(work())


def test_a_failed_setting_prevents_the_call(server: Database) -> None:
    async def work() -> None:
        write = statement("insert into written values (77) returning id")
        local = Statement(-1, SETTINGS, 2)
        async with connected(server) as connection:
            bad = Execution(write, [], ((local, [b"statement_timeout", b"abc"]),))
            bad.waiter = asyncio.get_running_loop().create_future()
            connection.submit(bad)
            await outcome(bad)
            assert bad.error
            assert bad.error.sqlstate == "22023"
            assert await answer(connection, "select count(*) as n from written where id = 77") == [{"n": 0}]
            # Its Parse was skipped, so the statement has to be prepared now.
            assert await answer(connection, write) == [{"id": 77}]

    run(work())


def test_a_statement_that_does_not_parse_fails_alone_and_can_be_repeated(own_database: Database) -> None:
    async def work() -> None:
        call = statement("select later() as n")
        async with connected(own_database) as connection:
            requests = [execution(call) for _ in range(3)]
            for item in requests:
                connection.submit(item)
            states = [error.sqlstate for item in requests if (error := (await outcome(item)).error)]
            assert states == ["42883", "26000", "26000"]
            assert connection.state == ConnectionState.READY
            own_database.execute("create function later() returns int language sql as 'select 5'")
            assert await answer(connection, call) == [{"n": 5}]

    run(work())


def test_a_changed_result_type_needs_a_new_statement_generation(own_database: Database) -> None:
    """0A000 precedes the start of the call, and a statement with a new name avoids it (driver-27)."""

    async def work() -> None:
        own_database.execute("create function shape() returns table (a int) language sql as 'select 1'")
        call = statement("select * from shape()")
        async with connected(own_database) as connection:
            assert await answer(connection, call) == [{"a": 1}]
            own_database.execute(
                "drop function shape(); create function shape() returns table (b text) language sql as 'select $$x$$'"
            )
            item = execution(call)
            connection.submit(item)
            await outcome(item)
            assert item.error is not None
            assert (item.error.sqlstate, item.error.source_function) == ("0A000", "RevalidateCachedQuery")
            assert not item.seen_result
            assert await answer(connection, call.next_generation()) == [{"b": "x"}]

    run(work())


def test_a_missing_deallocated_statement_ends_the_connection(server: Database) -> None:
    async def work() -> None:
        echo = statement("select $1::int as n", 1)
        async with connected(server) as connection:
            assert await answer(connection, echo, "1") == [{"n": 1}]
            # Inside a block, which the command does not show.
            block = execution(statement("do $$ begin execute 'deallocate all'; end $$", rows=False))
            connection.submit(block)
            await outcome(block)
            item = execution(echo, "2")
            connection.submit(item)
            await outcome(item)
            assert item.error
            assert item.error.sqlstate == "26000"
            assert not item.seen_result
            await until(lambda: connection.state == ConnectionState.CLOSED)

    run(work())


async def lose_statements(connection: Connection) -> None:
    """Inside a block, which the command does not show."""
    block = execution(statement("do $$ begin execute 'deallocate all'; end $$", rows=False))
    connection.submit(block)
    await outcome(block)


def script() -> Script:
    parts = [statement(f"select {number} as n", rows=False) for number in (1, 2)]
    return Script(statement("").id, 0, (Part(parts[0], False, True), Part(parts[1], True, False)), b"{}")


@pytest.mark.parametrize("named_anew", [False, True])
def test_a_script_with_missing_statements_ends_the_connection(server: Database, named_anew: bool) -> None:
    """Missing are its own statements, or with new names those of the execution ahead of it."""

    async def work() -> None:
        values: list[bytes | None] = []
        setting = statement("select set_config('a.b', '1', true)", rows=False)
        ahead = ((setting, values),) if named_anew else None
        both = script()
        async with connected(server) as connection:
            item = execution(both, ahead=ahead)
            connection.submit(item)
            await outcome(item)
            assert item.succeeded
            await lose_statements(connection)
            item = execution(both.next_generation() if named_anew else both, ahead=ahead)
            connection.submit(item)
            await outcome(item)
            assert item.error
            assert item.error.sqlstate == "26000"
            await until(lambda: connection.state == ConnectionState.CLOSED)
            assert connection.close_reason == "a routine deallocated prepared statements"
        async with connected(server) as connection:
            item = execution(both, ahead=ahead)
            connection.submit(item)
            await outcome(item)
            assert item.succeeded

    run(work())


def test_a_script_behind_a_failed_parse_does_not_end_the_connection(server: Database) -> None:
    """A prepared statement is missing; the script can be submitted again."""

    async def work() -> None:
        both = script()
        broken = Script(
            statement("").id,
            0,
            (Part(statement("select nothing", rows=False), False, True), Part(both.parts[0].statement, True, False)),
            b"{}",
        )
        async with connected(server) as connection:
            requests = [execution(broken), execution(both)]
            connection.corked = True
            for item in requests:
                connection.submit(item)
            connection.flush()
            for item in requests:
                await outcome(item)
            assert [item.error and item.error.sqlstate for item in requests] == ["42703", "26000"]
            item = execution(both)
            connection.submit(item)
            connection.flush()
            await outcome(item)
            assert item.succeeded

    run(work())


def test_a_script_that_continues_behind_other_executions_swaps_no_results(server: Database) -> None:
    """A script has its connection to itself. If it does not, its next segment would be sent behind the others, and each
    of them would get the results of another one."""

    async def work() -> None:
        first, second = (statement(f"select {number} as n", rows=False) for number in (1, 2))
        both = Script(statement("").id, 0, (Part(first, True, True), Part(second, True, False)), b"{}")
        async with connected(server) as connection:
            requests = [execution(both), execution("select 3 as n"), execution("select 4 as n")]
            for item in requests:
                connection.submit(item)
            for item in requests:
                await outcome(item)
            assert [item.loss for item in requests] == [Loss.IN_DOUBT] * 3
            assert connection.close_reason == "a script continues behind other requests"

    run(work())


def addresses() -> int:
    """Return the bytes that this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def test_a_script_that_runs_out_of_memory_fails_and_takes_no_other_result(server: Database) -> None:
    async def work() -> None:
        part = Part(statement("select 1 as n", rows=False), True, True)
        # Never written to, so it uses address space only.
        large = Script(statement("").id, 0, (part,), bytes(1 << 30))
        async with connected(server) as connection:
            item = execution(large)
            used = addresses()
            before = resource.getrlimit(resource.RLIMIT_AS)
            connection.submit(item)
            resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), before[1]))
            try:
                await asyncio.wait_for(outcome(item), 20)
            finally:
                resource.setrlimit(resource.RLIMIT_AS, before)
            assert isinstance(item.failure, MemoryError)
            assert item.finished
            assert item.body is None
            assert await answer(connection, "select 2 as n") == [{"n": 2}]

    run(work())


def test_notices_are_delivered_to_the_execution_at_the_head(server: Database) -> None:
    async def work() -> None:
        heard: list[tuple[str | None, str, str]] = []
        noisy = statement("select noisy($1::text)", 1)
        quiet = statement("select 1")
        async with connected(server) as connection:
            connection.on_notice = lambda label, severity, _state, message, _context, _owner: heard.append(
                (label, severity, message)
            )
            requests = []
            for n in range(50):
                requests.append(execution(noisy, f"from {n}", label=f"request {n}"))
                requests.append(execution(quiet, label="quiet"))
            for item in requests:
                connection.submit(item)
            for item in requests:
                await outcome(item)
            assert heard == [(f"request {n}", "NOTICE", f"from {n}") for n in range(50)]

    run(work())


def test_a_failing_notice_handler_affects_no_execution(server: Database) -> None:
    async def work() -> None:
        def fail(*_: object) -> None:
            raise RuntimeError

        async with connected(server) as connection:
            connection.on_notice = fail
            assert await answer(connection, "select noisy('x') as n") == [{"n": 1}]

    run(work())


def test_a_connection_with_a_changed_session_accepts_no_executions_and_closes(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            change = execution("select set_config('timezone', 'Asia/Tokyo', false) as v")
            connection.submit(change)
            await outcome(change)
            await until(lambda: connection.state == ConnectionState.CLOSED)
            assert "changed the session" in (connection.close_reason or "")
            assert not connection.submit(execution("select 1 as n"))

    run(work())


def test_a_transaction_left_open_ends_the_connection(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            begin = execution(statement("begin", rows=False))
            connection.submit(begin)
            await outcome(begin)
            await until(lambda: connection.state == ConnectionState.CLOSED)

    run(work())


def test_an_aborted_transaction_ends_the_connection_under_load(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            for sql in ("begin", "select 1 / 0"):
                connection.submit(execution(statement(sql, rows=False)))
            victims = [execution("select 1 as n") for _ in range(3)]
            for item in victims:
                connection.submit(item)
            assert {error.sqlstate for item in victims if (error := (await outcome(item)).error)} == {"25P02"}
            assert not connection.submit(execution("select 1 as n"))

    run(work())


def test_copy_ends_the_connection(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            copy, behind = execution(statement("copy written to stdout", rows=False)), execution("select 1 as n")
            connection.submit(copy)
            connection.submit(behind)
            await outcome(copy)
            await outcome(behind)
            assert connection.state == ConnectionState.CLOSED
            assert not copy.succeeded
            assert not behind.succeeded

    run(work())


def test_too_many_prepared_statements_replace_the_connection(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            requests = [execution(f"select {n} as n") for n in range(502)]
            for item in requests:
                connection.submit(item)
            assert [rows_of(await outcome(item))[0]["n"] for item in requests] == list(range(502))
            await until(lambda: connection.state == ConnectionState.CLOSED)
            assert "prepared" in (connection.close_reason or "")

    run(work())


def test_unexpected_columns_fail_their_execution_only(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            for sql in (b"select 1, 2, 3", b"select 1, 2, 3 where false"):
                narrow = Statement(id(sql) % 1_000_000, sql, 0, Renderer(Codecs(), "rows", True, True, [b"only"]))
                item, behind = execution(narrow), execution("select 7 as n")
                connection.submit(item)
                connection.submit(behind)
                assert isinstance((await outcome(item)).failure, ValueError)
                assert rows_of(await outcome(behind)) == [{"n": 7}]

    run(work())


def test_a_failing_callback_does_not_affect_other_executions(server: Database) -> None:
    async def work() -> None:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: reported.append(context["message"]))

        def fail(_request: Execution) -> None:
            raise RuntimeError

        async with connected(server) as connection:
            item, behind = execution("select 1 as n", on_done=fail), execution("select 2 as n")
            connection.submit(item)
            connection.submit(behind)
            assert rows_of(await outcome(behind)) == [{"n": 2}]
        assert len(reported) == 1

    run(work())


def test_a_result_over_the_size_limit_is_read_and_dropped(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            large, behind = (
                execution("select n from generate_series(1, 50000) n", limit=1000),
                execution("select 1 as n"),
            )
            connection.submit(large)
            connection.submit(behind)
            await outcome(large)
            assert (large.overflowed, large.succeeded, large.body) == (True, False, None)
            assert rows_of(await outcome(behind)) == [{"n": 1}]

    run(work())
