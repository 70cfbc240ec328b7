"""PostgreSQL text → JSON, one value at a time (rendering-25 to rendering-29, rendering-31 to rendering-35)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from rowcall.ext.rendering.values import render_value
from tests.ext.strategies import broken_texts, typed_values
from tests.ext.twins import values as twin
from tests.ext.twins.types import Array, Composite, Domain, Registry, Scalar, Type
from tests.harness.effort import examples

TEXT, NUMBER, BOOLEAN, DATETIME = Scalar("text"), Scalar("number"), Scalar("boolean"), Scalar("datetime")
GAUGE = Composite((("id", NUMBER), ("label", TEXT)))
CRATE = Composite((("code", TEXT), ("item", GAUGE)))
SHELF = Composite((("shelfTitle", TEXT), ("items", Array(GAUGE))))
FLAG = Composite((("isOn", BOOLEAN),))
GRID = Composite((("id", NUMBER), ("grid", Array(NUMBER))))
MOMENT = Composite((("at", DATETIME), ("all", Array(DATETIME))))

CASES: list[tuple[str, Type, str, str]] = [
    ("digits are copied", NUMBER, "12345678901234567890.000000000100", "12345678901234567890.000000000100"),
    ("an exponent is legal JSON", NUMBER, "1e-07", "1e-07"),
    ("NaN is a string", NUMBER, "NaN", '"NaN"'),
    ("infinity is a string", NUMBER, "-Infinity", '"-Infinity"'),
    ("t is true", BOOLEAN, "t", "true"),
    ("a timestamp gets its T", DATETIME, "2024-01-15 10:30:00", '"2024-01-15T10:30:00"'),
    ("the era stands apart", DATETIME, "0044-03-15 08:00:00 BC", '"0044-03-15T08:00:00 BC"'),
    ("an offset has its minutes", DATETIME, "2024-01-15 10:30:00.5+00", '"2024-01-15T10:30:00.5+00:00"'),
    ("an offset with minutes stays", DATETIME, "2024-01-15 10:30:00-03:30", '"2024-01-15T10:30:00-03:30"'),
    ("an offset in front of the era", DATETIME, "0044-03-15 08:00:00+02 BC", '"0044-03-15T08:00:00+02:00 BC"'),
    (
        "a domain over a timestamp is one at every depth",
        Composite((("at", Domain(DATETIME)), ("all", Array(Domain(DATETIME))))),
        '("2024-01-15 10:30:00+00","{""2024-01-15 10:30:00+00""}")',
        '{"at":"2024-01-15T10:30:00+00:00","all":["2024-01-15T10:30:00+00:00"]}',
    ),
    ("json is embedded as it is", Scalar("json"), '{"a" : 1,  "a":2}', '{"a" : 1,  "a":2}'),
    ("controls are escaped in upper case", TEXT, "\x01\x0b\x1f\x7f", '"\\u0001\\u000B\\u001F\x7f"'),
    ("short escapes", TEXT, '\b\t\n\f\r"\\/', '"\\b\\t\\n\\f\\r\\"\\\\/"'),
    ("UTF-8 leaves as it is", TEXT, "é你😀", '"é你😀"'),
    ("a domain is its base type as a column", Domain(NUMBER), "7", "7"),
    ("a domain is text inside a tuple", Composite((("qty", Domain(NUMBER)),)), "(7)", '{"qty":"7"}'),
    ("a domain is text inside an array", Array(Domain(NUMBER)), "{7}", '["7"]'),
    ("a domain over an array stays an array", Composite((("l", Domain(Domain(Array(NUMBER)))),)), "({7})", '{"l":[7]}'),
    ("an empty array", Array(NUMBER), "{}", "[]"),
    ("bare NULL is null, quoted NULL is text", Array(TEXT), '{NULL,"NULL",""}', '[null,"NULL",""]'),
    ("dimensions nest", Array(NUMBER), "{{1,2},{3,NULL}}", "[[1,2],[3,null]]"),
    ("bounds are stepped over", Array(NUMBER), "[0:2]={7,8,9}", "[7,8,9]"),
    ("negative and several bounds", Array(NUMBER), "[-1:0][2:2]={{7},{8}}", "[[7],[8]]"),
    ("an element may end in a backslash", Array(TEXT), '{"dir\\\\",z}', '["dir\\\\","z"]'),
    ("boxes are parted by semicolons", Array(TEXT, ";"), "{(1,1),(0,0);(3,3),(2,2)}", '["(1,1),(0,0)","(3,3),(2,2)"]'),
    ("json elements are unquoted once", Array(Scalar("json")), '{"{\\"a\\": \\"x\\"}",NULL}', '[{"a": "x"},null]'),
    ("a timestamp in an array gets its T", Array(DATETIME), '{"2024-01-15 10:30:00"}', '["2024-01-15T10:30:00"]'),
    ("an anonymous record is an array of strings", Scalar("record"), '(1,t,,"",x)', '["1","t",null,"","x"]'),
    ("an empty slot is null, empty quotes are empty", GAUGE, '(,"")', '{"id":null,"label":""}'),
    ("the word NULL is data in a tuple", GAUGE, "(7,NULL)", '{"id":7,"label":"NULL"}'),
    ("a lone quote", GAUGE, '(9,"""")', '{"id":9,"label":"\\""}'),
    ("braces are plain in tuples", GAUGE, "(1,a{b)", '{"id":1,"label":"a{b"}'),
    ("a tuple in a tuple", CRATE, '(k,"(1,""in """"q"""""")")', '{"code":"k","item":{"id":1,"label":"in \\"q\\""}}'),
    ("a NULL tuple in a tuple", CRATE, "(k,)", '{"code":"k","item":null}'),
    (
        "an array of tuples in a tuple",
        SHELF,
        '(top,"{""(1,a)"",""(2,\\\\""b,c\\\\"")""}")',
        '{"shelfTitle":"top","items":[{"id":1,"label":"a"},{"id":2,"label":"b,c"}]}',
    ),
    ("an unquoted array in a tuple", GRID, "(1,{5})", '{"id":1,"grid":[5]}'),
    (
        "an array of tuples",
        Array(GAUGE),
        '{"(1,a)",NULL,"(,c)"}',
        '[{"id":1,"label":"a"},null,{"id":null,"label":"c"}]',
    ),
    ("single-field tuples are bare", Array(FLAG), "{(t),(f),()}", '[{"isOn":true},{"isOn":false},{"isOn":null}]'),
    ("two dimensions of tuples are strings", Array(GAUGE), '{{"(1,a)",NULL}}', '[["(1,a)",null]]'),
    ("bounds of an array of tuples", Array(GAUGE), '[0:0]={"(1,a)"}', '[{"id":1,"label":"a"}]'),
    (
        "a timestamp keeps its blank in a tuple, not in an array in it",
        MOMENT,
        '("2024-01-15 10:30:00","{""2024-01-15 10:30:00""}")',
        '{"at":"2024-01-15T10:30:00","all":["2024-01-15T10:30:00"]}',
    ),
    ("keys are escaped", Composite((('a"b\\', NUMBER),)), "(1)", '{"a\\"b\\\\":1}'),
    ("a composite without fields", Composite(()), "()", "{}"),
    ("too many slots: text", GAUGE, "(1,a,b)", '"(1,a,b)"'),
    ("a missing quote: text", Array(TEXT), '{"a', '"{\\"a"'),
    ("something behind the end: text", Array(NUMBER), "{1}x", '"{1}x"'),
    ("a broken inner value is text, the outer one stands", CRATE, "(k,x)", '{"code":"k","item":"x"}'),
    ("more dimensions than PostgreSQL has: text", Array(NUMBER), "{" * 7 + "1" + "}" * 7, '"{{{{{{{1}}}}}}}"'),
]


