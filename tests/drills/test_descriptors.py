"""More clients than file descriptors: they wait, no process spins, and running requests continue."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
from collections.abc import Iterator

import httpx
import psutil
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at the limits of other processes")

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function many(_rows int) returns table(n int, filler text) language sql stable
  as $$select n, repeat('x', 100) from generate_series(1, _rows) n$$;
comment on function echo(int) is 'HTTP GET /echo';
comment on function many(int) is 'HTTP GET /many';
"""

FEW = 220
"""Limit of open files of each process."""


@contextlib.contextmanager
def soft_limit(files: int) -> Iterator[None]:
    """Set the limit for the processes that are started in the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def idle_clients(service: Service, count: int) -> Iterator[list[socket.socket]]:
    """Provide connections as far as the system is concerned: the service need not have accepted them."""
    made: list[socket.socket] = []
    try:
        made += (service.connect() for _ in range(count))
        yield made
    finally:
        for item in made:
            item.close()


def worker(service: Service) -> psutil.Process:
    (pid,) = service.pids()
    return psutil.Process(pid)


def test_the_soft_limit_is_raised_to_the_hard_limit(own_database: Database, serve_once: Serve) -> None:
    with soft_limit(100):
        service = serve_once(own_database, SQL)
    soft, hard = worker(service).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == hard


def test_more_clients_than_descriptors_are_served(own_database: Database, serve_once: Serve) -> None:
    slow = {"HttpServer:Limits:RequestHeadersTimeout": "20 seconds"}
    service = serve_once(own_database, SQL, slow, open_files=FEW)
    assert answer(service.get("/echo?id=1")) == (200, TEXT, "1")
    with idle_clients(service, 400):
        process = worker(service)
        # Accepted clients are served, including streams: they have descriptors of their own.
        for _ in range(5):
            assert answer(service.get("/echo?id=2")) == (200, TEXT, "2")
            assert service.get("/many?rows=20000").json()[-1]["n"] == 20_000
        assert process.num_fds() < FEW
        before = sum(process.cpu_times()[:2])
        with pytest.raises(httpx.TimeoutException), service.new_client(timeout=5) as late:
            late.get("/echo?id=3")
        # A spinning process would have used a processor all the time.
        assert sum(process.cpu_times()[:2]) - before < 2.5
    wait_until(lambda: httpx.get(f"{service.url}/echo?id=4", timeout=30).text == "4", "clients are let in again", 30)
    assert "Too many open files" not in service.log


def test_a_connection_limit_above_the_open_files_limit_is_reported(own_database: Database, serve_once: Serve) -> None:
    many = {"HttpServer:Limits:MaxConcurrentConnections": "5000"}
    service = serve_once(own_database, SQL, many, open_files=FEW)
    assert "220 open files" in service.wait_for_log("MaxConcurrentConnections")


@pytest.mark.parametrize(("engine", "status"), [("Granian", 503), ("Auto", 200)])
def test_a_stream_without_a_free_descriptor_is_503(
    own_database: Database, serve_once: Serve, engine: str, status: int
) -> None:
    """The limit is lowered under the running worker, as if something else had used its descriptors. A stream of granian
    needs some of its own; in the event loop it needs none.
    """
    service = serve_once(own_database, SQL, {"HttpServer:Engine": engine})
    assert service.get("/many?rows=20000").status_code == 200
    process = worker(service)
    _, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir(f"/proc/{process.pid}/fd"))
    lowest_free = next(
        number for number in range(highest + 2) if not os.path.exists(f"/proc/{process.pid}/fd/{number}")
    )
    process.rlimit(psutil.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        response = service.get("/many?rows=20000")
        assert response.status_code == status
        assert status == 200 or int(response.headers["retry-after"]) > 0
        assert answer(service.get("/echo?id=5")) == (200, TEXT, "5")
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, (hard, hard))
    assert service.get("/many?rows=20000").status_code == 200
