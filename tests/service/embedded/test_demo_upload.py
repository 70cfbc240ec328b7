"""The demo's upload page in a real browser: several files through a form, with its progress."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from rowcall.service.embedded.demo import SETTINGS
from tests.harness.database import Database
from tests.http.conftest import Serve, serve_once

__all__ = ["serve_once"]

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Without these it looks for its maker's hosts at every start.
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (Debian: apt install chromium)")


@pytest.fixture
def page(own_database: Database, serve_once: Serve) -> Iterator[Page]:
    sql = files("rowcall.service.embedded.demo").joinpath("schema.sql").read_text(encoding="utf-8")
    service = serve_once(
        own_database, f"begin; {sql}; commit", {**dict(SETTINGS), "Service:RequiresAuthorization": None}
    )
    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore", ResourceWarning)
        browser = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        opened = browser.new_page()
        opened.goto(f"{service.url}/orders")
        yield opened
        browser.close()


def test_several_files_are_sent_by_a_form(page: Page, own_database: Database, tmp_path: Path) -> None:
    before = own_database.value("select count(*) from demo.parcel")
    many = tmp_path / "many.csv"
    many.write_text("box,2,Quay,5,uni\n" * 300)
    few = tmp_path / "few.csv"
    few.write_text('letter,0.1,"Bell, Yard",1,har\n' * 2)
    page.set_input_files("[name=file]", [many, few])
    page.click("text=Order")
    said = page.locator("#said li")
    expect(said.first).to_contain_text("many.csv: Ok", timeout=30_000)
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("many.csv: Ok, up to parcel")
    expect(said.last).to_contain_text("few.csv: Ok, up to parcel")
    expect(page.locator("#done")).to_have_text("100 %")
    assert page.evaluate("document.getElementById('sent').value") == 1
    assert own_database.value("select count(*) from demo.parcel") == before + 302


def test_one_wrong_line_orders_nothing(page: Page, own_database: Database, tmp_path: Path) -> None:
    before = own_database.value("select count(*) from demo.parcel")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("box,2,Quay,5,uni\nbox,heavy,Quay,5,uni\n")
    page.set_input_files("[name=file]", [wrong])
    page.click("text=Order")
    expect(page.locator("#said li")).to_contain_text("nothing was ordered", timeout=30_000)
    assert own_database.value("select count(*) from demo.parcel") == before
