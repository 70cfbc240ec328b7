"""Connections that end, pause or are cancelled: the known outcome of each execution (driver-13 to driver-24).

The behaviour of libpq before 17 (`PQpipelineSync` sends each segment at once) is tested only if psycopg was built with
such a version.
"""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Loss, Statement
from tests.ext.wire import answer, connected, execution, outcome, rows_of, run, statement, until
from tests.harness.database import Database
from tests.harness.waiting import wait_until

SQL = """
create table written (id int);
create function write(_id int) returns int language sql as 'insert into written values (_id) returning id';
create function locked_write(_id int, _lock int) returns int language plpgsql as $$
begin
  insert into written values (_id);
  perform pg_advisory_xact_lock(_lock);
  return _id;
end $$;
"""

MANY = "select n, repeat('x', 100) as v from generate_series(1, 20000) n"


@pytest.fixture(scope="module")
def server(every_database: Database) -> Database:
    every_database.execute(SQL)
    return every_database


def written(database: Database) -> set[int]:
    return {number for (number,) in database.fetch("select id from written")}


async def in_thread(work: object, *arguments: object) -> object:
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)  # type: ignore[arg-type]


def test_termination_within_a_pipeline_fails_only_the_running_execution_as_rolled_back(server: Database) -> None:
    """The server reported that the first execution was rolled back; the later ones never ran."""

    async def work() -> None:
        write = statement("select write($1::int) as n", 1)
        stuck = statement("select locked_write($1::int, 41) as n", 1)
        async with connected(server) as connection:
            with server.locked(41):
                requests = [execution(write, "1"), execution(stuck, "2"), execution(write, "3"), execution(write, "4")]
                for item in requests:
                    connection.submit(item)
                await outcome(requests[0])
                while not await in_thread(server.waiting):
                    pass
                await in_thread(server.terminate, f"pid = {connection.backend_pid}")
                for item in requests:
                    await outcome(item)
            assert [item.loss for item in requests] == [
                Loss.NOT_LOST, Loss.ROLLED_BACK, Loss.NOT_STARTED, Loss.NOT_STARTED,
            ]  # fmt: skip
            assert [item.succeeded for item in requests] == [True, False, False, False]
            assert connection.state == ConnectionState.CLOSED

    run(work())
    assert written(server) & {1, 2, 3, 4} == {1}


