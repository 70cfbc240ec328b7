"""The demo's pages in a real browser: sign in, see what is one's own, sign out; try the API; send files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import VIRTUAL_AUTHENTICATOR, needs_browser
from tests.harness.database import Database

pytestmark = [needs_browser, pytest.mark.slow]


def test_signing_in_and_out(demo_page: Callable[[str], Page]) -> None:
    page = demo_page("/login")
    message = page.locator("#message")
    page.click("#pay")
    expect(message).to_have_text("Unauthorized")
    _sign_in(page, "alma", "bells")
    expect(message).to_have_text("That is not right.")
    _sign_in(page, "alma", "pedals")
    expect(message).to_contain_text("You carry")
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert cookie.get("httpOnly")
    assert cookie.get("sameSite") == "Lax"
    page.click("#pay")
    expect(message).to_have_text("Forbidden")
    _sign_in(page, "dagny", "bells")
    expect(message).to_contain_text("You carry")
    page.click("#pay")
    expect(message).to_have_text("12 couriers are paid.")
    page.click("#out")
    expect(message).to_have_text("Unauthorized")
    assert page.context.cookies() == []


def test_signing_in_with_a_passkey(demo_page: Callable[[str], Page]) -> None:
    """Passkeys belong to a domain: `localhost` is one, an address is none."""
    page = demo_page("/login")
    message = page.locator("#message")
    page.goto(page.url.replace("127.0.0.1", "localhost"))
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": VIRTUAL_AUTHENTICATOR})
    page.click("#key")
    expect(message).to_have_text("Authentication required to add a passkey")
    _sign_in(page, "dagny", "bells")
    expect(message).to_contain_text("You carry")
    page.click("#key")
    expect(message).to_have_text("Your passkey is stored.")
    page.click("#out")
    expect(message).to_have_text("Unauthorized")
    page.click("#use")
    expect(message).to_contain_text("You carry")
    page.click("#pay")
    expect(message).to_have_text("12 couriers are paid.")


def test_progress_is_shown_while_a_routine_runs(demo_page: Callable[[str], Page]) -> None:
    """What the routine raises is there while it runs; its answer comes at the end."""
    page = demo_page("/round-page")
    page.evaluate("""() => {
        window.heard = [];
        const message = document.getElementById("message");
        new MutationObserver(() => window.heard.push(message.textContent)).observe(message, { childList: true });
    }""")
    page.click("#ride")
    expect(page.locator("#message")).to_have_text("All delivered.")
    assert page.evaluate("heard") == [*(f"stop {stop} of 5" for stop in range(1, 6)), "All delivered."]
    assert page.evaluate("document.getElementById('done').value") == 5


def test_the_api_viewer_shows_the_document_and_sends_requests(
    demo_page: Callable[[str], Page], database: Database
) -> None:
    """Nothing comes from elsewhere."""
    page = demo_page("/api-page")
    requested: list[str] = []
    refused: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
    response = page.reload()
    assert response is not None
    policy = response.header_value("content-security-policy") or ""
    assert policy.startswith("default-src 'none'; script-src 'self';")
    expect(page.locator("h1.title, h2.title").first).to_contain_text("Bicycle couriers")
    parcels = database.value("select count(*) from demo.parcel")
    operation = page.locator(".opblock", has_text="/api/demo/parcel-count").first
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_description").first).to_contain_text(
        str(parcels)
    )
    home = page.url.removesuffix("/api-page")
    assert [url for url in requested if not url.startswith((home, "data:"))] == []
    assert refused == []


def test_a_form_sends_several_files(demo_page: Callable[[str], Page], database: Database, tmp_path: Path) -> None:
    page = demo_page("/orders")
    before = database.value("select count(*) from demo.parcel")
    many = tmp_path / "many.csv"
    many.write_text("box,2,Quay,5,uni\n" * 300)
    few = tmp_path / "few.csv"
    few.write_text('letter,0.1,"WakeupPipe, Yard",1,har\n' * 2)
    page.set_input_files("[name=file]", [many, few])
    page.click("text=Order")
    message = page.locator("#messages li")
    expect(message.first).to_contain_text("many.csv: Ok", timeout=30_000)
    expect(message).to_have_count(2)
    expect(message.first).to_contain_text("many.csv: Ok, up to parcel")
    expect(message.last).to_contain_text("few.csv: Ok, up to parcel")
    expect(page.locator("#done")).to_have_text("100 %")
    assert page.evaluate("document.getElementById('sent').value") == 1
    assert database.value("select count(*) from demo.parcel") == before + 302


def test_an_invalid_line_rolls_back_the_order(
    demo_page: Callable[[str], Page], database: Database, tmp_path: Path
) -> None:
    page = demo_page("/orders")
    before = database.value("select count(*) from demo.parcel")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("box,2,Quay,5,uni\nbox,heavy,Quay,5,uni\n")
    page.set_input_files("[name=file]", [wrong])
    page.click("text=Order")
    expect(page.locator("#messages li")).to_contain_text("nothing was ordered", timeout=30_000)
    assert database.value("select count(*) from demo.parcel") == before


def _sign_in(page: Page, name: str, password: str) -> None:
    page.fill("[name=name]", name)
    page.fill("[name=password]", password)
    page.click("text=Sign in")
