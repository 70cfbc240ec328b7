"""The demo's login page in a real browser: sign in, see what is one's own, sign out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import VIRTUAL_AUTHENTICATOR, needs_browser

pytestmark = needs_browser


@pytest.fixture
def page(demo_page: Callable[[str], Page]) -> Page:
    return demo_page("/login")


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


def test_signing_in_with_a_passkey(page: Page) -> None:
    """Passkeys belong to a domain: `localhost` is one, an address is none."""
    said = page.locator("#said")
    page.goto(page.url.replace("127.0.0.1", "localhost"))
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": VIRTUAL_AUTHENTICATOR})
    page.click("#key")
    expect(said).to_have_text("Authentication required to add a passkey")
    _sign_in(page, "dagny", "bells")
    expect(said).to_contain_text("You carry")
    page.click("#key")
    expect(said).to_have_text("Your passkey is kept.")
    page.click("#out")
    expect(said).to_have_text("Unauthorized")
    page.click("#use")
    expect(said).to_contain_text("You carry")
    page.click("#pay")
    expect(said).to_have_text("12 couriers are paid.")


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
