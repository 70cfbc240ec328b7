"""The driver under random interleavings, against a model of what each request may answer (docs/internals/driver.md).

Each request carries a number of its own. Whatever is killed, cancelled, abandoned, timed out or replaced meanwhile, it
gets one answer, which is its own or a defined problem; a write happened exactly when its answer says so, and only a
request "of which it is not known" may have happened or not; afterwards no connection is missing or too many.

ROWCALL_MODEL_REQUESTS=20000 makes it long; ROWCALL_MODEL_SEED repeats one choice of requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import Problem
from rowcall.core.sqlfile.session_effects import DependencyGraph
from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution, ExecutionState
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.service.database.call import Call
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.database import Database
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.discovery.session_effects import read_dependency_graph
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from tests.ext.wire import rows_of
from tests.harness import database as harness

REQUESTS = int(os.environ.get("ROWCALL_MODEL_REQUESTS", "3000"))
SEED = int(os.environ.get("ROWCALL_MODEL_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
AT_ONCE = 40
ROWS = 2500
IN_DOUBT = "it is not known whether it took effect"

SQL = """
create table written (id int);
create function echo(_id int) returns int language sql stable as 'select _id';
create function pair(_id int) returns table (id int, twice int) language sql stable
  as 'select _id, 2 * n from generate_series(_id, _id) n';
create function slow_echo(_id int) returns int language plpgsql stable as $$
begin
  if current_setting('work_mem') = '1MB' or to_regclass('pg_temp.remains') is not null then
    raise exception 'another request has used this session';
  end if;
  perform pg_sleep(0.01);
  return _id;
end $$;
create function fail(_id int) returns int language plpgsql stable as $$
begin raise exception 'no %', _id; end $$;
create function big(_id int) returns table (id int, n int, v text) language sql stable
  as $$ select _id, n, repeat('x', 80) from generate_series(1, 2500) n $$;
create function write(_id int) returns int language sql as 'insert into written values (_id) returning id';
create table checked (id int unique deferrable initially deferred);
insert into checked values (0);
create function check_late(_id int) returns int language sql as
  'insert into checked values (_id); insert into written values (_id) returning id';
create function fail_late(_id int) returns int language sql as
  'insert into checked values (0); insert into written values (_id) returning id';
create function slow_write(_id int) returns int language plpgsql as $$
begin insert into written values (_id); perform pg_sleep(0.02); return _id; end $$;
create function write_and_fail(_id int) returns int language plpgsql as $$
begin insert into written values (_id); raise exception 'no %', _id; end $$;
create function write_for_ever(_id int) returns int language plpgsql as $$
begin insert into written values (_id); perform pg_sleep(60); return _id; end $$;
create function dirty(_id int) returns int language plpgsql as $$
begin
  perform set_config('work_mem', '1MB', false), pg_advisory_lock(1);
  create temp table if not exists remains (id int);
  return _id;