def test_a_lost_connection_is_freed_without_garbage_collection(server: Database) -> None:
    """The garbage collector does not count its large buffers: the memory of a worker that lost many connections grew
    without limit."""

    async def lose() -> None:
        async with connected(server) as connection:
            many = execution(statement(MANY, 0), stream_after=1000)
            connection.submit(many)
            await until(lambda: connection.state == ConnectionState.PAUSED)
            await in_thread(server.terminate, f"pid = {connection.backend_pid}")
            connection.close("the test ends it")
            assert connections() == before + 1

    def connections() -> int:
        return sum(isinstance(item, Connection) for item in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = connections()
        run(lose())
        assert connections() == before
    finally:
        gc.enable()


def test_termination_of_an_idle_connection_is_detected_immediately(server: Database) -> None:
    async def work() -> None:
        closed: list[Connection] = []
        async with connected(server) as connection:
            connection.on_closed = closed.append
            assert await answer(connection, "select 1 as n") == [{"n": 1}]
            await in_thread(server.terminate, f"pid = {connection.backend_pid}")
            await until(lambda: closed)
            assert not connection.submit(execution("select 1 as n"))

    run(work())


def test_an_execution_sent_to_a_terminated_backend_has_not_run(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            server.terminate(f"pid = {connection.backend_pid}")  # blocks the loop, so the reader cannot notice
            item = execution(statement("select write($1::int) as n", 1), "20")
            connection.submit(item)
            await outcome(item)
            assert item.loss in (Loss.ROLLED_BACK, Loss.NOT_STARTED)

    run(work())
    assert 20 not in written(server)


def test_closing_ends_all_waiting_executions(server: Database) -> None:
    async def work() -> None:
        write = statement("select locked_write($1::int, 42) as n", 1)
        async with connected(server) as connection:
            with server.locked(42):
                requests = [execution(write, str(n)) for n in range(30, 34)]
                for item in requests:
                    connection.submit(item)
                connection.close("test")
                for item in requests:
                    await outcome(item)
                assert {item.finished for item in requests} == {True}
                # The first was flushed at once; the others had not left the process.
                assert [item.loss for item in requests] == [Loss.IN_DOUBT] + [Loss.NOT_STARTED] * 3
        # They are not sent when the connection is closed either.
        wait_until(lambda: not server.backends("state <> 'idle'"), "the first has run")
        assert server.fetch("select id from written where id between 31 and 33") == []

    run(work())


def test_executions_sent_by_libpq_without_flush_count_as_sent(server: Database) -> None:
    """libpq sends as soon as 8192 bytes wait, without a flush."""

    async def work() -> None:
        write = statement("select write($1::int + 0 * length($2::text)) as n", 2)
        async with connected(server) as connection:
            requests = [execution(write, str(40 + n), "x" * size) for n, size in enumerate((1, 1, 20_000))]
            for item in requests:
                connection.submit(item)
            connection.close("test")
            assert Loss.NOT_STARTED not in [item.loss for item in requests]

    run(work())


@pytest.mark.parametrize("named", [True, False])
def test_types_and_formats_count_towards_what_libpq_sends_without_flush(server: Database, named: bool) -> None:
    """The parts of its messages other than texts and values are enough to fill its buffer."""
    count = 200

    async def work() -> None:
        write = statement(f"select write($1::int + {int(named)}) as n", 1)
        text = "select " + ", ".join(f"${n + 1}" for n in range(count)) + " /* "
        async with connected(server, named=named) as connection:
            first = execution(write, "70")
            connection.submit(first)
            await outcome(first)
            connection.corked = True
            second = execution(write, "72")
            connection.submit(second)
            # Keeps the sum of texts, values and 4 bytes for each value below the size at which libpq sends.
            text += "x" * (7_400 - len(text) - 5 * count) + " */"
            many = Statement(statement("").id, text.encode(), count, types=(23,) * count)
            third = execution(many, *["1"] * count)
            connection.submit(third)
            connection.close("test")
            for item in (second, third):
                await outcome(item)
            assert second.loss == Loss.IN_DOUBT

    run(work())


def test_executions_sent_by_libpq_before_reading_count_as_sent(server: Database) -> None:
    """The server may run it, and does, even if the connection is lost."""

    async def work() -> None:
        write = statement("select write($1::int) as n", 1)
        async with connected(server) as connection:
            requests = [execution(write, str(n)) for n in (60, 61)]
            for item in requests:
                connection.submit(item)
            connection.on_readable()
            connection.close("test")
            for item in requests:
                await outcome(item)
            assert requests[1].loss != Loss.NOT_STARTED

    run(work())


def test_a_large_result_is_paused_until_it_is_read(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            large, behind = execution(MANY, stream_after=65536), execution("select 1 as n")
            connection.submit(large)
            connection.submit(behind)
            await outcome(large)
            parts = []
            while large.state == ExecutionState.STREAMING:
                assert connection.state == ConnectionState.PAUSED
                assert not connection.submit(execution("select 2 as n"))
                parts.append(connection.take())
                large.waiter = asyncio.get_running_loop().create_future()
                connection.resume()
                await outcome(large)
            parts.append(large.body or b"")
            assert max(len(part) for part in parts) < 65536 + 64 * 100  # a chunk of 64 rows is rendered whole
            assert [row["n"] for row in json.loads(b"".join(parts))] == list(range(1, 20001))
            assert rows_of(await outcome(behind)) == [{"n": 1}]

    run(work())


def test_an_abandoned_stream_leaves_the_connection_usable(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            large = execution(MANY, stream_after=65536)
            connection.submit(large)
            await outcome(large)
            large.waiter = asyncio.get_running_loop().create_future()
            connection.abandon()
            await outcome(large)
            assert large.body is None
            assert await answer(connection, "select 1 as n") == [{"n": 1}]

    run(work())


def test_an_abandoned_execution_reports_its_end(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            with server.locked(44):
                item = execution(statement("select locked_write($1::int, 44) as n", 1), "5")
                connection.submit(item)
                connection.abandon()
            await outcome(item)
            assert item.succeeded
            assert item.abandoned
            assert item.body is None

    run(work())


def test_an_error_within_a_stream_is_reported_at_its_end(server: Database) -> None:
    async def work() -> None:
        failing = "select repeat('x', 1000) as v, 1 / (900 - n) as n from generate_series(1, 1000) n"
        async with connected(server) as connection:
            large = execution(failing, stream_after=65536)
            connection.submit(large)
            await outcome(large)
            while large.state == ExecutionState.STREAMING:
                connection.take()
                large.waiter = asyncio.get_running_loop().create_future()
                connection.resume()
                await outcome(large)
            assert large.error
            assert large.error.sqlstate == "22012"
            assert not large.succeeded
            assert await answer(connection, "select 1 as n") == [{"n": 1}]

    run(work())


def test_a_paused_connection_can_be_terminated(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            large = execution("select repeat('x', 1000) as v from generate_series(1, 100000)", stream_after=65536)
            connection.submit(large)
            await outcome(large)
            await in_thread(server.terminate, f"pid = {connection.backend_pid}")
            while large.state == ExecutionState.STREAMING:
                connection.take()
                large.waiter = asyncio.get_running_loop().create_future()
                connection.resume()
                await outcome(large)
            assert large.loss == Loss.IN_DOUBT
            assert connection.state == ConnectionState.CLOSED

    run(work())


def test_draining_completes_running_executions_and_closes(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            requests = [execution(f"select {n} as n") for n in range(5)]
            for item in requests:
                connection.submit(item)
            connection.drain("enough")
            assert not connection.submit(execution("select 1 as n"))
            assert [rows_of(await outcome(item))[0]["n"] for item in requests] == list(range(5))
            await until(lambda: connection.state == ConnectionState.CLOSED)

    run(work())


def test_a_connection_accepts_nothing_until_its_cancel_has_returned(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            with server.locked(43):
                item = execution("select pg_advisory_xact_lock(43)")
                connection.submit(item)
                while not await in_thread(server.waiting):
                    pass
                assert connection.begin_cancel(item)
                await connection.owner.cancel_safe(timeout=5)  # type: ignore[attr-defined]
                await outcome(item)
            assert item.error
            assert item.error.sqlstate == "57014"
            assert connection.state == ConnectionState.CANCELLING
            assert not connection.submit(execution("select 1 as n"))
            connection.end_cancel()
            assert await answer(connection, "select 1 as n") == [{"n": 1}]

    run(work())


def test_a_cancel_of_a_finished_execution_does_not_cancel_the_next(server: Database) -> None:
    async def work() -> None:
        async with connected(server) as connection:
            first, second = execution("select 1 as n"), execution("select 2 as n")
            connection.submit(first)
            await outcome(first)
            connection.submit(second)
            assert not connection.begin_cancel(first)
            assert rows_of(await outcome(second)) == [{"n": 2}]

    run(work())


def state_of(connection: Connection) -> ConnectionState:
    """Return the state. mypy would take that of an attribute as unchanged by the calls between two comparisons."""
    return connection.state


def test_a_paused_connection_remains_in_cancellation(server: Database) -> None:
    """A late cancel would hit the next execution, so a pause must not make the connection READY."""

    async def work() -> None:
        async with connected(server) as connection:
            large = execution(MANY, stream_after=65536)
            connection.submit(large)
            assert connection.begin_cancel(large)
            await outcome(large)
            assert state_of(connection) == ConnectionState.PAUSED
            connection.take()
            connection.resume()
            assert state_of(connection) != ConnectionState.READY
            connection.abandon()
            await until(lambda: large.finished)
            assert state_of(connection) == ConnectionState.CANCELLING
            connection.end_cancel()
            assert state_of(connection) == ConnectionState.READY

    run(work())


def test_a_reset_may_have_several_statements(server: Database) -> None:
    async def work() -> None:
        reset = [Statement(900 + n, sql, 0) for n, sql in enumerate((b"reset all", b"discard temp", b"unlisten *"))]
        async with connected(server) as connection:
            change = execution("select set_config('work_mem', '1MB', false) as v")
            cleanup = Execution(reset[0], [])
            cleanup.waiter = asyncio.get_running_loop().create_future()
            connection.submit(change)
            assert connection.submit_all(cleanup, reset)
            await outcome(cleanup)
            assert cleanup.error is None
            assert await answer(connection, "select current_setting('work_mem') = '1MB' as v") == [{"v": False}]

    run(work())
