"""Entries of `pg_stat_statements` and the endpoints that they are of: `Tracing:QueryTags`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import expect

from tests.harness.browser import browser, needs_browser
from tests.harness.console_page import console_page
from tests.harness.database import Database, create_database
from tests.harness.postgres import Installation, PostgresServer, installations
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = (
    "create extension pg_stat_statements; create table items (id int primary key); insert into items values (1), (2);"
    + routines([
        ("item(_id int) returns json stable", "select to_json(i) from items i where id = _id", "HTTP GET /items/{_id}"),
        ("add(_id int) returns void", "insert into items values (_id)", "HTTP POST /items"),
        ("prepared() returns bigint stable",
         "select coalesce(max(generic_plans + custom_plans), 0) from pg_prepared_statements "
         "where statement like '/* GET /prepared */ %'", "HTTP GET /prepared"),
    ])
)  # fmt: skip


def with_extension() -> Installation | None:
    """The wheels with PostgreSQL in them come without what it calls contrib."""
    folders = ("lib", "lib/postgresql")
    for item in installations():
        if any((item.bin.parent / folder / "pg_stat_statements.so").exists() for folder in folders):
            return item
    return None


@pytest.fixture(scope="module")
def shop(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    result = with_extension()
    if result is None:
        pytest.skip("no PostgreSQL with pg_stat_statements found (Debian: apt-get install postgresql)")
    server = PostgresServer(result, run_folder / f"statements-{os.getpid()}-{tmp_path_factory.mktemp('s').name}")
    server.create()
    with (server.data / "postgresql.conf").open("a") as file:
        file.write("shared_preload_libraries = 'pg_stat_statements'\n")
    server.start()
    yield create_database(server)
    server.stop("immediate")


@pytest.fixture(scope="module")
def service(shop: Database, serve: Serve) -> Service:
    return serve(shop, SQL, {"Tracing:QueryTags": "true"})


def test_every_endpoint_has_a_separate_entry_in_pg_stat_statements(service: Service, shop: Database) -> None:
    for number in range(20):
        assert service.get(f"/items/{number % 2 + 1}").json() == {"id": number % 2 + 1}
        assert service.post("/items", json={"id": 10 + number}).status_code == 204

    def counted() -> dict[str, int]:
        # A routine that is called often runs as a statement with something in front of the tag, counted apart.
        with psycopg.connect(shop.conninfo) as connection:
            rows = connection.execute(
                r"select substring(query from '/\* (.*?) \*/') as endpoint, sum(calls)::int from pg_stat_statements "
                "where query like '%/* %' group by 1"
            ).fetchall()
        return {str(endpoint): int(calls) for endpoint, calls in rows}

    # What a session has run is counted when the run has ended, a moment behind the answer.
    expected = {"GET /items/{_id}": 20, "POST /items": 20}
    wait_until(lambda: {name: counted().get(name) for name in expected} == expected, "all runs are counted")


def test_statements_with_a_tag_stay_prepared(service: Service) -> None:
    wait_until(lambda: int(service.get("/prepared").text) >= 3, "one prepared statement has run several times")


@needs_browser
@pytest.mark.slow
def test_the_console_shows_the_statements_by_time(service: Service, shop: Database, serve_once: Serve) -> None:
    token = "an operator's token of this test"
    settings = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": token}
    shop.execute("select pg_sleep(0.5)")
    console = serve_once(shop, "", {**settings, "Tracing:QueryTags": "true"})
    with browser() as opened, console_page(console, opened, token) as page:
        page.evaluate("location.hash = 'database'")
        rows = page.get_by_role("region", name="Statements by time").locator("tbody tr")
        expect(rows.filter(has_text="pg_sleep(")).to_have_count(1)
        total = page.get_by_role("columnheader", name="Total")
        total.get_by_role("button").click()
        expect(total).to_have_attribute("aria-sort", "descending")
