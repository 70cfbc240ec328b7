"""Memory that many large bodies at once may use in a worker. It takes half a minute of two cores: `make thorough` runs
it, and `make attack`, which has to end within two minutes, does not."""

from __future__ import annotations

import contextlib
import threading

import psutil
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import member_sql
from tests.http.test_bodies_bounded import SETTINGS, SQL, request_head_sent, status

pytestmark = pytest.mark.slow


def memory(service: Service) -> float:
    """Return the memory of the workers in MB."""
    return sum(psutil.Process(pid).memory_info().rss for pid in service.pids()) / 1e6


def test_memory_of_one_hundred_concurrent_large_bodies_is_bounded(own_database: Database, serve_once: Serve) -> None:
    """They stall before the last byte: the worker holds the bodies that fit, refuses the others with Retry-After, frees
    the memory, and serves all other requests meanwhile."""
    service = serve_once(own_database, member_sql() + SQL, SETTINGS)
    service.get("/api/look")
    before = memory(service)
    body = b'{"a":"' + b"x" * 5_000_000
    statuses: list[int] = []

    def stall() -> None:
        with request_head_sent(service, "/api/taken", len(body) + 2) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(body)
            with contextlib.suppress(OSError, AssertionError):
                statuses.append(status(connection))

    threads = [threading.Thread(target=stall) for _ in range(100)]
    for thread in threads:
        thread.start()
    highest = 0.0
    with service.new_client() as client:
        while any(thread.is_alive() for thread in threads):
            assert client.get("/api/look").text == "1"
            highest = max(highest, memory(service))
    assert 503 in statuses
    assert set(statuses) <= {408, 503}
    assert highest <= before + 95
    wait_until(lambda: memory(service) <= before + 30, "the memory is given back")
    assert service.post("/api/taken", content=body + b'"}').text == "5000000"
