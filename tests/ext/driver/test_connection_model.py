"""One connection to a real server against a model of what each execution may have as its outcome.

Executions of all kinds are submitted, streamed, given up, cancelled and lost in any order. After each step the
invariants of docs/internals/connection.md hold. Each execution is finished once; a write took effect exactly if its
outcome says so.

No step depends on how fast the server is: a rule that does not apply at the moment does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Coroutine
from typing import Any

import psycopg
import pytest
import uvloop
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Loss, Part, Script, Statement
from rowcall.ext.driver.invariants import invariant_violations
from tests.ext.wire import OPTIONS, statement, until
from tests.harness.database import Database
from tests.harness.effort import examples

SQL = """
create table written (id bigint primary key deferrable initially deferred);
create function write(_id bigint) returns bigint language sql as 'insert into written values (_id) returning id';
"""
ROWS = 3000
MANY = json.dumps([{"n": number} for number in range(1, ROWS + 1)], separators=(",", ":"))
S = ConnectionState
TRANSITIONS = {
    S.READY: {S.READY, S.PAUSED, S.CANCELLING, S.DRAINING, S.CLOSED},
    S.PAUSED: {S.READY, S.PAUSED, S.CANCELLING, S.DRAINING, S.CLOSED},
    S.CANCELLING: {S.READY, S.PAUSED, S.CANCELLING, S.DRAINING, S.CLOSED},
    # A connection that drains may pause for a client, but accepts nothing any more.
    S.DRAINING: {S.PAUSED, S.DRAINING, S.CLOSED},
    S.CLOSED: {S.CLOSED},
}


def without_parameters(sql: str) -> Statement:
    return Statement(statement("").id, sql.encode(), 1, picks=())


class Kinds:
    """The statements of a run; each has its own name for each connection."""

    def __init__(self) -> None:
        write = "select write($1::bigint) as n"
        silent = [statement(f"{write} where {place} > 0", 1, rows=False) for place in (1, 2)]
        parts = tuple(Part(item, True, place == 0) for place, item in enumerate(silent))
        self.statements: dict[str, Statement] = {
            "echo": statement("select $1::bigint as n", 1),
            "nothing": statement("select $1::bigint as n where false", 1),
            "many": statement(f"select n from generate_series(1, {ROWS}) n where $1::bigint > 0", 1),
            "divide": statement("select 1 / ($1::bigint - $1::bigint) as n", 1),
            "late": statement("select 1 / (50 - n) as n from generate_series(1, 99) n where $1::bigint > 0", 1),
            "syntax": statement("selec $1::bigint", 1),
            "write": statement(write, 1),
            "silent": statement(write, 1, rows=False),
            # The constraint is checked at the commit, behind the row.
            "duplicate": statement("insert into written values ($1::bigint), ($1::bigint) returning id", 1),
            # The second statement fails at its commit, as the first has committed the same number.
            "script": Script(statement("").id, 1, parts, b"{}"),
            "setting": statement("select set_config('TimeZone', 'Asia/Tokyo', $1::bigint = 0) as n", 1),
            "deallocate": without_parameters("deallocate all"),
            "begin": without_parameters("begin"),
        }


BODIES = {"echo": '[{{"n":{0}}}]', "nothing": "[]", "many": MANY, "write": '[{{"n":{0}}}]', "silent": None}
ERRORS = {"divide": "22012", "late": "22012", "syntax": "42601", "duplicate": "23505", "script": "23505"}
WRITES = {"write", "silent", "duplicate", "script"}
COMMON = ["echo", "nothing", "many", "divide", "late", "syntax", "write", "silent", "duplicate", "script"]
HARMFUL = ["setting", "deallocate", "begin"]
MISSING_STATEMENT = "26000"
IN_OPEN_TRANSACTION = "25P02"


class Submitted:
    """An execution, and what is known about it."""

    def __init__(self, kind: str, number: int, of: Statement) -> None:
        self.kind = kind
        self.number = number
        self.execution = Execution(of, [b"%d" % number])
        self.accepted = False
        self.given_up = False
        self.parts: list[bytes] = []
        self.done = self.freed = 0
        self.execution.on_done = self._on_done
        self.execution.on_free = self._on_free

    def _on_done(self, _: Execution) -> None:
        self.done += 1

    def _on_free(self, _: Execution) -> None:
        self.freed += 1


class ConnectionModel(RuleBasedStateMachine):
    numbers = itertools.count(1)

    def __init__(self, database: Database, control: psycopg.Connection[Any]) -> None:
        super().__init__()
        self.database, self.control = database, control
        self.loop = uvloop.new_event_loop()
        self.kinds = Kinds().statements
        self.submitted: list[Submitted] = []
        self.harmed = False
        self.closed: list[Connection] = []

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    @initialize(named=st.booleans())
    def connect(self, named: bool) -> None:
        async def opened() -> Connection:
            made = await psycopg.AsyncConnection.connect(self.database.conninfo, autocommit=True, options=OPTIONS)
            connection = Connection(made.pgconn, asyncio.get_running_loop(), named)
            connection.owner = made
            connection.on_closed = self.closed.append
            return connection

        self.connection = self.run(opened())
        self.state = self.connection.state

    # Steps

    @rule(kind=st.sampled_from(COMMON), streamed=st.booleans(), limited=st.booleans(), count=st.integers(1, 3))
    def submit(self, kind: str, streamed: bool, limited: bool, count: int) -> None:
        for _ in range(count):
            item = Submitted(kind, next(self.numbers), self.kinds[kind])
            item.execution.stream_after = 2_000 if streamed else 0
            item.execution.limit = 3_000 if limited else 0
            item.accepted = self.connection.submit(item.execution)
            assert item.accepted == (self.state == S.READY) or self.connection.state == S.CLOSED
            self.submitted.append(item)
            self.state = self._moved()

    @rule(kind=st.sampled_from(HARMFUL), chance=st.integers(0, 3))
    def submit_harmful(self, kind: str, chance: int) -> None:
        """A routine that changes its session, or leaves a transaction open."""
        if chance == 0:
            self.submit(kind, False, False, 1)
            self.harmed = True

    @rule()
    def turn(self) -> None:
        """One turn of the event loop, with what has arrived by then."""
        self.run(asyncio.sleep(0))

    @rule()
    def wait(self) -> None:
        """Until nothing is in flight, or a part of a body has to be taken."""

        self.run(until(lambda: not self.connection.in_flight or self.connection.state == S.PAUSED))

    @rule(abandoned=st.booleans())
    def take(self, abandoned: bool) -> None:
        if self.connection.state != S.PAUSED:
            return
        item = self._of(self.connection.head)
        if abandoned:
            item.given_up = True
            self.connection.abandon()
        else:
            item.parts.append(self.connection.take())
            self.connection.resume()

    @rule(place=st.integers(0, 30))
    def give_up(self, place: int) -> None:
        if place < len(self.submitted):
            item = self.submitted[-1 - place]
            if item.accepted and item.execution.state in (ExecutionState.SENT, ExecutionState.DISCARDING):
                item.given_up = True
                item.execution.give_up(TimeoutError())

    @rule(behind=st.booleans())
    def cancel(self, behind: bool) -> None:
        """Stop accepting for a cancel request, which is not sent, and let it return."""
        head = self.connection.head
        if head is not None and self.connection.begin_cancel(head):
            assert not self.connection.submit(Submitted("echo", 0, self.kinds["echo"]).execution)
            if behind:
                self.run(asyncio.sleep(0))
            self.connection.end_cancel()

    @rule(corked=st.booleans())
    def cork(self, corked: bool) -> None:
        self.connection.corked = corked
        self.connection.flush()

    @rule(chance=st.integers(0, 7), end=st.sampled_from(["drain", "close", "terminate"]))
    def end(self, chance: int, end: str) -> None:
        if chance or self.connection.state == S.CLOSED:
            return
        if end == "drain":
            self.connection.drain("the test drains it")
        elif end == "close":
            self.connection.close("the test closes it")
        else:
            self.control.execute("select pg_terminate_backend(%s)", [self.connection.backend_pid])
        self.harmed = True

    # What holds after each step

    @invariant()
    def invariants_hold(self) -> None:
        if hasattr(self, "connection"):
            assert invariant_violations(self.connection) == []
            self.state = self._moved()
            assert (self.state == S.CLOSED) == (self.closed == [self.connection])

    @invariant()
    def each_execution_has_one_outcome(self) -> None:
        for item in self.submitted:
            if item.execution.state == ExecutionState.DONE:
                assert (item.done, item.freed) == (1, 1), item.kind
                self._check(item)
            else:
                assert item.freed == 0

    # The twin

    def _moved(self) -> ConnectionState:
        state: ConnectionState = self.connection.state
        assert state in TRANSITIONS[self.state], (self.state, state)
        return state

    def _of(self, execution: Execution) -> Submitted:
        return next(item for item in self.submitted if item.execution is execution)

    def _check(self, item: Submitted) -> None:
        made, kind = item.execution, item.kind
        assert item.accepted
        if made.loss != Loss.NOT_LOST:
            assert self.connection.state == S.CLOSED
            assert not made.succeeded
            return
        if made.error is not None:
            allowed = {ERRORS.get(kind)}
            if self.harmed or kind == "syntax":
                # Executions behind a Parse that fails rely on it, and are run again by the service.
                allowed.add(MISSING_STATEMENT)
            if self.harmed:
                allowed.add(IN_OPEN_TRANSACTION)
            assert made.error.sqlstate in allowed, (kind, made.error)
            assert made.body is None
        elif kind in ERRORS:
            assert item.given_up or made.overflowed or self.harmed, kind
        if made.succeeded and kind in BODIES and not item.given_up:
            body = BODIES[kind]
            received = b"".join(item.parts) + (made.body or b"")
            assert received.decode() == (body.format(item.number) if body and kind != "many" else body or "")
        if made.overflowed:
            assert kind == "many"
            assert made.body is None

    def teardown(self) -> None:
        if not hasattr(self, "connection"):
            return
        self.wait()
        while self.connection.state == S.PAUSED:
            self.take(True)
            self.wait()
        self.each_execution_has_one_outcome()
        self.connection.close("the test has ended")
        self.invariants_hold()
        assert all(item.execution.state == ExecutionState.DONE for item in self.submitted if item.accepted)
        self._check_writes()
        with contextlib.suppress(Exception):
            self.run(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _check_writes(self) -> None:
        # A backend that was terminated, or whose connection was closed, may still run what it has received.
        self.control.execute("select pg_terminate_backend(%s)", [self.connection.backend_pid])
        gone = "select count(*) from pg_stat_activity where pid = %s"
        while self.control.execute(gone, [self.connection.backend_pid]).fetchone() != (0,):
            pass
        numbers = [item.number for item in self.submitted if item.kind in WRITES]
        rows = self.control.execute("select id from written where id = any(%s)", [numbers]).fetchall()
        written = {number for (number,) in rows}
        for item in self.submitted:
            made = item.execution
            if item.kind not in WRITES or made.loss == Loss.IN_DOUBT:
                continue
            certain = not item.accepted or made.loss != Loss.NOT_LOST
            if certain or (made.error is not None and item.kind != "script"):
                assert item.number not in written, (item.kind, made.error, made.loss)
            elif made.succeeded and not self.harmed:
                assert item.number in written, item.kind


@pytest.mark.slow
def test_every_execution_has_exactly_one_outcome(every_database: Database) -> None:
    every_database.execute(SQL)
    with psycopg.connect(every_database.conninfo, autocommit=True) as control:
        made: Any = lambda: ConnectionModel(every_database, control)  # noqa: E731 (hypothesis declares a class)
        run_state_machine_as_test(
            made,
            settings=settings(max_examples=examples(300), stateful_step_count=30, deadline=None),
        )
