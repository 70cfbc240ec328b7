"""Files that cannot be served: what is said about them, where they are wrong, and what becomes of the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

BROKEN: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "column.sql": (
        "-- HTTP GET\n\nselect 1,\n  nothing, :n from pg_class",
        (":4:3: error 42703: column", "at line 4, column 3:", "  nothing, :n from pg_class\n  ^"),
    ),
    "later.sql": ("-- HTTP GET\nselect :a;\nselect\n :b,\n :a::wrong", (":5:6: error 42704",)),
    "syntax.sql": ("-- HTTP GET\r\nselect from where\r\n", (":2:13: error 42601",)),
    "undetermined.sql": ("-- HTTP GET\nselect 1 where $1 is null", ("error 42P18",)),
    "mixed.sql": ("-- HTTP GET\nselect $1, :a", (":2:12: a file has either $1 or :a, not both",)),
    "pseudo.sql": ("-- HTTP GET\n-- @returns anyelement\nselect 1", (":2:4: returns: 'anyelement' is no type",)),
    "returns.sql": ("-- HTTP GET\n-- @returns wonders\nselect 1", (":2:4: returns: 'wonders' is no type",)),
    "unclosed.sql": ("-- HTTP GET\nselect 'x", (":2:8: error 42601: unterminated quoted string",)),
    "comment.sql": ("-- HTTP GET\nselect 1 /* and so on", (":2:10: error 42601: unterminated /* comment",)),
    "copies.sql": ("-- HTTP POST\nselect 1; copy pg_class\n to stdout", (":2:11: COPY FROM STDIN and COPY TO STDOUT",)),
    "binary.sql": (b"-- HTTP GET\nselect \x00\x01\xff", (":2: it is no text: it holds a NUL byte",)),
    "latin.sql": ("-- HTTP GET\n-- Gr\xfc\xdfe\nselect 1".encode("latin-1"), (":2: it is not valid UTF-8",)),
    "wide.sql": ("-- HTTP GET\nselect 1".encode("utf-16"), (": it is UTF-16; save it as UTF-8",)),
}


NOT_EXPOSED = {
    "no_http.sql": "select 1 as n;\n-- Lists.\n/* GET /no-http */",
    "no_statement.sql": "-- HTTP GET /no-statement\n-- select 1\n",
    "prose.sql": "-- Get the user from /etc\nselect 1",
    "remark.sql": "-- HTTP GET\n-- GET /remark\nselect 1 as n, 2 as m",
    "misspelt.sql": "-- HTTP GET\n-- @parm :id is ident int default 5\nselect :id::int as n, 2 as m",
}
"""Files of which no endpoint is made, or another one than was meant, without an error."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("broken")
    outside = write_files(base / "outside", {"secret.sql": "-- HTTP GET\nselect 'secret' as word"})
    folder = write_files(base / "sql", {name: text for name, (text, _) in BROKEN.items()})
    write_files(
        folder,
        {
            "good.sql": "-- HTTP GET\nselect 1 as n, 2 as m",
            "virtual.sql": "-- HTTP GET\n-- define_param page itn\n-- define_param at timestamp with time zone\n"
            "-- define_param n int default 1\nselect 1 as n, 2 as m",
            "semicolon.sql": "-- HTTP GET\n-- param $1 id ;\nselect $1::int as n, 2 as m",
            "inner/linked.txt": "-- HTTP GET\nselect 'inside' as word",
            "quiet.sql": b"\xff\xfe\x00 not annotated",
        },
    )
    write_files(folder, NOT_EXPOSED)
    os.symlink(outside / "secret.sql", folder / "leads_out.sql")
    os.symlink(outside, folder / "folder")
    os.symlink("inner/linked.txt", folder / "stays.sql")
    os.symlink("nowhere.sql", folder / "dangling.sql")
    os.symlink("self_link.sql", folder / "self_link.sql")
    os.mkfifo(folder / "pipe.sql")
    (folder / "folder.sql").mkdir()
    return folder


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, "", file_settings(folder, ErrorMode="Skip"))


@pytest.mark.parametrize("name", BROKEN)
def test_errors_in_files_are_logged_with_their_place(service: Service, folder: Path, name: str) -> None:
    _, messages = BROKEN[name]
    for message in messages:
        expected = f"{folder / name}{message}" if message.startswith(":") else message
        assert expected in service.log


@pytest.mark.parametrize(
    "name", [*BROKEN, "secret.sql", "leads_out.sql", "dangling.sql", "self_link.sql", "pipe.sql", "folder.sql"]
)
def test_a_broken_file_is_not_served(service: Service, name: str) -> None:
    problem(service.get(f"/api/{name.removesuffix('.sql').replace('_', '-')}"), 404)


