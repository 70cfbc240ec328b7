"""A spreadsheet opened by a spreadsheet program and not by a library: LibreOffice, where it is installed."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.http.conftest import Serve

OFFICE = shutil.which("soffice")
SQL = """
create function report() returns table (id int, "big number" bigint, price numeric, day date, made timestamp,
    done boolean, note text, nix text)
    language sql stable as $$ values
        (1, 123456789012, 12.50, date '2024-02-29', timestamp '2024-01-15 10:30:15', true, 'a "b", c', null),
        (2, -5, -0.25, date '1999-12-31', timestamp '1999-12-31 23:59:59', false, '=1+1', '') $$;
comment on function report() is E'HTTP\\ntable_format = excel\\nexcel_sheet = Report';
"""

pytestmark = pytest.mark.skipif(OFFICE is None, reason="no LibreOffice on this machine (Debian: libreoffice-calc)")


def as_csv(workbook: Path) -> list[list[str]]:
    """What LibreOffice shows, cell by cell. The profile is the test's own: two runs cannot share one."""
    assert OFFICE
    profile = f"-env:UserInstallation={(workbook.parent / 'profile').as_uri()}"
    filtered = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"
    command = [OFFICE, profile, "--headless", "--convert-to", filtered, "--outdir", str(workbook.parent), str(workbook)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with workbook.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_libreoffice_shows_the_rows(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    service = serve_once(own_database, SQL, {"Service:TableFormatOptions:Enabled": "true"})
    workbook = tmp_path / "report.xlsx"
    workbook.write_bytes(service.get("/api/report").content)
    assert as_csv(workbook) == [
        ["id", "big number", "price", "day", "made", "done", "note", "nix"],
        ["1", "123456789012", "12.5", "2024-02-29 00:00:00", "2024-01-15 10:30:15", "TRUE", 'a "b", c', ""],
        ["2", "-5", "-0.25", "1999-12-31 00:00:00", "1999-12-31 23:59:59", "FALSE", "=1+1", ""],
    ]
