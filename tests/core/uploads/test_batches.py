"""Row commands that many rows can share, and their statements."""

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
def test_row_commands_that_cannot_be_batched_have_no_pattern(text: str) -> None:
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
def test_row_commands_that_can_be_batched_have_a_pattern(text: str, head: str, expression: str) -> None:
    result = pattern(row_command(text, {}))
    assert result is not None
    assert (result.head, result.expression) == (head, expression)


def test_placeholders_in_a_batch_are_parameters() -> None:
    command = row_command("insert into t values ($1, {_who}, '{_who}: x')", {"_who": 0})
    result = pattern(command)
    assert result is not None
    made = batch(command, result)
    assert made.picks == (0, 1, 4)
    assert "select rowcall_row.number, $3, (coalesce($3::text, '') || ': x')\nfrom" in made.sql


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("select f($1) -- a row", "select f(rowcall_row.number)\nas value from"),
        ("select f($1); -- a row", "select f(rowcall_row.number)\nas value from"),
        ("select f(';--', $1) ; /* one; */ ;", "select f(';--', rowcall_row.number)\nas value from"),
        ("insert into t -- a row\nvalues (1 -- one\n)", "insert into t -- a row\nselect 1 -- one\nfrom"),
    ],
)
def test_a_line_comment_does_not_hide_the_rest_of_the_batch(text: str, written: str) -> None:
    command = row_command(text, {})
    result = pattern(command)
    assert result is not None
    assert batch(command, result).sql.startswith(written)


@pytest.mark.parametrize(
    ("text", "columns", "written"),
    [
        ("insert into t values (($2)[3], $2[1]::int)", (1, 3), "(rowcall_row.c3), (rowcall_row.c1)::int"),
        ("insert into t values (( $2 ) [ 2 ] || '($2)[1]')", (2,), "(rowcall_row.c2) || '($2)[1]'"),
        ("select f(($2)[2], $2[2], $1)", (2,), "f((rowcall_row.c2), (rowcall_row.c2), rowcall_row.number)"),
        ("select $2[1]between'a'and'b'", (1,), "(rowcall_row.c1)between'a'and'b'"),
        # The row is also used in another way, or not at all.
        ("insert into t values (($2)[1], $2)", (), "(rowcall_row.cells)[1], rowcall_row.cells"),
        ("insert into t values (($2)[1:2])", (), "(rowcall_row.cells)[1:2]"),
        ("insert into t values (($2)[1][1])", (), "(rowcall_row.cells)[1][1]"),
        ("insert into t values (($2)[0], ($2)[1])", (), "(rowcall_row.cells)[0], (rowcall_row.cells)[1]"),
        ("insert into t values (($2)[$1])", (), "(rowcall_row.cells)[rowcall_row.number]"),
        ("insert into t values ($2[-1])", (), "rowcall_row.cells[-1]"),
        ("insert into t values ($1)", (), "rowcall_row.number"),
    ],
)  # fmt: skip
def test_cells_used_individually_are_sent_as_columns(text: str, columns: tuple[int, ...], written: str) -> None:
    command = row_command(text, {})
    result = pattern(command)
    assert result is not None
    made = batch(command, result)
    assert made.columns == columns
    sql = " ".join(made.sql.split()).replace(" as value from", " from")
    assert f" select {written} from (select " in f" {sql}"
    assert made.types == (23, *[1009] * (len(columns) or 1))


def test_arrays_of_columns_are_numbered_after_all_other_parameters() -> None:
    command = row_command("insert into t values ({_a}, ($2)[5], $4, ($2)[2], {_b})", {"_a": 0, "_b": 1})
    result = pattern(command)
    assert result is not None
    made = batch(command, result)
    assert (made.columns, made.picks) == ((2, 5), (0, 6, 7, 4, 3, 5))


@pytest.mark.parametrize(
    ("sql", "many"),
    [
        ("insert into t (a) values ($2[1])", True),
        ("insert into t (a) values ($2[1] || $7)", False),
        ("insert into t (a) values ('$7' || $2[1])", True),
        ("insert into t (a, b) values ($0, $1)", False),
        ("insert into t (a) values ($0)", False),
        ("select f($2, $9)", False),
        ("select f($2)", True),
    ],
)
def test_a_row_command_with_an_unknown_parameter_is_not_batched(sql: str, many: bool) -> None:
    assert (pattern(row_command(sql, {})) is not None) is many
