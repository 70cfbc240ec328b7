"""Broken, hostile and interrupted uploads get a clear response, and leave nothing behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from rowcall.core.uploads.names import RESERVED
from tests.harness.database import Database, create_database
from tests.harness.expect import problem
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SCHEMA = """
create table line (number int, cells text[]);
create function up(_meta json) returns json language sql as 'select _meta';
comment on function up(json) is 'HTTP POST
upload for file_system, csv
param _meta is upload metadata
unique_name = false
check_format = false
row_command = insert into line values ($1, $2)';
create function up_files(_meta json) returns json language sql as 'select _meta';
comment on function up_files(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false';
create function up_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_rows(json) is 'HTTP POST
upload for csv
param _meta is upload metadata
check_format = false
row_command = insert into line values ($1, $2)';
create function up_slow_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_slow_rows(json) is 'HTTP POST
upload for file_system, csv
param _meta is upload metadata
unique_name = false
row_command = select pg_sleep(600)';
create function held(_number int, _cells text[]) returns void language plpgsql as $$ begin
    insert into line values (_number, _cells);
    perform pg_advisory_xact_lock_shared(4712);
end $$;
create function up_held_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_held_rows(json) is 'HTTP POST
upload for file_system, large_object, csv
param _meta is upload metadata
unique_name = false
row_command = select held($1, $2)';
create function up_held(_meta json) returns void language sql as $$ select held(1, array[_meta::text]) $$;
comment on function up_held(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false';
create function up_slow(_meta json) returns json language sql as 'select _meta from pg_sleep(600)';
comment on function up_slow(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false';
create function up_resumable(_meta json) returns json language sql as 'select _meta';
comment on function up_resumable(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
resumable';
create function ready() returns int language sql stable as 'select 1';
comment on function ready() is 'HTTP GET';
"""

HEAD = b"POST /api/%b HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\n"
PART = b'--b\r\ncontent-disposition: form-data; name="f"; filename="%b"\r\ncontent-type: text/csv\r\n\r\n'
MULTIPART = {"content-type": "multipart/form-data; boundary=b"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


def settings(folder: Path) -> dict[str, str]:
    return {
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(folder),
        "ConnectionSettings:Pool:SlowClientTimeout": "2s",
        "ConnectionSettings:Pool:ExclusiveConnections": "3",
    }


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, SCHEMA, settings(folder), workers=2)


def nothing_stays(database: Database, folder: Path) -> bool:
    return (not folder.exists() or list(folder.iterdir()) == []) and database.value("select count(*) from line") == 0


def no_connection_is_lost(service: Service, database: Database) -> None:
    """All of them can be had again, and none is in a transaction."""
    wait_until(lambda: not database.backends("state like 'idle in%'"), "no transaction stays open")
    for _ in range(8):
        response = service.post("/api/up-rows", files={"f": ("x.csv", b"", "text/csv")})
        assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"--b--", 200),
        (b"no boundary in here", 400),
        (PART % b"x" + b"1,2\n", 400),
        (PART % b"x" + b"1,2\n\r\n--b", 400),
        (b"--b\r\nno header\r\n\r\nx\r\n--b--", 400),
        (b"--b\r\ncontent-disposition: form-data; name=f; filename=" + b"x" * 5000 + b"\r\n\r\n\r\n--b--", 400),
        (b"--b\r\n" + b"x: y\r\n" * 50 + b"\r\n\r\n--b--", 400),
        (b"--b\r\n\r\nno headers at all\r\n--b--", 200),
        (b"--b\r\ncontent-disposition: attachment; filename=x\r\n\r\nno field\r\n--b--", 200),
        (b"--b\r\ncontent-type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n--b--", 200),
        ((PART % b"x" + b"\r\n") * 1025 + b"--b--", 400),
    ],
    ids=str,
)
def test_malformed_forms_store_nothing(
    service: Service, database: Database, folder: Path, body: bytes, status: int
) -> None:
    response = service.post("/api/up", content=body, headers=MULTIPART)
    assert response.status_code == status, response.text
    if status == 200:
        assert response.json() == []
    assert nothing_stays(database, folder)


def test_an_overlong_boundary_is_refused(service: Service) -> None:
    headers = {"content-type": f"multipart/form-data; boundary={'b' * 300}"}
    problem(service.post("/api/up", content=b"x", headers=headers), 400)


def test_a_nul_in_a_csv_file_is_an_error(service: Service, database: Database, folder: Path) -> None:
    response = problem(service.post("/api/up", files={"f": ("x.csv", b"a\nb\0c\n", "text/csv")}), 500)
    assert "line 2" in response["detail"]
    assert nothing_stays(database, folder)


def test_an_overlong_csv_line_is_refused(service: Service, database: Database, folder: Path) -> None:
    response = problem(service.post("/api/up-rows", files={"f": ("x.csv", b"a" * 17_000_000, "text/csv")}), 500)
    assert "line 1" in response["detail"]
    assert nothing_stays(database, folder)


def test_a_client_that_disconnects_during_an_upload_leaves_nothing(
    service: Service, database: Database, folder: Path
) -> None:
    with service.connect() as connection:
        connection.sendall(HEAD % b"up-files" + b"content-length: 1000000\r\n\r\n" + PART % b"cut.csv" + b"x" * 300_000)
        wait_until(lambda: list(folder.iterdir()), "the file is being written")
    wait_until(lambda: nothing_stays(database, folder), "nothing stays")
    with service.connect() as connection:
        rows = b"1,2\n" * 100_000
        connection.sendall(HEAD % b"up-rows" + b"content-length: 9000000\r\n\r\n" + PART % b"cut.csv" + rows)
        wait_until(lambda: database.backends("state like 'idle in%'"), "rows are being inserted")
    no_connection_is_lost(service, database)
    assert nothing_stays(database, folder)


@pytest.mark.slow
def test_a_client_that_stops_sending_gets_408(service: Service, database: Database, folder: Path) -> None:
    head = HEAD % b"up-files" + b"content-length: 1000\r\n\r\n" + PART % b"silent.csv"
    response = service.raw(head)
    assert response is not None
    assert response.status == 408
    assert nothing_stays(database, folder)


def test_a_service_that_stops_during_an_upload_leaves_nothing(
    service: Service, database: Database, folder: Path
) -> None:
    with service.connect() as connection:
        body = PART % b"x.csv" + b"1\n2\n\r\n--b--\r\n"
        connection.sendall(HEAD % b"up-slow-rows" + b"content-length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: database.backends("query like '%pg_sleep%' and state = 'active'"), "the command runs")
        database.terminate("query like '%pg_sleep%' and state = 'active'")
        response = connection.recv(65_536)
    assert response.startswith(b"HTTP/1.1 503")
    wait_until(lambda: nothing_stays(database, folder), "nothing stays")
    no_connection_is_lost(service, database)


def test_a_read_only_folder_is_an_error(service: Service, folder: Path) -> None:
    (folder / "x").mkdir()
    response = problem(service.post("/api/up-files", files={"f": ("x", b"1", "text/plain")}), 500)
    assert "cannot be stored" in response["detail"]
    (folder / "x").rmdir()
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("service")  # its schema
def test_a_folder_that_cannot_be_created_is_an_error(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", settings(Path("/proc/rowcall")))
    problem(service.post("/api/up-files", files={"f": ("x", b"1", "text/plain")}), 500)


@pytest.mark.usefixtures("service")  # its schema
def test_files_of_a_killed_worker_are_removed(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("before")
    service = serve_once(database, "", settings(tmp_path), workers=2)
    # Both names twice: the second file of a name replaces the first one of the same request.
    parts = [PART % b"old.csv" + b"1\r\n", PART % b"new.csv" + b"2\r\n"] * 2
    body = b"".join(parts) + b"--b--\r\n"
    with service.connect() as connection:
        connection.sendall(HEAD % b"up-slow" + b"content-length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: (tmp_path / "new.csv").exists(), "the files have their names")
        wait_until(lambda: database.backends("query like '%up_slow%' and state = 'active'"), "the routine runs")
        for pid in service.pids():
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: names(tmp_path) == ["old.csv"], "what was there before is there again")
    assert (tmp_path / "old.csv").read_text() == "before"
    database.terminate("query like '%up_slow%'")


@pytest.mark.slow
@pytest.mark.usefixtures("service")  # its schema
def test_a_locked_orphaned_file_is_checked_again_later(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    """A killed process may still hold its lock when the next service starts."""
    hidden = tmp_path / f"{RESERVED}mine"
    hidden.mkdir()
    (hidden / "1").write_text("half of it")
    os.link(hidden / "1", tmp_path / "x.csv")
    lock = os.open(hidden, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        serve_once(database, "", settings(tmp_path))
        assert names(tmp_path) == [hidden.name, "x.csv"]
    finally:
        os.close(lock)
    wait_until(lambda: names(tmp_path) == [], "it is removed")


@contextmanager
def during_three_uploads(service: Service, database: Database, folder: Path) -> Iterator[None]:
    """Three uploads: of one half has arrived, one is at its rows, one in its routine, behind a file of that name."""
    (folder / "old.csv").write_text("before")
    whole = PART % b"old.csv" + b"1\r\n" + PART % b"new.csv" + b"2\r\n--b--\r\n"
    rows = PART % b"rows.csv" + b"1\n2\n\r\n--b--\r\n"
    half = PART % b"cut.csv" + b"x" * 300_000
    with database.locked(4712), contextlib.ExitStack() as opened:
        sent = ((b"up-held", whole, len(whole)), (b"up-held-rows", rows, len(rows)), (b"up-files", half, 1_000_000))
        for path, body, length in sent:
            connection = opened.enter_context(service.connect())
            connection.sendall(HEAD % path + b"content-length: %d\r\n\r\n" % length + body)
        wait_until(lambda: (folder / "new.csv").exists() and (folder / "rows.csv").exists(), "files have their names")
        wait_until(lambda: len(database.waiting()) == 2, "the routine and a row command run")
        # Those of three requests, hidden.
        wait_until(lambda: len([name for name in names(folder) if name.startswith(".")]) == 3, "the third one writes")
        yield


def nothing_has_stayed(database: Database, folder: Path) -> None:
    assert (folder / "old.csv").read_text() == "before"
    assert database.value("select count(*) from line") == 0
    assert database.value("select count(*) from pg_largeobject_metadata") == 0


def test_files_of_a_killed_service_are_settled_at_the_next_start(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    service = serve_once(own_database, SCHEMA, settings(tmp_path), workers=2)
    with during_three_uploads(service, own_database, tmp_path):
        kill_all(service)
    assert (tmp_path / "old.csv").read_text() != "before"
    # What its requests have begun in the database comes to its end without them.
    wait_until(lambda: not own_database.backends(), "the sessions have ended")
    serve_once(own_database, "", settings(tmp_path), workers=2)
    wait_until(lambda: names(tmp_path) == ["old.csv"], "what was there before is there again")
    nothing_has_stayed(own_database, tmp_path)


@pytest.mark.slow
def test_files_and_rows_agree_after_the_host_fails(
    own_postgres: PostgresServer, serve_once: Serve, tmp_path: Path
) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SCHEMA, settings(tmp_path), workers=2)
    postmaster = psutil.Process(own_postgres.pid)
    with contextlib.suppress(psycopg.Error), during_three_uploads(service, database, tmp_path):
        kill_all(service)
        for process in (postmaster, *postmaster.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # a session ends by itself once its client is gone
                process.kill()
    wait_until(lambda: not alive(postmaster), "PostgreSQL is gone")
    # A process whose exit status has not been read keeps its id, and the next server would take it for a live one.
    for lock in (own_postgres.data / "postmaster.pid", *own_postgres.folder.glob(".s.PGSQL.*.lock")):
        lock.unlink()
    own_postgres.start()
    serve_once(database, "", settings(tmp_path), workers=2)
    wait_until(lambda: names(tmp_path) == ["old.csv"], "what was there before is there again")
    nothing_has_stayed(database, tmp_path)


def kill_all(service: Service) -> None:
    """The supervisor first, or it would begin others."""
    processes = service.processes()
    service.signal(signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    service.process.wait()
    wait_until(lambda: not any(map(alive, processes)), "all of them are gone")


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_chunked_body_is_accepted(service: Service, folder: Path) -> None:
    def chunks() -> object:
        yield PART % b"a.csv"
        for _ in range(50):
            yield b"1,2\n" * 10_000
        yield b"\r\n--b--\r\n"

    response = service.post("/api/up-files", content=chunks(), headers=MULTIPART)
    (entry,) = response.json()
    assert entry["size"] == 2_000_000
    assert (folder / "a.csv").stat().st_size == 2_000_000
    (folder / "a.csv").unlink()


def test_an_incomplete_chunked_body_is_refused(service: Service, database: Database, folder: Path) -> None:
    with service.connect() as connection:
        body = PART % b"x.csv" + b"1\r\n--b--\r\n"
        connection.sendall(HEAD % b"up-files" + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % len(body) + body)
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: connection.recv(1024) is not None, "it answers or closes")
    wait_until(lambda: nothing_stays(database, folder), "nothing stays")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system needs root and CAP_SYS_ADMIN")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.usefixtures("service")  # its schema
def test_a_full_disk_is_507(database: Database, serve_once: Serve, small_disk: Path) -> None:
    files, parts = small_disk / "files", small_disk / "parts"
    chosen = {**settings(files), "Service:UploadOptions:Resumable:Path": str(parts)}
    service = serve_once(database, "", chosen)
    large = ("large.csv", b"1,2\n" * 500_000, "text/csv")
    for path in ("up-files", "up"):
        response = problem(service.post(f"/api/{path}", files={"f": large}), 507)
        assert "No space left on device" in response["detail"]
        assert nothing_stays(database, files)
    tus = {"tus-resumable": "1.0.0"}
    problem(service.post("/api/up-resumable", headers={**tus, "upload-length": "2000000"}), 507)
    created = service.post("/api/up-resumable", headers={**tus, "upload-defer-length": "1"})
    url = created.request.url.join(created.headers["location"])
    piece = {**tus, "content-type": "application/offset+octet-stream", "upload-offset": "0"}
    problem(service.client.patch(url, headers=piece, content=b"x" * 2_000_000), 507)
    offset = int(service.client.head(url, headers=tus).headers["upload-offset"])
    assert offset == next(path.stat().st_size for path in parts.iterdir() if path.suffix == ".bytes")
    assert service.client.delete(url, headers=tus).status_code == 204
    small = ("small.csv", b"1,2\n", "text/csv")
    assert service.post("/api/up-files", files={"f": small}).status_code == 200
    no_connection_is_lost(service, database)


@pytest.mark.usefixtures("service")  # its schema
def test_a_file_size_limit_of_the_process_is_507(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    """Also where a file only waits for its handlers: the disk of the host."""
    service = serve_once(database, "", settings(tmp_path / "files"))
    for pid in service.pids():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    large = ("large.csv", b"1,2\n" * 500_000, "text/csv")
    for path in ("up-files", "up"):
        assert "File too large" in problem(service.post(f"/api/{path}", files={"f": large}), 507)["detail"]
    assert nothing_stays(database, tmp_path / "files")
    no_connection_is_lost(service, database)
