"""Query strings in Cython: the same pairs and the same errors as `core.text.query_text`."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.text import query_text
from rowcall.ext.binding.query_string import QueryError, has_non_ascii, parse, parse_form, unescape
from tests.harness.effort import examples


@pytest.mark.parametrize(("query", "pairs"), [
    ("", []),
    ("a=1&b=x%20y&flag", [("a", b"1"), ("b", b"x y"), ("flag", b"")]),
    ("&&a=1&&", [("a", b"1")]),
    ("=1&a==", [("", b"1"), ("a", b"=")]),
    ("a+b=c+d", [("a b", b"c d")]),
    ("a=%zz%4%", [("a", b"%zz%4%")]),
    ("%61=%C3%a9", [("a", "é".encode())]),
    ("é=😀", [("é", "😀".encode())]),
])  # fmt: skip
def test_query_strings_are_parsed_into_pairs(query: str, pairs: list[tuple[str, bytes]]) -> None:
    assert parse(query) == pairs


@pytest.mark.parametrize(
    "value", ["%ff", "%c0%80", "%ed%a0%80", "%f4%90%80%80", "%c3", "%e2%82", "%80", "\ud800", "%00"]
)
def test_texts_that_postgresql_cannot_store_are_refused_with_their_key(value: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"ok=1&bad={value}")
    assert caught.value.key == "bad"


@settings(max_examples=examples(300), deadline=None)
@given(st.text("&=+%0123456789abcdefABCDEFé\0\ud800", max_size=40) | st.text(st.characters(), max_size=30))
def test_queries_are_parsed_as_by_the_slow_twin(query: str) -> None:
    assert outcome(parse, query) == outcome(query_text.pairs, query)


def outcome(read: Callable[[str], list[tuple[str, Any]]], query: str) -> object:
    """Return the pairs with bytes, or the refused key and the reason."""
    try:
        pairs = read(query)
    except (QueryError, query_text.QueryTextError) as error:
        return error.key, error.reason
    return [(key, text.encode() if isinstance(text, str) else text) for key, text in pairs]


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=12) | st.text(max_size=20).map(str.encode))
def test_utf8_is_validated_as_in_python(data: bytes) -> None:
    query = "x=" + "".join(f"%{byte:02x}" for byte in data if byte)
    clean = bytes(byte for byte in data if byte)
    try:
        clean.decode()
    except UnicodeDecodeError:
        with pytest.raises(QueryError):
            parse(query)
    else:
        assert parse(query) == [("x", clean)]


def test_ten_megabytes_and_a_hundred_thousand_keys_are_read() -> None:
    assert parse("x=" + "%20" * 3_000_000)[0][1] == b" " * 3_000_000
    assert len(parse("&".join(f"k{number}=1" for number in range(100_000)))) == 100_000


@settings(max_examples=examples(300), deadline=None)
@given(st.text("&=+%0123456789abcdefABCDEFé\0", max_size=40) | st.lists(st.text("%41e9+é&=", max_size=20)).map("".join))
def test_forms_are_parsed_as_by_the_slow_twin(form: str) -> None:
    padded = form + "&long=" + "%41+%zz" * 3000
    for text in (form, padded):
        assert outcome(lambda query: parse_form(query.encode()), text) == outcome(query_text.pairs, text)


@settings(max_examples=examples(300), deadline=None)
@given(st.text("&=+%0123456789abcdefABCDEF", max_size=20).map(str.encode) | st.binary(max_size=12))
def test_forms_with_non_ascii_characters_are_detected(form: bytes) -> None:
    expected = re.search(rb"[\x80-\xff]|%[89A-Fa-f][0-9A-Fa-f]", form) is not None
    assert has_non_ascii(form) == expected


@pytest.mark.parametrize("read", [parse_form, unescape, has_non_ascii])
def test_other_threads_run_while_a_long_text_is_decoded(read: Callable[[bytes], object]) -> None:
    """Without forced switches of threads, another thread runs only if the GIL is released."""
    events: list[str] = []
    begun = threading.Event()

    def decode() -> None:
        begun.set()
        read(form)
        events.append("decoded")

    form = b"x=" + b"%41" * 10_000_000
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=decode)
        thread.start()
        begun.wait()
        events.append("other")
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert events == ["other", "decoded"]
