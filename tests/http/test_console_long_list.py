"""The list of 22,000 endpoints in a real browser, with the console and its listener in this process: a service with so
many endpoints would take minutes to start on a busy machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rowcall.core.config import Settings
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.command.serve import connections
from rowcall.service.console.console import Console
from rowcall.service.console.sources import Sources
from rowcall.service.database.connector import Connector
from rowcall.service.events.activity import HubActivity
from rowcall.service.log.recent import RecentEntries
from rowcall.service.metrics.admin import AdminListener
from rowcall.service.metrics.report import Gauge
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.server.metrics import admin_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.console import console_client
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
    settings = settings_of(database, SETTINGS)
    with connections(settings, demo=False) as opened:
        options = worker_options(settings, opened)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield from _listening(settings, options, snapshot, loop, tmp_path_factory.mktemp("state"))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _listening(
    settings: Settings,
    options: WorkerOptions,
    snapshot: SchemaSnapshot,
    loop: asyncio.AbstractEventLoop,
    folder: Path,
) -> Iterator[str]:
    async def connector() -> Connector:
        return Connector(options.target)

    async def no_gauges() -> list[list[Gauge] | None]:
        return []

    async def no_spans(_trace: str | None) -> list[tuple[int, None]]:
        return []

    async def no_streams() -> list[tuple[int, None]]:
        return []

    async def no_worker(*_arguments: object) -> None:
        return None

    admin = admin_options(settings)
    assert admin is not None
    assert admin.console is not None
    sources = Sources(
        settings,
        options,
        folder,
        no_gauges,
        lambda: [],
        lambda: snapshot,
        asyncio.run_coroutine_threadsafe(connector(), loop).result(),
        RecentEntries(),
        loop,
        KeyRing,
        lambda: [],
        no_worker,
        no_worker,
        no_worker,
        lambda: HubActivity(0, 0, {}, 0, 0),
        lambda: (frozenset(), frozenset()),
        no_streams,
        no_spans,
        no_worker,
    )
    console = Console(admin.console, admin.token, sources)
    listener = AdminListener(admin, {}, {"console": console})
    console.announce(listener.url)
    yield listener.url
    console.close()
    listener.close()


def test_rows_that_are_not_visible_are_no_elements(address: str) -> None:
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
