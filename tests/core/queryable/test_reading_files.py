"""Which SQL of files can be queried."""

from __future__ import annotations

import pytest

from rowcall.core.queryable.language import only_reads


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("select 1", True),
        ("-- one\n/* two */ (with x as (select 1) select * from x)", True),
        ("/* a */" * 60 + "table items", True),
        ("/* a */" * 60 + "insert into items values (1)", False),
        ("with x as (delete from items returning *) select * from x", False),
    ],
)
def test_statements_that_only_read(text: str, reads: bool) -> None:
    assert only_reads(text) is reads