end $$;
create function deallocating(_id int) returns int language plpgsql as $$
begin execute 'deallocate all'; return _id; end $$;
create procedure write_and_commit(_id int) language plpgsql as $$
begin insert into written values (_id); commit; perform pg_sleep(0.005); end $$;
"""


@dataclass(frozen=True)
class Kind:
    """One routine, and what it may answer."""

    name: str
    share: int
    volatile: bool = False
    procedure: bool = False
    scalar: bool = True
    timeout: float | None = None
    fails: int = 0
    """Status of its own failure; 0 when it succeeds."""
    writes: bool = False

    @property
    def is_void(self) -> bool:
        return self.procedure

    def call(self, world: DependencyGraph, oid: int) -> Call:
        renderer = Renderer(Codecs(), "scalar" if self.scalar else "rows", not self.scalar, not self.scalar, [])
        sql = f"call {self.name}($1::int)" if self.procedure else f"select * from {self.name}($1::int)"
        return Call(
            label=self.name,
            build=lambda _mask: (sql, 1),
            renderer=None if self.procedure else renderer,
            # Not many are slower than this, although those that run beside them are busy.
            pace=PoolAssignment(0.05),
            volatile=self.volatile,
            session=(session := world.of_functions([oid])),
            harmless=not session.traces and not self.procedure,
            procedure=self.procedure,
            commits=self.procedure,
            rows=not self.scalar,
            timeout=self.timeout,
        )

    def bodies(self, number: int) -> list[Any]:
        """What it may answer when nothing fails; `pair` is replaced now and then."""
        match self.name:
            case "pair":
                return [[{"id": number, "twice": 2 * number}], [{"id": number, "twice": str(2 * number)}]]
            case "big":
                return [[{"id": number, "n": n, "v": "x" * 80} for n in range(1, ROWS + 1)]]
            case _:
                return [None if self.is_void else number]


KINDS = (
    Kind("echo", 30),
    Kind("pair", 20, scalar=False),
    Kind("slow_echo", 6),
    Kind("fail", 6, fails=400),
    Kind("big", 6, scalar=False),
    Kind("write", 30, volatile=True, writes=True),
    Kind("check_late", 6, volatile=True, writes=True),
    Kind("fail_late", 4, volatile=True, writes=True, fails=409),
    Kind("slow_write", 6, volatile=True, writes=True),
    Kind("write_and_fail", 4, volatile=True, writes=True, fails=400),
    Kind("write_for_ever", 2, volatile=True, writes=True, fails=504, timeout=0.05),
    Kind("dirty", 2, volatile=True),
    Kind("deallocating", 1, volatile=True),
    Kind("write_and_commit", 4, volatile=True, procedure=True, writes=True, timeout=5.0),
)


class Client:
    """The side of a request that can leave."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def client_disconnect(self) -> None:
        await self.gone.wait()


@dataclass
class Outcome:
    kind: Kind
    number: int
    answers: list[Any] = field(default_factory=list)
    """Parsed bodies and problems; more than one is a mistake."""
    left: bool = False


