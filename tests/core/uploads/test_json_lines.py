"""Lines of JSON are split wherever a piece ends, and members have the texts that `->>` of PostgreSQL gives."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text.array_literal import elements
from rowcall.core.uploads import json_lines
from rowcall.core.uploads.json_lines import LineError, LineSplitter, check_line, members

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def split(content: bytes, *places: int) -> list[bytes]:
    splitter = LineSplitter()
    bounds = [0, *sorted(places), len(content)]
    pieces = [content[start:end] for start, end in pairwise(bounds)]
    return [line for piece in pieces for line in splitter.feed(piece)] + splitter.finish()


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(), _VALUES)), st.sampled_from(["\n", "\r\n", "\n\n"]), st.data())
def test_lines_do_not_depend_on_chunk_boundaries(rows: list[object], end: str, data: st.DataObject) -> None:
    content = end.join(json.dumps(row) for row in rows).encode()
    content = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + content + data.draw(st.sampled_from([b"", b"\n"]))
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=5))
    assert [json.loads(line) for line in split(content, *places) if line] == rows


@given(st.dictionaries(st.text(max_size=5), _VALUES, min_size=1), st.sampled_from([None, 1]))
def test_members_are_converted_to_text(row: dict[str, object], indent: int | None) -> None:
    line = json.dumps(row, indent=indent).encode()
    texts = elements(members(line, list(row)).decode())
    for value, text in zip(row.values(), texts, strict=True):
        if isinstance(value, str) or value is None:
            assert text == value
        else:
            assert text is not None
            assert json.loads(text) == value


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ('{"a": 12345678901234567890.10, "b": 1e400}', ["12345678901234567890.10", "1e400"]),
        ('{"a": "x", "a": "y"}', ["y", None]),
        ('{"b": {"c": [1,  2]}}', [None, '{"c": [1,  2]}']),
        ('{"a": "null", "b": null}', ["null", None]),
        ('{"A": 1}', [None, None]),
        ("{}", [None, None]),
        (' {"a" :"\\u00e9\\ud83d\\ude00" , "b":true } ', ["é😀", "true"]),
    ],
)
def test_values_are_preserved_as_written(line: str, texts: list[str | None]) -> None:
    assert elements(members(line.encode(), ["a", "b"]).decode()) == texts


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "it is no object"),
        ("7", "it is no object"),
        ("{", "a name in quotes is expected at character 2"),
        ('{"a"}', "a colon is expected at character 5"),
        ('{"a":}', "Expecting value"),
        ('{"a":1,}', "a name in quotes is expected"),
        ('{"a":1 "b":2}', "a comma or the end of the object is expected at character 8"),
        ('{"a":1} x', "there is more behind the object, at character 8"),
        ('{"a": NaN}', "NaN is no value of JSON"),
        ("{1:2}", "a name in quotes is expected at character 2"),
        ("nothing", "Expecting value"),
        ('{"a":' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_lines_that_are_not_objects_are_refused(line: str, reason: str) -> None:
    with pytest.raises(LineError, match=reason):
        members(line.encode(), ["a"])


@pytest.mark.parametrize("line", [b"{", b'{"a": 1}}', b"\xff", b"a", b"[NaN]", b"-Infinity", b"[" * 100_000])
def test_lines_that_are_not_json_are_refused(line: bytes) -> None:
    with pytest.raises(LineError):
        check_line(line)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_an_error(line: bytes) -> None:
    try:
        texts = elements(members(line, ["a"]).decode())
    except LineError:
        return
    assert len(texts) == 1
    assert isinstance(json.loads(line), dict)


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LONGEST", 100)
    splitter = LineSplitter()
    assert splitter.feed(b"x" * 100) == []
    with pytest.raises(LineError, match="longer than 100 bytes"):
        splitter.feed(b"x")


@pytest.mark.parametrize("value", [r'"\ud800"', r'"a\u0000"'])
def test_text_that_postgresql_cannot_store_is_refused(value: str) -> None:
    with pytest.raises(LineError, match="PostgreSQL cannot store"):
        members(f'{{"a": {value}}}'.encode(), ["a"])


def test_a_number_of_any_length_is_preserved() -> None:
    digits = "9" * 5000
    assert elements(members(f'{{"a": {digits}}}'.encode(), ["a"]).decode()) == [digits]
    assert check_line(digits.encode()) == digits.encode()
