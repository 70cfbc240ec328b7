"""SQL in comments that fills parameters (execution-17 to execution-19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.endpoint.resolved_parameters import expression_diagnostics, resolved_parameters
from tests.core.routines import CRATE, endpoint, parameter


def resolved(comment: str) -> list[tuple[int, str, tuple[int | None, ...]]]:
    made = endpoint(parameter("_uid"), parameter("_token", 25), parameter("_box", CRATE), comment=comment)
    return [(item.target, statement(item.sql), item.values) for item in resolved_parameters(made)]


def statement(sql: str) -> str:
    head, tail = "with resolved(value) as (", ") select value::text from resolved limit 1"
    assert sql.startswith(head)
    assert sql.endswith(tail)
    return sql[len(head) : -len(tail)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("_token = select t from x where u = {_uid}", [(1, "select t from x where u = $1", (0,))]),
        ("@_token = select {_uid} + {UID} - {uid}", [(1, "select $1 + $2 - $3", (0, 0, 0))]),
        ("_token = now()", [(1, "select now()", ())]),
        ("_token = (select 1)", [(1, "(select 1)", ())]),
        ("_token = (1 + 1)", [(1, "select (1 + 1)", ())]),
        ("_token = select 1 ;", [(1, "select 1", ())]),
        ("_token = selected({_uid})", [(1, "select selected($1)", (0,))]),
        ("_token = with x as (values (1)) table x", [(1, "with x as (values (1)) table x", ())]),
        ("_token = select {unknown}", [(1, "select $1", (None,))]),
        ("""_token = select '{"a": {1, 2}}' || {_code}""", [(1, """select '{"a": {1, 2}}' || $1""", (None,))]),
        ("_token = select {code}, {_box_code}", [(1, "select $1, $2", (2, 2))]),
        ("_token = select '{uid}' || {uid} || $${uid}$$", [(1, "select '{uid}' || $1 || $${uid}$$", (0,))]),
        ("_token = select '{a}'::text[] /* {uid} */", [(1, "select '{a}'::text[]", ())]),
        ("_token = /* {uid} */ select 1 -- a", [(1, "select 1", ())]),
        ("_token = select 1; -- a; b", [(1, "select 1", ())]),
        ("_token = ';--' ; /* a /* b */ ; */", [(1, "select ';--'", ())]),
        ("_uid = select 1\n_token = select {_uid}", [(0, "select 1", ()), (1, "select $1", (0,))]),
        ("_box = select 1", []),
        ("_Token = select 1", []),
    ],
)
def test_an_expression_is_a_statement_with_numbered_parameters(
    comment: str, expected: list[tuple[int, str, tuple[int | None, ...]]]
) -> None:
    assert resolved(f"HTTP\n{comment}") == expected


def test_values_may_have_the_types_of_their_parameters() -> None:
    made = endpoint(parameter("_uid"), parameter("_token", 25), comment="_token = select {uid}, {token}, {unknown}")
    (item,) = resolved_parameters(made)
    assert statement(item.typed) == "select $1::integer, $2::text, $3::text"


def test_mistakes_in_expressions_are_reported() -> None:
    first = "_uid = select {unknown} || '{a}{uid}'"
    made = endpoint(parameter("_uid"), parameter("_box", CRATE), comment=f"{first}\n_box = select 1")
    assert [(item.line, item.message) for item in expression_diagnostics(made)] == [
        (first, "{unknown} names no parameter and is NULL"),
        (first, "{uid} is within quotes, where it is text and not a value; write it outside of quotes"),
        ("_box = select 1", "_box is a composite, which no expression can fill; it is not used"),
    ]


@given(st.text(st.sampled_from("{}_uid $'1\""), max_size=30))
def test_any_expression_is_parsed(expression: str) -> None:
    made = endpoint(parameter("_uid"), parameter("_token", 25), comment=f"_token = select {expression}")
    for item in resolved_parameters(made):
        assert all(value in (0, None) for value in item.values)
        assert "{_uid}" not in item.sql
    assert isinstance(list(expression_diagnostics(made)), list)
