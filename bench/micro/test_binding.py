"""Cost of binding, of the fast code and its slow twin: `pytest bench/micro/test_binding.py --benchmark-only`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rowcall.core.binding.binding import Binder
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, QueryNull, ValueKind
from rowcall.ext.binding.parameters import FastBinder

SAMPLES = [
    (ValueKind.INTEGER, "integer", "12345"),
    (ValueKind.TEXT, "text", "plain words"),
    (ValueKind.NUMERIC, "numeric", "1234.50"),
    (ValueKind.BOOLEAN, "boolean", "true"),
    (ValueKind.TIMESTAMP, "timestamp without time zone", "2026-03-01T10:00:00"),
    (ValueKind.UUID, "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
]


def binder(count: int) -> Binder:
    parameters = [
        EndpointParameter(f"_p{number}", f"param{number}", kind, False, cast, False, number)
        for number in range(count)
        for kind, cast, _ in [SAMPLES[number % len(SAMPLES)]]
    ]
    return Binder(parameters, Transport.QUERY, QueryNull.IGNORE)


def query(count: int) -> str:
    texts = [SAMPLES[number % len(SAMPLES)][2].replace(" ", "%20") for number in range(count)]
    return "&".join(f"param{number}={text}" for number, text in enumerate(texts))


def body(count: int) -> bytes:
    values: dict[str, Any] = {}
    for number in range(count):
        kind, _, text = SAMPLES[number % len(SAMPLES)]
        as_written = kind in {ValueKind.INTEGER, ValueKind.NUMERIC, ValueKind.BOOLEAN}
        values[f"param{number}"] = json.loads(text) if as_written else text
    return json.dumps(values).encode()


COUNTS = pytest.mark.parametrize("count", [1, 3, 20])


@COUNTS
def test_query_fast(benchmark: BenchmarkFixture, count: int) -> None:
    slow = binder(count)
    assert benchmark(FastBinder(*slow.plain).bind_query, query(count)) == slow.bind_query(query(count))


@COUNTS
def test_body_fast(benchmark: BenchmarkFixture, count: int) -> None:
    slow = binder(count)
    assert benchmark(FastBinder(*slow.plain).bind_body, body(count)) == slow.bind_body(body(count))


@COUNTS
def test_query_slow(benchmark: BenchmarkFixture, count: int) -> None:
    benchmark(binder(count).bind_query, query(count))


@COUNTS
def test_body_slow(benchmark: BenchmarkFixture, count: int) -> None:
    benchmark(binder(count).bind_body, body(count))


def test_array_in_a_body_fast(benchmark: BenchmarkFixture) -> None:
    slow = Binder(
        [EndpointParameter("_ids", "ids", ValueKind.INTEGER, True, "integer[]", False, 0)],
        Transport.BODY,
        QueryNull.IGNORE,
    )
    numbers = json.dumps({"ids": list(range(1000, 1100))}).encode()
    assert benchmark(FastBinder(*slow.plain).bind_body, numbers) == slow.bind_body(numbers)
