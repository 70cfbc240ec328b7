"""The fast binder gives the same result as `core.binding.binding`, or None."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.binding.binding import Binder
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, QueryNull
from rowcall.core.errors.binding_error import BindingError
from rowcall.ext.binding.parameters import FastBinder
from tests.harness.effort import examples
from tests.harness.parameters import TYPES, binder, parameter

TYPE_NAMES = [
    *TYPES,
    "inet",
    "integer[]",
    "text[]",
    "jsonb[]",
    "date[]",
    "box[]",
    "boolean[]",
    "pair",
    "pair[]",
    "character varying(2)[]",
    "bit(2)",
]

PLAIN = st.sampled_from(
    [
        "",
        "1",
        "-7",
        "+7",
        "007",
        "32768",
        "2147483647",
        "2147483648",
        "9223372036854775807",
        "1.5",
        "1.",
        ".5",
        "1e5",
        "1,000",
        "-0",
        "null",
        "NULL",
        "true",
        "False",
        "t",
        "NaN",
        "a",
        " 1 ",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "{A}",
        "é",
        "\0",
        "😀",
        '"',
        "\\",
        "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
        "2026-03-01",
        "2026-02-29",
        "2024-02-29",
        "0000-01-01",
        "2026-03-01T10:00:00",
        "10:00:00",
        "2026-03-01 10:00:00.123456",
        "2026-03-01T10:00:00Z",
        "2026-03-01T10:00:00+02:00",
        "2026-03-01T10:00:00-05:30",
        "10:00:00.5",
        "2026-03-01T10:00:00-00:00",
        "2026-03-01T10:00:60",
        "24:00:00",
        "2026-03-01T23:59:59.1234567891",
        "9" * 31,
        "1" * 1001,
        "infinity",
    ]
)
TEXTS = PLAIN | st.text(st.characters(codec="utf-8"), max_size=12) | st.from_regex(r"\A[-+0-9:.TZ ]{1,24}\Z")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def binders(draw: st.DrawFn) -> Binder:
    names = [f"p{number}" for number in range(draw(st.integers(0, 5)))]
    parameters: list[EndpointParameter] = []
    for name in names:
        options: dict[str, Any] = {"default": draw(st.booleans()), "path": draw(st.booleans())}
        options["attribute"] = draw(st.sampled_from([None, None, "field"]))
        options["group"] = "group" if options["attribute"] else None
        parameters.append(parameter(name, draw(st.sampled_from(TYPE_NAMES)), **options))
    defaults = draw(st.dictionaries(st.integers(0, 5), st.none() | st.just("5"), max_size=1))
    return Binder(
        parameters,
        Transport.QUERY,
        draw(st.sampled_from(list(QueryNull))),
        draw(st.booleans()),
        defaults=defaults,
        strict=draw(st.sampled_from([None, StrictTypes(), StrictTypes(wide_as_text=True)])),
    )


KEYS = st.sampled_from([f"p{number}" for number in range(6)] + ["$1", "P0", "", "group"])
PATHS = st.none() | st.dictionaries(KEYS, TEXTS, max_size=2)


def agree(slow: Binder, method: str, text: str | bytes, path_values: dict[str, str] | None) -> None:
    fast = getattr(FastBinder(*slow.plain), method)(text, path_values)
    if fast is None:
        return
    # An error of the slow binder fails the test here: the fast binder accepted an invalid request.
    assert fast == getattr(slow, method)(text, path_values or {})


@settings(max_examples=examples(300), deadline=None)
@given(binders(), st.lists(st.tuples(KEYS, TEXTS), max_size=6), PATHS, st.booleans(), st.booleans())
def test_queries_are_bound_as_by_the_slow_binder(
    slow: Binder, pairs: list[tuple[str, str]], path_values: dict[str, str] | None, raw: bool, together: bool
) -> None:
    ordered = sorted(pairs) if together else pairs
    query = "&".join(f"{key}={text if raw else quote_plus(text)}" for key, text in ordered)
    agree(slow, "bind_query", query, path_values)


@settings(max_examples=examples(300), deadline=None)
@given(binders(), st.dictionaries(KEYS, JSON_VALUES, max_size=6), PATHS, st.booleans())
def test_bodies_are_bound_as_by_the_slow_binder(
    slow: Binder, members: dict[str, Any], path_values: dict[str, str] | None, ascii_only: bool
) -> None:
    body = json.dumps(members, ensure_ascii=ascii_only, indent=1 if ascii_only else None)
    agree(slow, "bind_body", body.encode(errors="surrogatepass"), path_values)


@settings(max_examples=examples(200), deadline=None)
@given(binders(), st.dictionaries(KEYS, JSON_VALUES, max_size=4), st.data())
def test_damaged_bodies_are_bound_as_by_the_slow_binder(
    slow: Binder, members: dict[str, Any], data: st.DataObject
) -> None:
    body = bytearray(json.dumps(members).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from(b'{}[],:"\\0e-. \x00\xff\n'))
    agree(slow, "bind_body", bytes(body), None)


MANY = [
    parameter("id"),
    parameter("big", "bigint"),
    parameter("price", "numeric"),
    parameter("ratio", "double precision"),
    parameter("active", "boolean"),
    parameter("key", "uuid"),
    parameter("name", "text"),
    parameter("day", "date"),
    parameter("at", "timestamp without time zone"),
    parameter("tz", "timestamp with time zone"),
    parameter("clock", "time without time zone"),
    parameter("meta", "jsonb", default=True),
]


def test_an_ordinary_query_takes_the_fast_path() -> None:
    slow = binder(*MANY)
    query = (
        "id=7&big=123456789012&price=1.50&ratio=-0.25&active=true&key=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        "&name=caf%C3%A9+au+lait&day=2026-03-01&at=2026-03-01T10:00:00&tz=2026-03-01T10:00:00%2B02:00&clock=10:00:00"
    )
    fast = FastBinder(*slow.plain).bind_query(query)
    assert fast is not None
    assert fast == slow.bind_query(query)


def test_an_ordinary_body_takes_the_fast_path() -> None:
    slow = binder(*MANY)
    body = (
        b'{"id":7,"big":123456789012,"price":1.50,"ratio":-0.25,"active":true,"key":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",'
        b'"name":"caf\\u00e9 \\"au lait\\"","day":"2026-03-01","at":"2026-03-01T10:00:00","tz":"2026-03-01T10:00:00Z",'
        b'"clock":"10:00:00","meta":{"k":[1,{"x":null}]}}'
    )
    fast = FastBinder(*slow.plain).bind_body(body)
    assert fast is not None
    assert fast == slow.bind_body(body)


@pytest.mark.parametrize(
    ("type_name", "query", "body"),
    [
        ("integer[]", "x=1&x=&x=3", b'{"x":[ 1 , null,3 ]}'),
        ("text[]", "x=a%22%5C&x=b", rb'{"x":["a\"\\","b"]}'),
        ("uuid[]", "x=A0EEBC999C0B4EF8BB6D6BB9BD380A11", b'{"x":["A0EEBC999C0B4EF8BB6D6BB9BD380A11"]}'),
        ("jsonb[]", "x={}&x=[1]", b'{"x":[{"a":"\\u00e9"},[1,"2"],true]}'),
        ("box[]", "x=(1,1),(0,0)&x=(2,2),(1,1)", b'{"x":["(1,1),(0,0)","(2,2),(1,1)"]}'),
        ("date[]", "x=2026-03-01", b'{"x":[]}'),
    ],
)
def test_ordinary_arrays_take_the_fast_path(type_name: str, query: str, body: bytes) -> None:
    slow = binder(parameter("x", type_name), parameter("y", default=True))
    fast = FastBinder(*slow.plain)
    for bound, expected in (
        (fast.bind_query(f"{query}&y=1"), slow.bind_query(f"{query}&y=1")),
        (fast.bind_body(body), slow.bind_body(body)),
    ):
        assert bound is not None
        assert bound == expected


def test_path_values_take_the_fast_path() -> None:
    slow = binder(parameter("id", path=True), parameter("name", "text"))
    assert FastBinder(*slow.plain).bind_query("name=a", {"id": "7"}) == (0b11, [b"7", b"a"], False)


@pytest.mark.parametrize("count", [63, 64])
def test_more_parameters_than_one_machine_word_has_bits_are_bound(count: int) -> None:
    slow = binder(*(parameter(f"p{number}", default=number % 2 == 0) for number in range(count)))
    query = "&".join(f"p{number}={number}" for number in range(count - 1, 0, -1))
    assert FastBinder(*slow.plain).bind_query(query) == slow.bind_query(query)


def test_more_parameters_than_bits_are_left_to_the_slow_binder() -> None:
    slow = binder(*(parameter(f"p{number}", default=True) for number in range(65)))
    assert FastBinder(*slow.plain).bind_query("p1=1") is None


def test_two_parameters_with_one_name_are_left_to_the_slow_binder() -> None:
    assert FastBinder(*binder(parameter("a"), parameter("a")).plain).bind_query("a=1") is None


@pytest.mark.parametrize("query", ["a=x", "b=1", "", "a=%00", "a=1&a=2", "a=\0"])
def test_errors_are_left_to_the_slow_binder(query: str) -> None:
    slow = binder(parameter("a", "integer"))
    assert FastBinder(*slow.plain).bind_query(query) is None
    if query != "a=1&a=2":
        with pytest.raises(BindingError):
            slow.bind_query(query)


ODD = {
    "smallint": ["-32768", "32767", " 7 ", "+7"],
    "integer": ["-2147483648", "007", "+5", " 5"],
    "bigint": ["9223372036854775807", "-9223372036854775808", "1234567890123456789", "+1234567890123456789"],
    "numeric": ["1.", ".5", "1,000.5", "9" * 40, " -1.50 ", "NaN"],
    "double precision": ["1e5", "-1.5E-7", ".5", "1e300", "Infinity", "1234567890.123456789012345678901234567"],
    "real": ["1e5", "3.4e38", "1E-40"],
    "boolean": ["TRUE", "False", " true "],
    "uuid": [
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ],
    "timestamp with time zone": [
        "2026-03-01T10:00:00.123456+02:00", "2026-03-01 10:00:00.5-05:30", "2026-03-01T10:00:00+0200", "2026-03-01",
        "2026-03-01T10:00", "20260301T100000Z", "1 March 2026 10:00", "2026-03-01T10:00:00-00:00",
    ],
    "timestamp without time zone": ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00.25+02:00", "2026-03-01"],
    "date": ["2026-03-01T10:00:00Z", "03/01/2026", "2026-3-1", "infinity"],
    "time without time zone": ["10:00", "10:00:00.5", "10:00 pm", "10:00:00+02"],
    "time with time zone": ["10:00:00+02", "10:00:00.5-05:30"],
    "money": ["$1,234.50", "-5"],
    "text": ["café 😀", "a&b=c%d+e", "x" * 3000, "ü" * 2000, "null"],
    "jsonb": ['{"a": [1, {"b": null}]}', "é"],
    "pair": ['{"n": 1, "someTexts": ["a", "b"]}', '(1,"{a,b}")'],
    "integer[]": ["9223372", " 7 ", "+7"],
    "date[]": ["2026-3-1", "2026-03-01T10:00:00Z"],
    "text[]": ["é" * 800, "x" * 3000],
}  # fmt: skip
"""Valid values (200) in unusual forms."""
WAYS: list[Callable[[str, str], str]] = [
    lambda key, text: f"a=1&{key}={quote_plus(text)}&z=2",
    lambda key, text: f"a=1&{key}={quote_plus(text, safe=' ')}&z=2".replace("%C3%A9", "é"),
    lambda key, text: f"z=2&%{ord(key[0]):02X}{key[1:]}={quote_plus(text)}&a=1",
]


@pytest.mark.parametrize("type_name", ODD)
def test_unusual_values_take_the_fast_path(type_name: str) -> None:
    """All valid forms take the fast path: the slow one costs several times as much."""
    slow = binder(parameter("a"), parameter("value", type_name), parameter("z"))
    fast = FastBinder(*slow.plain)
    left: list[str | bytes] = []
    for text in ODD[type_name]:
        for way in WAYS:
            query = way("value", text)
            expected = slow.bind_query(query)
            rows = fast.bind_query(query)
            assert rows in (None, expected)
            left += [query] if rows is None else []
        body = json.dumps({"a": 1, "value": [text] if type_name.endswith("[]") else text, "z": 2}).encode()
        rows = fast.bind_body(body)
        assert rows in (None, slow.bind_body(body))
        left += [body] if rows is None else []
    assert not left


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("bigint", "1234567890123456789"), ("numeric", "1e400"), ("numeric", "1.5E-7"), ("double precision", "1e300"),
        ("integer[]", "[[1,2],[3,4]]"), ("numeric[]", "[1e5, null, 2.50]"), ("date[]", '["2026-3-1", null]'),
        ("integer[]", '"{1,2}"'), ("pair", '{"n": 1, "someTexts": ["a\\"b", null]}'), ("pair[]", '[{"n": 1}, null]'),
        ("text", "[1, 2]"), ("jsonb", '{"deep": [[[{}]]]}'),
    ],
)  # fmt: skip
def test_unusual_json_takes_the_fast_path(type_name: str, value: str) -> None:
    slow = binder(parameter("a"), parameter("value", type_name))
    body = f'{{"a": 1, "value": {value}}}'.encode()
    assert FastBinder(*slow.plain).bind_body(body) == slow.bind_body(body)


def test_an_object_for_the_fields_of_a_composite_takes_the_fast_path() -> None:
    width = parameter("boxWidth", attribute="width", group="box", member="width")
    height = parameter("boxHeight", "numeric", attribute="height", group="box", member="height")
    slow = binder(parameter("a"), width, height)
    for body in (b'{"a":1,"box":{"width":3,"height":1e2}}', b'{"box":{"height":null},"a":1}', b'{"a":1,"box":{}}'):
        assert FastBinder(*slow.plain).bind_body(body) == slow.bind_body(body)


@pytest.mark.parametrize(
    "body", [b'{"box":{"width":3},"box":{"height":1}}', b'{"box":{},"a":1,"box":{}}', b'{"box":{},"box":{"width":3}}']
)
def test_a_repeated_object_of_a_composite_is_left_to_the_slow_binder(body: bytes) -> None:
    width = parameter("boxWidth", attribute="width", group="box", member="width")
    height = parameter("boxHeight", "numeric", attribute="height", group="box", member="height")
    slow = binder(parameter("a", default=True), width, height)
    assert FastBinder(*slow.plain).bind_body(body) is None
    with pytest.raises(BindingError):
        slow.bind_body(body)


def test_elements_that_are_not_adjacent_take_the_fast_path() -> None:
    slow = binder(parameter("x", "integer[]"), parameter("y", "text[]"))
    query = "&".join(f"x={number}&y=t{number}" for number in range(300))
    assert FastBinder(*slow.plain).bind_query(query) == slow.bind_query(query)
