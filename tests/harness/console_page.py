"""The page of the console in Chromium, signed in by the link of the log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from playwright.sync_api import Browser, Page

from tests.harness.browser import TIMEOUT
from tests.harness.console import console_link
from tests.harness.service import Service


@contextlib.contextmanager
def console_page(service: Service, browser: Browser, admin_token: str) -> Iterator[Page]:
    """A signed-in page. Fails at the end if the page has reported an error or loaded anything from elsewhere."""
    address, _ = console_link(service)
    mistakes: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.on(
            "console", lambda line: mistakes.append(f"{line.text} {line.location}") if line.type == "error" else None
        )
        page.on("request", lambda request: None if request.url.startswith(address) else mistakes.append(request.url))
        page.goto(f"{address}/console/sign-in#{admin_token}")
        page.wait_for_url(f"{address}/console/")
        yield page
    assert mistakes == []
