"""What the console shows of a server with a replica and with `pg_stat_statements`, as JSON and in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import INSTALLATIONS
from tests.harness.browser import browser, needs_browser
from tests.harness.console import operator
from tests.harness.console_page import console_page
from tests.harness.database import Database, create_database
from tests.harness.replication import ReplicatedServer, replicated
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table items (id int);
create function item(_id int) returns bigint language sql stable as 'select count(*) from items where id = _id';
comment on function item(int) is 'HTTP GET /items/{_id}';
"""
TOKEN = "an operator's token of this test"
SETTINGS = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": TOKEN}

Servers = list[ReplicatedServer]


@pytest.fixture(scope="module")
def servers(run_folder: Path) -> Iterator[Servers]:
    if not (INSTALLATIONS and (INSTALLATIONS[0].bin / "pg_basebackup").exists()):
        pytest.skip("no PostgreSQL with pg_basebackup found")
    running = replicated(INSTALLATIONS[0], run_folder / f"console-replica-{os.getpid()}", 1)
    yield running
    for server in reversed(running):
        server.stop("immediate")


@pytest.fixture(scope="module")
def shop(servers: Servers) -> Database:
    return create_database(servers[0])


@pytest.fixture(scope="module")
def service(shop: Database, serve: Serve) -> Service:
    return serve(shop, SQL, SETTINGS)


@needs_browser
@pytest.mark.slow
def test_the_lag_of_a_replica_is_shown(service: Service, servers: Servers, shop: Database) -> None:
    primary, standby = servers
    with operator(service, TOKEN) as console:

        def lagging() -> dict[str, Any] | None:
            shop.execute("insert into items values (1)")
            (replica,) = console.get("/console/api/database").json()["replicas"]
            return replica if (replica["lagSeconds"] or 0) > 0.5 else None

        with standby.standing_still():
            replica = wait_until(lagging, "the replica lags behind", 60)
            assert replica["state"] == "streaming"
            assert replica["sync"] == "async"
            with browser() as opened, console_page(service, opened, TOKEN) as page:
                page.evaluate("location.hash = 'database'")
                row = page.get_by_role("region", name="Replicas").locator("tbody tr")
                expect(row).to_have_count(1)
                expect(row).to_contain_text("streaming")
                expect(row.locator("td").last).to_contain_text("s")
        wait_until(lambda: standby.has_reached(primary), "the replica has caught up", 60)