class Model:
    def __init__(self, database: Database, server: harness.Database, calls: dict[str, Call], seed: int) -> None:
        self.database = database
        self.server = server
        self.choice = random.Random(seed)
        self.calls = calls
        self.outcomes: list[Outcome] = []
        self.streamed = 0
        self.replacements = 0
        self.wrote_shared = 0
        """Requests that were seen in flight on connections that writes share."""

    async def run(self, requests: int) -> None:
        numbers = iter(range(1, requests + 1))
        chaos = asyncio.create_task(self._chaos())
        await asyncio.gather(*(self._client(numbers) for _ in range(AT_ONCE)))
        chaos.cancel()
        await asyncio.gather(chaos, return_exceptions=True)

    async def _client(self, numbers: Any) -> None:
        for number in numbers:
            (kind,) = self.choice.choices(KINDS, [kind.share for kind in KINDS])
            outcome = Outcome(kind, number)
            self.outcomes.append(outcome)
            client = Client()
            task = asyncio.create_task(self._request(outcome, client))
            impatience = self.choice.random()
            if impatience < 0.04:
                await asyncio.wait([task], timeout=self.choice.random() * 0.03)
                outcome.left = not task.done()
                task.cancel()
            elif impatience < 0.08:
                await asyncio.wait([task], timeout=self.choice.random() * 0.03)
                outcome.left = not task.done()
                client.gone.set()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    async def _request(self, outcome: Outcome, client: Client) -> None:
        call = self.calls[outcome.kind.name]
        context = RequestContext(None, client)
        context.mask, context.arguments = 1, [b"%d" % outcome.number]
        try:
            await self._wait(self.database.begin(call, context))
            await self._wait(self.database.settle(call, context))
            request = context.execution
            assert request is not None
            if request.state == ExecutionState.STREAMING:
                outcome.answers += await self._read_stream(request, client)
            else:
                outcome.answers.append(None if outcome.kind.is_void else rows_of(request))
        except Problem as problem:
            outcome.answers.append(problem)
        except ClientDisconnectedError:
            assert client.gone.is_set()

    async def _wait(self, waiting: Awaitable[None] | Execution | None) -> None:
        """What the application does, by a future instead of a callback."""
        if isinstance(waiting, Execution):
            if waiting.finished:
                return
            done = asyncio.get_running_loop().create_future()
            # A second answer would raise, and be reported as a mistake.
            waiting.on_done = lambda request: self._drop(request) if done.cancelled() else done.set_result(request)
            await done
        elif waiting is not None:
            await waiting

    def _drop(self, request: Execution) -> None:
        """No client reads or checks its stream."""
        self.database.end_stream(request, gone=True)

    async def _read_stream(self, request: Execution, client: Client) -> list[Any]:
        """A reader that is slow, and sometimes leaves in the middle."""
        self.streamed += 1
        connection = request.connection
        assert connection is not None
        leaves = self.choice.random() < 0.2
        parts = []
        complete = False
        try:
            while request.state == ExecutionState.STREAMING:
                parts.append(connection.take())
                request.waiter = waiter = asyncio.get_running_loop().create_future()
                connection.resume()
                await asyncio.sleep(self.choice.random() * 0.02)
                if leaves or client.gone.is_set():
                    return []
                if request.state == ExecutionState.STREAMING:
                    await waiter
            complete = True
        finally:
            self.database.end_stream(request, gone=not complete)
        if not request.succeeded:
            return []
        return [json.loads(b"".join([*parts, request.body or b""]))]

    async def _chaos(self) -> None:
        """Backends are terminated, functions replaced and connections recycled while the requests run."""
        while True:
            await asyncio.sleep(self.choice.random() * 0.05)
            await self.choice.choice([self._terminate, self._replace, self._recycle, self._cut, self._vacuum])()
            self.wrote_shared += sum(connection.in_flight for connection in self.database._writes.connections)

    async def _terminate(self) -> None:
        count = self.choice.randint(1, 4)
        await _in_thread(
            lambda: self.server.terminate(
                f"pid in (select pid from pg_stat_activity where datname = current_database()"
                f" and application_name = 'model' order by random() limit {count})"
            )
        )

    async def _replace(self) -> None:
        column = "bigint" if self.replacements % 2 else "text"
        self.replacements += 1
        await _in_thread(
            lambda: self.server.execute(
                "drop function pair(int);"
                f"create function pair(_id int) returns table (id int, twice {column}) language sql stable"
                f" as 'select _id, (2 * n)::{column} from generate_series(_id, _id) n'"
            )
        )

    async def _vacuum(self) -> None:
        """Statements that write the table are prepared anew, and judged anew: nothing has changed."""
        await _in_thread(lambda: self.server.execute("vacuum written"))

    async def _recycle(self) -> None:
        if connections := self._connections():
            self.choice.choice(connections).drain("recycled by the test")

    async def _cut(self) -> None:
        """As a network does it: the server goes on with what it has received."""
        connections = [connection for connection in self._connections() if connection.in_flight]
        if connections:
            self.choice.choice(connections).close("cut by the test")

    def _connections(self) -> list[Connection]:
        return [connection for pool in self.database._pools for connection in pool.connections]

    # --- what has to hold -------------------------------------------------------------------------------------------

    def check_answers(self) -> None:
        torn = [outcome for outcome in self.outcomes if outcome.kind.name == "pair" and _kind_of(outcome) == 500]
        assert len(torn) <= 3 * self.replacements, "a replaced function fails more than those who met the replacement"
        for outcome in self.outcomes:
            assert len(outcome.answers) <= 1, f"answered twice: {outcome}"
            if not outcome.answers:
                assert outcome.left or outcome.kind.name == "big", f"not answered: {outcome}"
                continue
            (response,) = outcome.answers
            if not isinstance(response, Problem):
                assert not outcome.kind.fails, f"a success that cannot be: {outcome}"
                assert response in outcome.kind.bodies(outcome.number), f"not its own answer: {outcome}"
            elif response.status == 400:
                assert response.title == f"no {outcome.number}", f"not its own problem: {outcome}"
            else:
                cancelled = outcome.left or outcome.kind.fails == 504
                replaced = outcome.kind.name == "pair" and response.status == 500
                assert (
                    response.status in (503, outcome.kind.fails) or (cancelled and response.status == 504) or replaced
                ), f"an undefined problem: {outcome} {response.detail}"

    def check_writes(self) -> None:
        written = Counter(number for (number,) in self.server.fetch("select id from written"))
        for outcome in self.outcomes:
            count = written.pop(outcome.number, 0)
            if not outcome.kind.writes:
                assert count == 0
            elif not outcome.answers:
                assert count <= 1, f"written twice: {outcome}"
            elif not isinstance(outcome.answers[0], Problem):
                assert count == 1, f"a success that was written {count} times: {outcome}"
            elif IN_DOUBT in (outcome.answers[0].detail or "") or outcome.kind.procedure:
                assert count <= 1, f"written twice: {outcome}"
            else:
                assert count == 0, f"a failure that took effect: {outcome} {outcome.answers[0].detail}"
        assert not written

    async def check_connections(self) -> None:
        """Everything is idle, everything idle can be had, and PostgreSQL counts what the pools count."""
        exclusive = self.database._exclusive
        async with asyncio.timeout(20):
            while any(connection.in_flight for connection in self._connections()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while await self._pids() != {connection.backend_pid for connection in self._connections()}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        idle = set()
        while (connection := exclusive.try_acquire()) is not None:
            assert connection not in idle, "in the pool twice"
            idle.add(connection)
        assert idle == exclusive.connections, "a connection was never released"
        for connection in idle:
            exclusive.release(connection)
        assert not self.database.watching

    async def _pids(self) -> set[int]:
        return set(await _in_thread(lambda: self.server.backends("application_name = 'model'")))


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)


