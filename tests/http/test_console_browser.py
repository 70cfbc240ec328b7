"""The page of the console in a real browser: every page, keyboard, small screens, contrast, and hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from rowcall.service.installation.script import install_sql
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.console import console_client, console_link
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

pytestmark = [needs_browser, pytest.mark.slow]

MARKUP = (
    "<img src=x onerror=\"document.title='attacked'; window.attacked = true\"><script>window.attacked = true</script>"
)
SQL = f"""
create function hostile(_value text) returns int language plpgsql as $$ begin
    /* {MARKUP} */
    raise warning '%', _value;
    raise exception '%', _value;
end $$;
comment on function hostile(text) is '{MARKUP.replace("'", "''")}
HTTP GET /hostile
openapi tag wholesale';
create function "<b>bold</b>"("<i>slanted</i>" int) returns table ("<u>column</u>" int) language sql as 'select 1';
comment on function "<b>bold</b>"(int) is 'HTTP GET /bold';
do $do$ begin
    for number in 1..1500 loop
        execute format('create function f%s() returns int language sql as ''select %1$s''', number);
        execute format('comment on function f%s() is ''HTTP GET /many/%1$s''', number);
    end loop;
end $do$;
"""
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
SETTINGS = {
    "Console:Enabled": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "ApplicationName": MARKUP[:40],
}
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
    "sessions?subject=%3Cb%3E",
    "configuration",
    "diagnosis",
    "schema",
    "log",
    "endpoint?method=GET&path=/hostile",
    "endpoint?method=GET&path=/bold",
)


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
    expect(page.get_by_role("alert")).to_have_count(0)


def test_every_page_opens(tab: Page) -> None:
    links = tab.get_by_role("navigation", name="Pages").get_by_role("link")
    names = [link.inner_text() for link in links.all()]
    assert {name.lower() for name in names} == {name for name in PAGES if "?" not in name}
    for name in names:
        links.filter(has_text=name).click()
        ready(tab, name.lower())
        expect(tab.locator("nav [aria-current=page]")).to_have_text(name)
        expect(tab.locator("h2")).to_be_visible()
    for name in PAGES:
        visit(tab, name)
        expect(tab.locator("h2")).to_be_visible()


def test_overview_shows_live_charts(tab: Page) -> None:
    expect(tab.get_by_text("Requests a second").first).to_be_visible()
    expect(tab.locator("#state")).to_have_text("live")
    expect(tab.locator("svg.chart")).to_have_count(4)


@pytest.mark.attack
def test_texts_of_the_service_are_not_rendered_as_markup(service: Service, tab: Page) -> None:
    service.get("/hostile", params={"value": MARKUP})
    service.get(f"/{MARKUP}")
    for name in PAGES:
        visit(tab, name)
        expect(tab.locator("main :is(img, script, b, i, u)")).to_have_count(0)
    visit(tab, "log")
    expect(tab.locator("td", has_text="window.attacked").first).to_be_visible()
    visit(tab, "endpoint?method=GET&path=/hostile")
    expect(tab.locator("pre", has_text="window.attacked").first).to_be_visible()
    visit(tab, "endpoint?method=GET&path=/bold")
    expect(tab.get_by_text("<i>slanted</i>").first).to_be_visible()
    tab.evaluate("text => { location.hash = text }", f"{MARKUP}?search={MARKUP}")
    expect(tab.locator("nav [aria-current]")).to_have_count(0)
    assert tab.evaluate("window.attacked") is None
    assert "attacked" not in tab.title()


def test_all_pages_are_accessible_in_both_colours(tab: Page) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    tab.evaluate(axe)
    found = []
    for colours in ("light", "dark"):
        tab.emulate_media(color_scheme=colours)
        for name in PAGES:
            visit(tab, name)
            result = tab.evaluate(
                "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
            )
            found += [
                (colours, name, item["id"], [node["target"] for node in item["nodes"]][:3])
                for item in result["violations"]
            ]
    assert found == []


@pytest.mark.parametrize("width", [360, 3840])
def test_pages_have_no_horizontal_scrolling(tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 740})
    for name in PAGES:
        visit(tab, name)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_only_visible_endpoints_are_in_the_dom(tab: Page) -> None:
    visit(tab, "endpoints")
    expect(tab.get_by_text("1,502 endpoints")).to_be_visible()
    rows = tab.locator(".list li")
    expect(rows.first).to_contain_text("/bold")
    assert rows.count() < 100
    tab.locator(".list").evaluate("list => { list.scrollTop = list.scrollHeight }")
    expect(tab.locator(".list li[aria-posinset='1502']")).to_contain_text("/many/999")
    assert rows.count() < 100
    tab.get_by_label("Group by").select_option("tag")
    expect(tab.locator(".list h3")).to_have_text("without a tag (1,501)")
    tab.locator(".list").evaluate("list => { list.scrollTop = list.scrollHeight }")
    expect(tab.locator(".list h3")).to_have_text("wholesale (1)")
    expect(tab.locator(".list li[aria-posinset='1504']")).to_contain_text("/hostile")
    tab.get_by_label("Group by").select_option("")
    tab.get_by_label("Search").fill("many/777")
    expect(tab.get_by_text("1 endpoint", exact=True)).to_be_visible()
    expect(rows).to_have_count(1)


def test_pages_are_operable_by_keyboard(tab: Page) -> None:
    tab.keyboard.press("Tab")
    expect(tab.locator(".skip")).to_be_focused()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Endpoints")).to_be_focused()
    tab.keyboard.press("Enter")
    ready(tab, "endpoints")
    tab.get_by_label("Search").focus()
    tab.keyboard.type("hostile")
    expect(tab.locator(".list li")).to_have_count(1)
    tab.locator(".list a").focus()
    tab.keyboard.press("Enter")
    ready(tab, "endpoint")
    expect(tab.locator("h2")).to_have_text("GET /hostile")


def test_signing_out_ends_the_session(tab: Page) -> None:
    tab.get_by_role("button", name="Sign out").click()
    tab.wait_for_url("**/console/sign-in")
    tab.get_by_label("Token of the link in the log").fill(TOKEN)
    tab.get_by_role("button", name="Sign in").click()
    ready(tab, "overview")


def test_page_assets_stay_below_the_size_limit(service: Service) -> None:
    address, _ = console_link(service)
    folder = files("rowcall.service.console") / "assets"
    sizes = {item.name: len(item.read_bytes()) for item in folder.iterdir()}
    assert sum(sizes.values()) <= 300_000
    with console_client(address, TOKEN) as client:
        for name, size in sizes.items():
            response = client.get(f"/console/{name}")
            assert (response.status_code, len(response.content)) == (200, size)
            assert "https://" not in response.text


def test_action_buttons_are_shown_if_actions_are_allowed(
    own_database: Database, serve_once: Serve, opened: Browser
) -> None:
    settings = {**SETTINGS, "Console:AllowActions": "true", "CacheOptions:Enabled": "true"}
    sql = """create function stored() returns int language sql stable as 'select 1';
    comment on function stored() is 'HTTP GET
    cached'"""
    service = serve_once(own_database, sql, settings)
    assert service.get("/api/stored").status_code == 200
    address, _ = console_link(service)
    with opened.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/sign-in#{TOKEN}")
        ready(page, "overview")
        visit(page, "cache")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Invalidate all").click()
        expect(page.get_by_text("Invalidate all: invalidated 1")).to_be_visible()
        page.get_by_role("row", name="GET /api/stored").get_by_role("button", name="Invalidate").click()
        expect(page.get_by_text("Invalidate: invalidated 0")).to_be_visible()
        page.get_by_label("Tag", exact=True).fill("two words")
        page.get_by_role("button", name="Invalidate all").click()
        expect(page.get_by_text("Invalidate all: invalidated 0")).to_be_visible()
        expect(page.get_by_label("Tag", exact=True)).to_have_value("two words")
        page.get_by_role("button", name="Invalidate tag").click()
        expect(page.get_by_text("is no tag")).to_be_visible()
        visit(page, "sessions")
        page.get_by_role("button", name="End").first.click()
        page.wait_for_url("**/console/sign-in")


