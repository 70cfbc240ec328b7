"""Requests from the console: files, credentials of users, and event streams, as JSON and in the page."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import browser, needs_browser
from tests.harness.console import console_client, console_link, operator
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import member_sql

SQL = """
create function import_lines(_note text default null, _meta json default null) returns json language sql as
    $$ select json_build_object('note', _note, 'files', _meta) $$;
comment on function import_lines(text, json) is 'HTTP POST /import
allow_anonymous
upload
param _meta is upload metadata';
create function publish(_text text) returns text language plpgsql as
    $$begin raise info '%', _text; return 'published'; end$$;
comment on function publish(text) is E'HTTP POST /publish\\nallow_anonymous\\nsse news';
create function publish_long(_length int, _times int) returns void language plpgsql as $$begin
    for n in 1 .. _times loop raise info '% %', n, repeat('x', _length); end loop;
end$$;
comment on function publish_long(int, int) is E'HTTP POST /publish-long\\nallow_anonymous\\nsse_publish';
create function change() returns text language sql as $$ select 'changed' $$;
comment on function change() is E'HTTP POST /change\\nauthorize';
"""
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
SETTINGS = {
    "Console:Enabled": "true",
    "Console:AllowActions": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "Auth:CookieAuth": "true",
    "Auth:BearerTokenAuth": "true",
    "Service:UploadOptions:Enabled": "true",
}
BOUNDARY = "x-boundary"
FILE = (
    f"--{BOUNDARY}\r\ncontent-disposition: form-data; name=file; filename=letters.txt\r\n"
    f"content-type: text/plain\r\n\r\nabcdefg\r\n--{BOUNDARY}--\r\n"
)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def console(service: Service) -> Iterator[httpx.Client]:
    with operator(service, TOKEN) as client:
        yield client


def send_through_console(console: httpx.Client, **values: str) -> dict[str, Any]:
    response = console.post("/console/api/actions/send-request", json=values)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def refusal_detail(console: httpx.Client, **values: str) -> str:
    response = console.post("/console/api/actions/send-request", json={"method": "POST", "path": "/change", **values})
    detail: str = problem(response, 400)["detail"]
    return detail


def test_files_are_sent(console: httpx.Client) -> None:
    body = base64.b64encode(FILE.encode()).decode()
    content_type = f"multipart/form-data; boundary={BOUNDARY}"
    response = send_through_console(
        console, method="POST", path="/import?note=x", bodyBase64=body, contentType=content_type
    )
    assert response["status"] == 200, response
    result = json.loads(response["body"])
    assert (result["note"], result["files"][0]["fileName"], result["files"][0]["size"]) == ("x", "letters.txt", 7)


def test_credentials_of_a_sign_in_are_sent(console: httpx.Client) -> None:
    assert send_through_console(console, method="POST", path="/change")["status"] == 401
    signed_in = send_through_console(console, method="POST", path="/api/let-in", body='{"nick": "kiri"}')
    (cookie,) = (value for name, value in signed_in["headers"] if name == "set-cookie")
    response = send_through_console(console, method="POST", path="/change", cookie=cookie.partition(";")[0])
    assert (response["status"], response["body"]) == (200, "changed")
    by_token = send_through_console(
        console, method="POST", path="/api/let-in", body='{"nick": "kiri", "scheme": "BearerToken"}'
    )
    token = json.loads(by_token["body"])["accessToken"]
    assert (
        send_through_console(console, method="POST", path="/change", authorization=f"Bearer {token}")["status"] == 200
    )


@pytest.mark.attack
def test_invalid_contents_and_headers_are_refused(console: httpx.Client) -> None:
    assert "base64" in refusal_detail(console, bodyBase64="no base64!")
    assert "exclude" in refusal_detail(console, bodyBase64="eA==", body="{}")
    assert "no API keys" in refusal_detail(console, apiKey="x")
    for name in ("cookie", "authorization"):
        assert "control characters" in refusal_detail(console, **{name: "a\r\nx: y"})
    assert "control characters" in refusal_detail(console, body="{}", contentType="a\r\nx: y")


def test_api_keys_are_sent(own_database: Database, serve_once: Serve) -> None:
    sql = """
    create function find_key(_digest text) returns table (user_id int) language sql as
        $$ select 41 where _digest = encode(sha256('right'), 'hex') $$;
    create function own() returns text language sql as $$ select 'mine' $$;
    comment on function own() is E'HTTP GET /own\\nauthorize';
    """
    settings = {
        **SETTINGS,
        "Auth:ApiKey:Enabled": "true",
        "Auth:ApiKey:Header": "X-Shop-Key",
        "Auth:ApiKey:Command": "select * from find_key($1)",
    }
    service = serve_once(own_database, sql, settings)
    with operator(service, TOKEN) as client:
        assert send_through_console(client, method="GET", path="/own", apiKey="wrong")["status"] == 401
        assert send_through_console(client, method="GET", path="/own", apiKey="right")["body"] == "mine"
        item = client.get("/console/api/endpoint", params={"method": "GET", "path": "/own"}).json()
        assert item["apiKeyHeader"] == "x-shop-key"


def test_event_stream_is_forwarded_to_the_page(service: Service, console: httpx.Client) -> None:
    path = "/console/api/actions/open-stream"
    with console.stream("POST", path, json={"path": "/publish/news"}) as response:
        assert response.headers["content-type"] == "text/event-stream"
        parts = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: "))
        assert next(parts)["status"] == 200
        assert "connected" in next(parts)["text"]
        service.post("/publish", json={"text": "Grüße"})
        assert "data: Grüße" in next(parts)["text"]
    wait_until(lambda: _has_no_streams(service, console), "the stream ends with its reader")


def _has_no_streams(service: Service, console: httpx.Client) -> bool:
    """granian notices the end of a client when it sends the next event."""
    service.post("/publish", json={"text": "next"})
    return not console.get("/console/api/events").json()["streams"]


def test_refused_stream_is_forwarded_as_a_response(console: httpx.Client) -> None:
    with console.stream("POST", "/console/api/actions/open-stream", json={"path": "/nothing"}) as response:
        parts = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert parts[0]["status"] == 404
    assert "Not Found" in parts[1]["text"]
    problem(console.post("/console/api/actions/open-stream", json={"path": "//x y"}), 400)


@pytest.mark.attack
def test_streams_are_opened_by_pages_of_the_console_only(service: Service) -> None:
    address, _ = console_link(service)
    with console_client(address, TOKEN) as client:
        client.post("/console/api/session")
        del client.headers["authorization"]
        problem(client.post("/console/api/actions/open-stream", json={"path": "/publish/news"}), 403)


def test_endpoint_details_include_stream_sign_in_and_header_names(console: httpx.Client) -> None:
    item = console.get("/console/api/endpoint", params={"method": "POST", "path": "/publish"}).json()
    assert item["stream"] == "/publish/news"
    assert {"method": "POST", "path": "/api/let-in"} in item["signIn"]
    assert item["apiKeyHeader"] is None
    item = console.get("/console/api/endpoint", params={"method": "POST", "path": "/import"}).json()
    assert (item["stream"], item["description"]["upload"]) == (None, True)


ANTIFORGERY = {**SETTINGS, "Antiforgery:Enabled": "true", "Antiforgery:TokenPath": "/token"}


def antiforgery_service(own_database: Database, serve_once: Serve, **more: str | None) -> Service:
    return serve_once(own_database, member_sql() + SQL, {**ANTIFORGERY, **more}, workers=2)


def cookies(response: dict[str, Any]) -> list[str]:
    return [value.partition(";")[0] for name, value in response["headers"] if name == "set-cookie"]


@pytest.mark.slow
def test_given_antiforgery_token_is_sent(own_database: Database, serve_once: Serve) -> None:
    service = antiforgery_service(own_database, serve_once)
    with operator(service, TOKEN) as console:
        item = console.get("/console/api/endpoint", params={"method": "POST", "path": "/change"}).json()
        assert item["antiforgery"] == {"header": "RequestVerificationToken", "path": "/token"}
        item = console.get("/console/api/endpoint", params={"method": "GET", "path": "/api/who"}).json()
        assert item["antiforgery"] is None
        session = "; ".join(
            cookies(send_through_console(console, method="POST", path="/api/let-in", body='{"nick": "kiri"}'))
        )
        issued = send_through_console(console, method="GET", path="/token", cookie=session)
        token, cookie = json.loads(issued["body"])["token"], "; ".join([session, *cookies(issued)])
        assert send_through_console(console, method="POST", path="/change", cookie=cookie)["status"] == 400
        response = send_through_console(console, method="POST", path="/change", cookie=cookie, antiforgery=token)
        assert (response["status"], response["body"]) == (200, "changed")


@pytest.mark.attack
def test_antiforgery_token_is_refused_if_antiforgery_is_off(console: httpx.Client) -> None:
    assert "no antiforgery tokens" in refusal_detail(console, antiforgery="x")


@pytest.mark.slow
def test_slow_reader_rules_apply_to_forwarded_streams(service: Service, console: httpx.Client) -> None:
    """The console reads the stream no faster than its page, so the rules for slow readers apply."""

    def numbers() -> dict[str, Any]:
        result: dict[str, Any] = console.get("/console/api/events").json()
        return result

    before = numbers()["dropped"]
    with console.stream("POST", "/console/api/actions/open-stream", json={"path": "/publish/news"}) as response:
        lines = (line for line in response.iter_lines() if "connected" in line)
        assert next(lines)

        def dropped() -> bool:
            service.post("/publish-long", json={"length": 500_000, "times": 20})
            return bool(numbers()["dropped"] > before)

        wait_until(dropped, "events of the stream are dropped", 60)
    wait_until(lambda: _has_no_streams(service, console), "the stream ends with its reader")


# --- the page ---------------------------------------------------------------------------------------------


@pytest.fixture
def tab(service: Service) -> Iterator[Page]:
    with browser() as opened, console_page(service, opened, TOKEN) as page:
        yield page


def visit(page: Page, method: str, path: str) -> None:
    page.evaluate("name => { location.hash = name }", f"endpoint?method={method}&path={path}")
    expect(page.locator("h2")).to_have_text(f"{method} {path}")


@needs_browser
@pytest.mark.slow
def test_page_uploads_files_signs_in_and_shows_events(service: Service, tab: Page) -> None:
    form = tab.get_by_role("form", name="Try it")
    visit(tab, "POST", "/import")
    form.get_by_label("Files").set_input_files({"name": "letters.txt", "mimeType": "text/plain", "buffer": b"abcdefg"})
    form.get_by_label("note").fill("a note")
    form.get_by_role("button", name="Send").click()
    expect(tab.locator("pre", has_text='"fileName": "letters.txt"')).to_contain_text('"note": "a note"')

    visit(tab, "POST", "/change")
    form.get_by_role("button", name="Send").click()
    expect(tab.locator("strong", has_text="401")).to_be_visible()
    tab.get_by_text("Sign in by POST /api/let-in").click()
    sign_in = tab.get_by_role("form", name="Sign in by POST /api/let-in")
    sign_in.get_by_label("nick").fill("kiri")
    sign_in.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_text("Signed in: requests are sent")).to_be_visible()
    form.get_by_role("button", name="Send").click()
    expect(tab.get_by_text("changed", exact=True)).to_be_visible()

    # The session stays for the forms of other endpoints, until the page discards it.
    visit(tab, "GET", "/api/who")
    form.get_by_role("button", name="Send").click()
    expect(tab.locator("pre", has_text='"userName": "kiri"')).to_be_visible()
    tab.get_by_role("button", name="Forget").click()
    form.get_by_role("button", name="Send").click()
    expect(tab.locator("strong", has_text="401")).to_be_visible()

    visit(tab, "POST", "/publish")
    tab.get_by_role("button", name="Open the stream").click()
    events = tab.get_by_role("log", name="Events")
    expect(events).to_contain_text("connected")
    form.get_by_label("text").fill("<b>live</b>")
    form.get_by_role("button", name="Send").click()
    expect(events).to_contain_text("data: <b>live</b>")
    expect(tab.locator("main b")).to_have_count(0)
    tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    for colours in ("light", "dark"):
        tab.emulate_media(color_scheme=colours)
        assert tab.evaluate("async () => (await axe.run()).violations.map(item => item.id)") == []
    tab.get_by_role("button", name="Close the stream").click()
    expect(tab.get_by_role("button", name="Open the stream")).to_be_visible()


@needs_browser
@pytest.mark.slow
def test_page_shows_the_end_of_a_long_stream(service: Service, tab: Page) -> None:
    visit(tab, "POST", "/publish")
    tab.get_by_role("button", name="Open the stream").click()
    events = tab.get_by_role("log", name="Events")
    expect(events).to_contain_text("connected")
    expect(tab.get_by_text("characters are shown")).to_be_hidden()
    service.post("/publish-long", json={"length": 90_000, "times": 4})
    service.post("/publish", json={"text": "the last one"})
    expect(events).to_contain_text("the last one")
    expect(tab.get_by_text("Only the last 200,000 characters are shown.")).to_be_visible()
    text = events.evaluate("element => element.textContent")
    assert len(text) == 200_000
    assert "connected" not in text


@needs_browser
@pytest.mark.slow
def test_leaving_the_form_ends_its_stream(service: Service, console: httpx.Client, tab: Page) -> None:
    visit(tab, "POST", "/publish")
    tab.get_by_role("button", name="Open the stream").click()
    expect(tab.get_by_role("log", name="Events")).to_contain_text("connected")
    assert len(console.get("/console/api/events").json()["streams"]) == 1
    visit(tab, "GET", "/api/who")
    wait_until(lambda: _has_no_streams(service, console), "the stream of the form has ended", 60)


@needs_browser
@pytest.mark.slow
def test_a_form_fetches_an_antiforgery_token(own_database: Database, serve_once: Serve) -> None:
    service = antiforgery_service(own_database, serve_once)
    with browser() as opened, console_page(service, opened, TOKEN) as page:
        form = page.get_by_role("form", name="Try it")
        visit(page, "POST", "/change")
        page.get_by_text("Sign in by POST /api/let-in").click()
        sign_in = page.get_by_role("form", name="Sign in by POST /api/let-in")
        sign_in.get_by_label("nick").fill("kiri")
        sign_in.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Signed in: requests are sent")).to_be_visible()
        form.get_by_role("button", name="Send").click()
        expect(page.get_by_text("changed", exact=True)).to_be_visible()
        # A form needs a token also without a session.
        page.get_by_role("button", name="Forget").click()
        visit(page, "POST", "/import")
        file = {"name": "letters.txt", "mimeType": "text/plain", "buffer": b"abcdefg"}
        form.get_by_label("Files").set_input_files(file)  # type: ignore[arg-type]
        form.get_by_role("button", name="Send").click()
        expect(page.locator("pre", has_text='"fileName": "letters.txt"')).to_be_visible()


@needs_browser
@pytest.mark.slow
def test_form_names_the_token_path_setting_if_missing(own_database: Database, serve_once: Serve) -> None:
    service = antiforgery_service(own_database, serve_once, **{"Antiforgery:TokenPath": None})
    with browser() as opened, console_page(service, opened, TOKEN) as page:
        visit(page, "POST", "/change")
        expect(page.get_by_text("Set Antiforgery:TokenPath")).to_be_visible()
        visit(page, "GET", "/api/who")
        expect(page.get_by_text("Set Antiforgery:TokenPath")).to_have_count(0)
