"""What each page of the console shows of a service that is in use, in a real browser; and the actions of its queues."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import psycopg
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from rowcall.service.installation.script import install_sql
from tests.harness.browser import browser, needs_browser
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = [needs_browser, pytest.mark.slow]

SQL = """
create function item(_id int) returns text language sql stable as $$ select 'item ' || _id $$;
comment on function item(int) is 'Finds an item.
HTTP GET /items/{_id}
openapi tag Shop';
create function menu() returns text language sql stable as $$ select 'menu' $$;
comment on function menu() is 'HTTP GET /menu
cached';
create function wrong() returns int language sql as $$ select 1 / 0 $$;
comment on function wrong() is 'HTTP GET /wrong';
create function own() returns int language sql as $$ select 1 $$;
comment on function own() is 'HTTP GET /own
authorize boss';
create function slow() returns text language sql as $$ select pg_sleep(0.3)::text $$;
comment on function slow() is 'HTTP GET /slow';
create table work (what text);
create function task(_name text) returns void language sql as 'insert into work values (_name)';
comment on function task(text) is 'HTTP POST /tasks
job retries 0';
create function yearly() returns void language sql as $$ insert into work values ('yearly') $$;
comment on function yearly() is 'schedule @yearly';
"""
TOKEN = "an operator's token of this test"
SETTINGS: dict[str, str | None] = {
    "Console:Enabled": "true",
    "Console:AllowActions": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "CacheOptions:Enabled": "true",
    "ConnectionStrings:Other": "Host=localhost;Password=not-to-be-shown",
    "Jobs:Enabled": "true",
    "Log:SlowRequests:Threshold": "200ms",
    "Webhooks:Enabled": "true",
    "Webhooks:Subscribers:shop:Secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u",
    "Webhooks:Subscribers:shop:Topics:0": "order.*",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    database.execute(install_sql())
    upstream.on("*", answer({}))
    return serve(database, SQL, {**SETTINGS, "Webhooks:Subscribers:shop:Url": upstream.url + "/shop"}, workers=2)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture
def tab(service: Service, opened: Browser) -> Iterator[Page]:
    with console_page(service, opened, TOKEN) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        yield page


def visit(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = name }", name)
    expect(page.locator(f"[data-ready='{name.partition('?')[0]}']")).to_be_attached()


def again(page: Page, name: str) -> None:
    """Load the page anew."""
    page.reload()
    visit(page, name)


def card(page: Page, title: str) -> Locator:
    return page.locator(".cards div", has=page.get_by_text(title, exact=True)).first.locator("dd")


def rows(page: Page, region: str) -> Locator:
    return page.get_by_role("region", name=region, exact=True).locator("tbody tr")


def test_the_overview_follows_requests_and_errors(service: Service, tab: Page) -> None:
    def shows(title: str) -> bool:
        for path in ("/items/1", "/menu", "/menu", "/wrong"):
            service.get(path)
        return re.fullmatch(r"[\d,.]*[1-9][\d,.]*( %| ms| s)?", card(tab, title).inner_text()) is not None

    endpoints = tab.evaluate("fetch('/console/api/endpoints').then(response => response.json())")["endpoints"]
    for title in ("Requests a second", "Errors a second", "p50", "p90", "p99", "Cache hits"):
        wait_until(lambda title=title: shows(title), f"{title} follows the requests", 60)  # type: ignore[misc]
    for title, text in (("Workers", "2"), ("Endpoints", str(len(endpoints))), ("Hosts", "1")):
        expect(card(tab, title)).to_have_text(text)
    pool = rows(tab, "Connection pools").first
    expect(pool.locator("td").nth(5)).to_contain_text("%")
    expect(rows(tab, "Processes")).to_have_count(3)


def test_endpoint_is_found_and_its_details_are_shown(service: Service, tab: Page) -> None:
    service.get("/items/7")
    tab.get_by_role("link", name="Endpoints", exact=True).click()
    tab.get_by_label("Group by").select_option("tag")
    expect(tab.locator(".list h3", has_text="Shop (1)")).to_be_visible()
    tab.get_by_label("Search").fill("finds ITEM")
    expect(tab.locator(".list a")).to_have_count(1)
    tab.locator(".list a").click()
    expect(tab.locator("h2")).to_have_text("GET /items/{_id}")
    expect(card(tab, "Access")).to_have_text("anyone")
    main = tab.locator("main")
    for text in ("Finds an item.", "select 'item ' || _id", f"GET {service.url}/items/"):
        expect(main.locator("pre", has_text=text).first).to_be_visible()
    parameter = rows(tab, "Parameters")
    expect(parameter).to_have_count(1)
    expect(parameter).to_contain_text("_id")
    expect(parameter).to_contain_text("integer")
    expect(tab.get_by_role("heading", name=re.compile("^Traffic of the last "))).to_be_visible()
    expect(card(tab, "Requests")).to_have_text(re.compile("[1-9]"))
    expect(tab.get_by_role("form", name="Try it")).to_be_visible()
    visit(tab, "endpoint?method=GET&path=/own")
    expect(card(tab, "Access")).to_have_text("boss")


def test_requests_appear_as_they_arrive_and_are_filtered(service: Service, tab: Page) -> None:
    visit(tab, "requests")
    expect(tab.locator("#state")).to_have_text("live")
    entries = rows(tab, "Entries, newest first")
    service.get("/items/1234")
    service.get("/wrong")
    expect(entries.filter(has_text="/items/1234")).to_have_count(1)
    expect(entries.filter(has_text="/wrong").first).to_be_visible()
    tab.get_by_label("Search").fill("/items/")
    expect(entries.filter(has_text="/wrong")).to_have_count(0)
    service.get("/wrong")
    service.get("/items/5678")
    expect(entries.filter(has_text="/items/5678")).to_have_count(1)
    expect(entries.filter(has_text="/items/1234")).to_have_count(1)
    expect(entries.filter(has_text="/wrong")).to_have_count(0)


def test_slow_request_links_to_its_plan(service: Service, tab: Page) -> None:
    visit(tab, "slow")
    service.get("/slow")
    tab.get_by_role("link", name="Plan of GET /slow").first.click()
    expect(tab.locator("h2")).to_have_text("GET /slow")
    tab.get_by_role("button", name="Explain").click()
    expect(tab.locator("pre", has_text="cost=")).to_be_visible()


def test_session_waiting_for_a_lock_is_shown(database: Database, tab: Page) -> None:
    with waiting_session(database, 38) as pid:
        visit(tab, "database")
        lock = rows(tab, "Locks that are waited for")
        expect(lock).to_have_count(1)
        expect(lock.locator("td").first).to_have_text(str(pid))
        expect(lock).to_contain_text("advisory")
        session = rows(tab, "Sessions").filter(has=tab.get_by_role("cell", name=str(pid), exact=True)).first
        expect(session).to_contain_text("pg_advisory_lock(38)")
        expect(rows(tab, "Connection pools").first).to_be_visible()
    again(tab, "database")
    expect(tab.get_by_text("No session waits for a lock.")).to_be_visible()


@contextmanager
def waiting_session(database: Database, key: int) -> Iterator[int]:
    """Let a session wait for an advisory lock, and yield its process id."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        waiting = threading.Thread(target=connection.execute, args=(f"select pg_advisory_lock({key})".encode(),))
        with database.locked(key):
            waiting.start()
            wait_until(database.waiting, "the session waits")
            yield connection.info.backend_pid
        waiting.join()


