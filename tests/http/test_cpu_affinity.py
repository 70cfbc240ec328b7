"""`HttpServer:CpuAffinity`: all threads of a worker run on chosen cores."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux keeps processes on cores")

SQL = """
create function one() returns int language sql stable as 'select 1';
comment on function one() is 'HTTP GET /one';
"""


def places(service: Service) -> dict[int, set[str]]:
    """Return the cores of each worker according to /proc: all threads have the same ones if all are bound."""
    return {pid: {_allowed(thread) for thread in Path(f"/proc/{pid}/task").iterdir()} for pid in service.pids()}


def _allowed(thread: Path) -> str:
    match = re.search(r"Cpus_allowed_list:\s*(\S+)", (thread / "status").read_text())
    assert match is not None
    return match[1]


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores are needed")
def test_workers_and_their_replacements_are_pinned_to_cores(database: Database, serve_once: Serve) -> None:
    """As many workers as cores are listed, unless a number is configured."""
    first, second = map(str, cores()[:2])
    service = serve_once(database, SQL, {"HttpServer:CpuAffinity": f"{first},{second}", "HttpServer:Workers": None})
    expected = [{first}, {second}]
    assert service.get("/one").text == "1"
    assert sorted(places(service).values(), key=str) == expected
    killed = service.pids()[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(service.pids()) == 2 and killed not in service.pids(), "the worker is replaced", 20)
    wait_until(lambda: sorted(places(service).values(), key=str) == expected, "on the same core")


def test_core_sets_are_reused_if_there_are_more_workers(database: Database, serve_once: Serve) -> None:
    first, last = cores()[0], cores()[-1]
    whole = f"{first}-{last}" if first != last else str(first)
    service = serve_once(database, "", {"HttpServer:CpuAffinity": f"{first};{whole}"}, workers=3)
    wait_until(lambda: len(service.pids()) == 3, "three workers run")
    assert sorted(str(place) for item in places(service).values() for place in item) == sorted(
        [str(first), str(first), _allowed(Path("/proc/self"))]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-", "HttpServer:CpuAffinity: '0-' is neither a core such as 6 nor a range such as 0-3; 0-3,6"),
        ("4000", "HttpServer:CpuAffinity: there is no core 4000 for this process; it may use "),
    ],
)
def test_unavailable_cores_stop_the_start(tmp_path: Path, database: Database, text: str, message: str) -> None:
    settings = {"ConnectionStrings:Default": database.conninfo, "HttpServer:CpuAffinity": text}
    service = Service(tmp_path, settings)
    assert service.process.wait(60) == 1
    assert message in service.log
    service.client.close()
