"""Rows that the service reads: column, type, text and JSON of each value."""

from __future__ import annotations

import json

import psycopg
import pytest

from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.ext.rendering.codecs import Codecs
from tests.ext.results import address_of
from tests.harness.database import Database


def cells(database: Database, sql: str) -> list[list[list[object]]]:
    with psycopg.connect(database.conninfo) as connection:
        cursor = connection.execute(sql.encode())
        rows: list[list[list[object]]] = json.loads(CellRows(Codecs(), True).render_result(address_of(cursor)))
        return rows


@pytest.mark.parametrize(
    ("expression", "cell"),
    [
        ("41", ["a", 23, False, "41", "41"]),
        ("true", ["a", 16, False, "t", "true"]),
        ("null::text", ["a", 25, False, None, "null"]),
        ("'say \"hi\"\\n'::text", ["a", 25, False, 'say "hi"\\n', '"say \\"hi\\"\\\\n"']),
        ("array['x', null]", ["a", 1009, True, "{x,NULL}", '["x",null]']),
        ("array[1, 2]", ["a", 1007, True, "{1,2}", "[1,2]"]),
        ("'[1]'::jsonb", ["a", 3802, False, "[1]", "[1]"]),
        ("timestamp '2026-01-02 03:04:05'", ["a", 1114, False, "2026-01-02 03:04:05", '"2026-01-02T03:04:05"']),
    ],
)
def test_one_value_becomes_one_cell(database: Database, expression: str, cell: list[object]) -> None:
    assert cells(database, f"select {expression} as a") == [[cell]]


def test_rows_and_columns_become_cells(database: Database) -> None:
    rows = cells(database, 'select n as "A ""b""", n + 1 as c from generate_series(1, 2) n')
    assert rows == [
        [['A "b"', 23, False, "1", "1"], ["c", 23, False, "2", "2"]],
        [['A "b"', 23, False, "2", "2"], ["c", 23, False, "3", "3"]],
    ]


def test_results_without_rows_or_columns_have_no_cells(database: Database) -> None:
    assert cells(database, "select 1 as a where false") == []
    assert cells(database, "select") == [[]]