def test_hits_and_misses_of_the_cache_are_shown(service: Service, tab: Page) -> None:
    for _ in range(4):
        service.get("/menu")
    visit(tab, "cache")
    expect(card(tab, "Hits")).to_have_text(re.compile("[1-9]"))
    expect(card(tab, "Ratio")).to_contain_text("%")
    expect(rows(tab, "Endpoints")).to_contain_text("GET /menu")


def state_of(database: Database, job: str) -> str:
    return str(database.fetch(f"select state from rowcall.job where id = '{job}'")[0][0])


def test_jobs_schedules_and_webhooks_are_shown_and_acted_on(database: Database, tab: Page) -> None:
    sql = """select rowcall.enqueue('POST /tasks', '{"name": "later"}', _run_at => now() + interval '1 day')::text"""
    job = str(database.fetch(sql)[0][0])
    message = str(database.fetch("""select rowcall.publish('order.paid', '{"id": 1}')::text""")[0][0])
    delivery = f"select state from rowcall.webhook_delivery where message = '{message}'"
    wait_until(lambda: database.fetch(delivery) == [("done",)], "the message is delivered")
    database.execute(f"update rowcall.webhook_delivery set state = 'dead' where message = '{message}'")
    visit(tab, "queues")
    result = tab.locator("#result")

    row = rows(tab, "Jobs").filter(has_text=job)
    expect(row).to_contain_text("waiting")
    row.get_by_role("button", name="Cancel").click()
    expect(result).to_contain_text("state cancelled")
    expect(row).to_contain_text("cancelled")
    database.execute(f"update rowcall.job set run_at = now() where id = '{job}'")
    row.get_by_role("button", name="Retry").click()
    expect(result).to_contain_text("state waiting")
    wait_until(lambda: state_of(database, job) == "done", "the job is done")

    rows(tab, "Schedules").filter(has_text="yearly").get_by_role("button", name="Run now").click()
    wait_until(lambda: database.fetch("select 1 from work where what = 'yearly'") == [(1,)], "the schedule has run")

    expect(rows(tab, "Webhook subscribers")).to_contain_text("order.*")
    row = rows(tab, "Webhook deliveries").filter(has_text=message)
    expect(row).to_contain_text("dead")
    row.get_by_role("button", name="Retry").click()
    expect(result).to_contain_text("shop")
    wait_until(lambda: database.fetch(delivery) == [("done",)], "the message is delivered again")
    replay = tab.get_by_role("form", name="Replay webhooks")
    replay.get_by_label("Topic").fill("order.*")
    replay.get_by_label("Published since").fill("2020-01-01T00:00")
    replay.get_by_role("button", name="Replay").click()
    expect(result).to_have_text("Replay: replayed 1")


