"""The page of the console for a new operator: loading before the first paint, tables, times, and faults."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.console import console_link, operator
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.harness.tcp_proxy import TcpProxy
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = [needs_browser, pytest.mark.slow]

SQL = """
create function quick() returns int language sql stable as 'select 1';
comment on function quick() is 'HTTP GET /quick';
create function slow() returns text language sql as $$ select pg_sleep(0.05)::text $$;
comment on function slow() is 'HTTP GET /slow';
"""
TOKEN = "an operator's token of this test"
SETTINGS = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": TOKEN}
PAGES = (
    "overview",
    "endpoints",
    "traffic",
    "slow",
    "requests",
    "database",
    "cache",
    "queues",
    "events",
    "sessions",
    "configuration",
    "diagnosis",
    "schema",
    "log",
    "endpoint?method=GET&path=/quick",
)
BLOCKING = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .map(one => [new URL(one.name).pathname, one.renderBlockingStatus, one.decodedBodySize])"""
POSITIONS = """() => [...document.querySelectorAll("h1, nav a, #sign-out, main")]
    .map(one => [one.getBoundingClientRect().x, one.getBoundingClientRect().y])"""
SHIFTS = """() => new Promise(resolve => {
    let sum = 0;
    new PerformanceObserver(list => { for (const one of list.getEntries()) sum += one.value; })
        .observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => setTimeout(() => resolve(sum), 0));
})"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture
def tab(service: Service, opened: Browser) -> Iterator[Page]:
    with console_page(service, opened, TOKEN) as page:
        ready(page, "overview")
        yield page


def ready(page: Page, name: str) -> None:
    expect(page.locator(f"[data-ready='{name.partition('?')[0]}']")).to_be_attached()


def visit(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = name }", name)
    ready(page, name)


@contextmanager
def signed_in(opened: Browser, address: str, token: str = TOKEN) -> Iterator[BrowserContext]:
    """A new browser context whose first page has signed in."""
    with opened.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        page.goto(f"{address}/console/sign-in#{token}")
        page.wait_for_url(f"{address}/console/")
        yield context


# --- first paint -----------------------------------------------------------------------------------------


def test_only_page_and_stylesheet_load_before_first_paint(tab: Page) -> None:
    """The page and one file of styles; scripts are modules, which never block, and are requested together."""
    tab.reload()
    ready(tab, "overview")
    expect(tab.locator("#state")).to_have_text("live")
    loaded = tab.evaluate(BLOCKING)
    document, *resources = loaded
    blocking = [(path, size) for path, status, size in resources if status == "blocking"]
    assert [path for path, _ in blocking] == ["/console/style.css"]
    assert document[2] + sum(size for _, size in blocking) <= 16_000
    assert len(resources) <= 12
    assert sum(size for _, _, size in loaded) <= 100_000
    assert tab.locator("script:not([type=module])").count() == 0
    modules = {path for path, _, _ in resources if path.endswith(".js")}
    listed = tab.locator("link[rel=modulepreload], script[type=module]")
    assert {one.get_attribute("href") or one.get_attribute("src") for one in listed.all()} == modules


@pytest.mark.parametrize("width", [360, 1280])
def test_first_paint_has_navigation_and_no_layout_shift(service: Service, opened: Browser, width: int) -> None:
    """It does not wait for scripts or data, which are held back here until it has happened."""
    address, _ = console_link(service)
    with signed_in(opened, address) as context:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 800})
        held: list[Route] = []
        data: list[str] = []
        page.on("request", lambda request: data.append(request.url) if "/api/" in request.url else None)
        released = False
        page.route("**/*.js", lambda route: route.continue_() if released else held.append(route))
        page.goto(f"{address}/console/", wait_until="commit")
        page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length === 1")
        expect(page.get_by_role("heading", name="rowcall console")).to_be_visible()
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link")).to_have_count(len(PAGES) - 1)
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        assert data == []
        before = page.evaluate(POSITIONS)
        released = True
        for route in held:
            route.continue_()
        ready(page, "overview")
        expect(page.get_by_role("region", name="Hosts").locator("tbody tr")).to_have_count(1)
        assert page.evaluate(POSITIONS) == before
        assert page.evaluate(SHIFTS) < 0.1


def test_page_without_scripts_shows_navigation_and_a_hint(service: Service, opened: Browser) -> None:
    address, _ = console_link(service)
    with opened.new_context(java_script_enabled=False) as context:
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        # Chromium draws no <noscript> if scripts are switched off by its protocol, as they are here.
        response = page.goto(f"{address}/console/sign-in")
        assert response is not None
        assert "To sign in here, allow scripts." in response.text()
        context.request.post(f"{address}/console/api/session", headers={"authorization": f"Bearer {TOKEN}"})
        response = page.goto(f"{address}/console/")
        assert response is not None
        assert "<noscript><p>The pages of the console need scripts." in response.text()
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Overview")).to_be_visible()


def test_overview_loads_without_layout_shift(tab: Page) -> None:
    tab.reload()
    expect(tab.get_by_role("region", name="Hosts").locator("tbody tr")).to_have_count(1)
    assert tab.evaluate(SHIFTS) < 0.1


# --- tables and times --------------------------------------------------------------------------------------------


def column(page: Page, region: str, number: int) -> list[str]:
    return page.get_by_role("region", name=region).locator(f"tbody td:nth-child({number})").all_inner_texts()


def test_tables_are_sorted_by_their_headings(service: Service, tab: Page) -> None:
    for path, times in (("/quick", 3), ("/slow", 1), ("/nothing", 2)):
        for _ in range(times):
            service.get(path)
    visit(tab, "traffic")
    region = "Endpoints with requests"
    assert column(tab, region, 1) == ["GET /quick", "GET /slow"]
    heading = tab.get_by_role("columnheader", name="p99")
    heading.get_by_role("button").click()
    assert column(tab, region, 1) == ["GET /slow", "GET /quick"]
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(heading.get_by_role("button")).to_be_focused()
    tab.keyboard.press("Enter")
    assert column(tab, region, 1) == ["GET /quick", "GET /slow"]
    expect(heading).to_have_attribute("aria-sort", "ascending")
    tab.get_by_role("columnheader", name="Endpoint").get_by_role("button").click()
    assert column(tab, region, 1) == ["GET /quick", "GET /slow"]
    tab.keyboard.press("Enter")
    assert column(tab, region, 1) == ["GET /slow", "GET /quick"]
    tab.keyboard.press("Enter")
    expect(tab.locator("[aria-sort]")).to_have_count(0)


def test_the_order_of_a_live_table_stays(tab: Page) -> None:
    tab.get_by_role("region", name="Processes").get_by_role("button", name="Process", exact=True).click()
    names = ["supervisor", "worker 0", "worker 1"]
    assert column(tab, "Processes", 1) == names
    tab.keyboard.press("Enter")
    expect(tab.locator("th[aria-sort=descending]")).to_have_count(1)
    drawn = tab.locator("th[aria-sort=descending]").element_handle()
    tab.wait_for_function("drawn => !drawn.isConnected", arg=drawn)  # the next report has arrived
    assert column(tab, "Processes", 1) == names[::-1]
    expect(tab.get_by_role("button", name="Process", exact=True)).to_be_focused()


def test_times_are_local_and_have_utc_on_hover(service: Service, opened: Browser) -> None:
    address, _ = console_link(service)
    with opened.new_context(timezone_id="Asia/Tokyo", locale="en-GB") as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/sign-in#{TOKEN}")
        ready(page, "overview")
        visit(page, "sessions")
        time = page.locator("time").first
        utc = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.\d{3} UTC", time.get_attribute("title") or "")
        assert utc is not None
        shown = re.fullmatch(r"\d\d/\d\d/\d{4}, (\d\d):(\d\d):\d\d", time.inner_text())
        assert shown is not None
        assert (int(shown[1]) - int(utc[4])) % 24 == 9
        assert shown[2] == utc[5]


def test_empty_pages_describe_the_missing_content(database: Database, serve_once: Serve, opened: Browser) -> None:
    service = serve_once(database, "drop function quick(); drop function slow();", SETTINGS)
    try:
        with console_page(service, opened, TOKEN) as page:
            for name, text in (
                ("endpoints", "There are no endpoints"),
                ("traffic", "No endpoint has had a request."),
                ("slow", "Log:SlowRequests:Threshold"),
                ("requests?search=nothing-like-this", "No entry matches."),
                ("cache", "CacheOptions:Enabled"),
                ("queues", "rowcall --install"),
                ("events", "None is open."),
                ("schema", "None since the start."),
            ):
                visit(page, name)
                expect(page.locator("main").get_by_text(text).first).to_be_visible()
    finally:
        database.execute(SQL)


# --- faults ------------------------------------------------------------------------------------------------------


def test_used_sign_in_link_shows_instructions(database: Database, serve_once: Serve, opened: Browser) -> None:
    service = serve_once(database, "", SETTINGS)
    address, link = console_link(service)
    with signed_in(opened, address, link):
        pass
    with opened.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/sign-in#{link}")
        expect(page.get_by_role("alert")).to_contain_text("was used or has expired")
        expect(page.get_by_role("alert")).to_contain_text("a restart logs another one")
        assert link not in page.url
        page.get_by_label("Token of the link in the log").fill(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}/console/")
        ready(page, "overview")


def test_sign_in_link_expires(database: Database, serve_once: Serve, opened: Browser) -> None:
    service = serve_once(database, "", {**SETTINGS, "Console:LinkExpires": "1 ms"})
    address, link = console_link(service)
    page = opened.new_page()
    page.goto(f"{address}/console/sign-in#{link}")
    expect(page.get_by_role("alert")).to_contain_text("was used or has expired")
    page.close()


def test_signing_out_in_one_tab_signs_out_other_tabs(service: Service, opened: Browser) -> None:
    address, _ = console_link(service)
    with signed_in(opened, address) as context:
        (first,) = context.pages
        second = context.new_page()
        second.goto(f"{address}/console/#database")
        ready(second, "database")
        ready(first, "overview")
        expect(first.locator("#state")).to_have_text("live")
        second.get_by_role("button", name="Sign out").click()
        second.wait_for_url(f"{address}/console/sign-in")
        first.wait_for_url(f"{address}/console/sign-in")


def test_pages_report_database_outage_and_overview_stays_live(
    own_database: Database, serve_once: Serve, opened: Browser
) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    address, _ = console_link(service)
    with signed_in(opened, address) as context:
        (page,) = context.pages
        ready(page, "overview")
        with own_database.refusing_connections():
            for name in ("database", "queues", "diagnosis"):
                visit(page, name)
                expect(page.get_by_role("alert")).to_contain_text("not currently accepting connections")
            for name in ("endpoints", "configuration", "log", "cache", "endpoint?method=GET&path=/quick"):
                visit(page, name)
                expect(page.get_by_role("alert")).to_have_count(0)
        visit(page, "database")
        expect(page.get_by_role("alert")).to_have_count(0)


def test_pages_show_an_error_if_the_database_is_stopped(
    own_postgres: PostgresServer, serve_once: Serve, opened: Browser
) -> None:
    database = Database(own_postgres, "postgres")
    service = serve_once(database, SQL, SETTINGS)
    with signed_in(opened, console_link(service)[0]) as context:
        (page,) = context.pages
        ready(page, "overview")
        own_postgres.stop("immediate")
        visit(page, "database")
        expect(page.get_by_role("alert")).to_contain_text("the database cannot be read")
        visit(page, "overview")
        expect(page.locator("#state")).to_have_text("live")
        expect(page.get_by_text("Only this host is listed: the database cannot be asked")).to_be_visible()
        own_postgres.start()


def test_replaced_worker_is_shown_without_reloading_the_page(
    database: Database, serve_once: Serve, opened: Browser
) -> None:
    service = serve_once(database, "", SETTINGS, workers=2)
    with console_page(service, opened, TOKEN) as page:
        rows = page.get_by_role("region", name="Processes").locator("tbody tr")
        expect(rows).to_have_count(3)
        before = set(service.pids())
        os.kill(min(before), signal.SIGKILL)
        expect(page.get_by_role("cell", name=str(min(before)), exact=True)).to_have_count(0)
        expect(rows).to_have_count(3)
        expect(page.locator("#state")).to_have_text("live")
        visit(page, "log")
        expect(page.get_by_role("region", name="Entries")).to_contain_text("is replaced")


def test_interrupted_stream_reconnects_without_duplicate_entries(service: Service, opened: Browser) -> None:
    address, _ = console_link(service)
    proxy = TcpProxy(int(address.rpartition(":")[2]))
    try:
        with signed_in(opened, f"http://127.0.0.1:{proxy.port}") as context:
            (page,) = context.pages
            visit(page, "log")
            expect(page.locator("#state")).to_have_text("live")
            rows = page.get_by_role("region", name="Entries").locator("tbody tr")
            expect(rows.filter(has_text="The console is at")).to_have_count(1)
            proxy.cut()
            expect(page.locator("#state")).to_have_text("connection lost, trying again")
            expect(page.locator("#state")).to_have_text("live")
            service.get("/%00")
            expect(rows.filter(has_text="The console is at")).to_have_count(1)
    finally:
        proxy.close()


def test_restarted_service_requires_a_new_sign_in(database: Database, serve_once: Serve, opened: Browser) -> None:
    service = serve_once(database, "", SETTINGS)
    address, _ = console_link(service)
    port = int(address.rpartition(":")[2])
    with signed_in(opened, address) as context:
        (page,) = context.pages
        expect(page.locator("#state")).to_have_text("live")
        service.stop()
        expect(page.locator("#state")).to_have_text("connection lost, trying again")
        visit(page, "database")
        expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
        visit(page, "overview")
        serve_once(database, "", {**SETTINGS, "Console:Url": f"http://127.0.0.1:{port}"})
        page.wait_for_url(f"{address}/console/sign-in")


def test_refused_stream_shows_the_reason_and_reconnects_later(service: Service, opened: Browser) -> None:
    """Only eight streams are open at a time."""
    address, _ = console_link(service)
    with signed_in(opened, address) as context:
        (page,) = context.pages
        visit(page, "database")  # a page without a stream
        with ExitStack() as others, operator(service, TOKEN) as client:
            lines = []

            def all_are_open() -> bool:
                stream = others.enter_context(client.stream("GET", "/console/api/live"))
                if stream.status_code == 200:
                    lines.append(stream.iter_lines())
                    next(lines[-1])
                else:
                    stream.read()
                return len(lines) == 8

            # Those of other tests may not have ended yet.
            wait_until(all_are_open, "eight streams are open", 60)
            visit(page, "log")
            expect(page.locator("#state")).to_have_text("there are 8 event streams already Trying again.")
        expect(page.locator("#state")).to_have_text("live")


def test_a_hidden_tab_ends_its_stream(service: Service, opened: Browser) -> None:
    address, _ = console_link(service)
    with signed_in(opened, address) as context:
        page = context.new_page()
        page.clock.install()
        page.goto(f"{address}/console/")
        expect(page.locator("#state")).to_have_text("live")
        hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        hide += " document.dispatchEvent(new Event('visibilitychange')) }"
        page.evaluate(hide, True)
        page.clock.fast_forward(31_000)
        expect(page.locator("#state")).to_have_text("paused")
        page.evaluate(hide, False)
        expect(page.locator("#state")).to_have_text("live")
