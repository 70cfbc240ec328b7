"""The positional parameters that a command of the configuration uses (sign-in-21, uploads-21)."""

from __future__ import annotations

import pytest

from rowcall.core.auth.commands import number_placeholders


@pytest.mark.parametrize(
    ("sql", "text", "values"),
    [
        ("select 1", "select 1", ()),
        ("select f($1,$1)", "select f($1,$1)", (1,)),
        ("call f($2, $4)", "call f($1, $2)", (2, 4)),
        ("select f($3, $1)", "select f($1, $2)", (3, 1)),
        (
            "select '$9', \"$8\", $$ $7 $$, $tag$ $6 $$ $tag$, $2",
            "select '$9', \"$8\", $$ $7 $$, $tag$ $6 $$ $tag$, $1",
            (2,),
        ),
        ("select E'it\\'s $5', $1", "select E'it\\'s $5', $1", (1,)),
        ("select 1 -- $4\n, $3 /* $2 */", "select 1 -- $4\n, $1 /* $2 */", (3,)),
        ("select a$2", "select a$2", ()),
        ("select 'it''s $4', $2", "select 'it''s $4', $1", (2,)),
    ],
)
def test_numbered_without_gaps_outside_quotes(sql: str, text: str, values: tuple[int, ...]) -> None:
    assert number_placeholders(sql) == (text, values)


def test_numbered_with_types() -> None:
    """Types belong to the values as the caller numbers them."""
    text = "select $1::text, $2::boolean, '$1', $2::boolean"
    assert number_placeholders("select $4, $3, '$1', $3", {3: "boolean"}) == (text, (4, 3))
