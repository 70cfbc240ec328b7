"""The schema changes under a running service without a notification: no response has a shape that was not promised, and
the catalogue is read again."""

from __future__ import annotations

from pathlib import Path

import httpx
import orjson
import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

Answer = tuple[int, str | None, str]


def wait_until_changed(service: Service, path: str, before: Answer, after: Answer) -> None:
    """Request until the change is active. Every response is the old one, the new one, or 503."""

    def changed() -> bool:
        response = service.get(path)
        if response.status_code == 503:
            problem(response, 503)
            assert int(response.headers["retry-after"]) > 0
            return False
        assert answer(response) in (before, after)
        return answer(response) == after

    wait_until(changed, f"{path} returns {after}", 20)


# The former return type of a function, the new one, and its response.
RETURNED = {
    "jsonb to text": (
        ("jsonb", "select '{\"a\":1}'::jsonb", (200, JSON, '{"a": 1}')),
        ("text", "select 'no json'", (200, TEXT, "no json")),
    ),
    "text to json": (
        ("text", "select 'no json'", (200, TEXT, "no json")),
        ("json", "select '[1]'::json", (200, JSON, "[1]")),
    ),
    "integer to array": (
        ("int", "select 1", (200, TEXT, "1")),
        ("int[]", "select '{1,2}'::int[]", (200, JSON, "[1,2]")),
    ),
    "text to bytea": (
        ("text", "select 'x'", (200, TEXT, "x")),
        ("bytea", "select '\\x41'::bytea", (200, BYTES, "A")),
    ),
    "one to many": (
        ("int", "select 1", (200, TEXT, "1")),
        ("setof int", "select * from generate_series(1, 2)", (200, JSON, "[1,2]")),
    ),
    "other column": (
        ("table(a int)", "select 1", (200, JSON, '[{"a":1}]')),
        ("table(a text)", "select 'x'", (200, JSON, '[{"a":"x"}]')),
    ),
}


def define(type_name: str, body: str) -> str:
    return (
        f"drop function if exists changing(); create function changing() returns {type_name} language sql stable"
        f" as $sql${body}$sql$; comment on function changing() is 'HTTP GET /changing'"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RETURNED)
@pytest.mark.parametrize("warm", [0, 40], ids=["uncalled", "promoted"])
def test_changed_return_type_is_never_rendered_with_the_old_shape(
    own_database: Database, serve_once: Serve, name: str, warm: int
) -> None:
    (old_type, old_body, before), (new_type, new_body, after) = RETURNED[name]
    service = serve_once(own_database, define(old_type, old_body))
    for _ in range(warm):
        assert answer(service.get("/changing")) == before
    own_database.execute(define(new_type, new_body))
    wait_until_changed(service, "/changing", before, after)


GONE = """
create schema shop;
create function shop.item(_id int) returns int language sql stable as 'select _id';
comment on function shop.item(int) is 'HTTP GET /item';
create table shelf (id int primary key, name text);
comment on table shelf is 'HTTP';
create function still_there() returns int language sql stable as 'select 1';
comment on function still_there() is 'HTTP GET /still-there';
"""


@pytest.mark.slow
@pytest.mark.parametrize("warm", [0, 40], ids=["uncalled", "promoted"])
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("drop function shop.item(int)", "/item?id=1"),
        ("drop schema shop cascade", "/item?id=1"),
        ("alter function shop.item(int) rename to thing", "/item?id=1"),
        ("drop table shelf", "/api/shelf/"),
    ],
)
def test_dropped_endpoint_never_gets_500(
    own_database: Database, serve_once: Serve, change: str, path: str, warm: int
) -> None:
    service = serve_once(own_database, GONE, {"Service:CrudSource:Enabled": "true"})
    for _ in range(warm):
        assert service.get(path).status_code == 200
    own_database.execute(change)

    def endpoint_is_unavailable() -> bool:
        status = service.get(path).status_code
        assert status in (503, 404)
        return status == 404 or "thing" in change

    wait_until(endpoint_is_unavailable, f"{path} is unavailable", 20)
    assert answer(service.get("/still-there")) == (200, TEXT, "1")


@pytest.mark.slow
def test_reordered_columns_of_a_file_keep_their_names(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """`select *`: the text is the same, and so are number and types of the columns."""
    own_database.execute("create table pair (a int, b int); insert into pair values (1, 2)")
    settings = file_settings(write_files(tmp_path, {"pair.sql": "-- HTTP GET\nselect * from pair"}))
    service = serve_once(own_database, settings=settings)
    before = (200, JSON, '[{"a":1,"b":2}]')
    assert answer(service.get("/api/pair")) == before
    own_database.execute("drop table pair; create table pair (b int, a int); insert into pair values (2, 1)")
    wait_until_changed(service, "/api/pair", before, (200, JSON, '[{"b":2,"a":1}]'))


def test_executed_write_gets_503_without_retry_after(own_database: Database, serve_once: Serve) -> None:
    sql = """
    create table kept (id int);
    create function keep() returns jsonb language sql volatile as $$insert into kept values (1) returning '1'::jsonb$$;
    comment on function keep() is 'HTTP POST /keep';
    """
    service = serve_once(own_database, sql)
    own_database.execute(
        "drop function keep(); create function keep() returns text language sql volatile"
        " as $$insert into kept values (1) returning 'one'$$; comment on function keep() is 'HTTP POST /keep'"
    )
    response = service.post("/keep")
    assert "has run" in problem(response, 503)["detail"]
    assert "retry-after" not in response.headers
    assert own_database.value("select count(*) from kept") == 1
    wait_until(lambda: answer(service.post("/keep")) == (200, TEXT, "one"), "the new one is served", 20)


def test_unknown_regclass_value_of_a_client_does_not_reload_the_catalogue(
    own_database: Database, serve_once: Serve
) -> None:
    """`regclass` reports 42P01 like a dropped table, but about a value."""
    sql = """
    create function size_of(_table regclass) returns text language sql stable as 'select _table::text';
    comment on function size_of(regclass) is 'HTTP GET /size-of';
    """
    service = serve_once(own_database, sql)
    for _ in range(3):
        response = service.get("/size-of", params={"table": "nowhere"})
        assert response.status_code not in (200, 503)
    assert "has changed" not in service.log


def test_statement_that_stays_invalid_after_reloads_gets_an_error(own_database: Database, serve_once: Serve) -> None:
    """Only on a database whose catalogue is not read again: there, reading can never correct the statement."""
    sql = """
    create function here() returns int language sql stable as 'select 1';
    comment on function here() is 'HTTP GET /here
connection second';
    """
    settings = {"Service:UseMultipleConnections": "true", "ConnectionStrings:Second": own_database.server.conninfo()}
    service = serve_once(own_database, sql, settings)
    response: httpx.Response = service.get("/here")
    assert problem(response, 500)["detail"] == "42883"
    assert orjson.loads(response.content)["status"] == 500
