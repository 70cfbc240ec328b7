"""A download of 2 GB beside small requests: the worker streams it, and its memory stays as it is."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

pytestmark = pytest.mark.drill

SIZE = 2_147_483_648
GROWTH = 10_000_000
"""Most bytes by which the worker may grow."""
SQL = """
create function film() returns table (file text, name text) language sql stable as $$ select 'film.bin', 'film.bin' $$;
comment on function film() is 'HTTP GET /film
download';
create function small(_id int) returns int language sql stable as 'select _id';
comment on function small(int) is 'HTTP GET /small';
"""
CLIENT = """
import http.client, sys, time
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
connection.request("GET", "/film")
response, buffer, size = connection.getresponse(), bytearray(1 << 20), 0
began = time.monotonic()
while count := response.readinto(buffer):
    size += count
    # As over a network of 1 Gbit/s: a client that takes a whole processor would be measured instead.
    time.sleep(max(0.0, size / 125e6 - (time.monotonic() - began)))
print(size)
"""
FOREIGN_SERVER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.recv(65536)
with open(sys.argv[1], "rb") as file:
    size = os.fstat(file.fileno()).st_size
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % size)
    connection.sendfile(file)
"""
"""Sends the same file, with nothing of the service: what it costs the small requests is due to the processors that
clients, PostgreSQL and the service share here."""


def test_small_requests_are_served_during_a_download_of_two_gigabytes(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    with (tmp_path / "film.bin").open("wb") as file:
        file.truncate(SIZE)
    service = serve_once(own_database, SQL, {"Downloads:Folders:0": str(tmp_path)})
    alone, _ = small_requests(service, None)
    command = [sys.executable, "-c", FOREIGN_SERVER, str(tmp_path / "film.bin")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        beside_foreign, _ = beside_download(service, int(server.stdout.readline()))
    assert server.returncode == 0
    before = resident(service)
    beside, most = beside_download(service, service.port)
    assert most - before <= GROWTH, f"the worker has grown by {(most - before) / 1e6:.1f} MB"
    print(
        f"p99 of small requests: {len(alone)} alone {p99(alone):.1f} ms, {len(beside_foreign)} beside the download "
        f"from another server {p99(beside_foreign):.1f} ms, {len(beside)} beside that from the service "
        f"{p99(beside):.1f} ms"
    )


def beside_download(service: Service, port: int) -> tuple[list[float], int]:
    """Send small requests to the service until a download from `port` has ended; see `small_requests`."""
    command = [sys.executable, "-c", CLIENT, "127.0.0.1", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as download:
        result = small_requests(service, download)
        size, _ = download.communicate()
    assert (download.returncode, size.strip()) == (0, str(SIZE))
    return result


def small_requests(service: Service, download: subprocess.Popen[str] | None) -> tuple[list[float], int]:
    """Send requests, 500 or until the download has ended. Return their times in ms, and the most memory in bytes."""
    times: list[float] = []
    most = 0
    with httpx.Client(base_url=service.url) as client:
        while len(times) < 500 if download is None else download.poll() is None:
            began = time.perf_counter()
            assert client.get("/small?id=7").text == "7"
            times.append((time.perf_counter() - began) * 1000)
            if len(times) % 10 == 0:
                most = max(most, resident(service))
    return times, most


def resident(service: Service) -> int:
    """Return the memory of all workers in bytes."""
    return sum(psutil.Process(pid).memory_info().rss for pid in service.pids())


def p99(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]