@pytest.mark.parametrize(
    "sharing",
    [pytest.param(True, id="sharing"), pytest.param(False, id="every request alone", marks=pytest.mark.slow)],
)
def test_each_request_gets_its_own_response(own_database: harness.Database, sharing: bool) -> None:
    own_database.execute(SQL)
    parameters = {name: str(value) for name, value in conninfo_to_dict(own_database.conninfo).items()}
    options = DatabaseOptions(
        pools=PoolOptions(
            pipelined_connections=2,
            pipelined_depth=6,
            write_connections=3,
            write_depth=4,
            dedicated_connections=5,
            queue_limit=100,
            queue_timeout=5.0,
            sharing=sharing,
        ),
    )
    mistakes: list[dict[str, Any]] = []

    async def work() -> Model:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: mistakes.append(context))
        database = Database(ConnectionTarget({**parameters, "application_name": "model"}), options)
        await database.start()
        async with await psycopg.AsyncConnection.connect(own_database.conninfo, autocommit=True) as connection:
            world = await read_dependency_graph(connection)
        oids = dict(own_database.fetch("select proname, oid::bigint from pg_proc where oid >= 16384"))
        calls = {kind.name: kind.call(world, oids[kind.name]) for kind in KINDS}
        model = Model(database, own_database, calls, SEED)
        try:
            await asyncio.wait_for(model.run(REQUESTS), max(60, REQUESTS / 20))
            await model.check_connections()
        finally:
            await database.close()
        return model

    print("seed", SEED)
    model = uvloop.run(work())
    print(Counter((outcome.kind.name, _kind_of(outcome)) for outcome in model.outcomes), model.streamed)
    model.check_answers()
    model.check_writes()
    assert mistakes == []
    assert bool(model.wrote_shared) == sharing


def _kind_of(outcome: Outcome) -> object:
    if not outcome.answers:
        return "left"
    return outcome.answers[0].status if isinstance(outcome.answers[0], Problem) else 200


def test_a_request_of_a_disconnected_client_has_no_response_even_on_success(own_database: harness.Database) -> None:
    """Its rows have been dropped; the command that should have cancelled it came too late."""
    parameters = {name: str(value) for name, value in conninfo_to_dict(own_database.conninfo).items()}
    locked = "select $1::int as n from pg_advisory_xact_lock(7)"
    call = replace(Kind("echo", 1).call(DependencyGraph(), 0), build=lambda _mask: (locked, 1))
    context = RequestContext(None, Client())
    context.mask, context.arguments = 1, [b"1"]

    async def work() -> None:
        database = Database(ConnectionTarget(parameters), DatabaseOptions())
        await database.start()
        with own_database.locked(7):
            assert isinstance(database.begin(call, context), Execution)
            while not (busy := [item for item in database._exclusive.connections if item.in_flight]):  # noqa: ASYNC110
                await asyncio.sleep(0)
            busy[0].abandon()
        assert context.execution is not None
        while not context.execution.finished:  # noqa: ASYNC110
            await asyncio.sleep(0)
        with pytest.raises(ClientDisconnectedError):
            database.settle(call, context)
        assert not database.watching
        await database.close()

    uvloop.run(work())
