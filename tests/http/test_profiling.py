"""Profiles of workers that go on serving."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.load import Load
from tests.harness.metrics import admin_of
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create or replace function many() returns table (n int) language sql stable as $$ select generate_series(1, 7) $$;
comment on function many() is 'HTTP GET /many';
"""
PY_SPY = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
ADMIN = {"Admin:Url": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, SQL, {**ADMIN, "Profiling:Sampler": "BuiltIn", "Profiling:Folder": str(folder)}, workers=2)


@pytest.fixture(scope="module")
def admin(service: Service) -> Iterator[httpx.Client]:
    with admin_of(service) as client:
        yield client


def create_profiles(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    response = client.post(f"/profile?{query}", timeout=120)
    assert response.status_code == 200, response.text
    profiles: list[dict[str, Any]] = response.json()["profiles"]
    return profiles


def stacks(file: str) -> list[str]:
    """Each is a line of the collapsed form; the file is for its owner alone."""
    path = Path(file)
    assert path.stat().st_mode & 0o777 == 0o600
    lines = path.read_text().splitlines()
    assert lines
    assert all(re.fullmatch(r".* \d+", line) for line in lines), lines[:3]
    return lines


@pytest.mark.slow
def test_all_workers_are_profiled_while_they_serve(service: Service, admin: httpx.Client) -> None:
    with Load(service.port, lambda _number: ("GET", "/many", b"")) as load:
        profiles = create_profiles(admin, "seconds=1")
        load.wait_for(10)
    assert load.statuses().keys() == {200}
    assert [(item["worker"], item["by"]) for item in profiles] == [(0, "itself"), (1, "itself")]
    assert {item["pid"] for item in profiles} == set(service.pids())
    for item in profiles:
        assert any("rowcall.service.worker.worker:main" in line for line in stacks(item["file"]))


def test_one_worker_is_profiled_if_requested(admin: httpx.Client) -> None:
    assert [item["worker"] for item in create_profiles(admin, "seconds=0.1&worker=1")] == [1]


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("worker=7", 404, "there is no worker 7; there are 0, 1"),
        ("seconds=x", 400, "seconds: 'x' is no number"),
        ("seconds=1e9", 400, "seconds: between 0 and 120"),
        ("seconds=nan", 400, "seconds: between 0 and 120"),
        (f"worker={'9' * 5000}", 400, f"worker: {'9' * 50!r} is no number of a worker"),
        ("worker=nan", 400, "worker: 'nan' is no number of a worker"),
    ],
)
def test_requests_that_cannot_be_profiled_are_refused(
    admin: httpx.Client, query: str, status: int, detail: str
) -> None:
    assert problem(admin.post(f"/profile?{query}"), status)["detail"] == detail


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://elsewhere.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}],
    ids=["other", "null", "fetch metadata"],
)
def test_pages_of_other_origins_make_no_profile(admin: httpx.Client, headers: dict[str, str]) -> None:
    detail = problem(admin.post("/profile?seconds=0", headers=headers), 403)["detail"]
    assert detail == "pages of other origins cannot use the admin listener"
    own = {"origin": str(admin.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert problem(admin.post("/profile?seconds=0", headers=own), 400)


def test_a_get_request_makes_no_profile(admin: httpx.Client) -> None:
    problem(admin.get("/profile"), 405)


@pytest.mark.slow
@pytest.mark.skipif(PY_SPY is None, reason="py-spy is not installed")
def test_workers_are_profiled_with_py_spy_and_after_a_signal(
    database: Database, serve_once: Serve, folder: Path
) -> None:
    """To the supervisor for all workers, to a worker for itself, which comes while the first one is being made."""
    own = folder / "by-signal"
    service = serve_once(database, SQL, {"Profiling:Folder": str(own)}, workers=2)
    with Load(service.port, lambda _number: ("GET", "/many", b"")) as load:
        service.signal(signal.SIGUSR1)
        service.wait_for_log("profiling 2 workers for 10 s")
        os.kill(service.pids()[0], signal.SIGUSR1)
        service.wait_for_log("SIGUSR1: a profile is being made already")
        service.wait_for_log("the profile of worker 1", 90)
        load.wait_for(1)
    files = re.findall(r"the profile of worker \d \(pid \d+, (?:py-spy|itself)\) is (\S+\.collapsed)", service.log)
    assert len(files) == 2
    assert all(stacks(file) for file in files)
    assert len(service.pids()) == 2
