"""JSON arrays of objects as array literals, compared with the twin, and the values that each kind accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.ext.binding.json_rows import ColumnForm, array_literals, first_keys
from tests.ext.twins.arrays import parse_array
from tests.ext.twins.json_rows import columns_of
from tests.harness.effort import examples

TEXT = ColumnForm("text")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=3)
LAYOUTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}]
)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """JSON of rows, nearly all of which have the same keys."""
    keys = draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(keys, VALUES)), min_size=1, max_size=5))
    if draw(st.integers(0, 9)) == 0:
        rows.append(dict(draw(st.permutations([*rows[0].items()]))))
    return json.dumps(rows, **draw(LAYOUTS)).encode()


def texts_of(body: bytes) -> dict[str, list[object]] | None:
    """Return the columns that the functions give if all of them are texts."""
    keys = first_keys(body)
    literals = None if keys is None else array_literals(body, (TEXT,) * len(keys))
    if keys is None or literals is None:
        return None
    return {key: [*parse_array(literal or "")] for key, literal in zip(keys, literals, strict=True)}


@pytest.mark.slow
@settings(max_examples=examples(2400), deadline=None)
@given(tables())
def test_columns_of_texts_are_those_of_the_twin(body: bytes) -> None:
    result = texts_of(body)
    if result is None:
        # Keys with escapes, and a backslash before `u0000`, are left to PostgreSQL.
        assert b"\\" in body or columns_of(body) is None
    else:
        assert result == columns_of(body)


@pytest.mark.parametrize(
    "body",
    [
        "", "[", "[]", "{}", "5", '{"a":1}', "[5]", "[[]]", "[{}]", "[{},{}]", '[{"a":1},{}]', '[{"a":1},{"b":1}]',
        '[{"a":1,"b":2},{"b":2,"a":1}]', '[{"a":1},{"a":1,"b":2}]', '[{"a":1,"a":2}]', '[{"a":1},{"a":1,"a":2}]',
        '[{"a":1},5]', '[{"a":1},null]', '[{"a":1},]', '[{"a":1}', '[{"a":1}] x', '[{"a":1}]]', '[{"a":1 "b":2}]',
        '[{"a":01}]', '[{"a":1.}]', '[{"a":-}]', '[{"a":+1}]', '[{"a":NaN}]', '[{"a":nul}]', '[{"a":"\n"}]',
        r'[{"a":"\u0000"}]', r'[{"a":"\ud800"}]', r'[{"a":"\x"}]', r'[{"\u0061":1}]', '[{"a":[1,}]', '[{"a"}]',
        "[{a:1}]", '[{"a":"x}]', '[{"a":"\ud800"}]', '\ufeff[{"a":1}]', '[{"a":1}]\0',
    ],
)  # fmt: skip
def test_other_bodies_are_left_to_postgresql(body: str) -> None:
    assert texts_of(body.encode(errors="surrogatepass")) is None


def test_white_space_is_allowed_between_all_tokens() -> None:
    assert texts_of(b' [ { "a" : 1 , "b" : "x" } ,\r\n\t{ "a" : null , "b" : [ ] } ] ') == {
        "a": ["1", None],
        "b": ["x", "[ ]"],
    }


@pytest.mark.parametrize(
    ("form", "value", "literal"),
    [
        (ColumnForm("integer"), "-2147483648", "-2147483648"),
        (ColumnForm("integer"), '"12"', "12"),
        (ColumnForm("integer"), "null", "NULL"),
        (ColumnForm("bigint"), "9223372036854775807", "9223372036854775807"),
        (ColumnForm("float"), "1.5e-7", "1.5e-7"),
        (ColumnForm("numeric"), "12345678901234567890.10", "12345678901234567890.10"),
        (ColumnForm("numeric", 3, 2), "999.99", "999.99"),
        (ColumnForm("numeric", 3, 2), "-99.999", "-99.999"),
        (ColumnForm("boolean"), "false", "false"),
        (ColumnForm("uuid"), '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (ColumnForm("date"), '"2024-02-29"', "2024-02-29"),
        (ColumnForm("timestamp"), '"2024-02-29T12:00:00.5"', "2024-02-29 12:00:00.5"),
        (ColumnForm("timestamptz"), '"2024-02-29T12:00:00.123Z"', "2024-02-29 12:00:00.123+00"),
        (ColumnForm("time"), '"23:59:59"', "23:59:59"),
        (ColumnForm("text"), '"null"', '"null"'),
        (ColumnForm("text"), r'"a\"\\\n\u00e9\ud83d\ude00\u005c,{}"', '"a\\"\\\\\né😀\\\\,{}"'),
        (ColumnForm("text"), '{"b":"\\n"}', r'"{\"b\":\"\\n\"}"'),
        (ColumnForm("text"), "1.0", '"1.0"'),
        (ColumnForm("text", 3), '"abc"', '"abc"'),
        (ColumnForm("json"), '{"b" : [1, "1e999999"]}', r'"{\"b\" : [1, \"1e999999\"]}"'),
        (ColumnForm("json"), '"x"', r'"\"x\""'),
        (ColumnForm("json"), "null", "NULL"),
    ],
)
def test_a_value_that_is_certainly_valid(form: ColumnForm, value: str, literal: str) -> None:
    assert array_literals(f'[{{"v":{value}}},{{"v":{value}}}]'.encode(), (form,)) == [f"{{{literal},{literal}}}"]


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (ColumnForm("integer"), "2147483648"),
        (ColumnForm("integer"), "1.0"),
        (ColumnForm("integer"), "1e2"),
        (ColumnForm("integer"), "true"),
        (ColumnForm("integer"), '""'),
        (ColumnForm("integer"), "[1]"),
        (ColumnForm("integer"), '{"a":1}'),
        (ColumnForm("integer"), '"x"'),
        (ColumnForm("integer"), r'"1\n"'),
        (ColumnForm("float"), "1e39"),
        (ColumnForm("numeric"), "1e5"),
        (ColumnForm("numeric", 3, 2), "1000"),
        (ColumnForm("numeric", 3, 2), "999.999"),
        (ColumnForm("boolean"), "1"),
        (ColumnForm("boolean"), '"yes"'),
        (ColumnForm("uuid"), '"(a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11)"'),
        (ColumnForm("uuid"), '" a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"'),
        (ColumnForm("uuid"), '" (a0eebc999c0b4ef8bb6d6bb9bd380a11) "'),
        (ColumnForm("uuid"), '"  a0eebc999c0b4ef8bb6d6bb9bd380a11  "'),
        (ColumnForm("date"), '"2023-02-29"'),
        (ColumnForm("date"), '"tomorrow"'),
        (ColumnForm("timestamptz"), '"2024-02-29T12:00:00"'),
        (ColumnForm("text", 3), '"abcd"'),
        (ColumnForm("text", 3), '"éé"'),
        (ColumnForm("json"), r'"\u0041"'),
        (ColumnForm("json"), "1e5"),
        (ColumnForm("json"), '[{"a":1e999999}]'),
    ],
)
def test_a_value_that_may_be_invalid_is_left_to_postgresql(form: ColumnForm, value: str) -> None:
    assert array_literals(f'[{{"v":null}},{{"v":{value}}}]'.encode(), (form,)) is None


def test_a_column_without_form_is_only_validated() -> None:
    forms = (None, ColumnForm("integer"))
    assert array_literals(b'[{"x":[1],"v":1},{"x":"y","v":2}]', forms) == [None, "{1,2}"]
    assert array_literals(b'[{"x":[1],"v":1},{"x":[,"v":2}]', forms) is None


def test_other_numbers_of_columns_than_keys() -> None:
    body = b'[{"a":1,"b":2}]'
    assert array_literals(body, ()) is None
    assert array_literals(body, (TEXT,)) is None
    assert array_literals(body, (TEXT,) * 3) is None


def test_too_many_keys() -> None:
    keys = [f"k{number}" for number in range(1600)]
    assert first_keys(json.dumps([dict.fromkeys(keys)]).encode()) == tuple(keys)
    assert first_keys(json.dumps([dict.fromkeys([*keys, "k"])]).encode()) is None
