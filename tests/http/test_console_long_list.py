"""The list of 22,000 endpoints in a real browser, with the console and its listener in this process: a service with so
many endpoints would take minutes to start on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.console import console_client
from tests.harness.console_in_process import console_in_process
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot, settings_of

pytestmark = [needs_browser, pytest.mark.slow]

COUNT = 22_000
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
SETTINGS = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": TOKEN}
SQL = "create function one() returns int language sql as 'select 1'; comment on function one() is 'HTTP GET /many';"


@pytest.fixture(scope="module")
def address(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a console with 22,000 endpoints, which differ only in their paths."""
    database.execute(SQL)
    snapshot = read_snapshot(database)
    (endpoint,) = snapshot.endpoints
    snapshot = replace(
        snapshot, endpoints=tuple(replace(endpoint, path=f"/many/{number:05}") for number in range(1, COUNT + 1))
    )
    with console_in_process(settings_of(database, SETTINGS), snapshot, tmp_path_factory.mktemp("state")) as console:
        yield console.url


def test_rows_outside_the_viewport_are_not_in_the_dom(address: str) -> None:
    with console_client(address, TOKEN) as client:
        client.post("/console/api/session")
        (cookie,) = client.cookies.jar
    with browser() as running, running.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.add_cookies([{"name": cookie.name, "value": cookie.value or "", "url": f"{address}/console"}])
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/#endpoints")
        expect(page.get_by_text("22,000 endpoints")).to_be_visible()
        rows = page.locator(".list li")
        for first in (1, 9_000, COUNT - 10):
            # A row has a height of 3.25 rem.
            page.locator(".list").evaluate("(list, row) => { list.scrollTop = (row - 1) * 52 }", first)
            shown = first + 3
            expect(page.locator(f".list li[aria-posinset='{shown}']")).to_contain_text(f"/many/{shown:05}")
            assert rows.count() < 60
            assert page.locator("*").count() < 600
        page.get_by_label("Search").fill("many/21999")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("/many/21999")
