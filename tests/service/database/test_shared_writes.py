"""VOLATILE routines on pipelined connections: which requests wait or fail, and what is committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.service.database.call import Call
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.database import Database
from rowcall.service.database.execution.pool_selection import WAITED
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.pool_assignment import MOST_CONTENTION, PoolAssignment
from rowcall.service.discovery.session_effects import read_dependency_graph
from rowcall.service.request_context.request_context import RequestContext
from tests.harness import database as harness

SQL = """
create table written (id int);
create table pair (id int primary key, n int default 0);
insert into pair values (1), (2);
create function write(_id int) returns int language sql as
  'insert into written values (_id) returning id';
create function write_locked(_id int) returns int language sql as
  'select pg_advisory_xact_lock_shared(7); insert into written values (_id) returning id';
create function touch(_id int) returns int language plpgsql as $$
begin
  update pair set n = n + 1 where id = 1 + _id % 2;
  perform pg_advisory_xact_lock_shared(8);
  update pair set n = n + 1 where id = 2 - _id % 2;
  return _id;
end $$;
create function large(_id int) returns text language sql as
  'insert into written values (_id); select repeat(''x'', 3000000)';
create function read(_id int) returns int language sql stable as 'select _id';
"""


class Client:
    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()


class Calls:
    """Those of one database, judged as the service does it."""

    def __init__(self, database: Database, world: Any, oids: dict[str, int]) -> None:
        self.database = database
        self._world = world
        self._oids = oids

    def call(self, name: str, **options: Any) -> Call:
        session = self._world.of_functions([self._oids[name]])
        assert not session.traces
        renderer = Renderer(Codecs(), "scalar", False, False, [])
        volatile = name != "read"
        # A pace that demotes only for waiting: the machine may be busy.
        return Call(
            name, lambda _mask: (f"select {name}($1::int)", 1), renderer, PoolAssignment(0.25), volatile=volatile,
            session=session, harmless=True, **options,
        )  # fmt: skip

    async def ask(self, call: Call, number: int) -> Any:
        context = RequestContext(None, Client())
        context.mask, context.arguments = 1, [b"%d" % number]
        for step in (self.database.begin, self.database.settle):
            waiting = step(call, context)
            if isinstance(waiting, Execution):
                if not waiting.finished:
                    done = asyncio.get_running_loop().create_future()
                    waiting.on_done = done.set_result
                    await done
            elif waiting is not None:
                await waiting
        assert context.execution is not None
        return context.execution.body

    async def shared(self, call: Call) -> Call:
        """Once it shares connections: those for writes, or those for reads with custom or with generic plans."""
        number = -1
        pools = call.guarded[2:3] if call.volatile else call.guarded[:2]
        while not (call.shared and any((guarded := pool.get(1)) and guarded.admissions == 1 for pool in pools)):
            await self.ask(call, number)
            number -= 1
            await asyncio.sleep(0)
        return call

    @property
    def writing(self) -> Connection:
        [connection] = self.database._writes.connections
        return connection


@asynccontextmanager
async def opened(server: harness.Database, write_connections: int = 1) -> AsyncIterator[Calls]:
    server.execute(SQL)
    parameters = {key: str(value) for key, value in conninfo_to_dict(server.conninfo).items() if value is not None}
    options = PoolOptions(pipelined_connections=1, write_connections=write_connections)
    database = Database(ConnectionTarget(parameters), DatabaseOptions(options))
    await database.start()
    try:
        async with await psycopg.AsyncConnection.connect(server.conninfo, autocommit=True) as connection:
            world = await read_dependency_graph(connection)
        oids = dict(server.fetch("select proname, oid::bigint from pg_proc where oid >= 16384"))
        yield Calls(database, world, oids)
    finally:
        await database.close()


def written(server: harness.Database) -> list[int]:
    return sorted(number for (number,) in server.fetch("select id from written where id >= 0"))


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.002)


def run(work: Any) -> None:
    uvloop.run(asyncio.wait_for(work, 60))


@pytest.mark.slow
def test_a_write_that_waits_for_a_lock_delays_no_read_and_is_no_longer_shared(own_database: harness.Database) -> None:
    async def work() -> None:
        async with opened(own_database) as calls:
            locked, read = await calls.shared(calls.call("write_locked")), await calls.shared(calls.call("read"))
            # However busy the machine is, the wait below is longer than what it takes off.
            locked.pace.threshold = 1 / WAITED / MOST_CONTENTION
            with own_database.locked(7):
                waiting = asyncio.create_task(calls.ask(locked, 1))
                await until(lambda: calls.writing.in_flight == 1)
                assert await calls.ask(read, 5) == b"5"
                await until(lambda: calls.writing.head is not None and calls.writing.head.age > 1.1)
            assert await waiting == b"1"
            assert not locked.shared
            assert await calls.ask(locked, 2) == b"2"
        assert written(own_database) == [1, 2]

    run(work())


def test_only_requests_behind_a_terminated_write_are_repeated(own_database: harness.Database) -> None:
    async def work() -> None:
        async with opened(own_database) as calls:
            locked, write = await calls.shared(calls.call("write_locked")), await calls.shared(calls.call("write"))
            with own_database.locked(7):
                head = asyncio.create_task(calls.ask(locked, 1))
                await until(lambda: calls.writing.in_flight == 1)
                behind = [asyncio.create_task(calls.ask(write, number)) for number in (2, 3)]
                await until(lambda: calls.writing.in_flight == 3)
                calls.writing.close("cut by the test")
                outcomes = await asyncio.gather(head, *behind, return_exceptions=True)
            for outcome in outcomes:
                assert isinstance(outcome, Problem)
                assert outcome.status == 503
                assert "not known whether it took effect" in (outcome.detail or "")
            before = written(own_database)
            assert before == sorted(set(before))
            assert await calls.ask(write, 4) == b"4"

    run(work())


def test_a_terminated_head_is_repeated_with_all_behind_it(own_database: harness.Database) -> None:
    async def work() -> None:
        async with opened(own_database) as calls:
            locked, write = await calls.shared(calls.call("write_locked")), await calls.shared(calls.call("write"))
            with own_database.locked(7):
                head = asyncio.create_task(calls.ask(locked, 1))
                await until(lambda: calls.writing.in_flight == 1)
                behind = [asyncio.create_task(calls.ask(write, number)) for number in (2, 3)]
                await until(lambda: calls.writing.in_flight == 3)
                pid = calls.writing.backend_pid
                await asyncio.to_thread(own_database.terminate, f"pid = {pid}")
                assert await asyncio.gather(*behind) == [b"2", b"3"]
            assert await head == b"1"
        assert written(own_database) == [1, 2, 3]

    run(work())


@pytest.mark.slow
def test_a_deadlock_fails_only_the_request_it_hits(own_database: harness.Database) -> None:
    async def work() -> None:
        async with opened(own_database, write_connections=2) as calls:
            touch = calls.call("touch")
            while not (touch.shared and (guarded := touch.guarded[2].get(1)) and guarded.admissions == 2):
                await calls.ask(touch, 2)
            before = own_database.value("select sum(n) from pair")
            with own_database.locked(8):
                both = [asyncio.create_task(calls.ask(touch, number)) for number in (100, 101)]
                await until(lambda: [item.in_flight for item in calls.database._writes.connections] == [1, 1])
                await until(lambda: len(own_database.waiting()) == 2)
            outcomes = await asyncio.gather(*both, return_exceptions=True)
            problems = [outcome for outcome in outcomes if isinstance(outcome, Problem)]
            right = [outcome for outcome in outcomes if outcome in (b"100", b"101")]
            assert (len(problems), len(right)) == (1, 1)
            assert problems[0].detail == "40P01" or "40P01" in str(problems[0].members())
            assert outcomes.index(right[0]) == (0 if right[0] == b"100" else 1)
            assert own_database.value("select sum(n) from pair") == before + 2

    run(work())


def test_a_large_response_of_a_write_is_returned_and_the_write_not_repeated(own_database: harness.Database) -> None:
    async def work() -> None:
        async with opened(own_database) as calls:
            call = calls.call("large")
            call.pace.fast = call.shared = True
            calls.database._writes.open_missing()
            await until(lambda: calls.database._writes.connections)
            calls.database._pool_selection.install_guards(call, 1, calls.database._writes)
            await until(lambda: (guarded := call.guarded[2].get(1)) is not None and guarded.admissions)
            assert len(await calls.ask(call, 1)) == 3_000_000
            assert call.large
            assert not call.shared
        assert written(own_database) == [1]

    run(work())


@pytest.mark.parametrize("switch", ["service", "endpoint"])
def test_sharing_of_writes_can_be_switched_off(own_database: harness.Database, switch: str) -> None:
    async def work() -> None:
        async with opened(own_database) as calls:
            if switch == "service":
                calls.database._pool_selection._options = DatabaseOptions(PoolOptions(share_writes=False))
            call = calls.call("write", may_share=switch != "endpoint")
            for number in range(40):
                assert await calls.ask(call, number) == b"%d" % number
            assert not call.shared

    run(work())
