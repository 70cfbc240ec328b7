"""Connection pools: which executions run, wait and are refused, by depth, queue and time; no connection is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState
from rowcall.service.background import Background
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.execution.plain_runs import COMMIT, PlainRuns
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.pools.pipelined_pool import PipelinedPool
from rowcall.service.database.session.resets import FULL_RESET
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.request_context import RequestContext
from tests.ext.wire import execution, outcome, rows_of, run, statement, until
from tests.harness.database import Database

OPTIONS = PoolOptions(
    pipelined_connections=2, pipelined_depth=3, dedicated_connections=2, queue_limit=4, queue_timeout=30.0
)  # fmt: skip
STUCK = "select pg_advisory_xact_lock_shared(7)"


def connector(database: Database) -> Connector:
    parameters = {name: str(value) for name, value in conninfo_to_dict(database.conninfo).items()}
    return Connector(ConnectionTarget(parameters))


@asynccontextmanager
async def shared(database: Database, options: PoolOptions = OPTIONS) -> AsyncIterator[PipelinedPool]:
    pool = PipelinedPool("shared", connector(database), options, slow=60.0)
    pool.open_missing()
    await until(lambda: len(pool.connections) == options.pipelined_connections)
    try:
        yield pool
    finally:
        close(pool)


@asynccontextmanager
async def exclusive(database: Database, options: PoolOptions = OPTIONS) -> AsyncIterator[DedicatedPool]:
    pool = DedicatedPool(connector(database), options)
    try:
        yield pool
    finally:
        close(pool)


def close(pool: PipelinedPool | DedicatedPool) -> None:
    pool.close()
    for connection in list(pool.connections):
        connection.close("the test has ended")


def test_depth_and_queue_are_limited_and_further_requests_refused(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            with database.locked(7):
                requests = [execution(STUCK) for _ in range(2 * 3 + 4)]
                for item in requests:
                    pool.submit(item)
                assert [connection.in_flight for connection in pool.connections] == [3, 3]
                with pytest.raises(Problem) as refusal:
                    pool.submit(execution(STUCK))
                assert refusal.value.status == 503
                assert ("retry-after", "1") in refusal.value.headers
            for item in requests:
                assert (await outcome(item)).error is None

    run(work())


def test_requests_are_distributed_over_the_connections(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            with database.locked(7):
                requests = [execution(STUCK) for _ in range(4)]
                for item in requests:
                    pool.submit(item)
                assert [connection.in_flight for connection in pool.connections] == [2, 2]
            for item in requests:
                await outcome(item)

    run(work())


def test_short_requests_share_a_connection_under_processor_contention(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            pool.crowded = True
            with database.locked(7):
                brief = [execution(STUCK) for _ in range(4)]
                for item in brief:
                    item.statement.usual_seconds = 0.000_1
                    pool.submit(item)
                assert [connection.in_flight for connection in pool.connections] == [3, 1]
                pool.submit(execution(STUCK))  # how long it takes is not known
                assert [connection.in_flight for connection in pool.connections] == [3, 2]
            for item in brief:
                assert (await outcome(item)).error is None

    run(work())


def test_requests_share_a_connection_only_up_to_a_short_wait(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            pool.crowded = True
            with database.locked(7):
                requests = [execution(STUCK) for _ in range(4)]
                placed = []
                for item in requests:
                    item.statement.usual_seconds = 0.000_3
                    pool.submit(item)
                    placed.append([connection.in_flight for connection in pool.connections])
                assert placed == [[1, 0], [2, 0], [2, 1], [2, 2]]
            for item in requests:
                assert (await outcome(item)).error is None

    run(work())


@pytest.mark.slow
def test_the_mean_duration_of_a_statement_is_that_of_its_runs(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            statement = execution("select pg_sleep(0.05)").statement
            before = statement.usual_seconds
            for _ in range(32):
                item = execution(statement)
                pool.submit(item)
                assert (await outcome(item)).error is None
            assert 0.05 < statement.usual_seconds < before

    run(work())


def test_a_request_that_waits_too_long_fails_without_running(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            with database.locked(7):
                running = [execution(STUCK) for _ in range(6)]
                late = execution(STUCK)
                for item in [*running, late]:
                    pool.submit(item)
                pool.sweep(asyncio.get_running_loop().time() + OPTIONS.queue_timeout + 1)
                await outcome(late)
                assert isinstance(late.failure, Problem)
                assert late.failure.status == 503
            for item in running:
                assert (await outcome(item)).error is None
            assert sum(connection.served for connection in pool.connections) == 6

    run(work())


def test_waiting_requests_run_in_their_order(database: Database) -> None:
    async def work() -> None:
        options = replace(OPTIONS, pipelined_connections=1, pipelined_depth=1, queue_limit=100)
        finished: list[str | None] = []
        async with shared(database, options) as pool:
            requests = [execution(f"select {n} as n", label=str(n)) for n in range(50)]
            for item in requests:
                item.on_done = lambda done: finished.append(done.label)
                pool.submit(item)
            for n, item in enumerate(requests):
                assert rows_of(await outcome(item)) == [{"n": n}]
        assert finished == [str(n) for n in range(50)]

    run(work())


def test_a_value_that_cannot_be_sent_fails_its_request_even_after_waiting(database: Database) -> None:
    async def work() -> None:
        options = replace(OPTIONS, pipelined_connections=1, pipelined_depth=1)
        async with shared(database, options) as pool:
            first, bad, last = (
                execution("select 1 as n"),
                execution("select $1::text as n", "a\0b"),
                execution("select 3 as n"),
            )
            for item in (first, bad, last):
                pool.submit(item)
            assert isinstance((await outcome(bad)).failure, ValueError)
            assert rows_of(await outcome(last)) == [{"n": 3}]

    run(work())


def test_a_lost_shared_connection_is_replaced(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            before = {connection.backend_pid for connection in pool.connections}
            pool.connections[0].close("test")
            await until(lambda: len(pool.connections) == 2)
            after = {connection.backend_pid for connection in pool.connections}
            assert len(before & after) == 1

    run(work())


def test_connections_are_replaced_after_their_time(database: Database) -> None:
    async def work() -> None:
        async with shared(database) as pool:
            before = {connection.backend_pid for connection in pool.connections}
            pool.sweep(asyncio.get_running_loop().time() + OPTIONS.lifetime + 1)
            await until(lambda: len(pool.connections) == 2)
            assert not before & {connection.backend_pid for connection in pool.connections}

    run(work())


def test_a_connection_opened_in_advance_counts_towards_the_limit(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database, replace(OPTIONS, dedicated_connections=1)) as pool:
            warming = asyncio.create_task(pool.warm())
            await asyncio.sleep(0)
            first = await pool.acquire()
            await warming
            assert pool.connections == {first}

    run(work())


def test_idle_connections_are_closed(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database, replace(OPTIONS, idle_timeout=60.0)) as pool:
            held = [await pool.acquire(), await pool.acquire()]
            for connection in held:
                pool.release(connection)
            now = asyncio.get_running_loop().time()
            pool.sweep(now)
            pool.sweep(now + 59)
            assert len(pool.connections) == 2
            used = await pool.acquire()
            run_once = execution("select 1")
            assert used.submit(run_once)
            await outcome(run_once)
            pool.release(used)
            pool.sweep(now + 61)
            await until(lambda: pool.connections == {used})
            pool.sweep(now + 122)
            await until(lambda: not pool.connections)

    run(work())


def test_the_pool_grows_up_to_its_limit(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database) as pool:
            held = [await pool.acquire(), await pool.acquire()]
            waiting = asyncio.create_task(pool.acquire())
            await asyncio.sleep(0)
            assert len(pool.connections) == 2
            pool.release(held[0])
            assert await waiting is held[0]

    run(work())


def test_a_full_queue_refuses_immediately_and_a_long_wait_times_out(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database, replace(OPTIONS, queue_timeout=0.3)) as pool:
            held = [await pool.acquire(), await pool.acquire()]
            waiting = [asyncio.create_task(pool.acquire()) for _ in range(OPTIONS.queue_limit)]
            await asyncio.sleep(0)
            with pytest.raises(Problem, match="full"):
                await pool.acquire()
            for task in waiting:
                with pytest.raises(Problem, match="within"):
                    await task
            for connection in held:
                pool.release(connection)
            assert pool.try_acquire() is held[1]

    run(work())


def test_callbacks_without_a_task_are_served_in_order(database: Database) -> None:
    async def work() -> None:
        result: asyncio.Queue[object] = asyncio.Queue()
        async with exclusive(database, replace(OPTIONS, dedicated_connections=1)) as pool:
            assert pool.take_turn(result.put_nowait, result.put_nowait) is None
            first = await result.get()
            assert isinstance(first, Connection)
            waiting = asyncio.create_task(pool.acquire())
            await asyncio.sleep(0)
            assert pool.take_turn(result.put_nowait, result.put_nowait) is None
            pool.release(first)
            assert await waiting is first
            assert result.empty()
            pool.release(first)
            assert result.empty(), "called within the call that released the connection"
            assert await result.get() is first
            pool.release(first)
            assert pool.take_turn(result.put_nowait, result.put_nowait) is first

    run(work())


def test_callbacks_without_a_task_time_out(database: Database) -> None:
    async def work() -> None:
        result: asyncio.Queue[Exception] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def ready(connection: Connection) -> None:
            raise AssertionError("there was no connection")

        async with exclusive(database, replace(OPTIONS, dedicated_connections=1, queue_limit=2)) as pool:
            await pool.acquire()
            pool.take_turn(ready, result.put_nowait, 0.1)
            pool.take_turn(ready, result.put_nowait)
            with pytest.raises(Problem, match="full"):
                pool.take_turn(ready, result.put_nowait)
            pool.sweep(loop.time() + 0.2)
            with pytest.raises(Problem, match=r"within 0\.1 s"):
                raise await result.get()
            pool.go_away()
            with pytest.raises(Problem, match="cannot be reached"):
                raise await result.get()
            assert pool.waiting == 0
            pool.away = False
            pool.take_turn(ready, result.put_nowait)
            pool.close()
            with pytest.raises(Problem, match="stopping"):
                raise await result.get()
            assert result.empty()

    run(work())


@pytest.mark.parametrize("handed_over", [False, True], ids=["still waiting", "already handed over"])
def test_a_cancelled_wait_loses_no_connection(database: Database, handed_over: bool) -> None:
    async def work() -> None:
        async with exclusive(database, replace(OPTIONS, dedicated_connections=1)) as pool:
            held = await pool.acquire()
            waiting = asyncio.create_task(pool.acquire())
            await asyncio.sleep(0)
            if handed_over:
                pool.release(held)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            if not handed_over:
                pool.release(held)
            assert pool.try_acquire() is held

    run(work())


def test_a_reset_removes_locks_and_settings_of_the_session(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database, replace(OPTIONS, dedicated_connections=1)) as pool:
            connection = await pool.acquire()
            dirty = execution(
                "select pg_advisory_lock(99), set_config('work_mem', '1MB', false), set_config('my.x', 'y', false)"
            )
            connection.submit(dirty)
            pool.finish(connection, resets=FULL_RESET)
            await outcome(dirty)
            again = await pool.acquire()
            assert again is connection
            look = execution(
                "select current_setting('work_mem') = '1MB' as m, current_setting('my.x', true) as x,"
                " (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory') as locks"
            )
            again.submit(look)
            assert rows_of(await outcome(look)) == [{"m": False, "x": "", "locks": 0}]
            pool.release(again)

    run(work())


def test_a_cancelled_connection_returns_to_the_pool_once(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database) as pool:
            connection = await pool.acquire()
            with database.locked(7):
                stuck = execution(STUCK)
                stuck.on_done = lambda _request: pool.release(connection)
                connection.submit(stuck)
                # The server sends its error at once and says that it is ready later, maybe in a packet of its own.
                while stuck.state != ExecutionState.DONE:
                    await pool.cancel(connection, stuck)
                    await asyncio.sleep(0)
            assert stuck.error
            assert stuck.error.sqlstate == "57014"
            await until(lambda: connection.state == ConnectionState.READY)
            assert pool.try_acquire() is connection
            assert pool.try_acquire() is None

    run(work())


class Late(Connector):
    """Its cancel requests have been carried out when the test says that they return."""

    def __init__(self, database: Database) -> None:
        super().__init__(connector(database).target)
        self.sent = asyncio.Event()
        self.returns = asyncio.Event()

    async def cancel(self, connection: Connection, seconds: float) -> None:
        await super().cancel(connection, seconds)
        self.sent.set()
        await self.returns.wait()


Ending = Callable[[Late, PipelinedPool, Connection, Execution], Awaitable[None]]


class Left:
    """A protocol whose client has gone."""

    async def client_disconnect(self) -> None:
        pass


async def _cut_off(late: Late, pool: PipelinedPool, connection: Connection, stuck: Execution) -> None:
    cancelling = asyncio.create_task(pool.cancel(connection, stuck))
    await late.sent.wait()
    cancelling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await cancelling
    assert connection.state != ConnectionState.CANCELLING


async def _cancel_after_disconnect(late: Late, pool: PipelinedPool, connection: Connection, stuck: Execution) -> None:
    """The watchdog listens no longer once the head is finished."""
    stuck.owner = RequestContext(None, Left())
    background = Background()
    watchdog = Watchdog(late, DedicatedPool(late, OPTIONS), [pool], background)
    watchdog.start()
    await late.sent.wait()
    await until(lambda: stuck.finished)
    watchdog.stop()
    late.returns.set()
    await until(lambda: not list(background))
    assert connection.state == ConnectionState.READY


@pytest.mark.parametrize("ends", [_cut_off, _cancel_after_disconnect])
def test_an_interrupted_cancel_leaks_no_connection(database: Database, ends: Ending) -> None:
    async def work() -> None:
        late = Late(database)
        pool = PipelinedPool("shared", late, replace(OPTIONS, pipelined_connections=1), slow=60.0)
        pool.open_missing()
        await until(lambda: pool.connections)
        (connection,) = pool.connections
        with database.locked(7):
            stuck = execution(STUCK)
            pool.submit(stuck)
            await ends(late, pool, connection, stuck)
        following = execution("select 1 as n")
        pool.submit(following)
        assert rows_of(await outcome(following)) == [{"n": 1}]
        close(pool)

    run(work())


def test_a_closed_connection_is_not_acquired_again(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database) as pool:
            dead = await pool.acquire()
            pool.release(dead)
            dead.close("test")
            alive: Connection = await pool.acquire()
            assert alive is not dead
            assert len(pool.connections) == 1

    run(work())


@pytest.mark.parametrize("committing", [False, True])
def test_a_connection_lost_in_a_transaction_is_released(database: Database, committing: bool) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        async with exclusive(database) as pool:
            watchdog = Watchdog(connector(database), pool, [], Background())
            runs = PlainRuns(pool, None, watchdog, seconds=0.0, slow=60.0, most_bytes=0)
            async with runs.transaction(never) as transaction:
                await transaction.run(statement("select 1"), [], ((statement("begin"), []),))
                (connection,) = pool.connections
                database.execute(f"select pg_terminate_backend({connection.backend_pid})")
                await until(lambda: connection.state == ConnectionState.CLOSED)
                if committing:
                    assert not (await transaction.end(COMMIT)).succeeded
            assert not pool._held

    run(work())


def test_a_closed_pool_refuses_immediately(database: Database) -> None:
    async def work() -> None:
        async with exclusive(database) as pool:
            pool.close()
            with pytest.raises(Problem, match="stopping"):
                await pool.acquire()

    run(work())


def test_opening_fails_with_an_error_of_psycopg(database: Database) -> None:
    async def work() -> None:
        with pytest.raises(psycopg.Error):
            await Connector(ConnectionTarget({"host": "127.0.0.1", "port": "1"})).open()

    run(work())
