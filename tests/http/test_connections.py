"""`connection`, `Service:UseMultipleConnections`, discovery on several connections (discovery-4 to discovery-9,
execution-15 to execution-21)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.harness.console import operator
from tests.harness.database import Database, create_database, drop_database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.postgres import PostgresServer, free_port
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SAME = """
create schema shop;
create type shop.colour as enum ('red', 'green');
create type shop.point as (x int, y int);
create table places (name text);
create function here() returns text language sql stable as 'select current_database()::text';
create function there() returns text language sql stable as 'select current_database()::text';
create function by_key() returns text language sql stable as 'select current_database()::text';
create function by_main_name() returns text language sql stable as 'select current_database()::text';
create function by_alias() returns text language sql stable as 'select current_database()::text';
create function nowhere() returns text language sql stable as 'select current_database()::text';
create function points() returns table (p shop.point, all_points shop.point[]) language sql stable
  as $$ select (1, 2)::shop.point, array[(3, 4)::shop.point] $$;
create function remember(_name text) returns text language sql
  as 'insert into places values ($1) returning current_database()::text';
create function shop.paint(_colour shop.colour, _points shop.point[]) returns text language sql as 'select $1::text';
"""

COMMENTS = """
comment on function here() is 'HTTP';
comment on function there() is E'HTTP\\nconnection SECOND';
comment on function by_key() is E'HTTP\\n@connection_name = Second';
comment on function by_main_name() is E'HTTP\\nconnection default';
comment on function by_alias() is E'HTTP\\nconnection _default';
comment on function nowhere() is E'HTTP\\nconnection third one';
comment on function points() is E'HTTP\\nconnection second\\nnested';
comment on function remember(text) is E'HTTP POST\\nconnection second';
"""


@pytest.fixture(scope="module")
def second(postgres: PostgresServer) -> Iterator[Database]:
    """Provide another database with the same objects, which have other OIDs there."""
    made = create_database(postgres)
    made.execute("create type elsewhere as (a int); create table filler (id int, e elsewhere)")
    made.execute(SAME)
    yield made
    drop_database(made)


@pytest.fixture(scope="module")
def service(database: Database, second: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    text = "-- connection second\nselect current_database()::text as name, count(*) as count from only_here"
    folder = write_files(tmp_path_factory.mktemp("files"), {"ignored.sql": text})
    settings = {"ConnectionStrings:Second": second.conninfo, "Service:UseMultipleConnections": "true"}
    settings |= file_settings(folder, CommentsMode="Ignore")
    return serve(database, SAME + COMMENTS + "create table only_here ();", settings, workers=2)


def test_files_whose_annotations_are_ignored_stay_on_the_main_connection(service: Service, database: Database) -> None:
    assert service.get("/api/ignored").json() == [{"name": database.name, "count": 0}]


@pytest.mark.parametrize("path", ["here", "by-main-name", "by-alias"])
def test_the_main_connection_has_a_name_and_an_alias(service: Service, database: Database, path: str) -> None:
    assert answer(service.get(f"/api/{path}")) == (200, TEXT, database.name)


@pytest.mark.parametrize("path", ["there", "by-key"])
def test_connection_annotation_selects_the_database(service: Service, second: Database, path: str) -> None:
    for _ in range(40):  # long enough to have shared connections too
        assert answer(service.get(f"/api/{path}")) == (200, TEXT, second.name)


def test_side_effect_free_routines_share_connections_of_another_database(service: Service, second: Database) -> None:
    def shares() -> bool:
        assert answer(service.get("/api/there")) == (200, TEXT, second.name)
        return bool(second.backends("query like 'with rowcall_guard%\"there\"(%'"))

    wait_until(shares, "connections are shared")


def test_writes_use_the_annotated_connection(service: Service, database: Database, second: Database) -> None:
    assert answer(service.post("/api/remember", json={"name": "x"})) == (200, TEXT, second.name)
    assert second.value("select count(*) from places where name = 'x'") == 1
    assert database.value("select count(*) from places") == 0


def test_types_of_the_other_database_are_resolved_by_name(
    service: Service, database: Database, second: Database
) -> None:
    ids = "select 'shop.point'::regtype::oid"
    assert database.value(ids) != second.value(ids)
    assert service.get("/api/points").json() == [{"p": {"x": 1, "y": 2}, "allPoints": [{"x": 3, "y": 4}]}]


def test_unknown_connection_logs_a_warning_and_returns_500(service: Service) -> None:
    members = problem(service.get("/api/nowhere"), 500)
    assert members["detail"] == (
        "Connection name third one could not be found in options DataSources or ConnectionStrings dictionaries."
    )
    warning = "connection 'third one' is none of Default, Second, _default: every request is answered with 500"
    assert service.log.count(warning) == 1


def test_other_connections_need_use_multiple_connections(
    own_database: Database, second: Database, serve_once: Serve
) -> None:
    service = serve_once(own_database, SAME + COMMENTS, {"ConnectionStrings:Second": second.conninfo})
    problem(service.get("/api/there"), 500)
    assert service.get("/api/by-main-name").status_code == 200
    service.wait_for_log("'SECOND' is not used, as Service:UseMultipleConnections is false")


def test_unavailable_database_affects_only_its_own_endpoints(
    own_database: Database, second: Database, serve_once: Serve
) -> None:
    settings = {
        "ConnectionStrings:Second": f"postgresql://x@127.0.0.1:{free_port()}/gone",
        "Service:UseMultipleConnections": "true",
        "ConnectionSettings:TestConnectionStrings": "false",
        "ConnectionSettings:Pool:QueueTimeout": "100ms",
    }
    service = serve_once(own_database, SAME + COMMENTS, settings)
    problem(service.get("/api/there"), 503)
    assert answer(service.get("/api/here")) == (200, TEXT, own_database.name)


def fails_to_start(folder: Path, database: Database, **settings: str) -> str:
    """Return the output of the service that ends with 1."""
    service = Service(folder, {"ConnectionStrings:Default": database.conninfo, **settings})
    try:
        assert service.process.wait(30) == 1
    except subprocess.TimeoutExpired:
        service.signal(signal.SIGKILL)
        raise
    return service.log


def test_every_connection_is_tested_at_the_start(own_database: Database, tmp_path: Path) -> None:
    log = fails_to_start(
        tmp_path,
        own_database,
        **{
            "ConnectionStrings:Second": f"postgresql://x@127.0.0.1:{free_port()}/gone",
            "Service:UseMultipleConnections": "true",
            "ConnectionSettings:RetryOptions:RetrySequenceSeconds:0": "0",
        },
    )
    assert "attempt 1: cannot open the connection second, again in 0 s" in log
    assert "cannot open the connection second after 2 attempts" in log


@pytest.mark.parametrize(
    "refused", [{"dbname": "no_such_database"}, {"user": "no_such_role"}, {"options": "-c no_such_setting=1"}]
)
def test_permanent_connection_errors_are_not_retried(
    own_database: Database, tmp_path: Path, refused: dict[str, str]
) -> None:
    log = fails_to_start(
        tmp_path,
        own_database,
        **{
            "ConnectionStrings:Second": make_conninfo(own_database.conninfo, **refused),
            "Service:UseMultipleConnections": "true",
        },
    )
    assert "attempt 1" not in log
    assert "cannot open the connection second:" in log


@pytest.mark.parametrize(
    "key", ["ConnectionSettings:MetadataQueryConnectionName", "Service:RoutineOptions:ReadMetadataFromConnections:0"]
)
def test_unknown_metadata_connection_stops_the_start(own_database: Database, tmp_path: Path, key: str) -> None:
    log = fails_to_start(tmp_path, own_database, **{key: "nowhere"})
    assert f"{key.removesuffix(':0')} names 'nowhere', but ConnectionStrings has Default" in log


def test_metadata_can_be_read_from_another_connection(
    own_database: Database, second: Database, serve_once: Serve
) -> None:
    """Routines still run on the main connection; comments on it are ignored."""
    own_database.execute(SAME)
    second.execute("comment on function here() is E'HTTP'; comment on function points() is E'HTTP\\nnested'")
    settings = {
        "ConnectionStrings:Second": second.conninfo,
        "ConnectionSettings:MetadataQueryConnectionName": "second",
    }
    service = serve_once(own_database, "", settings)
    assert answer(service.get("/api/here")) == (200, TEXT, own_database.name)
    assert service.get("/api/points").json() == [{"p": {"x": 1, "y": 2}, "allPoints": [{"x": 3, "y": 4}]}]


EACH = {"Service:RoutineOptions:ReadMetadataFromConnections:0": "default"}
BOTH = EACH | {"Service:RoutineOptions:ReadMetadataFromConnections:1": "second"}


@pytest.fixture
def other(postgres: PostgresServer) -> Iterator[Database]:
    made = create_database(postgres)
    yield made
    drop_database(made)


@pytest.mark.slow
def test_routines_run_on_the_connection_of_their_discovery(
    own_database: Database, other: Database, serve_once: Serve, tmp_path: Path
) -> None:
    other.execute(
        "create type pair as (a int, b int); create function of_other() returns pair language sql stable as "
        "'select (1, 2)::pair'; comment on function of_other() is 'HTTP';"
        "create function common(_a int) returns text language sql stable as 'select current_database()::text';"
        "comment on function common(int) is 'HTTP';"
        "create function sent_home() returns text language sql stable as 'select null::text /* there */';"
        "comment on function sent_home() is E'HTTP\\nconnection default'"
    )
    sql = (
        "create function of_main() returns text language sql stable as 'select current_database()::text';"
        "comment on function of_main() is 'HTTP';"
        "create function common(_b int) returns text language sql stable as 'select current_database()::text';"
        "comment on function common(int) is 'HTTP';"
        "create function sent_home() returns text language sql stable as 'select current_database()::text';"
    )
    clients = {"Enabled": "true", "FilePath": str(tmp_path / "{0}.ts"), "CommentHeader": "Full"}
    settings = BOTH | {f"Service:ClientCodeGen:{key}": value for key, value in clients.items()}
    token = "an operator's token of this test"
    settings |= {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": token}
    service = serve_once(own_database, sql, settings | {"ConnectionStrings:Second": other.conninfo})
    assert answer(service.get("/api/of-main")) == (200, TEXT, own_database.name)
    assert service.get("/api/of-other").json() == {"a": 1, "b": 2}
    assert answer(service.get("/api/sent-home")) == (200, TEXT, own_database.name)
    assert answer(service.get("/api/common?a=1")) == (200, TEXT, other.name)
    service.wait_for_log("GET /api/common of connection Second is also public.common(integer) of the main connection")
    service.wait_for_log("makes all connections usable by endpoints")
    text = (tmp_path / "public.ts").read_text(encoding="utf-8")
    for name in ("of_main", "of_other", "common"):
        assert f"* CREATE OR REPLACE FUNCTION public.{name}(" in text
    # Of the database where it was found, although it runs on the other one.
    assert "/* there *\\/" in text
    with operator(service, token) as console:
        for path, body in (
            ("sent-home", "/* there */"),
            ("of-other", "select (1, 2)::pair"),
            ("of-main", "database()"),
        ):
            shown = console.get("/console/api/endpoint", params={"method": "GET", "path": f"/api/{path}"}).json()
            assert body in shown["sql"], shown["sql"]
        findings = console.get("/console/api/diagnosis").json()["findings"]
        assert any(item["about"].endswith(" (connection Second)") for item in findings)
    other.execute(
        "create function added() returns int language sql stable as 'select 1';"
        "comment on function added() is 'HTTP'; notify rowcall, 'reload'"
    )
    service.wait_for_log("added GET /api/added")
    assert answer(service.get("/api/added"))[2] == "1"


def test_main_connection_is_read_only_if_listed(own_database: Database, other: Database, serve_once: Serve) -> None:
    sql = "create function of_main() returns int language sql stable as 'select 1';"
    sql += "comment on function of_main() is 'HTTP'"
    settings = {
        "Service:RoutineOptions:ReadMetadataFromConnections:0": "second",
        "ConnectionStrings:Second": other.conninfo,
    }
    problem(serve_once(own_database, sql, settings).get("/api/of-main"), 404)


ROUTED = {"Service:UseMultipleConnections": "true"}


def test_routines_missing_on_their_target_are_logged(
    own_database: Database, other: Database, serve_once: Serve
) -> None:
    settings = ROUTED | {
        "ConnectionStrings:Second": other.conninfo,
        "Service:RoutineOptions:VerifyRoutedEndpoints": "Warn",
    }
    other.execute("create function there() returns text language sql stable as 'select current_database()::text'")
    service = serve_once(own_database, SAME + COMMENTS, settings)
    service.wait_for_log("public.by_key() is not there on connection second, needed by GET /api/by-key")
    service.wait_for_log("public.remember(text) is not there on connection second")
    assert "public.there() is not there" not in service.log
    assert problem(service.get("/api/by-key"), 500)["detail"] == "42883"


def test_routines_missing_on_their_target_can_stop_the_start(
    own_database: Database, other: Database, tmp_path: Path
) -> None:
    own_database.execute(SAME + COMMENTS)
    settings = ROUTED | {
        "ConnectionStrings:Second": other.conninfo,
        "Service:RoutineOptions:VerifyRoutedEndpoints": "Fail",
    }
    log = fails_to_start(tmp_path, own_database, **settings)
    assert "these endpoints are routed to connections on which they cannot run" in log
    assert "public.there() is not there on connection second, needed by GET /api/there" in log


def test_verified_routed_routines_are_counted_in_the_log(
    own_database: Database, second: Database, serve_once: Serve
) -> None:
    settings = ROUTED | {
        "ConnectionStrings:Second": second.conninfo,
        "Service:RoutineOptions:VerifyRoutedEndpoints": "Fail",
        # The names of types in this schema are read without it.
        "ConnectionSettings:MetadataQuerySchema": "shop",
    }
    paint = "comment on function shop.paint is E'HTTP POST\\nconnection second';"
    assert "the routines of 5 endpoints exist" in serve_once(own_database, SAME + COMMENTS + paint, settings).log


@pytest.mark.slow
def test_failed_reload_is_repeated_by_the_next_notification(
    own_database: Database, other: Database, serve_once: Serve
) -> None:
    """The catalogue was read before the check failed, and has not changed since."""
    settings = ROUTED | {
        "ConnectionStrings:Second": other.conninfo,
        "Service:RoutineOptions:VerifyRoutedEndpoints": "Fail",
    }
    late = "create function late() returns int language sql stable as 'select 7'"
    service = serve_once(own_database, SAME, settings, workers=2)
    own_database.execute(f"{late}; comment on function late() is E'HTTP GET /late\\nconnection second'")
    own_database.execute("notify rowcall, 'reload'")
    service.wait_for_log("public.late() is not there on connection second")
    other.execute(late)
    own_database.execute("notify rowcall, 'reload'")
    wait_until(lambda: answer(service.get("/late")) == (200, TEXT, "7"), "the endpoint is served", 20)


POINTS = """create type point_of as (x int, y int);
create function pair() returns table (p point_of[]) language sql stable as 'select array[(1, 2)::point_of]';"""
PAIR = "comment on function pair() is E'HTTP GET /pair\\nconnection second\\nnested';"
RENDERED = (200, JSON, '[{"p":[{"x":1,"y":2}]}]')


def test_types_of_an_unavailable_connection_survive_a_reload(
    own_database: Database, other: Database, serve_once: Serve
) -> None:
    other.execute("create type filler as (a int);" + POINTS)  # so that the types have other oids
    settings = ROUTED | {"ConnectionStrings:Second": other.conninfo}
    service = serve_once(own_database, POINTS + PAIR, settings, workers=2)
    wait_until(lambda: len(other.backends()) >= 2, "each worker has a session")
    with other.refusing_connections():
        service.signal(signal.SIGHUP)
        service.wait_for_log("connection second: its types cannot be read")
        assert answer(service.get("/pair")) == RENDERED
    assert {answer(service.request_once("GET", "/pair")) for _ in range(8)} == {RENDERED}


@pytest.mark.slow
def test_types_of_a_connection_unavailable_at_start_are_read_later(
    own_database: Database, other: Database, serve_once: Serve
) -> None:
    other.execute("create type filler as (a int);" + POINTS)
    settings = ROUTED | {
        "ConnectionStrings:Second": other.conninfo,
        "ConnectionSettings:TestConnectionStrings": "false",
    }
    with other.refusing_connections():
        service = serve_once(own_database, POINTS + PAIR, settings, workers=2)
        service.wait_for_log("connection second: its types cannot be read")
    wait_until(lambda: answer(service.get("/pair")) == RENDERED, "the types are read", 20)
    assert {answer(service.request_once("GET", "/pair")) for _ in range(8)} == {RENDERED}


@pytest.mark.parametrize(
    ("role", "answers"), [("Any", True), ("Primary", True), ("PreferPrimary", True), ("PreferStandby", True)]
)
def test_host_with_the_configured_role_is_selected(
    own_database: Database, serve_once: Serve, role: str, answers: bool
) -> None:
    """One of the two hosts is down, the other one is a primary."""
    port = own_database.server.port
    hosts = f"postgresql://postgres@127.0.0.1:{free_port()},127.0.0.1:{port}/{own_database.name}"
    settings = {"ConnectionStrings:Default": hosts, "ConnectionSettings:MultiHostConnectionTargets:Default": role}
    assert serve_once(own_database, SAME + COMMENTS, settings).get("/api/here").is_success is answers


def test_missing_host_with_the_configured_role_stops_the_start(own_database: Database, tmp_path: Path) -> None:
    port = own_database.server.port
    settings = {
        "ConnectionStrings:Default": f"postgresql://postgres@127.0.0.1:{port},127.0.0.1:{port}/{own_database.name}",
        "ConnectionSettings:MultiHostConnectionTargets:ByConnectionName:default": "Standby",
        "ConnectionSettings:RetryOptions:Enabled": "false",
    }
    assert "cannot read the database" in fails_to_start(tmp_path, own_database, **settings)