def test_valid_files_beside_broken_ones_are_served(service: Service) -> None:
    assert service.get("/api/good").text == '[{"n":1,"m":2}]'


def test_a_semicolon_in_a_parameter_line_is_not_a_type(service: Service) -> None:
    assert service.get("/api/semicolon?id=1").json() == [{"n": 1, "m": 2}]


def test_types_of_virtual_parameters_are_checked(service: Service, folder: Path) -> None:
    place = f"{folder}/virtual.sql: "
    assert f"{place}'define_param page itn': 'itn' is no type, so the parameter is text" in service.log
    assert f"{place}'define_param n int default 1': what follows the type int is ignored" in service.log
    assert "with time zone" not in service.log
    assert service.get("/api/virtual?page=x&at=2026-01-02&n=1").json() == [{"n": 1, "m": 2}]
    assert (
        "(timestamp with time zone): 'x' is not a timestamp" in problem(service.get("/api/virtual?at=x"), 400)["detail"]
    )


def test_links_within_the_folder_are_followed(service: Service, folder: Path) -> None:
    assert service.get("/api/stays").text == '["inside"]'
    assert f"{folder}/leads_out.sql: a link that leads out of the folder {folder} is not followed" in service.log


def test_a_link_to_itself_is_an_error_of_its_file(service: Service, folder: Path) -> None:
    assert f"{folder}/self_link.sql: it cannot be read: Too many levels of symbolic links" in service.log


def test_files_without_annotation_are_not_reported(service: Service) -> None:
    assert "quiet.sql" not in service.log


def test_files_that_are_not_exposed_by_mistake_are_warnings(service: Service, folder: Path) -> None:
    line = f"{folder}/no_http.sql: line 3: no endpoint is made of it, as HTTP is missing; write `HTTP GET /no-http`"
    assert line in service.log
    assert f"{folder}/no_statement.sql: the file has no statement, so no endpoint is made of it" in service.log
    left_out = next(line for line in service.log.splitlines() if "rowcall --endpoints lists why" in line)
    assert f"{folder}/no_http.sql" in left_out
    assert f"{folder}/no_statement.sql" in left_out
    assert "prose.sql" not in service.log
    assert "remark.sql" not in service.log


def test_a_misspelt_parameter_line_of_a_file_is_a_warning_and_no_header(service: Service, folder: Path) -> None:
    assert (
        f"{folder}/misspelt.sql: 'parm' is no annotation and is taken for prose; did you mean 'param'?" in service.log
    )
    got = service.get("/api/misspelt?id=7")
    assert (got.text, "parm" in got.headers) == ('[{"n":7,"m":2}]', False)


def test_by_default_a_broken_file_stops_the_start(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "sql", {"broken.sql": "-- HTTP GET\nselect nothing"})
    with pytest.raises(AssertionError) as failure:
        serve_once(database, "", file_settings(folder))
    text = str(failure.value)
    assert "rowcall ended with 1 at start" in text
    assert f"{folder}/broken.sql:2:8: error 42703" in text
    assert "with Skip, broken files are left out" in text


def test_a_pattern_that_finds_nothing_is_a_warning(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    pattern = f"{tmp_path}/none/*.sql"
    service = serve_once(database, "", {"Service:SqlFileSource:FilePattern": pattern})
    service.wait_for_log(f"no file fits the pattern {pattern}")


def test_one_file_may_be_named_exactly(database: Database, serve_once: Serve, tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"one.test.sql": "-- HTTP GET\nselect 1 as n", "two.sql": "-- HTTP GET\nselect 2"})
    service = serve_once(database, "", {"Service:SqlFileSource:FilePattern": f"{folder}/one.test.sql"})
    assert service.get("/api/one.test").text == "[1]"
    problem(service.get("/api/two"), 404)


@pytest.mark.slow
def test_endpoints_of_files_are_listed_with_their_file(database: Database, tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"one.sql": "-- HTTP GET\n-- @param $1 n int\nselect $1 as n, now() as at"})
    arguments = {"ConnectionStrings:Default": database.conninfo, **file_settings(folder)}
    command = [sys.executable, "-m", "rowcall.service.cli", "--endpoints"]
    command += [f"--{key}={value}" for key, value in arguments.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    (endpoint,) = json.loads(done.stdout)
    assert endpoint["routine"]["type"] == "SqlFile"
    assert endpoint["routine"]["definition"] == f"SQL file: {folder}/one.sql"
    assert [parameter["name"] for parameter in endpoint["parameters"]] == ["n"]
    assert [column["type"] for column in endpoint["returnColumns"]] == ["integer", "timestamp with time zone"]