def test_tokens_and_devices_of_a_user_are_revoked(database: Database, tab: Page) -> None:
    token = str(database.fetch("select rowcall.issue_token('reset', '41')")[0][0])
    database.execute("select rowcall.remember_device('41', sha256('x'), 3600, 'phone')")
    visit(tab, "sessions")
    expect(rows(tab, "Operators").first).to_contain_text("Admin:BearerToken")
    expect(rows(tab, "Key ring")).not_to_have_count(0)
    tab.get_by_label("User id").fill("41")
    tab.get_by_role("button", name="Show").click()
    for region, text in (("One-time tokens of 41", "reset"), ("Remembered devices of 41", "phone")):
        expect(rows(tab, region)).to_contain_text(text)
        rows(tab, region).get_by_role("button", name="Revoke").click()
        expect(tab.locator("#result")).to_have_text("Revoke: revoked 1")
    expect(rows(tab, "Remembered devices of 41")).to_have_count(0)
    assert database.fetch(f"select rowcall.consume_token('reset', '{token}')") == [(None,)]


def test_the_configuration_is_searched_and_shows_sources_but_no_secrets(tab: Page) -> None:
    visit(tab, "configuration")
    keys = tab.locator("tbody tr")
    expect(keys.filter(has_text="Console:AllowActions")).to_contain_text("command line")
    expect(keys.filter(has_text="ConnectionStrings:Other")).to_have_count(1)
    for secret in ("not-to-be-shown", TOKEN, "whsec_"):
        expect(tab.locator("main")).not_to_contain_text(secret)
    tab.get_by_label("Search").fill("tracing:enabled")
    expect(tab.get_by_text("No key contains this text.")).to_be_visible()
    tab.get_by_label("Show").select_option("")
    expect(keys.filter(has_text="Tracing:Enabled")).to_contain_text("default")


def test_the_diagnosis_shows_findings_and_open_endpoints(tab: Page) -> None:
    visit(tab, "diagnosis")
    findings = json.loads(tab.evaluate("fetch('/console/api/diagnosis').then(response => response.text())"))
    expect(rows(tab, "Findings")).to_have_count(len(findings["findings"]))
    for finding in findings["findings"]:
        expect(rows(tab, "Findings").filter(has_text=finding["message"][:60]).first).to_contain_text(
            finding["severity"]
        )
    assert len(findings["findings"]) > 0
    expect(rows(tab, "Open endpoints").filter(has_text="GET /menu")).to_have_count(1)
    expect(rows(tab, "Open endpoints").filter(has_text="GET /own")).to_have_count(0)


def test_schema_page_shows_changes_of_reloads_and_unresolved_references(
    own_database: Database, serve_once: Serve, opened: Browser
) -> None:
    own_database.execute(install_sql())
    service = serve_once(own_database, SQL, {**SETTINGS, "Webhooks:Enabled": None})
    own_database.execute("create function fresh() returns int language sql as 'select 1'; drop function item(int)")
    own_database.execute("comment on function fresh() is 'HTTP GET /fresh'; notify rowcall")
    wait_until(lambda: service.get("/fresh").status_code == 200, "the service has the new endpoint")
    with console_page(service, opened, TOKEN) as page:
        visit(page, "schema")
        expect(rows(page, "Reloads").filter(has_text="GET /fresh").first).to_be_visible()
        broken = rows(page, "Changes for clients").filter(has_text="GET /items/{_id}")
        expect(broken).to_contain_text("breaking")
        expect(broken).to_contain_text("removed")


def test_the_log_is_searched_and_filtered_by_level(service: Service, tab: Page) -> None:
    visit(tab, "log")
    service.get("/wrong")
    entries = rows(tab, "Entries, newest first")
    expect(entries.filter(has_text="division by zero").first).to_be_visible()
    tab.get_by_label("Search").fill("The console is at")
    expect(entries).to_have_count(1)
    tab.get_by_label("Search").fill("")
    tab.get_by_label("From level").select_option("Fatal")
    expect(tab.get_by_text("No entry matches.")).to_be_visible()


def test_all_regions_are_reached_by_the_keyboard(tab: Page) -> None:
    """Axe runs as well: elements that need data, such as tables with buttons, were missing on the empty pages."""
    tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    for name in ("cache", "queues", "sessions?subject=41", "schema", "slow", "endpoint?method=GET&path=/items/{_id}"):
        visit(tab, name)
        names = tab.evaluate(
            "[...document.querySelectorAll('main :is(button, a, input, select, summary, .scroll)')]"
            ".filter(one => one.checkVisibility() && one.tabIndex < 0).map(one => one.outerHTML)"
        )
        assert names == [], name
        for colours in ("light", "dark"):
            tab.emulate_media(color_scheme=colours)
            found = tab.evaluate("async () => (await axe.run()).violations.map(item => item.id)")
            assert found == [], (name, colours)