def render(kind: Type, text: str, resolve_nested: bool = True) -> str:
    registry = Registry(resolve_nested)
    return render_value(registry.codecs, registry.oid(kind), text.encode()).decode()


@pytest.mark.parametrize(("kind", "text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_value_is_rendered_by_its_type(kind: Type, text: str, expected: str) -> None:
    assert render(kind, text) == expected


@pytest.mark.parametrize(("kind", "text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_twin_renders_values_as_expected(kind: Type, text: str, expected: str) -> None:
    assert twin.render_value(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (CRATE, '(k,"(1,x)")', '{"code":"k","item":"(1,x)"}'),
        (SHELF, '(top,"{""(1,a)"",NULL}")', '{"shelfTitle":"top","items":["(1,a)",null]}'),
        (Array(CRATE), '{"(a,\\"(1,x)\\")"}', '[{"code":"a","item":"(1,x)"}]'),
        (GRID, "(1,{5})", '{"id":1,"grid":[5]}'),
    ],
)
def test_without_nested_resolution_only_one_level_is_parsed(kind: Type, text: str, expected: str) -> None:
    assert render(kind, text, resolve_nested=False) == expected


def test_sql_null_is_null() -> None:
    assert render_value(Registry().codecs, 23, None) == b"null"


def test_an_undefined_type_is_text() -> None:
    assert render_value(Registry().codecs, 4_000_000_000, b'(1,"x")') == b'"(1,\\"x\\")"'


def test_a_composite_type_may_contain_arrays_of_itself() -> None:
    codecs = Registry().codecs
    codecs.define_composite(500_001, [(b"name", 25), (b"children", 500_002)])
    codecs.define_array(500_002, 500_001)
    assert (
        render_value(codecs, 500_001, b'(a,"{""(b,{})""}")') == b'{"name":"a","children":[{"name":"b","children":[]}]}'
    )


def test_types_may_be_defined_in_any_order_and_redefined() -> None:
    codecs = Registry().codecs
    codecs.define_composite(500_001, [(b"x", 500_002)])
    assert render_value(codecs, 500_001, b"(7)") == b'{"x":"7"}'
    codecs.define_scalar(500_002, "number")
    assert render_value(codecs, 500_001, b"(7)") == b'{"x":7}'


def test_too_deep_nesting_is_written_as_text() -> None:
    codecs = Registry().codecs
    codecs.define_array(500_001, 500_001)
    rendered = render_value(codecs, 500_001, b'{"{x}"}')
    assert json.loads(rendered) == [["x"]]


@given(typed_values())
@settings(max_examples=examples(400), deadline=None)
def test_a_value_survives_a_round_trip_through_json(case: tuple[Type, str, Any]) -> None:
    kind, text, meaning = case
    assert json.loads(render(kind, text)) == meaning


@pytest.mark.slow
@given(typed_values())
@settings(max_examples=examples(400), deadline=None)
def test_cython_and_its_twin_write_the_same_bytes(case: tuple[Type, str, Any]) -> None:
    kind, text, _ = case
    assert render(kind, text) == twin.render_value(kind, text)
    assert render(kind, text, resolve_nested=False) == twin.render_value(kind, text, resolve_nested=False)


@pytest.mark.slow
@given(broken_texts())
@settings(max_examples=examples(800), deadline=None)
def test_cython_and_its_twin_agree_on_broken_text(case: tuple[Type, str]) -> None:
    kind, text = case
    assert render(kind, text) == twin.render_value(kind, text)
