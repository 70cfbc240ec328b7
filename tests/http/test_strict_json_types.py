"""JSON bodies with `Service:StrictJsonTypes`: the types that OpenAPI documents, and no others."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.console import operator
from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create type part as (id int, label text);
create table shelf (id int primary key, label text not null, width numeric, note text);
insert into shelf values (1, 'a');
comment on table shelf is 'HTTP';
create function total(_id int, _total int, _ids int[] default null, _ip_address text default null) returns text
    language sql as $$ select concat_ws(' ', _id, _total, _ids, _ip_address) $$;
comment on function total is 'HTTP POST /total
user_parameters
_total = {_id} + 1
_ids = select array[{_id}]';
"""
TYPES = (
    "smallint", "int", "bigint", "numeric", "float8", "boolean", "text", "date", "uuid", "inet", "jsonb", "int[]",
    "text[]", "part[]",
)  # fmt: skip
ROUTINES = "".join(
    f"create function take_{number}(v {type}) returns text language sql as $$ select coalesce(v::text, 'NULL') $$;"
    f"comment on function take_{number}({type}) is 'HTTP POST /take/{number}';"
    for number, type in enumerate(TYPES)
)
STRICT = {"Service:StrictJsonTypes": "true", "Service:ExactTypes": "true", "Service:CrudSource:Enabled": "true"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL + ROUTINES, STRICT)


def path(type: str) -> str:
    return f"/take/{TYPES.index(type)}"


@pytest.mark.parametrize(
    ("type", "value", "received"),
    [
        ("int", "7", "7"),
        ("int", "-742.0", "-742"),
        ("int", "1e3", "1000"),
        ("int", "1.5e1", "15"),
        ("int", "120e-1", "12"),
        ("int", "0.000", "0"),
        ("int", "-0.0", "0"),
        ("int", "null", "NULL"),
        ("smallint", "32767.0", "32767"),
        ("bigint", "9223372036854775807.0", "9223372036854775807"),
        ("numeric", "1.50", "1.50"),
        ("float8", "1e3", "1000"),
        ("boolean", "true", "true"),
        ("text", '"a"', "a"),
        ("date", '"2026-03-01"', "2026-03-01"),
        ("inet", '"::1"', "::1/128"),
        ("jsonb", "1", "1"),
        ("jsonb", "[{}]", "[{}]"),
        ("int[]", "[1.0,null,2]", "{1,NULL,2}"),
        ("text[]", '["a",null]', "{a,NULL}"),
        ("part[]", '[{"id":3.0,"label":"x"},null]', '{"(3,x)",NULL}'),
    ],
)
def test_the_documented_json_types_are_accepted(service: Service, type: str, value: str, received: str) -> None:
    assert answer(service.post(path(type), content=f'{{"v":{value}}}'.encode())) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("type", "value", "place", "reason"),
    [
        ("int", '"7"', "v", "'\"7\"' is not an integer"),
        ("int", "1.5", "v", "'1.5' is not an integer"),
        ("int", "15e-1", "v", "'15e-1' is not an integer"),
        ("int", "1e10", "v", "is out of range for integer"),
        ("int", "1e999999", "v", "is out of range for integer"),
        ("bigint", "1e19", "v", "is out of range for bigint"),
        ("numeric", '"1.5"', "v", "is not a number"),
        ("boolean", '"true"', "v", "is not true or false"),
        ("text", "7", "v", "'7' is not a text"),
        ("text", "true", "v", "'true' is not a text"),
        ("text", '{"a":1}', "v", "is not a text"),
        ("text", "[]", "v", "'[]' is not a text"),
        ("uuid", "7", "v", "is not a uuid"),
        ("inet", "7", "v", "is not a value of this type"),
        ("int[]", '"{1,2}"', "v", "is not an array"),
        ("int[]", '[1,"2"]', "v[1]", "is not an integer"),
        ("text[]", '["a",1]', "v[1]", "is not a text"),
        ("part[]", '["(1,x)"]', "v[0]", "is not an object"),
        ("part[]", '[{"label":1}]', "v[0].label", "is not a text"),
    ],
)
def test_other_json_types_are_refused_with_their_path(
    service: Service, type: str, value: str, place: str, reason: str
) -> None:
    [error] = problem(service.post(path(type), content=f'{{"v":{value}}}'.encode()), 400)["errors"]
    assert error["path"] == place
    assert reason in error["message"]


