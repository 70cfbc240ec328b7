"""Which row commands many rows can share, and what becomes of them."""

from __future__ import annotations

import pytest

from rowcall.core.uploads.batches import batch, pattern
from rowcall.core.uploads.row_command import row_command


@pytest.mark.parametrize(
    "text",
    [
        "call keep($1, $2)",
        "select f($1) from t",
        "select f($1), 2",
        "select * from f($1)",
        "select (select count(*) from t) + $1",
        "select f($1) where true",
        "insert into t select $1",
        "insert into t values ($1), ($1 + 1)",
        "insert into t values ($1) returning a",
        "insert into t values ($1) on conflict do nothing",
        "insert into t values (default, $1)",
        "insert into t values ($1, (select 1))",
        "insert into t values ($1, $3)",
        "with a as (select 1) select f($1)",
        "update t set a = $1",
    ],
)
def test_rows_run_one_by_one(text: str) -> None:
    assert pattern(row_command(text, {})) is None


@pytest.mark.parametrize(
    ("text", "head", "expression"),
    [
        ("insert into t (a) values ($1, 'values (', f(($2)[1]))", "insert into t (a)", "$1, 'values (', f(($2)[1])"),
        ("INSERT INTO s.t VALUES ( $2[1]::int );", "INSERT INTO s.t", "$1[1]::int"),
        ("select f($1, $2, $3, $4)", "", "f($1, $2, $3, $4)"),
        ("select upper($2[1]) || ', from ' || $1", "", "upper($1[1]) || ', from ' || $2"),
    ],
)
def test_rows_can_share_a_statement(text: str, head: str, expression: str) -> None:
    found = pattern(row_command(text, {}))
    assert found is not None
    assert (found.head, found.expression) == (head, expression)


def test_a_placeholder_stays_a_value() -> None:
    command = row_command("insert into t values ($1, {_who}, '{_who}: x')", {"_who": 0})
    found = pattern(command)
    assert found is not None
    made = batch(command, found)
    assert made.picks == (0, 1, 4)
    assert "select rowcall_row.number, $3, (coalesce($3::text, '') || ': x') from" in made.sql