def test_action_buttons_are_hidden_if_actions_are_not_allowed(tab: Page) -> None:
    for name in ("cache", "queues", "sessions"):
        visit(tab, name)
        expect(tab.locator("main button:not([type=submit], .sort)")).to_have_count(0)


def test_users_of_the_service_sign_in_by_their_session(
    own_database: Database, serve_once: Serve, opened: Browser
) -> None:
    sql = """create function enter() returns table (user_id int, user_roles text[]) language sql as
        $$ select 1, array['operator'] $$;
    comment on function enter() is 'HTTP POST /enter
    login'"""
    service = serve_once(own_database, sql, {**SETTINGS, "Auth:CookieAuth": "true", "Console:Roles:0": "operator"})
    address, _ = console_link(service)
    with opened.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/sign-in")
        page.get_by_role("button", name="Sign in with my session").click()
        expect(page.get_by_role("alert")).not_to_be_empty()
        assert context.request.post(f"{service.url}/enter").ok
        page.get_by_role("button", name="Sign in with my session").click()
        page.wait_for_url(f"{address}/console/")
        ready(page, "overview")


@pytest.mark.attack
def test_texts_stored_by_users_are_not_rendered_as_markup(
    own_database: Database, serve_once: Serve, opened: Browser
) -> None:
    """Texts that clients and routines can write: names of users, jobs, subscribers, devices, and failure reasons."""
    own_database.execute(install_sql())
    quoted = MARKUP.replace("'", "''")
    own_database.execute(
        f"""
        create function enter() returns table (user_id text, user_name text, user_roles text[]) language sql as
            $$ select '{quoted}', '{quoted}', array['operator'] $$;
        comment on function enter() is 'HTTP POST /enter
        login';
        select rowcall.enqueue('{quoted}', '{{}}');
        update rowcall.job set state = 'failed', error = '{quoted}', queue = '{quoted}';
        select rowcall.issue_token('{quoted}', '{quoted}');
        select rowcall.remember_device('{quoted}', sha256('x'), 3600, '{quoted}');
        insert into rowcall.webhook_subscriber values ('{quoted}', '{quoted}', array['{quoted}'], 'whsec_x');
        insert into rowcall.webhook_message (topic, payload, assigned) values ('{quoted}', '1', true);
        insert into rowcall.webhook_delivery (message, subscriber, number, state, error)
            select id, '{quoted}', number, 'dead', '{quoted}' from rowcall.webhook_message;
        """
    )
    more = {
        "Console:AllowActions": "true",
        "Console:Roles:0": "operator",
        "Auth:CookieAuth": "true",
        "Jobs:Enabled": "true",
        "Webhooks:Enabled": "true",
    }
    service = serve_once(own_database, "", {**SETTINGS, **more})
    address, _ = console_link(service)
    with opened.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        mistakes: list[str] = []
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        assert context.request.post(f"{service.url}/enter").ok
        page.goto(f"{address}/console/sign-in")
        page.get_by_role("button", name="Sign in with my session").click()
        ready(page, "overview")
        for name in ("queues", "sessions", f"sessions?{urlencode({'subject': MARKUP})}"):
            visit(page, name)
            expect(page.locator("td", has_text="window.attacked").first).to_be_visible()
            expect(page.locator("main :is(img, script)")).to_have_count(0)
        # The texts of the confirmation before an action, and of its result.
        page.on("dialog", lambda dialog: dialog.accept())
        visit(page, "queues")
        page.get_by_role("button", name="Retry").last.click()
        expect(page.locator("#result", has_text="window.attacked")).to_be_visible()
        assert page.evaluate("window.attacked") is None
        expect(page.locator("main :is(img, script)")).to_have_count(0)
        assert mistakes == []


