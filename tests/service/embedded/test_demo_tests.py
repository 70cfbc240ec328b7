"""The tests that the demo and the record shop bring along pass, and leave their databases as they are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from rowcall.service.embedded.demo import SETTINGS
from tests.harness.command import rowcall
from tests.harness.database import Database

SHOP = Path(__file__).parents[3] / "examples" / "record-shop"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "schema", "script", "settings", "passed"),
    [
        (SHOP, "shop", SHOP / "schema.sql", (), "4 passed, 0 failed, 0 error(s)"),
        (
            None,
            "demo",
            files("rowcall.service.embedded.demo") / "schema.sql",
            SETTINGS,
            "3 passed, 0 failed, 0 error(s)",
        ),
    ],
    ids=["record-shop", "demo"],
)
def test_tests_of_the_demo_and_templates_pass(
    folder: Path | None,
    schema: str,
    script: Path,
    settings: tuple[tuple[str, str], ...],
    passed: str,
    own_database: Database,
    tmp_path: Path,
) -> None:
    own_database.execute(script.read_text(encoding="utf-8"))
    before = _rows(own_database, schema)
    values = [f"--{key}={value}" for key, value in settings]
    done = rowcall(folder or tmp_path, "--test", f"--ConnectionStrings:Default={own_database.conninfo}", *values)
    assert passed in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert _rows(own_database, schema) == before


def _rows(database: Database, schema: str) -> dict[str, int]:
    tables = database.fetch(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables where schemaname = %s", schema
    )
    return {table: database.value(f"select count(*) from {table}") for (table,) in tables}
