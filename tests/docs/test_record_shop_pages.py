"""The pages of the record shop in a real browser: built by the command that its README names, from the client that
rowcall has written, and served by rowcall."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.docs.pages import application_settings
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.database import Database
from tests.harness.node import npm_run
from tests.harness.service import Service
from tests.http.conftest import Serve, serve

__all__ = ["serve"]

pytestmark = [needs_browser, pytest.mark.slow]

SHOP = Path(__file__).parents[2] / "examples" / "record-shop"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front end, built."""
    folder = tmp_path_factory.mktemp("record-shop") / "web"
    shutil.copytree(SHOP / "web", folder, ignore=shutil.ignore_patterns("node_modules", "js"))
    npm_run(folder, "build")
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the service writes its client."""
    return tmp_path_factory.mktemp("written")


@pytest.fixture(scope="module")
def shop(web: Path, written: Path, database: Database, serve: Serve) -> Service:
    settings = application_settings(SHOP) | {
        "StaticFiles:RootPath": str(web / "site"),
        "Service:ClientCodeGen:FilePath": f"{written}/{{0}}.ts",
    }
    return serve(database, (SHOP / "schema.sql").read_text(encoding="utf-8"), settings, workers=2)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as result:
        yield result


@pytest.fixture
def page(opened: Browser, shop: Service) -> Iterator[Page]:
    """Of a visitor of its own, once its stream is open and everything is shown; no script may fail there."""
    context = opened.new_context()
    context.set_default_timeout(TIMEOUT)
    yield _visited(context.new_page(), shop)
    context.close()


def _visited(page: Page, shop: Service) -> Page:
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(shop.url)
    expect(_stock(page, "Harbour Lights")).to_have_text("4")
    expect(page.locator("#best-sellers li")).to_have_count(3)
    return page


def _stock(page: Page, title: str) -> Locator:
    return page.locator("#albums tr", has_text=title).locator("td").nth(4)


def test_the_generated_client_in_the_repository_is_current(shop: Service, written: Path) -> None:
    api = SHOP / "web" / "src" / "api"
    texts = [{path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} for folder in (written, api)]
    assert sorted(texts[0]) == ["catalogue.ts", "reports.ts", "shop.ts", "staff.ts", "stock.ts"]
    assert {name: _without_place(text) for name, text in texts[0].items()} == texts[1]


def _without_place(text: str) -> str:
    """Comments name files as the configuration does, and the test has another folder."""
    return text.replace(f"{SHOP}/", "")


def test_albums_are_listed_and_searched(page: Page) -> None:
    rows = page.locator("#albums tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Artist").fill("lantern")
    expect(rows).to_have_count(2)
    page.get_by_label("in stock only").check()
    expect(rows).to_have_count(1)
    expect(rows.locator("td")).to_have_text(["Harbour Lights", "The Lanterns", "2019-03-08", "18.50", "4", "Buy"])


def test_a_sale_appears_immediately_on_all_pages(
    page: Page, opened: Browser, shop: Service, database: Database
) -> None:
    """What the form and the button write, and the stream of events that brings it to another visitor."""
    context = opened.new_context()
    other = _visited(context.new_page(), shop)
    page.get_by_role("button", name="Buy").nth(1).click()
    expect(page.locator("#said.refused")).to_have_text("Enter your name and address first.")
    page.locator("#customer").get_by_label("Name").fill("Ada")
    page.locator("#customer").get_by_label("Address").fill("ada@example.org")
    page.get_by_role("button", name="That is me").click()
    expect(page.locator("#buyer")).to_have_text("Ada buys.")
    page.locator("#albums tr", has_text="Azulejo").get_by_role("button").click()
    expect(page.locator("#said:not(.refused)")).to_have_text("Azulejo is yours for 16.00; 6 left")
    for item in (page, other):
        expect(_stock(item, "Azulejo")).to_have_text("6")
        expect(item.locator("#best-sellers li").first).to_have_text("Azulejo: 3 sold")
    sales = "select count(*) from shop.sale join shop.customer using (customer_id) where name = 'Ada'"
    assert database.value(sales) == 1
    page.locator("#albums tr", has_text="Low Water").get_by_role("button").click()
    expect(page.locator("#said.refused")).to_have_text("A value is not allowed")
    assert database.value(sales) == 1
    context.close()


def test_clerks_sign_in_and_shelve_deliveries(page: Page, shop: Service, tmp_path: Path) -> None:
    entrance = page.locator("#sign-in")
    for password in ("thread", "needle"):
        entrance.get_by_label("Name").fill("vera")
        entrance.get_by_label("Password").fill(password)
        entrance.get_by_role("button").click()
        if password == "thread":
            expect(page.locator("#said.refused")).to_have_text("Name or password is wrong.")
    expect(page.locator("#clerk")).to_have_text("vera")
    page = _visited(page, shop)
    expect(page.locator("#clerk")).to_have_text("vera")
    good, bad = tmp_path / "monday.csv", tmp_path / "tuesday.csv"
    good.write_text("30,1\n" * 5000)
    bad.write_text("30,1\n30,many\n")
    page.locator("[name=files]").set_input_files([good, bad])
    page.get_by_role("button", name="Shelve it").click()
    expect(page.locator("#said.refused")).to_contain_text("invalid input syntax for type integer")
    page.locator("[name=files]").set_input_files([good])
    page.get_by_role("button", name="Shelve it").click()
    expect(page.locator("#shelved li")).to_have_text("monday.csv: Ok")
    expect(_stock(page, "Rust Never Hurries")).to_have_text("5002")
    assert page.evaluate("document.getElementById('sent').value") == 1
    page.get_by_role("button", name="Sign out").click()
    expect(entrance).to_be_visible()
    assert shop.client.get("/clerk").status_code == 401
