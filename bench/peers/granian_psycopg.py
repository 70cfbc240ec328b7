"""The endpoints of the benchmark on granian (RSGI, no framework) with psycopg's pool and orjson: a minimal Python
service.

psycopg prepares a statement after five executions. Values are Python objects, encoded by orjson.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

import orjson
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool

HEADERS = [("content-type", "application/json")]
PARAMETERS = (
    *("id", "small", "big", "price", "ratio", "score", "label", "code", "flag", "day"),
    *("clock", "stamp", "moment", "key", "docb", "first", "second", "third", "fourth", "fifth"),
)
BODY = ("rows", "label", "price", "day", "flag", "tags")

set_json_loads(orjson.loads)


def plain(value: Any) -> Any:
    """Convert the types that orjson does not support: numeric, and composites, which are named tuples in psycopg."""
    return value._asdict() if hasattr(value, "_asdict") else float(value)


def from_query(*names: str) -> Callable[[str, bytes], Sequence[Any]]:
    def read(query: str, body: bytes) -> Sequence[Any]:
        values = parse_qs(query)
        return [values[name][0] for name in names]

    return read


def from_body(query: str, body: bytes) -> Sequence[Any]:
    values = orjson.loads(body)
    return [values[name] for name in BODY]


def typed(casts: str) -> str:
    return ", ".join(f"%s::{cast}" for cast in casts.split())


ROUTES = {
    "/bench/minimal": ("select * from bench.minimal()", from_query()),
    "/bench/types": ("select * from bench.types(%s::int)", from_query("rows")),
    "/bench/nested": ("select * from bench.nested(%s::int)", from_query("rows")),
    "/bench/shelves": ("select * from bench.shelves(%s::int)", from_query("rows")),
    "/bench/flat": (
        "select id, (shelf).title, (shelf).code, (shelf).items from bench.flat(%s::int)",
        from_query("rows"),
    ),
    "/bench/levels": ("select * from bench.levels(%s::int)", from_query("rows")),
    "/bench/large": ("select * from bench.large(%s::int)", from_query("kilobytes")),
    "/bench/params": (
        "select * from bench.params("
        + typed(
            "int smallint bigint numeric float8 real text varchar boolean date "
            "time timestamp timestamptz uuid jsonb text text int int boolean"
        )
        + ")",
        from_query(*PARAMETERS),
    ),
    "/bench/post": (
        f"select * from bench.post({typed('int text numeric date boolean text[]')})",
        from_body,
    ),
}


async def register_composites(connection: AsyncConnection[Any]) -> None:
    # Inner types first: the others refer to them.
    for name in ("bench.person", "bench.item", "bench.shelf", "bench.hall", "bench.region"):
        info = await CompositeInfo.fetch(connection, name)
        assert info is not None
        register_composite(info, connection)


class Application:
    pool: AsyncConnectionPool[AsyncConnection[Any]]

    def __rsgi_init__(self, loop: Any) -> None:
        size = int(os.environ["BENCH_POOL"])
        self.pool = AsyncConnectionPool(
            os.environ["BENCH_DSN"],
            kwargs={"row_factory": dict_row, "autocommit": True},
            min_size=size,
            max_size=size,
            configure=register_composites,
            open=False,
        )
        loop.run_until_complete(self.pool.open())

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        sql, read = ROUTES[scope.path]
        body = await protocol() if scope.method == "POST" else b""
        async with self.pool.connection() as connection:
            cursor = await connection.execute(sql, read(scope.query_string, body))
            rows = await cursor.fetchall()
        protocol.response_bytes(200, HEADERS, orjson.dumps(rows, default=plain))


app = Application()
