"""Cost of reading and planning a request of PostgREST's interface: `pytest bench/micro/test_postgrest.py
--benchmark-only`.

Targets: 15 µs for a typical URL, and 3 µs if the shape of its query is known.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.relationships import relationships
from rowcall.core.postgrest.request.payload import JSON, parse_payload
from rowcall.core.postgrest.schema import Column, ForeignKey, Relation, Schema
from rowcall.service.postgrest.authentication import Authenticated
from rowcall.service.postgrest.planning.many_rows import ManyRows
from rowcall.service.postgrest.planning.reading import ReadPlanner
from rowcall.service.postgrest.request import ApiRequest, read_kind
from rowcall.service.postgrest.responding import Responder

COLUMNS = tuple(Column(name, "text", "text") for name in ("id", "artist_id", "title", "price", "made", "note"))
TABLES = ("artist", "album", "track")
KEYS = [
    ForeignKey(f"{origin}_key", ("api", origin), ("artist_id",), ("api", target), ("id",))
    for origin, target in (("album", "artist"), ("track", "album"))
]
RELATIONS = {("api", name): Relation("api", name, COLUMNS, ("id",)) for name in TABLES}
SCHEMA = Schema(RELATIONS, relationships(RELATIONS, KEYS))
OPTIONS = PostgRestOptions(schemas=("api",), anonymous_role="anon")
URLS = {
    "key": ("album", "id=eq.{}"),
    "page": ("album", "select=id,title,price&price=gte.{}&order=title.desc,id&limit=25&offset=50"),
    "embed": ("artist", "select=id,title,album(id,title,track(id,title))&id=eq.{}&album.order=id"),
}


class Scope:
    """What planning reads of a request."""

    method = "GET"
    path = "/"
    headers: dict[str, str] = {}  # noqa: RUF012 (nothing changes it)

    def __init__(self, query: str) -> None:
        self.query_string = query


async def never() -> None:
    """A client that does not disconnect."""


def request(name: str, query: str) -> ApiRequest:
    scope: Any = Scope(query)
    user = Authenticated("anon", {}, b'{"role":"anon"}')
    kind = read_kind(OPTIONS, (name,), "GET", None, (), ())
    return ApiRequest(scope, never, f"/{name}", user, *kind)


@pytest.mark.parametrize("kind", URLS)
def test_a_new_shape(benchmark: BenchmarkFixture, kind: str) -> None:
    name, query = URLS[kind]
    first = request(name, query.format(1))
    planners = iter([ReadPlanner(SCHEMA, OPTIONS, Responder(OPTIONS)) for _ in range(20_000)])
    benchmark.pedantic(lambda: next(planners).plan(first), rounds=2000, iterations=5)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("kind", URLS)
def test_a_known_shape(benchmark: BenchmarkFixture, kind: str) -> None:
    name, query = URLS[kind]
    planner = ReadPlanner(SCHEMA, OPTIONS, Responder(OPTIONS))
    requests = [request(name, query.format(number)) for number in range(100)]

    def plan() -> None:
        for item in requests:
            planner.plan(item)

    benchmark.pedantic(plan, rounds=200, iterations=1)  # type: ignore[no-untyped-call]


ROWS = [{"artist_id": number, "title": f"title {number}", "note": None} for number in range(1000)]
BODY = json.dumps(ROWS, separators=(",", ":")).encode()


def test_many_rows_as_arrays(benchmark: BenchmarkFixture) -> None:
    rows = ManyRows(SCHEMA)
    assert benchmark(rows.read, ("api", "album"), BODY, None) is not None


def test_many_rows_as_json(benchmark: BenchmarkFixture) -> None:
    assert benchmark(parse_payload, BODY, JSON, None).rows == len(ROWS)
