"""Bodies of PostgREST's interface: each is read or refused, and CSV keeps its values."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.request.payload import CSV, FORM, JSON, parse_payload

TYPES = (JSON, CSV, FORM, "text/plain", "application/octet-stream")
cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12).filter(lambda text: text != "NULL")
names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)


@given(st.binary(max_size=60) | st.text('[]{}",:a1\n\r&=%', max_size=40).map(str.encode), st.sampled_from(TYPES))
def test_each_body_is_parsed_or_refused(body: bytes, content_type: str) -> None:
    for columns in (None, ("a",)):
        for function in (False, True):
            try:
                keys = parse_payload(body, content_type, columns, function=function).keys
            except ApiError as error:
                keys = (error.code,)
            assert keys in (("PGRST102",), ("22021",)) or len(set(keys)) == len(keys)


@given(st.lists(names, min_size=1, max_size=4, unique=True).flatmap(
    lambda header: st.tuples(st.just(header), st.lists(st.lists(cells, min_size=len(header), max_size=len(header))))
))  # fmt: skip
def test_csv_keeps_its_values(table: tuple[list[str], list[list[str]]]) -> None:
    header, rows = table
    target = io.StringIO()
    writer = csv.writer(target, quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    writer.writerows(rows)
    payload = parse_payload(target.getvalue().encode(), CSV, None)
    rows = [row for row in rows if row != [""]]  # a blank line
    assert json.loads(payload.text) == [dict(zip(header, row, strict=True)) for row in rows]
    assert (payload.keys, payload.rows) == (tuple(header) if rows else (), len(rows))


def test_a_csv_value_may_be_long() -> None:
    value = "x" * 1_000_000
    payload = parse_payload(f"a,b\n{value},NULL\n".encode(), CSV, None)
    assert json.loads(payload.text) == [{"a": value, "b": None}]


@pytest.mark.parametrize("body", [b"a,b\n1\n", b'[{"a":1},{"b":1}]', b"[1]", b"{", b"\xff"])
def test_refused_bodies(body: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        parse_payload(body, CSV if b"," in body and body[:1] == b"a" else JSON, None)
    assert (raised.value.status, raised.value.code) == (400, "PGRST102")


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b"\xff", "0xff"), (b"a\xc3(", "0xc3 0x28"), (b"\xed\xa0\x80b", "0xed 0xa0 0x80"), (b"\x80", "0x80")],
)
def test_a_text_that_is_not_utf_8_is_refused_as_by_postgresql(body: bytes, shown: str) -> None:
    for content_type, columns in (("text/plain", None), ("text/xml", None), (JSON, ("a",))):
        with pytest.raises(ApiError) as raised:
            parse_payload(body, content_type, columns, function=True)
        assert (raised.value.status, raised.value.code) == (400, "22021")
        assert raised.value.message == f'invalid byte sequence for encoding "UTF8": {shown}'
    assert parse_payload(body, "application/octet-stream", None, function=True).text == "\\x" + body.hex()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a,b", 'parse error (not enough input) at ""'),
        ('a"b,c\n1,2\n', r'parse error (satisfy) at "\"b,c\n1,2\n"'),
        ('a\n"x" \n', r'parse error (endOfInput) at " \n"'),
        ('a\nx"é1\n', r'parse error (endOfInput) at "\"\195\169\&1\n"'),
        ('a\nx"' + "y" * 200, f'parse error (endOfInput) at "{"y" * 99} (truncated)'),
    ],
)
def test_invalid_csv_is_refused(body: str, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        parse_payload(body.encode(), CSV, None)
    assert (raised.value.code, raised.value.message) == ("PGRST102", message)


def test_csv_has_line_breaks_of_every_kind_and_blank_lines() -> None:
    payload = parse_payload(b'a,b\r1,"2\r\n""3"""\r\n\r\n4,"5', CSV, None)
    assert json.loads(payload.text) == [{"a": "1", "b": '2\r\n"3"'}, {"a": "4", "b": "5"}]
