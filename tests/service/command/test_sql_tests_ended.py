"""`rowcall --test` as it is watched, and as it is ended by a signal (testing-7 to testing-15)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.command import COMMAND, clean_environment, rowcall
from tests.harness.database import Database
from tests.harness.waiting import wait_until

SQL = """
create table bed (id int primary key);
create function beds() returns setof bed language sql as $$ select * from bed $$;
comment on function beds is 'HTTP GET /beds
allow_anonymous';
"""


class Running:
    def __init__(self, process: subprocess.Popen[bytes], report: Path) -> None:
        self.process = process
        self._report = report

    @property
    def report(self) -> str:
        return self._report.read_text(encoding="utf-8")

    def says(self, text: str, times: int = 1) -> None:
        wait_until(
            lambda: self.report.count(text) >= times or self.process.poll() is not None, f"{text!r} is reported", 60
        )
        assert self.report.count(text) >= times, self.report

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def running(folder: Path, database: Database, *arguments: str) -> Iterator[Running]:
    report = folder / "report"
    settings = (
        f"--ConnectionStrings:Default={database.conninfo}",
        "--TestRunner:FilePattern=tests/**/*.test.sql",
        "--TestRunner:Teardown:0:Command=echo down >> trace",
        "--Watch:DatabasePollingInterval=200ms",
    )
    with report.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, "--test", *settings, *arguments], cwd=folder, env=clean_environment(), stdout=out, stderr=out
        )
        try:
            yield Running(process, report)
        finally:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_changed_files_run_again(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(SQL)
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "a.test.sql").write_text("select true;")
    (tests / "b.test.sql").write_text("/* GET /new */\nselect status = 200, 'new' from _response;")
    with running(tmp_path, own_database, "--watch") as run:
        run.says("watching")
        assert "1 passed, 1 failed" in run.report
        (tests / "a.test.sql").write_text("select false, 'changed';")
        run.says("0 passed, 1 failed, 0 error(s)  —  1 assertion in 1 file")
        own_database.execute(
            "create function fresh() returns int language sql as $$ select 1 $$;"
            "comment on function fresh is 'HTTP GET /new\nallow_anonymous'"
        )
        run.says("  + GET /new")
        run.says("1 passed, 1 failed", times=2)
        elsewhere = tmp_path / "elsewhere" / "deep"
        elsewhere.mkdir(parents=True)
        (elsewhere / "moved.test.sql").write_text("select true, 'moved';")
        elsewhere.parent.rename(tests / "here")
        run.says("1 passed, 0 failed, 0 error(s)  —  1 assertion in 1 file")
        assert run.end() == 0
    assert (tmp_path / "trace").read_text() == "down\n"


@pytest.mark.slow
def test_an_interrupted_run_cleans_up(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(SQL)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "hang.test.sql").write_text(
        "-- @teardown note\nbegin;\ninsert into bed values (1);\nselect pg_sleep(600);\n"
    )
    with running(tmp_path, own_database, "--TestRunner:Steps:note:Command=echo file >> trace") as run:
        wait_until(lambda: bool(own_database.backends("wait_event = 'PgSleep'")), "the test hangs", 60)
        assert run.end() == 2
    assert (tmp_path / "trace").read_text() == "file\ndown\n"
    assert own_database.fetch("select * from bed") == []
    wait_until(lambda: not own_database.backends(), "the sessions of the tests have ended")


def test_run_without_database_is_no_failed_test(tmp_path: Path) -> None:
    unreachable = "--ConnectionStrings:Default=Host=127.0.0.1;Port=1;Database=x"
    done = rowcall(tmp_path, "--test", unreachable, "--ConnectionSettings:RetryOptions:Enabled=false")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("rowcall: ")
