"""What a start says, and what it shows on a terminal (logging-6, logging-7, operations-1)."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.launcher import service_environment
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function one() returns int language sql stable as 'select 1';
create function two() returns int language sql stable as 'select 1';
create procedure three() language sql as 'select 1';
comment on function one() is 'HTTP';
comment on function two() is 'HTTP';
comment on procedure three() is 'HTTP';
"""


def test_the_start_log_names_endpoints_workers_and_address(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    service.wait_for_log("Started in")
    lines = [line.partition("] ")[2] for line in service.log.splitlines()]
    assert "3 endpoints of 2 functions and 1 procedure, 2 workers [rowcall]" in lines
    started = rf"Started in 00:00:\d\d\.\d{{7}}, listening on {service.url}, version {version('rowcall')}"
    assert [line for line in lines if re.fullmatch(rf"{started} \[rowcall\.client\]", line)]


def test_the_startup_message_can_be_configured(own_database: Database, serve_once: Serve) -> None:
    message = "{application} ({environment}) is up, {unknown} {{x}}"
    settings = {"StartupMessage": message, "ApplicationName": "shop", "EnvironmentName": "Test"}
    service = serve_once(own_database, settings=settings)
    assert service.wait_for_log("is up").endswith("] shop (Test) is up, {unknown} {{x}} [shop]")
    service.wait_for_log("0 endpoints, 1 worker [rowcall]")


def test_an_empty_startup_message_is_not_logged(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, settings={"StartupMessage": ""})
    service.wait_for_log("0 endpoints, 1 worker")
    assert len([line for line in service.log.splitlines() if line.endswith("[rowcall.client]")]) == 1


@pytest.mark.parametrize("locked", ["pg_catalog.pg_description", "shelf"], ids=["catalogue", "files"])
def test_a_signal_stops_the_service_while_it_reads_the_catalogue(
    own_database: Database, tmp_path: Path, locked: str
) -> None:
    """The database responds neither to the running query nor to those that wait behind it."""
    own_database.execute("create table shelf (id int)")
    files = write_files(tmp_path / "sql", {f"{n}.sql": f"-- HTTP GET\nselect id + {n} from shelf" for n in range(5)})
    with psycopg.connect(own_database.conninfo) as connection:
        connection.execute(f"lock table {locked} in access exclusive mode")
        settings = {"ConnectionStrings:Default": own_database.conninfo, **file_settings(files)}
        service = Service(tmp_path / "service", settings)
        wait_until(lambda: own_database.backends("wait_event_type = 'Lock'"), "the reading waits", 30)
        assert service.stop() == 0
    service.check_log()
    assert "cannot read the database" not in service.log


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, folder: Path, database: Database) -> None:
        ours, theirs = pty.openpty()
        settings = {"ConnectionStrings:Default": database.conninfo, "Urls": f"http://127.0.0.1:{free_port()}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rowcall.service.cli", *(f"--{key}={value}" for key, value in settings.items())],
            cwd=folder,
            env={**service_environment(), "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""
        self._reader = threading.Thread(target=self._read, args=(ours,))
        self._reader.start()

    def _read(self, terminal: int) -> None:
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # Linux reports this when the other end is closed
                break
            if not data:
                break
            self.shown += data.decode(errors="replace")
        os.close(terminal)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(30)
        self._reader.join()
        return status


@contextmanager
def terminal(folder: Path, database: Database) -> Iterator[Terminal]:
    opened = Terminal(folder, database)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.end()


@pytest.mark.slow
def test_a_long_start_shows_progress_in_a_terminal(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(SQL)
    with psycopg.connect(own_database.conninfo, autocommit=True) as blocker:
        blocker.execute("begin")
        # No session can read comments meanwhile, so the start takes as long as this test wants.
        blocker.execute("lock table pg_catalog.pg_description in access exclusive mode")
        with terminal(tmp_path, own_database) as shown:
            wait_until(lambda: "reading the catalogue" in shown.shown, "the progress is shown", 30)
            assert "Started in" not in shown.shown
            blocker.execute("rollback")
            wait_until(lambda: "Started in" in shown.shown, "the start ends", 30)
            assert shown.end() == 0
    after = shown.shown.rpartition("reading the catalogue")[2]
    assert "\x1b[2K" in after, "the display is not taken away"
    assert "\x1b[32mINF\x1b[0m] Started in" in after
    assert "stopped" in after


@pytest.mark.slow
def test_unread_output_delays_neither_requests_nor_shutdown(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(SQL)
    port = free_port()
    settings = {
        "ConnectionStrings:Default": own_database.conninfo,
        "Urls": f"http://127.0.0.1:{port}",
        "Service:RequiresAuthorization": "false",
        "HttpServer:Workers": "1",
    }
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "rowcall.service.cli", *(f"--{key}={value}" for key, value in settings.items())],
        cwd=tmp_path,
        env=service_environment(),
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(writing)
    try:
        wait_until(lambda: is_reachable(port), "the service answers", 30)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            # More than a pipe holds.
            assert {client.get("/api/one").text for _ in range(1500)} == {"1"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(reading)


def is_reachable(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", trust_env=False, timeout=60)
    except httpx.TransportError:
        return False
    return True
