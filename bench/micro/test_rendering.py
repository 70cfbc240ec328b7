"""Speed of rendering rows: `pytest bench/micro --benchmark-only` (rates are in `extra_info`).

The result is 1,000 rows of 23 columns of mixed types, the shape of a public load test of comparable services. For
comparison: orjson over rows that psycopg has decoded, and the Python twin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson
import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rowcall.ext.base.buffer import escape
from rowcall.ext.rendering.raw_rows import BytesRenderer, RawRenderer
from rowcall.ext.rendering.rows import Renderer
from rowcall.ext.rendering.values import render_value
from tests.ext import catalogue
from tests.ext.results import address_of
from tests.ext.twins.rows import Column, render_rows
from tests.ext.twins.types import Array, Composite, Registry, Scalar, Type

if TYPE_CHECKING:
    from tests.harness.database import Database

MIXED = """
    select n as id, n * 1000000007::int8 as big, (n % 100)::int2 as small, n * 1.25 as amount,
        n / 3.0::float8 as ratio, n % 2 = 0 as even, n % 3 = 0 as third,
        'plain text number ' || n as title, 'with "quotes" and \\ ' || n as quoted,
        repeat('lorem ipsum dolor sit amet ', 4) as body, md5(n::text) as digest, md5(n::text)::uuid as key,
        date '2024-01-01' + n as day, timestamp '2024-01-01' + n * interval '1 minute' as made,
        timestamptz '2024-01-01 00:00+00' + n * interval '1 hour' as changed, n * interval '1 second' as span,
        time '10:00' as at, jsonb_build_object('n', n, 'tags', array['a', 'b']) as doc,
        json_build_array(n, null) as list, array[n, n + 1, null] as numbers, array['x y', 'z"' || n] as words,
        null::text as nothing, '10.0.0.1'::inet as host
    from generate_series(1, 1000) n
"""
KINDS: tuple[str | Type, ...] = (
    *("number",) * 5, "boolean", "boolean", *("text",) * 6, "datetime", "datetime", "text", "text", "json", "json",
    Array(Scalar("number")), Array(Scalar("text")), "text", "text",
)  # fmt: skip


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def mixed(connection: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    return connection.execute(MIXED.encode())


def record_rate(benchmark: BenchmarkFixture, size: int) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info["bytes"] = size
        benchmark.extra_info["MB/s"] = round(size / benchmark.stats.stats.median / 1e6)


@pytest.mark.benchmark(group="1,000 rows of 23 columns")
def test_renderer(benchmark: BenchmarkFixture, mixed: psycopg.Cursor[Any], connection: psycopg.Connection[Any]) -> None:
    renderer = Renderer(catalogue.load(connection), "rows", True, True, [])
    body = benchmark(renderer.render_result, address_of(mixed))
    assert len(json.loads(body)) == 1000
    record_rate(benchmark, len(body))


@pytest.mark.benchmark(group="1,000 rows of 23 columns")
def test_orjson_over_decoded_rows(benchmark: BenchmarkFixture, mixed: psycopg.Cursor[Any]) -> None:
    names = [column.name for column in mixed.description or ()]

    def decode_and_dump() -> bytes:
        mixed.scroll(0, mode="absolute")
        rows = [dict(zip(names, row, strict=True)) for row in mixed.fetchall()]
        return orjson.dumps(rows, default=str)

    record_rate(benchmark, len(benchmark(decode_and_dump)))


@pytest.mark.benchmark(group="1,000 rows of 23 columns")
def test_python_twin(benchmark: BenchmarkFixture, mixed: psycopg.Cursor[Any]) -> None:
    result = mixed.pgresult
    assert result is not None
    columns = [
        Column(description.name, Scalar(kind) if isinstance(kind, str) else kind)
        for description, kind in zip(mixed.description or (), KINDS, strict=True)
    ]
    values = [[result.get_value(row, column) for column in range(len(columns))] for row in range(result.ntuples)]
    texts = [[None if value is None else value.decode() for value in row] for row in values]
    body = benchmark(render_rows, columns, texts)
    record_rate(benchmark, len(body))


@pytest.mark.benchmark(group="composites")
def test_three_levels_of_composites(benchmark: BenchmarkFixture, connection: psycopg.Connection[Any]) -> None:
    gauge = Composite((("id", Scalar("number")), ("label", Scalar("text"))))
    shelf = Composite((("title", Scalar("text")), ("items", Array(gauge))))
    hall = Composite((("tag", Scalar("text")), ("shelf", shelf)))
    registry = Registry()
    oid = registry.oid(Array(hall))
    connection.execute("""
        create type gauge as (id int, label text); create type shelf as (title text, items gauge[]);
        create type hall as (tag text, shelf shelf)
    """)
    text = (
        connection.execute("""
        select array_agg(row('hall ' || n, row('shelf number ' || n, array[
            row(n, 'a label of some length ' || n)::gauge, row(2, 'another one "' || n)::gauge])::shelf)::hall)::text
        from generate_series(1, 2000) n
    """)
        .fetchall()[0][0]
        .encode()
    )
    body = benchmark(render_value, registry.codecs, oid, text)
    assert json.loads(body)[0]["shelf"]["items"][1] == {"id": 2, "label": 'another one "1'}
    record_rate(benchmark, len(text))


@pytest.mark.benchmark(group="escaping")
@pytest.mark.parametrize(
    "text",
    [
        b"nothing to see here, move along; " * 500,
        b'a "word" here,\na \\ there ' * 700,
        "näive Größe 你好 ".encode() * 600,
    ],
    ids=["clean", "escaped", "beyond ASCII"],
)
def test_escaping(benchmark: BenchmarkFixture, text: bytes) -> None:
    benchmark(escape, text)
    record_rate(benchmark, len(text))


@pytest.mark.benchmark(group="1,000 rows of 23 columns")
@pytest.mark.parametrize("separator", [None, b","], ids=["bare", "separated"])
def test_raw(
    benchmark: BenchmarkFixture,
    mixed: psycopg.Cursor[Any],
    connection: psycopg.Connection[Any],
    separator: bytes | None,
) -> None:
    renderer = RawRenderer(catalogue.load(connection), True, separator, b"\n", True)
    body = benchmark(renderer.render_result, address_of(mixed))
    assert body.startswith(b'"id"')
    record_rate(benchmark, len(body))


@pytest.mark.benchmark(group="bytes")
def test_bytes(benchmark: BenchmarkFixture, connection: psycopg.Connection[Any]) -> None:
    cursor = connection.execute("select decode(repeat('00ff5c', 5000), 'hex') from generate_series(1, 100)")
    body = benchmark(BytesRenderer(True).render_result, address_of(cursor))
    assert len(body) == 1_500_000
    record_rate(benchmark, len(body))
