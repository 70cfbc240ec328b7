"""Raw text and bytes: the same output as that of the twin for all values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import BytesRenderer, RawRenderer
from tests.ext.conftest import Connection
from tests.ext.results import address_of, result_of
from tests.ext.twins.raw import QUOTED, RawColumn, render_raw

TYPES = {
    "text": 25,
    "varchar": 1043,
    "json": 114,
    "jsonb": 3802,
    "date": 1082,
    "timestamp": 1114,
    "timestamptz": 1184,
    "int4": 23,
    "bool": 16,
    "uuid": 2950,
    "interval": 1186,
    "unknown_to_all": 77_777,
}
ARRAYS = {25: 1009, 1043: 1015, 114: 199, 3802: 3807, 1082: 1182, 23: 1007, 16: 1000}
DOMAIN_OVER_TEXT, ARRAY_OF_DOMAIN, CIRCLE = 90_001, 90_002, 90_003

TEXTS = st.text(st.sampled_from('",;\n\\{}aé1 '), max_size=30).map(str.encode)
VALUES = st.none() | TEXTS | st.binary(max_size=200).filter(lambda value: b"\0" not in value)
COLUMNS = st.builds(
    RawColumn, st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name), st.sampled_from(sorted(TYPES))
)


def codecs() -> Codecs:
    made = Codecs()
    made.define_domain(DOMAIN_OVER_TEXT, 25)
    made.define_array(ARRAY_OF_DOMAIN, DOMAIN_OVER_TEXT)
    made.define_domain(CIRCLE, CIRCLE)
    return made


CODECS = codecs()


@given(
    st.data(),
    st.lists(COLUMNS, min_size=1, max_size=5),
    st.none() | TEXTS,
    TEXTS,
    st.booleans(),
    st.booleans(),
)
def test_every_result_is_written_as_by_the_twin(
    data: st.DataObject, columns: list[RawColumn], separator: bytes | None, new_line: bytes, header: bool, arrays: bool
) -> None:
    rows = data.draw(st.lists(st.tuples(*[VALUES] * len(columns)), max_size=4))
    oids = [TYPES[column.type_name] for column in columns]
    if arrays:
        oids = [ARRAYS.get(oid, oid) for oid in oids]
    renderer = RawRenderer(CODECS, True, separator, new_line, header)
    described = [(column.name, oid) for column, oid in zip(columns, oids, strict=True)]
    with result_of(described, rows) as address:
        assert renderer.render_result(address) == render_raw(columns, rows, separator, new_line, header)


@given(st.lists(st.none() | st.binary(max_size=300), max_size=5))
def test_bytes_are_written_unchanged(values: list[bytes | None]) -> None:
    rows = [[None if value is None else b"\\x" + value.hex().encode()] for value in values]
    with result_of([(b"part", 17)], rows) as address:
        assert BytesRenderer(True).render_result(address) == b"".join(value or b"" for value in values)


@pytest.mark.parametrize("text", [b"", b"\\", b"\\x", b"\\x0", b"\\x0g", b"\\y00", b"plain"])
def test_bytea_that_is_not_hexadecimal_is_written_unchanged(text: bytes) -> None:
    with result_of([(b"part", 17)], [[text]]) as address:
        assert BytesRenderer(True).render_result(address) == (b"" if text == b"\\x" else text)


@pytest.mark.parametrize(
    ("oid", "expected"), [(DOMAIN_OVER_TEXT, b'"a"'), (ARRAY_OF_DOMAIN, b'"a"'), (CIRCLE, b"a"), (17, b"a")]
)
def test_domains_are_quoted_like_their_base_types(oid: int, expected: bytes) -> None:
    with result_of([(b"v", oid)], [[b"a"]]) as address:
        assert RawRenderer(CODECS, True, b",").render_result(address) == expected


def test_a_single_result_has_its_first_row_only() -> None:
    with result_of([(b"v", 25)], [[b"a"], [b"b"]]) as address:
        assert RawRenderer(CODECS, False, None, b"\n", True).render_result(address) == b'"v"\na'
    with result_of([(b"v", 17)], [[b"\\x61"], [b"\\x62"]]) as address:
        assert BytesRenderer(False).render_result(address) == b"a"


def test_bytes_require_one_column() -> None:
    with result_of([(b"a", 17), (b"b", 17)], []) as address, pytest.raises(ValueError, match="2 columns"):
        BytesRenderer(True).render_result(address)


def test_a_changed_result_description_is_rendered_by_a_new_plan() -> None:
    renderer = RawRenderer(CODECS, True, b",", b"\n", True)
    with result_of([(b"v", 25)], [[b"a"]]) as address:
        assert renderer.render_result(address) == b'"v"\n"a"'
    with result_of([(b"v", 23), (b"w", 25)], [[b"1", b"a"]]) as address:
        assert renderer.render_result(address) == b'"v","w"\n1,"a"'


def test_a_row_without_columns_is_empty() -> None:
    with result_of([], []) as address:
        assert RawRenderer(CODECS, True, b",", b"\n", True).render_result(address) == b"\n"


def test_quoted_types_are_those_of_the_server(connection: Connection) -> None:
    """Each value of one type with a separator: quotes show how the renderer classifies it."""
    listed = connection.execute("""
        select oid::int, typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b'
            and typcategory <> 'A' order by oid
    """).fetchall()
    with result_of([(name.encode(), oid) for oid, name in listed], [[b"v"] * len(listed)]) as address:
        values = RawRenderer(CODECS, True, b",").render_result(address).split(b",")
    assert {name for (_, name), value in zip(listed, values, strict=True) if value == b'"v"'} == QUOTED


def test_a_result_of_the_server_is_rendered(connection: Connection) -> None:
    cursor = connection.execute("select 1 as n, 'a\"b' as t, null::text, array['x', null], '\\x00'::bytea")
    expected = b'"n","t","text","array","bytea"\n1,"a""b","","{x,NULL}",\\x00'
    assert RawRenderer(CODECS, True, b",", b"\n", True).render_result(address_of(cursor)) == expected
