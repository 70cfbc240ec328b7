"""How many positional parameters a command of the configuration takes (reference 04, pitfall 18)."""

from __future__ import annotations

import pytest

from rowcall.core.auth.commands import placeholder_count


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("select 1", 0),
        ("select f($1,$1)", 1),
        ("select f($3)", 3),
        ("select '$9', \"$8\", $$ $7 $$, $tag$ $6 $$ $tag$, $2", 2),
        ("select E'it\\'s $5', $1", 1),
        ("select 1 -- $4\n, $1 /* $3 */", 1),
        ("select a$2", 0),
        ("select 'it''s $4', $1", 1),
    ],
)
def test_highest_index_outside_quotes(sql: str, count: int) -> None:
    assert placeholder_count(sql) == count
