"""Row commands that can process many rows at once."""

from __future__ import annotations

import pytest

from rowcall.core.uploads.batches import pattern
from rowcall.core.uploads.row_command import row_command


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
def test_a_number_without_a_value_is_left_to_the_server(sql: str, many: bool) -> None:
    assert (pattern(row_command(sql, {})) is not None) is many
