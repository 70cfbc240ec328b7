"""The fixed OIDs, compared with `pg_type` of every installed server version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.ext.rendering.builtin_types import ARRAYS, BYTEA, DELIMITERS, SCALARS

if TYPE_CHECKING:
    from tests.harness.database import Database

FIRST_USER_OID = 16384
NAMES = {
    "boolean": {"bool"},
    "number": {"int2", "int4", "int8", "float4", "float8", "numeric"},
    "json": {"json", "jsonb"},
    "datetime": {"timestamp", "timestamptz"},
    "record": {"record"},
}


def test_oids_of_scalars_have_the_expected_types(every_database: Database) -> None:
    names = dict(every_database.fetch("select oid::int8, typname from pg_type"))
    for rule, expected in NAMES.items():
        assert {names[oid] for oid, name in SCALARS.items() if name == rule} == expected
    assert names[BYTEA] == "bytea"


def test_oids_of_arrays_are_those_of_the_server(every_database: Database) -> None:
    # `oid < 10000`: the row types of the system catalogues have OIDs that differ between versions.
    rows = every_database.fetch("""
        select a.oid::int8, e.oid::int8, a.typdelim from pg_type a join pg_type e on e.typarray = a.oid
        where a.oid < 10000 and e.typtype <> 'c' and e.typname <> 'cstring'
    """)
    result = {oid: element for oid, element, _ in rows}
    assert result.items() <= ARRAYS.items()
    assert {oid: delimiter for oid, _, delimiter in rows if delimiter != ","} == DELIMITERS
    assert max(ARRAYS) < FIRST_USER_OID


def test_no_other_types_count_as_arrays(every_database: Database) -> None:
    """`int2vector` has elements, but its text is not that of an array."""
    others = "select oid::int8 from pg_type t where not exists (select from pg_type e where e.typarray = t.oid)"
    assert ARRAYS.keys().isdisjoint(oid for (oid,) in every_database.fetch(others))