@pytest.mark.parametrize("value", ["7", "null", '"x"', "[1]", "{}"])
def test_values_of_parameters_that_the_service_fills_are_ignored(service: Service, value: str) -> None:
    body = f'{{"id":1,"total":{value},"ids":{value},"ipAddress":{value}}}'
    assert answer(service.post("/total", content=body.encode())) == (200, TEXT, "1 2 {1} 127.0.0.1")


def test_a_null_that_a_column_cannot_have_is_refused_before_the_statement_runs(service: Service) -> None:
    for body in (b'{"id":9,"label":null}', b'{"id":null,"label":"x"}'):
        [error] = problem(service.post("/api/shelf", content=body), 400)["errors"]
        assert error["message"].endswith("null is not allowed")
    assert service.post("/api/shelf", content=b'{"id":9,"label":"x","note":null}').status_code == 204
    problem(service.request("PUT", "/api/shelf", content=b'{"id":2,"label":null}'), 400)


def test_texts_of_queries_are_converted_as_without_the_key(service: Service) -> None:
    assert [row["id"] for row in service.get("/api/shelf?id=1&label=a").json()] == [1]
    problem(service.get("/api/shelf?id=1.0"), 400)


def test_wide_numbers_documented_as_strings_are_accepted_as_both(
    database: Database, service: Service, serve: Serve
) -> None:
    """`service` loads the functions."""
    safe = serve(database, settings={**STRICT, "Service:JsonNumbers": "Safe"})
    for value in ('"7"', "7", "7.0"):
        assert answer(safe.post(path("bigint"), content=f'{{"v":{value}}}'.encode())) == (200, TEXT, "7")
    problem(safe.post(path("int"), content=b'{"v":"7"}'), 400)


JOBS_AND_CACHE = """
create function noted(_n int, _text text default null) returns text language sql as $$ select _n || _text $$;
comment on function noted is 'HTTP POST /noted
job retries 0';
create sequence runs;
create function ran(_n int, _text text default 'x') returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function ran is 'HTTP POST /ran
cached';
create function ran_on_get(_n int) returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function ran_on_get is 'HTTP GET /ran
cached';
"""
TOKEN = "an operator's token of this test"


@pytest.fixture(scope="module")
def with_jobs(database: Database, serve: Serve) -> Service:
    database.execute(install_sql())
    console = {"Console:Enabled": "true", "Console:AllowActions": "true", "Console:Url": "http://127.0.0.1:0"}
    enabled = {"Admin:BearerToken": TOKEN, "CacheOptions:Enabled": "true", "Jobs:Enabled": "true"}
    return serve(database, JOBS_AND_CACHE, {"Service:StrictJsonTypes": "true", **console, **enabled})


@pytest.mark.parametrize(
    ("arguments", "state", "text"),
    [
        ('{"n": 1.0, "text": "a"}', "done", "1a"),
        ('{"n": 1, "text": 7}', "failed", "'7' is not a text"),
        ('{"n": "1", "text": "a"}', "failed", "is not an integer"),
    ],
)
def test_arguments_of_jobs_enqueued_in_sql_have_the_documented_types(
    with_jobs: Service, database: Database, arguments: str, state: str, text: str
) -> None:
    number = database.value(f"select rowcall.enqueue('POST /noted', '{arguments}')::text")
    query = (
        "select state, coalesce(error, convert_from(result, 'UTF8')) from rowcall.job "
        f"where id = '{number}' and state in ('done', 'failed')"
    )
    [(ended, shown)] = wait_until(lambda: database.fetch(query), "the job has ended", 20)
    assert ended == state
    assert text in shown


def test_cached_responses_are_found_by_arguments_of_the_documented_types(with_jobs: Service) -> None:
    with operator(with_jobs, TOKEN) as console:
        for arguments in ('{"n": 1.0}', '{"n": 10e-1}'):
            before = with_jobs.post("/ran", content=b'{"n": 1}').text
            assert with_jobs.post("/ran", content=arguments.encode()).text == before
            assert invalidate(console, "POST /ran", arguments).json() == {"invalidated": 1}
            assert with_jobs.post("/ran", content=b'{"n": 1}').text != before
        refused = problem(invalidate(console, "POST /ran", json.dumps({"n": 1, "text": 7})), 400)
        assert "'7' is not a text" in refused["detail"]
        with_jobs.get("/ran?n=1")
        assert invalidate(console, "GET /ran", '{"n": "1"}').json() == {"invalidated": 1}


def invalidate(console: httpx.Client, endpoint: str, arguments: str) -> Any:
    values = {"endpoint": endpoint, "arguments": arguments}
    return console.post("/console/api/actions/invalidate-cache", params=values)
