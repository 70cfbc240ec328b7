"""`Docs`: the API reference for users of the endpoints, tried out in a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from rowcall.core.config import assemble
from rowcall.core.config.tree import Section
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.capabilities.documents import reference_page
from rowcall.service.startup_error import StartupError
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function greet(_name text) returns text language sql stable as $$ select 'Hello ' || _name $$;
comment on function greet(text) is 'HTTP GET /greet
<img src=x onerror=alert(1)> greets someone.
allow_anonymous';
create function sign_in() returns table (user_id int) language sql as 'select 41';
comment on function sign_in() is 'HTTP POST /sign-in
login';
create function enter() returns table (scheme text, user_id int) language sql as $$ select 'BearerToken', 41 $$;
comment on function enter() is 'HTTP POST /enter
login';
create function own() returns text language sql stable as $$ select 'only mine' $$;
comment on function own() is 'HTTP GET /own
authorize';
create function import_lines(_meta json default null) returns json language sql as 'select _meta';
comment on function import_lines(json) is 'HTTP POST /import
allow_anonymous
upload
param _meta is upload metadata';
create function publish(_text text) returns text language plpgsql as
    $$begin raise info '%', _text; return 'published'; end$$;
comment on function publish(text) is 'HTTP POST /publish
authorize
sse news';
"""
SETTINGS = {
    "Auth:CookieAuth": "true",
    "Auth:BearerTokenAuth": "true",
    "Service:ServerSentEvents:AuthorizeOnConnect": "true",
    "Service:UploadOptions:Enabled": "true",
    "Docs:Enabled": "true",
    "Service:OpenApiOptions:Enabled": "true",
    "Service:OpenApiOptions:FileName": "",
    "Service:OpenApiOptions:DocumentTitle": "Greetings & more",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


def test_the_page_and_its_files(service: Service) -> None:
    page = service.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>Greetings &amp; more</title>" in page.text
    assert 'data-document="/openapi.json"' in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]
    for name, kind in (
        ("swagger-ui.css", "text/css"),
        ("swagger-ui-bundle.js", "text/javascript"),
        ("start.js", "text/"),
    ):
        response = service.get(f"/docs/{name}")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
        assert response.headers["x-content-type-options"] == "nosniff"
        head = service.request("HEAD", f"/docs/{name}")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == response.headers["content-type"]
    problem(service.get("/docs/../../etc/passwd"), 404)
    problem(service.get("/docs/LICENSE"), 404)


def test_a_page_for_users_only(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Docs:RequireAuthorization": "true", "Docs:Path": "/reference"})
    for path in ("/reference", "/reference/start.js", "/reference/swagger-ui-bundle.js"):
        problem(service.get(path), 401)
    with service.new_client() as client:
        assert client.post("/sign-in").status_code == 200
        assert client.get("/reference").status_code == 200


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "Docs:Enabled needs the OpenAPI document: set Service:OpenApiOptions:Enabled"),
        ({"Service:OpenApiOptions:Enabled": "true", "Docs:Path": "docs"}, "Docs:Path: 'docs' is no path"),
    ],
)
def test_invalid_settings_of_the_reference_page_stop_the_start(settings: dict[str, str], why: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=why):
        reference_page(assemble(Section(), [("Docs:Enabled", "true"), *settings.items()], {}).settings, "API")


@pytest.fixture
def tab() -> Iterator[Page]:
    with browser() as opened:
        page = opened.new_page()
        page.set_default_timeout(TIMEOUT)
        yield page


@needs_browser
@pytest.mark.slow
def test_an_endpoint_is_tried_out_in_the_browser(service: Service, tab: Page) -> None:
    violations: list[str] = []
    tab.on("console", lambda message: violations.append(message.text) if "Content Security" in message.text else None)
    tab.on("dialog", lambda _dialog: violations.append("a script of a comment ran"))
    tab.goto(f"{service.url}/docs")
    tab.click("text=/greet")
    expect(tab.locator("text=greets someone.").first).to_be_visible()
    tab.fill("[placeholder=name]", "Ana")
    tab.click("text=Execute")
    expect(tab.locator(".live-responses-table")).to_contain_text("Hello Ana")
    assert violations == []


def operation(tab: Page, name: str) -> Locator:
    """Open an operation of the page, and return its element."""
    block = tab.locator(".opblock", has=tab.locator(f"[data-path='{name}']"))
    block.locator(".opblock-summary-control").click()
    return block


@needs_browser
@pytest.mark.slow
def test_files_sign_in_and_events_work_in_the_browser(service: Service, tab: Page) -> None:
    violations: list[str] = []
    tab.on("console", lambda message: violations.append(message.text) if "Content Security" in message.text else None)
    tab.on("pageerror", lambda error: violations.append(str(error)))
    tab.goto(f"{service.url}/docs")
    block = operation(tab, "/import")
    block.locator("input[type=file]").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"abc"})
    block.locator(".execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text('"fileName": "a.txt"')

    publish = operation(tab, "/publish")
    publish.get_by_role("button", name="Open the stream").click()
    expect(publish.get_by_text("status 401")).to_be_visible()

    # The token of the response is used from now on.
    block = operation(tab, "/enter")
    block.locator(".execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text("accessToken")
    own = operation(tab, "/own")
    own.locator(".execute").click()
    expect(own.locator(".live-responses-table")).to_contain_text("only mine")
    publish.get_by_role("button", name="Open the stream").click()
    events = publish.get_by_role("log", name="Events")
    expect(events).to_contain_text("connected")
    publish.locator("textarea").fill('{"text": "<b>live</b>"}')
    publish.locator(".execute").click()
    expect(events).to_contain_text("data: <b>live</b>")
    publish.get_by_role("button", name="Close the stream").click()
    expect(publish.get_by_role("button", name="Open the stream")).to_be_visible()
    assert violations == []


@needs_browser
@pytest.mark.slow
def test_requests_of_the_page_use_the_session_cookie_of_the_browser(service: Service, tab: Page) -> None:
    tab.goto(f"{service.url}/docs")
    block = operation(tab, "/sign-in")
    block.locator(".execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text("200")
    own = operation(tab, "/own")
    own.locator(".execute").click()
    expect(own.locator(".live-responses-table")).to_contain_text("only mine")


@needs_browser
@pytest.mark.slow
def test_a_request_has_an_antiforgery_token(own_database: Database, serve_once: Serve, tab: Page) -> None:
    sql = """
    create function change(_note text) returns text language sql as $$ select 'changed: ' || _note $$;
    comment on function change(text) is 'HTTP POST /change
    authorize';
    """
    settings = {**SETTINGS, "Antiforgery:Enabled": "true", "Antiforgery:TokenPath": "/token"}
    service = serve_once(own_database, SQL + sql, settings, workers=2)
    tab.goto(f"{service.url}/docs")
    block = operation(tab, "/sign-in")
    block.locator(".execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text("200")
    change = operation(tab, "/change")
    change.locator("textarea").fill('{"note": "by a session"}')
    change.locator(".execute").click()
    expect(change.locator(".live-responses-table")).to_contain_text("changed: by a session")
    block = operation(tab, "/import")
    block.locator("input[type=file]").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"abc"})
    block.locator(".execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text('"fileName": "a.txt"')
    # Without a token, the service refuses the same request of the same browser.
    options = {"method": "POST", "headers": {"content-type": "application/json"}, "body": '{"note": "x"}'}
    status = tab.evaluate("async options => (await fetch('/change', options)).status", options)
    assert status == 400
