"""`rowcall --validate` prints the warnings of the start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database

TOOLS = """
create function streamed() returns int language sql as 'select 1';
comment on function streamed() is E'HTTP POST\\nsse\\nmcp Streams.';
create function bare() returns int language sql as 'select 1';
comment on function bare() is E'HTTP POST\\nmcp';
"""
EXTENSION = """
create function enables_all(_on bool) returns int language sql as 'select 1';
comment on function enables_all(bool) is 'Enables everything';
create table other_parts (id int);
comment on table other_parts is 'Enables parts';
alter extension plpgsql add function enables_all(bool);
alter extension plpgsql add table other_parts;
"""


def validate(folder: Path, database: Database, *switches: str) -> tuple[int, list[str]]:
    done = rowcall(
        folder, "--validate", "--strict", "--json", f"--ConnectionStrings:Default={database.conninfo}", *switches
    )
    report = json.loads(done.stdout)
    return done.returncode, [item for item in report["startWarnings"] if "pooler" not in item]


def test_validate_reports_the_warnings_about_tools_of_a_start(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(TOOLS)
    code, warnings = validate(tmp_path, own_database, "--Service:McpOptions:Enabled=true")
    assert code == 1
    assert "POST /api/streamed: sse does not go together with a tool" in warnings
    assert "POST /api/bare: the tool has no description; mcp <text> gives it one" in warnings


@pytest.mark.parametrize("crud", ["false", "true"])
def test_comments_of_extensions_are_not_misspelt_annotations(own_database: Database, tmp_path: Path, crud: str) -> None:
    """The comment of the same function says something else where it is the user's own."""
    own_database.execute(EXTENSION)
    switch = f"--Service:CrudSource:Enabled={crud}"
    assert [item for item in validate(tmp_path, own_database, switch)[1] if "no annotation" in item] == []
    own_database.execute("alter extension plpgsql drop function enables_all(bool)")
    warnings = validate(tmp_path, own_database, switch)[1]
    assert [item for item in warnings if "'Enables' is no annotation" in item] != []
