"""Events in the console: channels, open streams and numbers of all workers, and the end of a stream."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.console import console_client, console_link, operator
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import member_sql, with_cookie
from tests.http.test_events_readers import SQL as READERS
from tests.http.test_events_readers import flood, read_nothing

SQL = """
create function heard() returns void language sql as '';
comment on function heard() is E'HTTP GET\\nallow_anonymous\\nsse_listen shop_news news';
create function own() returns void language sql as '';
comment on function own() is E'HTTP GET\\nauthorize\\nsse_subscribe own';
"""
TOKEN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
SETTINGS = {
    "Console:Enabled": "true",
    "Console:AllowActions": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "Auth:CookieAuth": "true",
    "Service:ServerSentEvents:SlowReaderEvents": "50",
    # granian notices the end of a client only when it sends the next event, and lists its stream until then.
    "HttpServer:Engine": "Auto",
}
STREAM = "/api/publish/info"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + READERS + SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def console(service: Service) -> Iterator[httpx.Client]:
    with operator(service, TOKEN) as client:
        yield client


def report_of(console: httpx.Client) -> dict[str, Any]:
    response = console.get("/console/api/events")
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def streams_of(console: httpx.Client, *paths: str) -> list[dict[str, Any]]:
    """Return the streams when these are the paths of all of them."""

    def found() -> tuple[list[dict[str, Any]]] | None:
        streams: list[dict[str, Any]] = report_of(console)["streams"]
        return (streams,) if sorted(item["path"] for item in streams) == sorted(paths) else None

    return wait_until(found, f"the streams are {paths}")[0]


@pytest.mark.slow
def test_streams_are_listed_with_path_user_worker_and_start(service: Service, console: httpx.Client) -> None:
    began = time.time()
    cookie = with_cookie(service, "kiri")
    with EventStream(service, STREAM) as anonymous, EventStream(service, "/api/own/own", cookie):
        by_path = {item["path"]: item for item in streams_of(console, STREAM, "/api/own/own")}
        stream = by_path[STREAM]
        assert (stream["user"], by_path["/api/own/own"]["user"]) == (None, "kiri")
        host, port = anonymous.socket.getsockname()[:2]
        assert stream["address"] == f"{host}:{port}"
        assert re.fullmatch(r"worker [01]", stream["worker"])
        assert began - 1 <= stream["began"] <= time.time() + 1
        assert (stream["waiting"], stream["dropped"], stream["channel"]) == (0, 0, "")
    streams_of(console)


@pytest.mark.slow
def test_streams_of_all_workers_are_listed(service: Service, console: httpx.Client) -> None:
    with ExitStack() as opened:
        workers: set[str] = set()
        paths: list[str] = []
        while workers != {"worker 0", "worker 1"}:
            assert len(paths) < 100
            opened.enter_context(EventStream(service, STREAM))
            paths.append(STREAM)
            workers = {item["worker"] for item in streams_of(console, *paths)}
        assert report_of(console)["open"] == len(paths)
    streams_of(console)


@pytest.mark.slow
def test_published_and_delivered_events_are_counted(service: Service, console: httpx.Client) -> None:
    before = report_of(console)
    with EventStream(service, STREAM) as one, EventStream(service, STREAM) as other:
        service.post("/api/publish", json={"text": "to both"})
        for stream in (one, other):
            stream.wait_for("to both")
        wait_until(
            lambda: _increases(before, report_of(console), "published", "delivered") == (1, 2),
            "one event for two streams",
        )
    streams_of(console)


def _increases(before: dict[str, Any], now: dict[str, Any], *names: str) -> tuple[float, ...]:
    return tuple(now[name] - before[name] for name in names)


@pytest.mark.slow
def test_notifications_are_counted_by_channel(service: Service, database: Database, console: httpx.Client) -> None:
    with EventStream(service, "/api/heard/news") as stream:
        database.execute("notify shop_news, '<b>open</b>'")
        stream.wait_for("<b>open</b>")
        (channel,) = wait_until(
            lambda: [item for item in report_of(console)["channels"] if item["notified"] and item["streams"]],
            "the channel has a notification and a stream",
        )
        assert channel == {"channel": "shop_news", "listening": True, "notified": 1, "streams": 1}
        (item,) = report_of(console)["streams"]
        assert item["channel"] == "shop_news"
    streams_of(console)


@pytest.mark.slow
def test_events_that_slow_readers_miss_are_counted(service: Service, console: httpx.Client) -> None:
    before = report_of(console)
    with read_nothing(service) as slow, EventStream(service, STREAM) as fast:
        flood(service, fast)
        wait_until(lambda: report_of(console)["dropped"] > before["dropped"], "events are dropped")
        slow_stream = max(streams_of(console, STREAM, STREAM), key=lambda item: item["dropped"])
        assert slow_stream["address"].endswith(f":{slow.socket.getsockname()[1]}")
        assert slow_stream["waiting"] > 0
    streams_of(console)


@pytest.mark.slow
def test_the_report_is_sent_live(console: httpx.Client) -> None:
    with console.stream("GET", "/console/api/events/live") as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = (line for line in response.iter_lines() if line.startswith("data: "))
        events = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]
    assert all("channels" in event for event in events)


@pytest.mark.slow
def test_an_operator_ends_a_stream(service: Service, console: httpx.Client) -> None:
    with EventStream(service, STREAM) as ended, EventStream(service, STREAM) as other:
        port = ended.socket.getsockname()[1]
        streams = streams_of(console, STREAM, STREAM)
        (name,) = (item["id"] for item in streams if item["address"].endswith(f":{port}"))
        response = console.post("/console/api/actions/end-stream", params={"id": name})
        assert (response.status_code, response.json()) == (200, {"ended": name})
        ended.wait_for_end()
        assert "retry: " in ended.text
        service.post("/api/publish", json={"text": "goes on"})
        other.wait_for("goes on")
        problem(console.post("/console/api/actions/end-stream", params={"id": name}), 404)
    problem(console.post("/console/api/actions/end-stream", params={"id": "1-1"}), 404)
    problem(console.post("/console/api/actions/end-stream", params={"id": "1; drop"}), 400)
    streams_of(console)


@pytest.mark.usefixtures("service")  # creates the schema
def test_metrics_include_event_counters(database: Database, serve_once: Serve) -> None:
    settings = {**SETTINGS, "Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0"}
    service = serve_once(database, "", settings)
    address, _ = console_link(service)
    with console_client(address, TOKEN) as client, EventStream(service, STREAM) as stream:
        service.post("/api/publish", json={"text": "x"})
        stream.wait_for("x")
        text = wait_until(
            lambda: text if "rowcall_events_delivered_total 1" in (text := client.get("/metrics").text) else None,
            "the event is counted",
        )
        assert "rowcall_events_published_total 1" in text


@needs_browser
@pytest.mark.slow
def test_events_page_updates_live_and_ends_streams(service: Service) -> None:
    address, _ = console_link(service)
    with browser() as opened, EventStream(service, STREAM) as stream:
        page = opened.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{address}/console/sign-in#{TOKEN}")
        page.wait_for_url(f"{address}/console/")
        page.goto(f"{address}/console/#events")
        row = page.get_by_role("row", name=STREAM)
        expect(row).to_have_count(1)
        expect(row).to_contain_text("anonymous")
        expect(page.get_by_text("shop_news")).to_be_visible()
        # The focus survives the next reports.
        row.get_by_role("button").focus()
        with EventStream(service, STREAM):
            expect(row).to_have_count(2)
            expect(row.first.get_by_role("button")).to_be_focused()
        expect(row).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator("#result")).to_contain_text("End: ended")
        stream.wait_for_end()
        expect(row).to_have_count(0)
