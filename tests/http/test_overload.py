"""More comes than the database can answer: who waits, who is refused, and what answers all the same."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

POOL = "ConnectionSettings:Pool:"
SQL = routines([
    ("held() returns text language plpgsql", "begin perform pg_advisory_xact_lock_shared(7); return 'held'; end",
     "HTTP POST /held"),
    ("one() returns text", "select 'one'::text", "HTTP POST /one"),
])  # fmt: skip
SETTINGS = {
    POOL + "ExclusiveConnections": "1",
    POOL + "Sharing": "false",
    POOL + "QueueTimeout": "60s",
    POOL + "QueueTarget": "200ms",
    "HealthChecks:Enabled": "true",
}


def _post(service: Service, path: str, done: threading.Event | None = None) -> httpx.Response:
    response = service.request_once("POST", path)
    if done is not None:
        done.set()
    return response


@pytest.mark.slow
def test_a_persistent_queue_is_shortened_and_a_temporary_one_is_not(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {**SETTINGS, POOL + "QueueInterval": "500ms"})
    with ThreadPoolExecutor(8) as pool:
        with own_database.locked(7):
            running = pool.submit(_post, service, "/held")
            wait_until(own_database.waiting, "the only connection is held up")
            refused: list[Future[httpx.Response]] = [pool.submit(_post, service, "/one") for _ in range(6)]
            for item in refused:
                response = item.result()
                assert "the database is overloaded" in problem(response, 503)["detail"]
                assert response.headers["retry-after"] == "1"
            for path in ("/health", "/health/ready", "/health/live"):
                assert service.get(path).status_code == 200
        assert running.result().text == "held"
    assert _post(service, "/one").text == "one"
    assert service.log.count("its queue has not been empty for 0.5 s") == 1


@pytest.mark.slow
def test_requests_of_a_burst_wait_up_to_the_queue_timeout(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    first = threading.Event()
    with ThreadPoolExecutor(8) as pool:
        with own_database.locked(7):
            running = pool.submit(_post, service, "/held")
            wait_until(own_database.waiting, "the only connection is held up")
            waiting = [pool.submit(_post, service, "/one", first) for _ in range(6)]
            # Several looks of the watchdog, and more than the target.
            assert not first.wait(1.0)
        assert running.result().text == "held"
        assert [item.result().text for item in waiting] == ["one"] * 6


@pytest.mark.slow
def test_without_a_queue_target_requests_wait_for_the_queue_timeout(own_database: Database, serve_once: Serve) -> None:
    never = {POOL + "QueueTarget": "", POOL + "QueueInterval": "1ms", POOL + "QueueTimeout": "700ms"}
    service = serve_once(own_database, SQL, {**SETTINGS, **never})
    with ThreadPoolExecutor(2) as pool, own_database.locked(7):
        pool.submit(_post, service, "/held")
        wait_until(own_database.waiting, "the only connection is held up")
        assert "within 0.7 s" in problem(_post(service, "/one"), 503)["detail"]
