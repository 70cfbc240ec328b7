"""The applications in examples/ are served as they are, and answer what their README says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.pages import flat, read_page
from tests.docs.test_examples import _differences, _send
from tests.harness.database import Database
from tests.http.conftest import Serve

APPLICATIONS = sorted(path.parent for path in (Path(__file__).parents[2] / "examples").glob("*/rowcall.json"))


@pytest.mark.parametrize("folder", APPLICATIONS, ids=lambda folder: folder.name)
def test_an_application_does_what_its_readme_says(folder: Path, own_database: Database, serve_once: Serve) -> None:
    page = read_page(folder / "README.md")
    assert page.exchanges
    configuration = re.sub(r"^\s*//.*$", "", (folder / "rowcall.json").read_text(encoding="utf-8"), flags=re.MULTILINE)
    settings = dict(flat(json.loads(configuration)))
    pattern = "Service:SqlFileSource:FilePattern"
    # The tests bring a database of their own, and stand in another folder.
    settings |= {pattern: f"{folder}/{settings[pattern]}", "ConnectionStrings:Default": own_database.conninfo}
    service = serve_once(own_database, (folder / "schema.sql").read_text(encoding="utf-8"), settings)
    wrong = [
        f"line {exchange.line}: {exchange.method} {exchange.target}: {difference}"
        for exchange in page.exchanges
        for difference in _differences(exchange, _send(service.client, exchange, {}), {})
    ]
    assert not wrong, "\n".join(wrong)
