"""Texts with `{placeholders}`, filled for a request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.endpoint.template import parse_template, placeholder_names, with_variables
from tests.core.routines import CRATE, GAUGE, endpoint, parameter

NAMES = {"_id": 0, "id": 0, "name": 1}
VALUES = {0: "7", 1: None}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{id}", "7"),
        ("a{_ID}b{Id}c", "a7b7c"),
        ("{name}", ""),
        ("{!name}", ""),
        ("{!name:x y}", "x y"),
        ("{!name:}", ""),
        ("{!id:x}", "7"),
        ("{id:x}", "{id:x}"),
        ("{other}{id}", "{other}7"),
        ("{!other:x}", "{!other:x}"),
        ("{{id}}", "{7}"),
        ("}{", "}{"),
        ("{}", "{}"),
        ("{ id }", "{ id }"),
    ],
)
def test_placeholders_are_replaced_and_other_text_is_preserved(text: str, filled: str) -> None:
    assert parse_template(text, NAMES).fill(VALUES.get) == filled


VARIABLES = {"region": "eu", "id": "9", "unset": None, "odd": "a\r\nb{id}"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{REGION}/{region}", "eu/eu"),
        ("{!Region:other}", "eu"),
        ("[{unset}]{!unset:other}", "[]other"),
        ("{region:x}{other}", "{region:x}{other}"),
        ("{id}", "{id}"),
        ("{odd}", "ab{id}"),
    ],
)
def test_variables_fill_placeholders_without_a_parameter(text: str, filled: str) -> None:
    assert with_variables(text, NAMES, VARIABLES) == filled


def test_only_names_that_look_like_a_parameter_are_reported() -> None:
    assert parse_template("{_idd} {1} {} {a b} {id} {a-b} {größe}", NAMES).unknown == ("_idd", "größe")


def test_values_are_cleaned_and_literal_text_is_not() -> None:
    assert parse_template("a{id}", NAMES).fill({0: "a7"}.get, str.upper) == "aA7"


def test_text_without_placeholders_is_fixed() -> None:
    assert parse_template("{other}", NAMES).is_fixed
    assert not parse_template("x{id}", NAMES).is_fixed


@given(st.text(st.sampled_from("{}!:id x"), max_size=20))
def test_without_names_every_text_is_unchanged(text: str) -> None:
    assert parse_template(text, {}).fill(VALUES.get) == text


def test_names_are_those_of_requests_of_the_database_and_of_attributes() -> None:
    made = endpoint(parameter("_crate", CRATE), parameter("_code"), parameter("_g", GAUGE))
    names = placeholder_names(made.parameters)
    assert {name: names[name] for name in ("code", "_code", "item", "unit_code", "_g_id", "gid")} == {
        "code": 2,
        "_code": 2,
        "item": 1,
        "unit_code": 4,
        "_g_id": 3,
        "gid": 3,
    }
