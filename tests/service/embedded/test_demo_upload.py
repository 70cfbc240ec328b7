"""The demo's upload page in a real browser: several files through a form, with its progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import needs_browser
from tests.harness.database import Database

pytestmark = needs_browser


@pytest.fixture
def page(demo_page: Callable[[str], Page]) -> Page:
    return demo_page("/orders")


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
