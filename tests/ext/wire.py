"""One driver connection to a real server, and an event loop like that of the service."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
import uvloop

from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution, Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from tests.harness.database import Database

Value = TypeVar("Value")

_ids = itertools.count(1_000_000)

OPTIONS = "-c DateStyle=ISO -c timezone=UTC"


def run(work: Coroutine[Any, Any, Value]) -> Value:
    return uvloop.run(asyncio.wait_for(work, 30))


def statement(sql: str, nparams: int = 0, *, rows: bool = True) -> Statement:
    """Return a statement. rows: the result becomes an array of objects; otherwise there is no body."""
    renderer = Renderer(Codecs(), "rows", True, True, []) if rows else None
    return Statement(next(_ids), sql.encode(), nparams, renderer)


def execution(of: Statement | str, *values: str | None, **attributes: Any) -> Execution:
    """Return an execution with a waiter; must be called inside the loop."""
    if isinstance(of, str):
        of = statement(of, len(values))
    made = Execution(of, [None if value is None else value.encode() for value in values])
    made.waiter = asyncio.get_running_loop().create_future()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


async def outcome(made: Execution) -> Execution:
    """Return the execution when it is done or streams."""
    if made.waiter is not None:
        await made.waiter
    return made


def rows_of(made: Execution) -> Any:
    """Return the body of an execution that has one, read as JSON."""
    assert made.body is not None
    return json.loads(made.body)


async def answer(connection: Connection, of: Statement | str, *values: str | None) -> Any:
    """Return the rows of one successful run."""
    made = execution(of, *values)
    assert connection.submit(made)
    await outcome(made)
    assert made.succeeded, (made.error, made.loss, made.failure)
    return rows_of(made)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds; `run` limits the time."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.002)


@asynccontextmanager
async def connected(database: Database, *, named: bool = True, options: str = OPTIONS) -> AsyncIterator[Connection]:
    opened = await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True, options=options)
    connection = Connection(opened.pgconn, asyncio.get_running_loop(), named)
    connection.owner = opened
    try:
        yield connection
    finally:
        connection.close("the test has ended")
