"""Values of requests in messages of the server, which `sensitive` endpoints hide."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text.array_literal import literal
from rowcall.service.request_context.redaction import HIDDEN, MOST_PARTS, hide_values

TEXTS = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    str.strip
)


@pytest.mark.parametrize("place", [0, 999, 1000, 5000, MOST_PARTS - 1])
def test_every_element_of_an_array_is_hidden(place: int) -> None:
    elements = [f"p{number}" for number in range(MOST_PARTS)]
    for value in ("{" + ",".join(elements) + "}", json.dumps(elements)):
        assert hide_values(f"{elements[place]} is wrong", [value.encode()]) == "*** is wrong"


def test_a_message_about_too_many_elements_is_dropped() -> None:
    elements = [f"p{number}" for number in range(MOST_PARTS + 1)]
    assert hide_values("p7 is wrong", [json.dumps(elements).encode()]) == HIDDEN


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (r'{"a\"b"}', 'a"b is wrong'),
        (r'["a\"b", "c\\d"]', r'a"b or c\d is wrong'),
        (r'{"name": "caf\u00e9"}', "café is wrong"),
        (r'{"(1,\"a b\")"}', "a b is wrong"),
        (r"(x\,y)", "x,y is wrong"),
        ('{"a\\\nb"}', "a\nb is wrong"),
    ],
)
def test_elements_are_hidden_without_their_escapes(value: str, message: str) -> None:
    assert set(hide_values(message, [value.encode()]).removesuffix(" is wrong").split(" or ")) == {HIDDEN}


@pytest.mark.parametrize(
    "value", ['"secret"', ' "secret"', ' {"a": "secret"}', " {secret}", "\n(1,secret)", '{" {secret}"}', " secret\t"]
)
def test_a_json_string_and_a_value_behind_white_space_are_hidden(value: str) -> None:
    assert hide_values("bad value: secret", [value.encode()]) == f"bad value: {HIDDEN}"


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_no_element_of_any_text_is_shown(elements: list[str]) -> None:
    for value in (json.dumps(elements), literal([*elements], quoted=True)):
        for element in elements:
            assert hide_values(f"<{element}>", [value.encode()]) == f"<{HIDDEN}>"
