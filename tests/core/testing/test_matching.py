"""Comparison of expected and actual responses."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.testing.matching import body_differences, differences, row_differences
from rowcall.core.testing.request import Answer
from tests.harness.effort import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ('{"a": 1, "b": [true, null]}', '{"b":[true,null],"a":1}'),
        ("18.50", "18.5"),
        ("[1, 100, 0.5, -0]", "[1.0, 1e2, 50e-2, 0]"),
        ("12345678901234567890.0", "12345678901234567890"),
        ('["{{integer}}", "{{number}}"]', "[12345678901234567890, 1e400]"),
        ('{"id": "{{integer}}", "at": "{{timestamp}}", "day": "{{date}}"}',
         '{"id":7,"at":"2026-01-05T07:30:00+00:00","day":"2026-01-05"}'),
        ('["{{any}}", "{{any}}", "{{string}}", "{{number}}", "{{boolean}}"]', '[null,{"a":1},"x",1.5,false]'),
        ('"order-{{integer}}"', '"order-17"'),
        ('"{{/[a-z]+-\\\\d/}}"', '"abc-1"'),
        ('{"id": "{{uuid}}"}', '{"id":"3f2504e0-4f89-41d3-9a0c-0305e82c3301"}'),
        ('{"a": 1, "{{more}}": 0}', '{"a":1,"b":2}'),
        ('[1, "{{more}}"]', "[1,2,3]"),
        ('[1, "{{more}}"]', "[1]"),
        ("<h1>{{any}}</h1>", "<h1>a\nb</h1>\n"),
        ("plain", "plain"),
        ("id,name\n1,fern\n2,moss", "id,name\r\n1,fern\r\n2,moss\r\n"),
        ("id,name\n{{integer}},fern", "id,name\r\n1,fern\r\n"),
    ],
)  # fmt: skip
def test_matching_responses_have_no_differences(expected: str, actual: str) -> None:
    assert body_differences(expected, actual) == []


@pytest.mark.parametrize(
    ("expected", "actual", "line"),
    [
        ('{"a": 1}', '{"a":2}', '-  "a": 1'),
        ('{"a": 1}', '{"a":1,"b":2}', '+  "b": 2'),
        ('{"a": 1, "b": 2}', '{"a":1}', '-  "b": 2'),
        ("[1]", "[1,2]", "+  2"),
        ("1", "true", "-1"),
        ('"{{integer}}"', '"7"', '-"{{integer}}"'),
        ('"{{integer}}"', "true", "+true"),
        ("[1, 2]", "[]", "-  1,"),
        ("[]", "text", "+text"),
        ('{"a": "{{uuid}}"}', '{"a":null}', '+  "a": null'),
        ("9007199254740993.0", "9007199254740992.0", "-9007199254740993.0"),
        ("[1, 12345678901234567890]", "[1.00, 12345678901234567891]", "   1.00,"),
        ("0.1", "0.10000000000000001", "+0.10000000000000001"),
        ('"{{integer}}"', "7.0", "+7.0"),
        ("1e9999999999999999999", "1", "+1"),
        ('"a\u2028b"', '"a\x85b"', '+"a\x85b"'),
        ("a\u2028b", "a\nb", "-a\u2028b"),
    ],
)
def test_a_mismatch_is_shown_as_a_diff(expected: str, actual: str, line: str) -> None:
    assert line in body_differences(expected, actual)


def test_only_differences_are_shown() -> None:
    lines = body_differences('{"id": "{{integer}}", "name": "fern"}', '{"id":5,"name":"moss"}')
    assert lines == ["--- expected", "+++ actual", " {", '   "id": 5,', '-  "name": "fern"', '+  "name": "moss"', " }"]


@settings(max_examples=examples(30))
@given(JSON)
def test_any_value_matches_itself(value: object) -> None:
    text = orjson.dumps(value).decode()
    assert body_differences(text, text) == []


def test_status_and_headers_are_compared() -> None:
    expected = Answer(200, (("Content-Type", "application/json"), ("ETag", "{{any}}")))
    fitting = [("content-type", "application/json"), ("etag", '"x"')]
    assert differences(expected, 200, fitting, "") == []
    assert differences(expected, 404, [("content-type", "text/html")], "<h1>no</h1>") == [
        "status: expected 200, actual 404",
        "header Content-Type: expected 'application/json', actual 'text/html'",
        "header ETag: expected '{{any}}', actual none",
        "body: <h1>no</h1>",
    ]


@pytest.mark.parametrize(
    ("expected", "fits"),
    [
        (("id | name", "---+-----", "1 | fern", "2 |"), True),
        (("1 | fern", "2 |"), True),
        (("| {{integer}} | {{any}} |", "2 | "), True),
        (("1 | fern",), False),
        (("1 | moss", "2 |"), False),
        (("1", "2"), False),
    ],
)
def test_rows_are_compared_by_cell(expected: tuple[str, ...], fits: bool) -> None:
    result = row_differences(expected, ["id", "name"], [["1", "fern"], ["2", None]])
    assert (result == []) == fits


@pytest.mark.parametrize(
    ("expected", "fits"),
    [
        (("a | b", "1"), True),
        (("a | b", "{{integer}}"), True),
        (("{{any}}", "{{integer}}"), True),
        (("a | c", "1"), False),
    ],
)
def test_a_cell_may_contain_the_separator(expected: tuple[str, ...], fits: bool) -> None:
    assert (row_differences(expected, ["text"], [["a | b"], ["1"]]) == []) == fits
