"""What is kept of requests is bounded in number and in bytes."""

from __future__ import annotations

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.sql.output import Statement
from rowcall.service.postgrest.authentication import Authenticated
from rowcall.service.postgrest.bounded_mapping import PARTS, BoundedMapping
from rowcall.service.postgrest.planning.plan_cache import PlanCache
from rowcall.service.postgrest.request import LONGEST, ApiRequest, negotiation_headers, read_kind
from rowcall.service.postgrest.statement_cache import StatementCache


def request(accept: str) -> ApiRequest:
    kind = read_kind(PostgRestOptions(), ("item",), "GET", None, (accept,), ())
    return ApiRequest(None, never, "/item", Authenticated("anon", {}, b""), *kind)


async def never() -> None:
    raise NotImplementedError


def test_the_oldest_value_is_dropped_beyond_the_number() -> None:
    mapping: BoundedMapping[str, int] = BoundedMapping(2)
    for value, key in enumerate("abc"):
        mapping.store(key, value, 1)
    assert [mapping.get(key) for key in "abc"] == [None, 1, 2]


def test_the_oldest_values_are_dropped_beyond_the_size() -> None:
    mapping: BoundedMapping[int, int] = BoundedMapping(10_000, 10 * PARTS)
    for key in range(2 * PARTS):
        mapping.store(key, key, 10)
    assert len(mapping) == PARTS
    assert [mapping.get(key) for key in (PARTS - 1, PARTS)] == [None, PARTS]
    mapping.store(-1, 0, 1)
    assert len(mapping) == PARTS


def test_a_large_value_is_not_stored() -> None:
    mapping: BoundedMapping[str, int] = BoundedMapping(10, 10 * PARTS)
    mapping.store("a", 1, 10)
    mapping.store("b", 2, 11)
    assert (mapping.get("a"), mapping.get("b")) == (1, None)


def test_short_headers_give_one_object_and_long_ones_are_not_remembered() -> None:
    short, long = ("*/*",), ("*/*" + ",a" * (LONGEST // 2),)
    assert negotiation_headers(short, ()) is negotiation_headers(short, ())
    assert negotiation_headers(long, ()) is not negotiation_headers(long, ())
    assert [negotiation_headers(accept, ()).remembered for accept in (short, long)] == [True, False]


def test_a_plan_of_a_request_with_long_headers_is_not_kept() -> None:
    plans: PlanCache[str] = PlanCache(10)
    for accept in ("text/csv", "text/csv" + ",a" * LONGEST):
        plans.remember(request(accept), (accept, "id=eq.1"), "plan", Statement("select 1", ()))
    assert len(plans) == 1


def test_plans_are_bounded_by_the_size_of_their_queries_statements_and_names() -> None:
    plans: PlanCache[str] = PlanCache(100_000)
    for texts in (("x" * 100_000, "select", ()), ("", "x" * 100_000, ()), ("", "", ("x" * 100_000,))):
        query, sql, names = texts
        plans.remember(request("*/*"), (query, names), "plan", Statement(sql, ()), names)
    assert len(plans) == 0
    for number in range(2000):
        plans.remember(request("*/*"), (number, "x" * 20_000), "plan", Statement("select 1", ()))
    assert 100 < len(plans) < 200


def test_statements_are_bounded_by_their_size() -> None:
    statements = StatementCache(lambda: None)
    for number in range(600):
        statements.find(Statement(f"select {number}, '{'x' * 100_000}'", ()), "anon", repeatable=False)
    assert 100 < len(statements) < 200
