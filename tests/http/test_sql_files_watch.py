"""While watching, what is saved is served: on all workers, without a restart, and without losing a request."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.load import Load
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, save, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

WORKERS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"), {"steady.sql": "-- HTTP GET\nselect 1 as n, 2 as m"})


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, "", {**file_settings(folder), "Watch:Enabled": "true"}, workers=WORKERS)


def wait_until_served(service: Service, path: str, fits: Callable[[int, str], bool]) -> None:
    """Wait until several requests in a row, on separate connections, fit: every worker has the new schema snapshot."""

    def everywhere() -> bool:
        responses = [
            service.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()) for _ in range(8)
        ]
        return all(item is not None and fits(item.status, item.body.decode()) for item in responses)

    wait_until(everywhere, f"{path} is what was saved; the log says\n{service.log[-1500:]}")


@pytest.mark.slow
def test_a_saved_file_is_served_and_a_removed_one_is_not(service: Service, folder: Path) -> None:
    path = folder / "sub" / "fresh.sql"
    save(path, "-- HTTP GET\nselect 'first' as word")
    wait_until_served(service, "/api/fresh", lambda status, body: (status, body) == (200, '["first"]'))
    save(path, "-- HTTP GET\nselect 'second' as word")
    wait_until_served(service, "/api/fresh", lambda status, body: (status, body) == (200, '["second"]'))
    path.unlink()
    wait_until_served(service, "/api/fresh", lambda status, _body: status == 404)


def test_the_last_valid_version_of_a_broken_file_is_served_and_the_error_logged(service: Service, folder: Path) -> None:
    path = folder / "mended.sql"
    save(path, "-- HTTP GET\nselect 'good' as word")
    wait_until_served(service, "/api/mended", lambda status, _body: status == 200)
    save(path, "-- HTTP GET\nselect nothing")
    service.wait_for_log("its last good version is served")
    service.wait_for_log(f"{path}:2:8: error 42703")
    assert service.get("/api/mended").text == '["good"]'
    save(path, "-- HTTP GET\nselect 'mended' as word")
    wait_until_served(service, "/api/mended", lambda _status, body: body == '["mended"]')


def test_a_file_written_in_place_is_served_when_it_is_complete(service: Service, folder: Path) -> None:
    with (folder / "slow.sql").open("w") as file:
        for piece in ("-- HTTP GET\n", "select 1 as n, ", "'whole' as word"):
            file.write(piece)
            file.flush()
    wait_until_served(service, "/api/slow", lambda _status, body: "whole" in body)


@pytest.mark.slow
def test_changed_routines_are_served_too(service: Service, database: Database) -> None:
    database.execute("create function hot() returns int language sql stable as 'select 1'")
    database.execute("comment on function hot() is 'HTTP GET'")
    wait_until_served(service, "/api/hot", lambda status, body: (status, body) == (200, "1"))
    database.execute("comment on function hot() is 'HTTP GET /hotter'")
    wait_until_served(service, "/hotter", lambda status, _body: status == 200)
    database.execute("drop function hot()")
    wait_until_served(service, "/hotter", lambda status, _body: status == 404)


@pytest.mark.slow
def test_a_changed_table_changes_the_files_that_read_it(service: Service, database: Database, folder: Path) -> None:
    database.execute("create table shelf (id int); insert into shelf values (1)")
    save(folder / "shelves.sql", "-- HTTP GET\nselect * from shelf")
    wait_until_served(service, "/api/shelves", lambda _status, body: body == "[1]")
    database.execute("alter table shelf add title text")
    wait_until_served(service, "/api/shelves", lambda _status, body: body == '[{"id":1,"title":null}]')


@pytest.mark.slow
def test_no_request_is_lost_during_reloads_of_files(service: Service, folder: Path) -> None:
    with Load(service.port, lambda _number: ("GET", "/api/steady", b""), clients=4) as load:
        for number in range(5):
            save(folder / "moving.sql", f"-- HTTP GET\nselect {number} as n")
            wait_until_served(service, "/api/moving", lambda _status, body, number=number: body == f"[{number}]")  # type: ignore[misc]
        load.wait_for(20)
    assert set(load.statuses()) == {200}
    assert {outcome.body for outcome in load.outcomes} == {b'[{"n":1,"m":2}]'}


def test_a_folder_that_is_moved_in_or_out_is_detected(service: Service, folder: Path, tmp_path: Path) -> None:
    ready = write_files(tmp_path / "ready", {"in_folder.sql": "-- HTTP GET\nselect 'there' as word"})
    ready.rename(folder / "v1.2")
    wait_until_served(service, "/api/in-folder", lambda status, body: (status, body) == (200, '["there"]'))
    (folder / "v1.2").rename(tmp_path / "away")
    wait_until_served(service, "/api/in-folder", lambda status, _body: status == 404)


def test_a_folder_that_is_replaced_is_watched_again(service: Service, folder: Path, tmp_path: Path) -> None:
    fresh = write_files(tmp_path / "fresh", {"steady.sql": "-- HTTP GET\nselect 3 as n, 4 as m"})
    shutil.rmtree(folder)
    shutil.move(fresh, folder)
    wait_until_served(service, "/api/steady", lambda _status, body: body == '[{"n":3,"m":4}]')
    save(folder / "steady.sql", "-- HTTP GET\nselect 1 as n, 2 as m")
    wait_until_served(service, "/api/steady", lambda _status, body: body == '[{"n":1,"m":2}]')
