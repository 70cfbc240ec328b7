"""JSON bodies split into slices in Cython, compared with orjson and the twin `core.text.json_text`."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.text import json_text
from rowcall.ext.binding.json_object import JsonError, elements, members, unescape
from tests.harness.effort import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])
ALPHABET = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b"\\u00e9",
        b"\\ud83d",
        b"\\ude00",
        b"\\n",
        b"\\x",
        b"1",
        b"0",
        b"-",
        b".5",
        b"e+",
        b"E",
        b"true",
        b"false",
        b"null",
        b"nul",
        b" ",
        b"\n",
        b"\x0c",
        b"\x00",
        b"\x1f",
        b"\x7f",
        b"\xc3\xa9",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b'"a"',
        b'"a":',
        b'{"a":',
        b"1e400",
        b"/**/",
        b"NaN",
    ]
)


def slow(function: Any, text: bytes) -> Any:
    try:
        return function(text)
    except json_text.JsonTextError:
        return None


def fast(function: Any, text: bytes) -> Any:
    try:
        return function(text)
    except JsonError:
        return None


@settings(max_examples=examples(150), deadline=None)
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=6), LAYOUTS)
def test_members_are_the_values_as_written(value: dict[str, Any], layout: dict[str, Any]) -> None:
    body = json.dumps(value, **layout).encode(errors="surrogatepass")
    result = fast(members, body)
    assert result == slow(json_text.members, body)
    assert {key: json.loads(raw) for key, raw in result} == value


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(VALUES, max_size=6), LAYOUTS)
def test_elements_are_the_values_as_written(value: list[Any], layout: dict[str, Any]) -> None:
    array = json.dumps(value, **layout).encode()
    assert elements(array) == json_text.elements(array)
    assert [json.loads(raw) for raw in elements(array)] == value


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(ALPHABET, max_size=14).map(b"".join))
def test_the_slow_twin_accepts_and_refuses_the_same_bodies(text: bytes) -> None:
    for body in (text, b'{"x":' + text + b"}", b'{"x":[' + text + b"]}", b'{"x":"' + text + b'"}'):
        assert fast(members, body) == slow(json_text.members, body)


@settings(max_examples=examples(150), deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=12), st.booleans())
def test_strings_are_unescaped(text: str, ascii_only: bool) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only).encode()
    assert fast(unescape, written) == (None if "\0" in text else text.encode())


@pytest.mark.parametrize("number", [b"1.50", b"12345678901234567890", b"1e400", b"-0.0", b"1E+2"])
def test_digits_of_numbers_are_preserved(number: bytes) -> None:
    assert members(b'{"x": %s }' % number) == [("x", number)]


@pytest.mark.parametrize("body", [b"", b" \t\r\n", b"{}", b" { } "])
def test_an_empty_body_is_an_empty_object(body: bytes) -> None:
    assert members(body) == []


@pytest.mark.parametrize(
    "string", [b"", b'"', b'"a', b'a"', b'"a"b', b'"\\"', b'"\\u00', b'"\\ud800"', b'"\\ud800\\u', b'"\n"']
)
def test_values_other_than_strings_are_refused(string: bytes) -> None:
    with pytest.raises(JsonError):
        unescape(string)


@pytest.mark.parametrize("depth", [1022, 1023, 1024, 100_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_depth_limit_equals_that_of_orjson(depth: int, brackets: tuple[bytes, bytes]) -> None:
    opening, closing = brackets
    body = b'{"x":' + opening * depth + b"1" + closing * depth + b"}"
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        with pytest.raises(JsonError):
            members(body)
    else:
        assert len(members(body)) == 1


@pytest.mark.parametrize(("count", "read"), [(2048, True), (2049, False), (100_000, False)])
def test_the_number_of_keys_is_limited(count: int, read: bool) -> None:
    body = b"{" + b",".join(b'"k%d":1' % number for number in range(count)) + b"}"
    if read:
        assert len(members(body)) == count
    else:
        with pytest.raises(JsonError, match="2048 keys"):
            members(body)


def test_ten_megabytes_are_read() -> None:
    assert len(unescape(b'"' + b"\\u00e9" * 1_600_000 + b'"')) == 3_200_000
    with pytest.raises(JsonError):
        members(b'{"x":[1e400,"' + b'\\"' * 4_000_000)
