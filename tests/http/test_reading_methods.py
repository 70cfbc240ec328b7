"""No endpoint that writes to a table is served with GET, whatever the comment says."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table t (id int primary key, v text);
insert into t values (1, 'first');
comment on table t is 'HTTP GET';
create table reading (id int primary key, v text);
insert into reading values (1, 'first');
comment on table reading is 'HTTP GET /reading';
create table updating (id int primary key, v text);
comment on table updating is 'HTTP POST';
create table inserting (id int primary key, v text);
comment on table inserting is 'HTTP PUT';
create table removing (id int primary key, v text);
comment on table removing is 'HTTP DELETE';
create table asking (id int primary key, v text);
insert into asking values (1, 'first');
comment on table asking is 'HTTP QUERY';
create table every (id int primary key, v text);
insert into every values (1, 'first');
comment on table every is 'HTTP';
create table inside (id int primary key, v text);
insert into inside values (1, 'first');
comment on table inside is 'HTTP
for update
HTTP GET
for insert
HTTP POST /inside/new';

create table visited (n int);
create function visit() returns int language sql volatile as $$insert into visited values (1) returning n$$;
comment on function visit() is 'HTTP GET';
create function get_number() returns int language sql volatile as $$select 1$$;
comment on function get_number() is 'HTTP';
create function calm() returns int language sql stable as $$select 1$$;
comment on function calm() is 'HTTP GET';
"""

REQUESTS: list[RequestContext] = [
    ("GET /api/t?id=1", '200 [{"id":1,"v":"first"}]'),
    ("GET /api/t/returning?id=1&v=X", "404 no endpoint"),
    ("GET /api/t/on-conflict-do-update?id=1&v=X", "404 no endpoint"),
    ("GET /api/t/on-conflict-do-nothing/returning?id=2&v=X", "404 no endpoint"),
    ("HEAD /api/t/returning?id=1&v=X", "404E"),
    ('POST /api/t {"id":1,"v":"X"}', "405 "),
    ('PUT /api/t {"id":2,"v":"X"}', "405 "),
    ("DELETE /api/t?id=1", "405 "),
    ("GET /reading?id=1", '200 [{"id":1,"v":"first"}]'),
    ("DELETE /reading?id=1", "405 "),
    ("DELETE /api/reading?id=1", "404 "),
    ("GET /api/updating", "405 "),
    ('PUT /api/updating {"id":1}', "405 "),
    ('POST /api/updating {"id":1,"v":"x"}', "204"),
    ('PUT /api/inserting {"id":1,"v":"x"}', "204"),
    ('POST /api/inserting {"id":1,"v":"x"}', "405 "),
    ('DELETE /api/removing {"id":1}', "204"),
    ("GET /api/removing", "405 "),
    ('QUERY /api/asking {"id":1}', '200 [{"id":1,"v":"first"}]'),
    ('POST /api/asking {"id":1}', "405 "),
    ("GET /api/every?id=1", '200 [{"id":1,"v":"first"}]'),
    ('POST /api/every {"id":1,"v":"first"}', "204"),
    ("GET /api/inside?id=1", '200 [{"id":1,"v":"first"}]'),
    ("GET /api/inside/returning?id=1&v=X", "405 "),
    ('POST /api/inside {"id":1,"v":"first"}', "204"),
    ('POST /inside/new {"id":2,"v":"x"}', "204"),
    ("GET /api/visit", "200T 1"),
    ("GET /api/get-number", "200T 1"),
]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Service:CrudSource:Enabled": "true"})


@pytest.mark.parametrize("context", cases(row for row in REQUESTS if not row[0].startswith("HEAD")))
def test_documented_requests_get_the_documented_response(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_head_does_not_write(service: Service) -> None:
    assert service.request("HEAD", "/api/t/returning?id=1&v=X").status_code == 404


def test_get_requests_to_writing_files_do_not_write(database: Database, service: Service) -> None:
    service.get("/api/t/returning?id=1&v=X")
    service.get("/api/inside/returning?id=1&v=X")
    assert database.value("select v from t where id = 1") == "first"
    assert database.value("select v from inside where id = 1") == "first"


def test_a_get_annotation_on_a_writing_file_is_logged(service: Service) -> None:
    line = service.wait_for_log("public.inside: this writes")
    assert "GET" in line
    assert "WRN" in line


def test_a_volatile_routine_served_by_get_is_logged_once(service: Service) -> None:
    line = service.wait_for_log("public.visit()")
    assert "volatile" in line
    assert "INF" in line
    assert "public.get_number()" in service.wait_for_log("public.get_number()")
    log = [line for line in service.log.splitlines() if "volatile" in line and "GET" in line]
    assert len(log) == 2
    assert not any("calm" in line for line in log)
    problem(service.get("/api/nowhere"), 404)
