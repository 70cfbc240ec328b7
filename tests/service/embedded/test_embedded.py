"""A private PostgreSQL in a folder, and the demo schema on it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rowcall.service.embedded import demo
from rowcall.service.embedded.postgres import EmbeddedServer
from rowcall.service.startup_error import StartupError


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's own: as root its parents are closed to the account that PostgreSQL runs under."""
    made = Path(tempfile.mkdtemp(prefix="rowcall-embedded-"))
    yield made / "database"
    shutil.rmtree(made)


def run(server: EmbeddedServer, sql: str) -> None:
    with psycopg.connect(server.connection().conninfo()) as connection:
        connection.execute(sql.encode())


def one(server: EmbeddedServer, sql: str) -> object:
    with psycopg.connect(server.connection().conninfo()) as connection:
        row = connection.execute(sql.encode()).fetchone()
        assert row is not None
        return row[0]


@pytest.mark.slow
def test_only_the_data_directory_survives_the_server(folder: Path) -> None:
    with EmbeddedServer(folder) as server:
        run(server, "create table stored as select 7 as n")
    assert not (folder / "data" / "postmaster.pid").exists()
    assert list((folder / "socket").iterdir()) == []
    with EmbeddedServer(folder) as server:
        assert one(server, "select n from stored") == 7


@pytest.mark.slow
def test_only_a_folder_created_as_throw_away_runs_without_fsync(folder: Path) -> None:
    with EmbeddedServer(folder) as server:
        assert one(server, "show fsync") == "on"
    with EmbeddedServer(folder, throw_away=True) as server:
        assert one(server, "show fsync") == "on"
    with EmbeddedServer(folder.with_name("other"), throw_away=True) as server:
        assert one(server, "show fsync") == "off"


@pytest.mark.slow
def test_a_second_user_of_the_folder_is_refused(folder: Path) -> None:
    with (
        EmbeddedServer(folder, throw_away=True),
        pytest.raises(StartupError, match="another rowcall is using"),
        EmbeddedServer(folder),
    ):
        pass


def test_a_folder_that_cannot_be_created_is_refused(folder: Path) -> None:
    folder.touch()
    with pytest.raises(StartupError, match=r"database/inside cannot be started: .*Not a directory"):
        EmbeddedServer(folder / "inside").__enter__()


def test_an_account_that_cannot_be_created_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise KeyError(name)

    folder.mkdir()
    program = folder / "useradd"
    program.write_text("#!/bin/sh\necho 'cannot lock /etc/passwd' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwnam", unknown)
    with pytest.raises(StartupError, match=r"run rowcall as another user, .* cannot lock /etc/passwd"):
        EmbeddedServer(folder / "inside")


@pytest.mark.slow
def test_an_orphaned_server_is_taken_over(folder: Path) -> None:
    left = EmbeddedServer(folder, throw_away=True)
    left.__enter__()
    pid = one(left, "select pg_backend_pid()")
    assert left._lock is not None
    left._lock.close()
    with EmbeddedServer(folder) as server:
        assert one(server, f"select count(*) from pg_stat_activity where pid = {pid}") == 0
    assert not (folder / "data" / "postmaster.pid").exists()


@pytest.mark.slow
def test_a_path_too_long_for_a_socket_is_possible(folder: Path) -> None:
    with EmbeddedServer(folder / ("deep" * 20) / "database", throw_away=True) as server:
        assert one(server, "select 1") == 1


@pytest.mark.slow
def test_an_interrupted_creation_is_repeated(folder: Path) -> None:
    (folder / "data.new").mkdir(parents=True)
    (folder / "data.new" / "half").touch()
    with EmbeddedServer(folder, throw_away=True) as server:
        assert one(server, "select 1") == 1


@pytest.mark.slow
def test_the_demo_is_reinstalled_only_if_it_has_changed(folder: Path) -> None:
    with EmbeddedServer(folder, throw_away=True) as server:
        demo.install(server.connection())
        run(server, "delete from demo.scan")
        demo.install(server.connection())
        assert one(server, "select count(*) from demo.scan") == 0
        run(server, "comment on schema demo is 'rowcall demo of an older version'")
        demo.install(server.connection())
        assert one(server, "select count(*) from demo.scan") == 12_000


@pytest.mark.slow
def test_every_request_suggested_by_the_demo_has_an_endpoint(folder: Path) -> None:
    with EmbeddedServer(folder, throw_away=True) as server:
        demo.install(server.connection())
        comments = str(
            one(
                server,
                "select string_agg(description, E'\\n') from pg_description d where exists "
                "(select from pg_proc where oid = d.objoid and pronamespace = 'demo'::regnamespace) or exists "
                "(select from pg_class where oid = d.objoid and relnamespace = 'demo'::regnamespace)",
            )
        )
    files = Path(demo.__file__).parent.glob("files/*.sql")
    comments += "".join(file.read_text(encoding="utf-8") for file in files)
    templates = re.findall(r"HTTP \w+ (\S+)", comments)
    for command, _ in demo.EXAMPLES:
        path = command.format(base="http://host").partition("http://host")[2].split("?")[0].split(" ")[0].rstrip("'")
        known = any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) for template in templates)
        assert known or path == "/api/demo/parcel-count", path
