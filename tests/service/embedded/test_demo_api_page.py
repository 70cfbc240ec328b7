"""The demo's page with the viewer of its OpenAPI document, in a real browser: nothing comes from elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.harness.browser import needs_browser

pytestmark = needs_browser


def test_the_viewer_shows_the_document_and_tries_it(demo_page: Callable[[str], Page]) -> None:
    page = demo_page("/api-page")
    asked: list[str] = []
    refused: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
    answer = page.reload()
    assert answer is not None
    policy = answer.header_value("content-security-policy") or ""
    assert policy.startswith("default-src 'none'; script-src 'self';")
    expect(page.locator("h1.title, h2.title").first).to_contain_text("Bicycle couriers")
    operation = page.locator(".opblock", has_text="/api/demo/parcel-count").first
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_description").first).to_contain_text("4000")
    home = page.url.removesuffix("/api-page")
    assert [url for url in asked if not url.startswith((home, "data:"))] == []
    assert refused == []
