"""Traces in the console: the spans of the last requests of all workers, as JSON and as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import browser, needs_browser
from tests.harness.collector import Received, collect_over_http
from tests.harness.console import operator
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

MARKUP = "<img src=x onerror='window.attacked = true'>"
SQL = """
create function item(_id text) returns text language sql stable as $$ select 'item ' || _id $$;
comment on function item(text) is 'HTTP GET /items/{_id}';
create function wrong() returns int language sql as $$ select 1 / 0 $$;
comment on function wrong() is 'HTTP GET /wrong';
create function forward() returns void language sql as '';
comment on function forward() is 'HTTP GET /forward
proxy';
create function hidden(_secret text) returns text language sql stable as $$ select 'x' $$;
comment on function hidden(text) is 'HTTP GET /hidden/{_secret}
sensitive';
"""
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
CALLER = "00f067aa0ba902b7"
SETTINGS = {
    "Console:Enabled": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "Tracing:Enabled": "true",
    "Tracing:SampleRatio": "0",
    "Service:ProxyOptions:Enabled": "true",
}


@pytest.fixture(scope="module")
def collector() -> Iterator[Received]:
    with collect_over_http() as received:
        yield received


@pytest.fixture(scope="module")
def service(collector: Received, upstream: Upstream, database: Database, serve: Serve) -> Service:
    upstream.on("/forward", answer({}))
    settings = {**SETTINGS, "Tracing:Endpoint": collector.url, "Service:ProxyOptions:Host": upstream.url}
    return serve(database, SQL, settings, workers=2)


@pytest.fixture(scope="module")
def console(service: Service) -> Iterator[httpx.Client]:
    with operator(service, TOKEN) as client:
        yield client


def traced(service: Service, number: int, path: str) -> str:
    """Send a request that is sampled, and return its trace."""
    trace = f"{number:032x}"
    service.get(path, headers={"traceparent": f"00-{trace}-{CALLER}-01"})
    return trace


def spans_of(console: httpx.Client, trace: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        response = console.get("/console/api/trace", params={"id": trace})
        report: dict[str, Any] = response.json()
        return report if response.status_code == 200 and any(item["depth"] == 0 for item in report["spans"]) else None

    return wait_until(found, "the first span of the trace has ended")


def test_a_trace_has_its_spans_in_order_with_times_and_attributes(service: Service, console: httpx.Client) -> None:
    report = spans_of(console, traced(service, 1, "/items/7"))
    spans = report["spans"]
    assert [(item["depth"], item["name"]) for item in spans] == [
        (0, "GET /items/{_id}"),
        (1, "wait for a connection"),
        (1, "database"),
        (2, "render"),
    ]
    request, _, database, _ = spans
    assert (request["kind"], database["kind"]) == ("server", "client")
    assert request["endpoint"] == {"method": "GET", "path": "/items/{_id}"}
    assert database["endpoint"] is None
    assert request["attributes"]["http.response.status_code"] == 200
    assert request["attributes"]["url.path"] == "/items/7"
    assert database["attributes"]["db.response.returned_rows"] == 1
    assert request["offsetSeconds"] == 0
    for item in spans:
        assert item["offsetSeconds"] >= 0
        assert item["seconds"] >= 0
        assert item["offsetSeconds"] + item["seconds"] <= report["seconds"] + 1e-6
        assert item["worker"].startswith("worker ")


def test_errors_and_requests_to_other_services_are_in_the_trace(service: Service, console: httpx.Client) -> None:
    report = spans_of(console, traced(service, 2, "/wrong"))
    assert report["spans"][0]["failed"] is True
    assert report["spans"][0]["attributes"]["http.response.status_code"] == 500
    report = spans_of(console, traced(service, 3, "/forward"))
    assert [item["kind"] for item in report["spans"]] == ["server", "client"]


def test_the_last_traced_requests_of_all_workers_are_listed(service: Service, console: httpx.Client) -> None:
    trace = traced(service, 4, "/items/4")
    spans_of(console, trace)
    service.get("/items/5")  # not sampled
    report = console.get("/console/api/traces").json()
    assert report["enabled"] is True
    assert [item["trace"] for item in report["traces"] if item["trace"] == trace] == [trace]
    began = [item["began"] for item in report["traces"]]
    assert began == sorted(began, reverse=True)
    assert len(console.get("/console/api/traces", params={"limit": "1"}).json()["traces"]) == 1


def test_values_of_sensitive_endpoints_are_not_in_traces(service: Service, console: httpx.Client) -> None:
    trace = traced(service, 5, "/hidden/hunter2-of-the-caller")
    report = spans_of(console, trace)
    assert report["spans"][0]["name"] == "GET /hidden/{_secret}"
    assert "hunter2" not in console.get("/console/api/trace", params={"id": trace}).text.replace(trace, "")


def test_unknown_trace_gets_404_and_invalid_id_400(console: httpx.Client) -> None:
    problem(console.get("/console/api/trace", params={"id": "f" * 32}), 404)
    problem(console.get("/console/api/trace", params={"id": "F" * 32}), 400)
    problem(console.get("/console/api/trace"), 400)


def test_the_log_is_searched_by_trace(service: Service, console: httpx.Client) -> None:
    trace = traced(service, 6, "/wrong")
    entries = wait_until(
        lambda: console.get("/console/api/log", params={"search": trace}).json()["entries"], "the request is logged"
    )
    assert any(entry["properties"].get("TraceId") == trace for entry in entries)


def test_without_tracing_there_are_no_traces(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Tracing:Enabled": "false"})
    with operator(service, TOKEN) as client:
        assert client.get("/console/api/traces").json() == {"enabled": False, "traces": []}
        problem(client.get("/console/api/trace", params={"id": "f" * 32}), 404)


# --- the page ---------------------------------------------------------------------------------------------


@pytest.fixture
def tab(service: Service) -> Iterator[Page]:
    with browser() as opened, console_page(service, opened, TOKEN) as page:
        yield page


@needs_browser
@pytest.mark.slow
def test_a_waterfall_is_read_by_the_keyboard(service: Service, console: httpx.Client, tab: Page) -> None:
    spans_of(console, traced(service, 7, "/items/7"))
    tab.evaluate("location.hash = 'requests'")
    tab.get_by_role("link", name="GET /items/{_id}").first.press("Enter")
    spans = tab.locator(".waterfall li")
    expect(spans).to_have_count(4)
    expect(spans.first).to_contain_text("GET /items/{_id}")
    spans.first.locator("summary").press("Enter")
    expect(spans.first.get_by_role("row", name="http.response.status_code 200")).to_be_visible()
    database = spans.nth(2).locator("summary")
    database.focus()
    tab.keyboard.press("Enter")
    expect(spans.nth(2).get_by_role("row", name="db.response.returned_rows 1")).to_be_visible()
    tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    for colours in ("light", "dark"):
        tab.emulate_media(color_scheme=colours)
        assert tab.evaluate("async () => (await axe.run()).violations.map(item => item.id)") == []
    tab.set_viewport_size({"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    spans.first.get_by_role("link", name="Endpoint GET /items/{_id}").press("Enter")
    expect(tab.locator("h2")).to_have_text("GET /items/{_id}")


@needs_browser
@pytest.mark.slow
@pytest.mark.attack
def test_texts_of_traces_are_not_rendered_as_markup(service: Service, console: httpx.Client, tab: Page) -> None:
    trace = traced(service, 8, f"/items/{MARKUP}")
    spans_of(console, trace)
    for name in (f"trace?id={trace}", "requests"):
        tab.evaluate("name => { location.hash = name }", name)
        expect(tab.locator(f"[data-ready='{name.partition('?')[0]}']")).to_be_attached()
        expect(tab.locator("main :is(img, script)")).to_have_count(0)
    assert tab.evaluate("window.attacked") is None
