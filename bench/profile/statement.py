"""Profile of a statement: PostgreSQL, the first row, the last row, and rendering by column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.ext.rendering.timed_rows import render_column

MEASURE_FOR = 0.1
"""Seconds for which the rendering of a column is repeated."""

_ARRAYS = """
select a.oid::int8, a.typelem::int8, a.typdelim from pg_type a join pg_type e on e.typarray = a.oid
where a.oid >= 16384
"""
_DOMAINS = "select oid::int8, typbasetype::int8 from pg_type where typtype = 'd' and oid >= 16384"
_COMPOSITES = """
select t.oid::int8, array_agg(a.attname::text order by a.attnum), array_agg(a.atttypid::int8 order by a.attnum)
from pg_type t join pg_attribute a on a.attrelid = t.typrelid
where t.typtype = 'c' and t.oid >= 16384 and a.attnum > 0 and not a.attisdropped group by t.oid
"""


def profile_statement(conninfo: str, sql: str, runs: int) -> list[str]:
    """Return the lines to print."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        codecs = _codecs(connection)
        executed = _server_seconds(connection, sql)
        first, last = _arrival(connection, sql, runs)
        cursor = connection.execute(sql.encode())
        return [
            f"PostgreSQL, by its own clock  {_ms(executed)}",
            f"first row after               {_ms(first)}",
            f"last row after                {_ms(last)}",
            *_rendering(connection, codecs, cursor),
        ]


def _codecs(connection: psycopg.Connection[Any]) -> Codecs:
    """Return codecs for all types of the database, as the service has them."""
    codecs = Codecs()
    for oid, element, delimiter in connection.execute(_ARRAYS):
        codecs.define_array(oid, element, delimiter)
    for oid, base in connection.execute(_DOMAINS):
        codecs.define_domain(oid, base)
    for oid, names, types in connection.execute(_COMPOSITES):
        codecs.define_composite(oid, [(name.encode(), kind) for name, kind in zip(names, types, strict=True)])
    return codecs


def _server_seconds(connection: psycopg.Connection[Any], sql: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, timing off, format json) {sql}".encode())
        plan = cursor.fetchall()[0][0][0]
    return float(plan["Planning Time"] + plan["Execution Time"]) / 1000


def _arrival(connection: psycopg.Connection[Any], sql: str, runs: int) -> tuple[float, float]:
    """Return the medians of the seconds until the first and until the last row, read row by row as in the service."""
    pgconn = connection.pgconn
    firsts: list[float] = []
    lasts: list[float] = []
    for _ in range(max(1, runs)):
        began = time.perf_counter()
        pgconn.send_query_params(sql.encode(), None)
        pgconn.set_single_row_mode()
        result = pgconn.get_result()
        firsts.append(time.perf_counter() - began)
        while result is not None:
            result = pgconn.get_result()
        lasts.append(time.perf_counter() - began)
    return statistics.median(firsts), statistics.median(lasts)


def _rendering(connection: psycopg.Connection[Any], codecs: Codecs, cursor: psycopg.Cursor[Any]) -> Iterator[str]:
    result: Any = cursor.pgresult
    names = [column.name for column in cursor.description or ()]
    renderer = Renderer(codecs, "rows", True, True, [name.encode() for name in names])
    size, seconds = _repeat(lambda: len(renderer.render_result(result.pgresult_ptr)))
    yield f"rendering {result.ntuples} rows       {_ms(seconds)}  {_rate(size, seconds)}, {size:,} bytes"
    for index, column in enumerate(cursor.description or ()):
        size, seconds = _repeat(partial(render_column, renderer, result.pgresult_ptr, index))
        kind = connection.execute("select format_type(%s, null)", (column.type_code,)).fetchone()
        yield f"  {column.name[:20]:<20} {kind[0] if kind else '?':<28} {_ms(seconds)}  {_rate(size, seconds)}"


def _repeat(work: Callable[[], int]) -> tuple[int, float]:
    """Return the result of `work` and the median of its seconds."""
    times: list[float] = []
    size = 0
    end = time.perf_counter() + MEASURE_FOR
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        size = work()
        times.append(time.perf_counter() - began)
    return size, statistics.median(times)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:10.3f} ms"


def _rate(size: int, seconds: float) -> str:
    return f"{size / seconds / 1e6:8.0f} MB/s" if seconds else ""
