"""The system calls of a worker for one request of one client, seen by strace: what the request needs and nothing else,
and no other thread (docs/internals/http-engine.md)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.raw_http import read_response
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function answer(_v text) returns text language sql volatile as 'select _v';
create function keep(_v text) returns text language sql volatile as 'select _v';
create function cached(_v text) returns text language sql stable as 'select _v';
comment on function answer(text) is 'HTTP GET /answer';
comment on function keep(text) is 'HTTP POST /keep';
comment on function cached(text) is 'HTTP GET /cached
cached
cache_expires 1 hour';
"""
SETTINGS = {"HttpServer:Engine": "Auto", "CacheOptions:Enabled": "true"}

GET = b"GET /answer?v=a HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b'POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"v":"a"}'
HIT = b"GET /cached?v=a HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n"
FILE = b"GET /file.txt HTTP/1.1\r\nHost: x\r\n\r\n"

CALLED = ["receive", "send", "wait", "receive", "send", "wait"]
"""From the client, to PostgreSQL, from PostgreSQL, to the client."""
DIRECT_RESPONSE = ["receive", "send", "wait"]

REQUESTS = 100
NAMES = {
    **dict.fromkeys(("read", "recvfrom", "recvmsg"), "receive"),
    **dict.fromkeys(("write", "writev", "sendto", "sendmsg"), "send"),
    **dict.fromkeys(("epoll_wait", "epoll_pwait", "epoll_pwait2"), "wait"),
    **dict.fromkeys(("stat", "lstat", "newfstatat", "statx"), "stat"),
}
_LINE = re.compile(r"(\d+) +([a-z0-9_]+)\(")

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


@pytest.fixture(scope="module")
def with_files(service: Service, database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service on the same database."""
    root = tmp_path_factory.mktemp("files")
    (root / "file.txt").write_text("a file")
    (root / "large.bin").write_bytes(b"a" * 2_000_000)
    return serve(database, "", {**SETTINGS, "StaticFiles:Enabled": "true", "StaticFiles:RootPath": str(root)})


@contextmanager
def traced(pid: int, file: Path) -> Iterator[None]:
    """Write the system calls of all threads of a process to a file while the block runs."""
    command = ["strace", "-f", "-s", "24", "-o", str(file), "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        line = strace.stderr.readline()
        if "attached" not in line:
            strace.kill()
            pytest.skip(f"strace cannot trace here: {line.strip()}")
        try:
            yield
        finally:
            strace.send_signal(signal.SIGINT)
            strace.communicate()


def system_calls(service: Service, request: bytes, folder: Path) -> list[str]:
    """Return the calls for a request, from its arrival to the wait for the next one: those that most requests have.

    Timers of the worker add calls to some requests. A call of another thread has an exclamation mark.
    """
    (worker,) = service.pids()
    trace = folder / "trace"
    with service.connect() as connection:

        def send() -> None:
            connection.sendall(request)
            response = read_response(connection)
            assert response is not None
            assert response.status == 200

        # Statements are prepared, files and responses cached, and code is loaded.
        for _ in range(20):
            send()
        with traced(worker, trace):
            for _ in range(REQUESTS):
                send()
    found: Counter[tuple[str, ...]] = Counter()
    current: list[str] | None = None
    start = request[:9].decode()
    for line in trace.read_text().splitlines():
        call = _LINE.match(line)
        if call is None:
            continue
        if f'"{start}' in line and NAMES.get(call[2]) == "receive":
            if current is not None:
                found[tuple(current)] += 1
            current = []
        if current is not None:
            current.append(NAMES.get(call[2], call[2]) + ("" if int(call[1]) == worker else "!"))
    assert found, trace.read_text()[:2000]
    return [*found.most_common(1)[0][0]]


@pytest.mark.parametrize(
    ("request_", "expected"), [(GET, CALLED), (POST, CALLED), (HIT, DIRECT_RESPONSE)], ids=("get", "post", "hit")
)
def test_a_request_makes_only_the_expected_system_calls(
    service: Service, request_: bytes, expected: list[str], tmp_path: Path
) -> None:
    assert system_calls(service, request_, tmp_path) == expected


def test_a_static_file_needs_one_stat(with_files: Service, tmp_path: Path) -> None:
    assert system_calls(with_files, FILE, tmp_path) == ["receive", "stat", "send", "wait"]


def test_a_route_beside_static_files_needs_one_stat(with_files: Service, tmp_path: Path) -> None:
    assert system_calls(with_files, GET, tmp_path) == ["receive", "stat", *CALLED[1:]]


def test_a_large_file_in_the_page_cache_is_read_without_a_thread(with_files: Service, tmp_path: Path) -> None:
    if not can_read_without_waiting(tmp_path):
        pytest.skip("the file system of temporary files cannot say what is in memory")
    calls = system_calls(with_files, LARGE, tmp_path)
    assert {"preadv2", "pread64!"} & {*calls} == {"preadv2"}


def can_read_without_waiting(folder: Path) -> bool:
    file = folder / "part"
    file.write_bytes(b"a")
    with file.open("rb") as opened:
        try:
            return os.preadv(opened.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except (AttributeError, OSError):
            return False
