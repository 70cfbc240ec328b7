"""Shapes of query strings give the same statements as the query strings themselves, in Cython as in Python."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.functions import choose_function
from rowcall.core.postgrest.plan import read_plan
from rowcall.core.postgrest.request.query_string import is_operation, parse_query
from rowcall.core.postgrest.request.shapes import LONGEST, Location, Template, uses_each_mark
from rowcall.core.postgrest.request.shapes import shape_of as shape_of_twin
from rowcall.core.postgrest.schema import Argument, Column, Function, Relation, Schema
from rowcall.core.postgrest.sql.calls import call_statement
from rowcall.core.postgrest.sql.output import JSON_ROWS, Statement
from rowcall.core.postgrest.sql.reads import read_statement
from rowcall.ext.binding.query_shape import shape_of
from tests.harness.effort import examples

RELATION = Relation("api", "item", (Column("id", "integer", "integer"), Column("name", "text", "text")), ("id",))
SCHEMA = Schema({("api", "item"): RELATION}, {})
ARGUMENTS = (Argument("a", "text", False), Argument("b", "integer", False), Argument("many", "text[]", False, True))
FUNCTIONS = Schema(
    {("api", "item"): RELATION},
    {},
    functions={
        ("api", "f"): (
            Function("api", "f", ARGUMENTS, relation=("api", "item"), returns_set=True, returns_composite=True),
        )
    },
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
parts = st.one_of(
    st.builds(
        lambda name, operator, value: f"{name}={operator}.{quote_plus(value)}",
        st.sampled_from(["id", "name", "other", "name->>x"]),
        st.sampled_from(["eq", "neq", "gt", "gte", "lt", "lte", "not.eq", "not.lt", "like", "in"]),
        texts,
    ),
    st.sampled_from(
        ["select=id,name", "order=name.desc", "limit=3", "offset=2", "or=(id.eq.1,name.eq.x)", "id=is.null"]
    ),
)


def statement(raw: str) -> Statement:
    return read_statement(SCHEMA, read_plan(SCHEMA, ("api", "item"), parse_query(raw)))


@given(st.lists(parts, max_size=5))
def test_a_shape_with_its_values_equals_the_query_string(items: list[str]) -> None:
    raw = "&".join(items)
    try:
        expected = statement(raw)
    except ApiError:
        return
    shape = shape_of(raw)
    assert shape is not None
    planned = statement(shape[0])
    assert uses_each_mark(planned, len(shape[1]))
    assert Template(planned).fill(shape[1]) == expected
    canonical = parse_query(raw).canonical
    location = Location("/an%20item", parse_query(shape[0]).canonical).fill(shape[1])
    assert location == f"/an%20item{'?' if canonical else ''}{canonical}"


called = st.one_of(
    st.builds(lambda name, value: f"{name}={quote_plus(value)}", st.sampled_from(["a", "b", "many", "%61"]), texts),
    st.builds(
        lambda value: f"a={value}", st.sampled_from(["eq.1", "is.null", "in.(1)", "eq(any).{1}", "not.eq.2", ""])
    ),
    parts,
)


def call(raw: str) -> Statement:
    query = parse_query(raw, function_arguments=True)
    function = choose_function(FUNCTIONS, ("api", "f"), [name for name, _ in query.arguments], None)
    plan = read_plan(FUNCTIONS, ("api", "item"), query)
    return call_statement(FUNCTIONS, function, plan, query.arguments, None, output=JSON_ROWS)


@given(st.lists(called, max_size=4))
def test_a_shape_of_a_call_with_its_arguments_equals_the_query_string(items: list[str]) -> None:
    raw = "&".join(items)
    try:
        expected = call(raw)
    except ApiError:
        return
    shape = shape_of(raw, is_operation)
    assert shape is not None
    try:
        planned = call(shape[0])
    except Exception:
        return  # planned as it is
    if uses_each_mark(planned, len(shape[1])):
        assert Template(planned).fill(shape[1]) == expected


def test_a_location_without_values_has_its_parameters_as_they_are() -> None:
    assert Location("/item", "limit=%000%00").fill(()) == "/item?limit=%000%00"


def test_arguments_and_filters_of_a_call_are_replaced_by_marks() -> None:
    assert shape_of("a=1&name=eq.x&b=is.null&order=id", is_operation) == (
        "a=%000%00&name=eq.%001%00&b=is.null&order=id",
        ("1", "x"),
    )


def test_values_do_not_change_the_shape() -> None:
    assert shape_of("id=eq.1&name=not.lt.a%20b") == ("id=eq.%000%00&name=not.lt.%001%00", ("1", "a b"))
    assert shape_of("id=eq.1&limit=5") == ("id=eq.%000%00&limit=5", ("1",))


@pytest.mark.parametrize(
    "query", ["name=eq.%00", "name=eq.\0", "a=eq.1;b=eq.2", "name=eq.é", "name=eq." + "x" * (LONGEST - 7)]
)
def test_some_queries_have_no_shape(query: str) -> None:
    assert shape_of(query) is None


WORDS = """& = . % + ( ) ; a. a=eq. b=not.lt. c= select columns on_conflict order limit offset and or name not. eq. neq.
gt. gte. lt. lte. not.not. in.( is. eq( like(any). fts( %20 %C3%A9 %C3 %00 %2 %65q. %2E é"""
fragments = st.one_of(
    st.sampled_from(WORDS.split()),
    st.text(max_size=3),
)


@settings(max_examples=examples(2000))
@given(st.lists(fragments, max_size=20).map("".join))
@example("")
@example("=&" * (LONGEST // 2))
@example("=" + "&=" * (LONGEST // 2 - 1))
@example("a=eq.&" * (LONGEST // 6))
@example("a=eq." + "%41" * ((LONGEST - 5) // 3))
@example("a=" + "+" * (LONGEST - 2))
def test_the_cython_parser_gives_the_shapes_and_values_of_its_twin(query: str) -> None:
    assert shape_of(query) == shape_of_twin(query)
    assert shape_of(query, is_operation) == shape_of_twin(query, is_operation)
