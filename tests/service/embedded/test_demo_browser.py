"""The demo's login page in a real browser: sign in, see what is one's own, sign out."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from importlib.resources import files

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
        opened.goto(f"{service.url}/login")
        yield opened
        browser.close()


def test_signing_in_and_out(page: Page) -> None:
    said = page.locator("#said")
    page.click("#pay")
    expect(said).to_have_text("Unauthorized")
    _sign_in(page, "alma", "bells")
    expect(said).to_have_text("That is not right.")
    _sign_in(page, "alma", "pedals")
    expect(said).to_contain_text("You carry")
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert cookie.get("httpOnly")
    assert cookie.get("sameSite") == "Lax"
    page.click("#pay")
    expect(said).to_have_text("Forbidden")
    _sign_in(page, "dagny", "bells")
    expect(said).to_contain_text("You carry")
    page.click("#pay")
    expect(said).to_have_text("12 couriers are paid.")
    page.click("#out")
    expect(said).to_have_text("Unauthorized")
    assert page.context.cookies() == []


def test_progress_of_a_long_routine(page: Page) -> None:
    """What the routine raises is there while it runs; its answer comes at the end."""
    page.goto(page.url.replace("/login", "/round-page"))
    page.evaluate("""() => {
        window.heard = [];
        const said = document.getElementById("said");
        new MutationObserver(() => window.heard.push(said.textContent)).observe(said, { childList: true });
    }""")
    page.click("#ride")
    expect(page.locator("#said")).to_have_text("All delivered.")
    assert page.evaluate("heard") == [*(f"stop {stop} of 5" for stop in range(1, 6)), "All delivered."]
    assert page.evaluate("document.getElementById('done').value") == 5


def _sign_in(page: Page, name: str, password: str) -> None:
    page.fill("[name=name]", name)
    page.fill("[name=password]", password)
    page.click("text=Sign in")
