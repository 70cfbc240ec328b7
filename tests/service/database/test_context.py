"""What a request brings along is seen by its routine and not by later requests, on every kind of connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import Execution
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.service.database.call import Call
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.database import Database
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import Command, Preamble
from rowcall.service.database.statements import statement_for
from rowcall.service.discovery.session_effects import read_dependency_graph
from rowcall.service.request_context.request_context import RequestContext
from tests.harness import database as harness

SQL = """
create function seen() returns json language sql stable as $$
  select json_build_array(current_setting('my.user', true), current_setting('my.text', true), pg_backend_pid()) $$;
create table written (who text, said text);
create table log (line text);
create procedure write_twice() language plpgsql as $$
begin
  insert into written values (current_setting('my.user', true), 'before');
  commit;
  insert into written values (current_setting('my.user', true), 'behind');
end $$;
create procedure write_once() language sql as
  $$ insert into written values (current_setting('my.user', true), (select max(line) from log)) $$;
"""

ODD = "it''s $1, \\ {x} \u00fc; drop table written"


@pytest.fixture(scope="module")
def server(every_database: harness.Database) -> harness.Database:
    every_database.execute(SQL)
    return every_database


class Protocol:
    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()


class Scope:
    def __init__(self, user: str) -> None:
        self.user = user


def settings(context: RequestContext) -> Sequence[bytes | None]:
    return b"my.user", context.scope.user.encode(), b"my.text", ODD.encode()


CONTEXT = Preamble(settings=(settings,))


def call(sql: str = "select * from seen()", preamble: Preamble | None = CONTEXT, **options: Any) -> Call:
    procedure = sql.startswith("call")
    renderer = None if procedure else Renderer(Codecs(), "scalar", False, False, [])
    return Call(
        "a call",
        lambda _mask: (sql, 0),
        renderer,
        PoolAssignment(5.0),
        procedure,
        procedure,
        preamble=preamble,
        **options,
    )


@asynccontextmanager
async def opened(server: harness.Database, **target: Any) -> AsyncIterator[Database]:
    """One connection in each pool, so that every request follows another."""
    pools = PoolOptions(pipelined_connections=1, dedicated_connections=1)
    parameters = {key: str(value) for key, value in conninfo_to_dict(server.conninfo).items() if value is not None}
    database = Database(ConnectionTarget(parameters, **target), DatabaseOptions(pools))
    await database.start()
    try:
        yield database
    finally:
        await database.close()


async def ask(database: Database, one: Call, user: str = "alice") -> Any:
    context = RequestContext(Scope(user), Protocol())
    begin = database.begin if one.preamble is None else database.begin_with_preamble
    for step in (begin, database.settle):
        waiting = step(one, context)
        if isinstance(waiting, Execution):
            if not waiting.finished:
                done = asyncio.get_running_loop().create_future()
                waiting.on_done = done.set_result
                await done
        elif waiting is not None:
            await waiting
    assert context.execution
    return json.loads(context.execution.body) if context.execution.body else None


def run(work: Callable[[], Awaitable[None]]) -> None:
    uvloop.run(work())  # type: ignore[arg-type]


async def until_shared(database: Database, one: Call) -> None:
    """The first calls are measured alone; then the pipelined pool is used, and at last that for generic plans."""
    async with await database._connector.open_plain() as connection:
        # What the calls of these tests run is read from nothing but what they set.
        one.session, one.harmless = (await read_dependency_graph(connection)).of_texts([one.build(0)[0]]), True
    assert not one.session.traces
    for _ in range(2000):
        await ask(database, one)
        statement = one.guarded[1].get(0)
        if one.shared and one.generic and statement is not None and statement.admissions:
            return
        await asyncio.sleep(0)
    raise AssertionError("the call never came to the pipelined pool")


@pytest.mark.parametrize("target", [{}, {"pooler": True}], ids=["direct", "pooler"])
def test_settings_reach_the_routine_and_not_the_next_request(server: harness.Database, target: dict[str, Any]) -> None:
    async def work() -> None:
        async with opened(server, **target) as database:
            with_context, plain = call(), call(preamble=None)
            first = await ask(database, with_context)
            second = await ask(database, plain)
            assert first[:2] == ["alice", ODD]
            assert second == ["", "", first[2]]

    run(work)


def test_settings_reach_the_routine_and_not_the_next_request_on_a_shared_connection(server: harness.Database) -> None:
    async def work() -> None:
        async with opened(server) as database:
            with_context, plain = call(), call(preamble=None)
            await until_shared(database, with_context)
            await until_shared(database, plain)
            users = [f"user {number}" for number in range(30)]
            values = [ask(database, item, user) for user in users for item in (with_context, plain)]
            responses = await asyncio.gather(*values)
            assert [response[0] for response in responses[::2]] == users
            # A name that was set once reads back as an empty text: PostgreSQL knows no other way.
            assert {tuple(response[:2]) for response in responses[1::2]} == {("", "")}
            # On a busy machine a call may go to the other pool; what counts is that both kinds have shared a session.
            assert {response[2] for response in responses[::2]} & {response[2] for response in responses[1::2]}

    run(work)


def test_more_settings_than_function_arguments_are_possible(server: harness.Database) -> None:
    many = [part.encode() for number in range(250) for part in (f"my.s{number}", f"value {number}")]
    sql = "select json_agg(current_setting('my.s' || n)) from generate_series(0, 249) n"

    async def work() -> None:
        async with opened(server) as database:
            preamble = Preamble(settings=(lambda _context: many,))
            assert await ask(database, call(sql, preamble)) == [f"value {number}" for number in range(250)]

    run(work)


def test_a_time_limit_and_settings_are_combined(server: harness.Database) -> None:
    async def work() -> None:
        async with opened(server) as database:
            limited = call(
                "select json_build_array(current_setting('my.user'), current_setting('statement_timeout'))", timeout=7.0
            )
            assert await ask(database, limited) == ["alice", "7s"]
            await until_shared(database, limited)
            assert await ask(database, limited, "bob") == ["bob", "7s"]

    run(work)


def test_a_failing_setting_prevents_the_call(server: harness.Database) -> None:
    async def work() -> None:
        async with opened(server) as database:
            bad = call("insert into written values ('never') returning 1", Preamble(settings=(wrong,)))
            with pytest.raises(Problem, match="22023"):
                await ask(database, bad)
            assert (await ask(database, call(preamble=None)))[0] in (None, "")

    def wrong(_context: RequestContext) -> Sequence[bytes | None]:
        return b"my.user", b"alice", b"statement_timeout", b"soon"

    run(work)
    assert server.value("select count(*) from written where who = 'never'") == 0


def test_settings_of_a_procedure_survive_its_commits_but_not_the_request(server: harness.Database) -> None:
    async def work() -> None:
        async with opened(server) as database:
            await ask(database, call("call write_twice()"), "carol")
            assert (await ask(database, call(preamble=None)))[:2] == ["", ""]

    run(work)
    assert server.fetch("select * from written where who = 'carol'") == [("carol", "before"), ("carol", "behind")]


def test_commands_run_after_the_settings_and_before_the_call(server: harness.Database) -> None:
    def command(text: str) -> Command:
        sql = "insert into log values (current_setting('my.user') || $1)"
        return Command(statement_for(sql, 1), lambda _context: [text.encode()])

    async def work() -> None:
        async with opened(server) as database:
            preamble = Preamble((settings,), (command(" a"), command(" b")))
            logged = call("select json_agg(line) from log where line like 'dora%'", preamble)
            assert await ask(database, logged, "dora") == ["dora a", "dora b"]
            await ask(database, call("call write_once()", preamble), "zoe")

    run(work)
    assert server.fetch("select * from written where who = 'zoe'") == [("zoe", "zoe b")]


def test_a_failing_command_prevents_the_call(server: harness.Database) -> None:
    broken = Command(statement_for("select 1 / $1::int", 1), lambda _context: [b"0"])

    async def work() -> None:
        async with opened(server) as database:
            with pytest.raises(Problem, match="22012"):
                await ask(database, call("insert into written values ('unknown') returning 1", Preamble((), (broken,))))

    run(work)
    assert server.value("select count(*) from written where who = 'unknown'") == 0