def test_form_sends_a_request_to_an_endpoint(own_database: Database, serve_once: Serve, opened: Browser) -> None:
    sql = """
    create function greet(_name text, _times int default 1) returns text language sql stable as
        $$ select repeat('<b>' || _name || '</b>', _times) $$;
    comment on function greet(text, int) is 'HTTP GET /greet/{_name}';
    create function sum_of(_values int[], _note text default null) returns table (total bigint, note text)
        language sql as $$ select (select sum(value) from unnest(_values) value), _note $$;
    comment on function sum_of(int[], text) is 'HTTP POST /sum';
    create function closed() returns int language sql stable as 'select 1';
    comment on function closed() is 'HTTP GET /closed
    authorize';
    """
    service = serve_once(own_database, sql, {**SETTINGS, "Console:AllowActions": "true"})
    address, _ = console_link(service)
    with opened.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{address}/console/sign-in#{TOKEN}")
        ready(page, "overview")
        form = page.get_by_role("form", name="Try it")
        visit(page, "endpoint?method=GET&path=/greet/{_name}")
        form.get_by_role("textbox").nth(0).fill("a b%c")
        form.get_by_role("textbox").nth(1).fill("2")
        form.get_by_role("button", name="Send").click()
        expect(page.locator("pre", has_text="<b>a b%c</b><b>a b%c</b>")).to_be_visible()
        expect(page.locator("main b")).to_have_count(0)
        visit(page, "endpoint?method=POST&path=/sum")
        form.get_by_role("textbox").nth(0).fill("[1, 2, 4]")
        form.get_by_role("textbox").nth(1).fill("12")
        form.get_by_role("textbox").nth(1).press("Enter")
        expect(page.locator("pre", has_text='"total": 7')).to_be_visible()
        expect(page.locator("pre", has_text='"note": "12"')).to_be_visible()
        visit(page, "endpoint?method=GET&path=/closed")
        page.get_by_label("Authorization").fill("Bearer wrong")
        form.get_by_role("button", name="Send").click()
        expect(page.locator("strong", has_text="401")).to_be_visible()
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours)
            assert page.evaluate("async () => (await axe.run()).violations.map(item => item.id)") == []
