"""`python -m bench.profile` shows where the time goes."""

from __future__ import annotations

import pytest

from bench.profile.__main__ import main
from tests.harness.database import Database


def test_a_statement_is_reported_column_by_column(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    database.execute("create type gauge as (id int, label text)")
    sql = "select n, array[row(n, 'a\"b')::gauge] as gauges from generate_series(1, 50) n"
    assert main(["--sql", sql, "--connection", database.conninfo, "--requests", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["PostgreSQL,", "first", "last", "rendering", "n", "gauges"]
    assert "gauge[]" in lines[5]
    assert all("MB/s" in line for line in lines[3:])


def test_a_url_or_a_statement_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "either a URL or --sql is needed" in capsys.readouterr().err
