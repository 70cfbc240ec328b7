"""Round trips of literals of arrays and records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text import array_literal, record_literal

TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(TEXTS, min_size=1))
def test_a_record_survives_a_round_trip(values: list[str | None]) -> None:
    assert record_literal.attributes(record_literal.literal(values)) == values


@given(st.lists(TEXTS))
def test_an_array_survives_a_round_trip(values: list[array_literal.Nested]) -> None:
    assert array_literal.parse(array_literal.literal(values, quoted=True)) == values


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1))
def test_a_multidimensional_array_survives_a_round_trip(values: list[array_literal.Nested]) -> None:
    assert array_literal.parse(array_literal.literal(values, quoted=True)) == values


@pytest.mark.parametrize(("innermost", "text"), [(["1"], '{{{{{{"1"}}}}}}'), ([None], "{{{{{{NULL}}}}}}"), ([], "{}")])
def test_an_array_has_at_most_six_dimensions(innermost: list[array_literal.Nested], text: str) -> None:
    items = innermost
    for _ in range(5):
        items = [items]
    assert array_literal.literal(items, quoted=True) == text
    with pytest.raises(array_literal.ArrayShapeError, match="at most 6 dimensions"):
        array_literal.literal([items], quoted=True)


@pytest.mark.parametrize(
    ("text", "values"),
    [('(1,,"")', ["1", None, ""]), ('(a"b,c"d)', ["ab,cd"]), ('("a""b\\\\")', ['a"b\\']), ("()", [None])],
)
def test_records_are_read_as_the_server_prints_them(text: str, values: list[str | None]) -> None:
    assert record_literal.attributes(text) == values


@pytest.mark.parametrize("text", ["", "1,2", "(1", "(1)2", '("a)'])
def test_an_invalid_record_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="not a record"):
        record_literal.attributes(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1,2", "{1", "{1}2", '{"a}', "}", "{a\\}", "{" * 7 + "1" + "}" * 7, "{" * 5000),
        *("{,}", "{a,,b}", "{a,}", "{a}{b}", "{{a}{b}}", "{{a}b}", "{a{b}}", '{"a"b}', '{a"b"}', '{"a" "b"}'),
    ],
)
def test_an_invalid_array_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="not an array"):
        array_literal.parse(text)


def test_bounds_and_null_are_read() -> None:
    assert array_literal.parse('[2:3]={NULL,"NULL"}') == [None, "NULL"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{ a , null\t}", ["a", None]),
        ("{a b\\ ,\\{}", ["a b ", "{"]),
        ("{a\\,b}", ["a,b"]),
        ("{nu\\ll,Null}", ["null", None]),
        ('{ "a\\"b" , "" } ', ['a"b', ""]),
        ("{{ a } , {b}}", [["a"], ["b"]]),
        ("{ }", []),
        ("{{},{}}", [[], []]),
    ],
)
def test_an_array_of_a_client_is_read_as_postgresql_reads_it(text: str, values: list[array_literal.Nested]) -> None:
    assert array_literal.parse(text) == values


def test_a_long_element_is_read_in_linear_time() -> None:
    element = "word " * 100_000 + "end"
    assert array_literal.parse(f"{{{element}}}") == [element]


@given(st.lists(TEXTS | st.sampled_from(["{,}", "NULL", '"']), max_size=5), st.sampled_from(",;"))
def test_elements_of_a_literal_are_counted(values: list[array_literal.Nested], delimiter: str) -> None:
    text = array_literal.literal(values, quoted=True, delimiter=delimiter)
    assert array_literal.count_elements(text, delimiter) == len(values)
    if values:
        text = array_literal.literal([values] * 3, quoted=True, delimiter=delimiter)
        assert array_literal.count_elements(text, delimiter) == 3
