"""Status and headers of responses that SQL sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table album (id int generated always as identity primary key, name text unique);
create function add_record(_name text) returns album language plpgsql as $$
declare made album;
begin
  insert into album (name) values (_name) returning * into made;
  perform set_config('response.status', '201', true);
  perform set_config('response.headers', json_build_object('Location', '/records/' || made.id)::text, true);
  return made;
end $$;
comment on function add_record(text) is 'HTTP POST /records
X-Fixed: yes';
create function say(_status text, _fields text default null) returns text language plpgsql as $$
begin
  if _status is not null then perform set_config('response.status', _status, true); end if;
  if _fields is not null then perform set_config('response.headers', _fields, true); end if;
  return 'said';
end $$;
comment on function say(text, text) is 'HTTP POST /say';
create function accept() returns void language plpgsql as $$
begin perform set_config('response.status', '202', true); end $$;
comment on function accept() is 'HTTP POST /accept';
create function list_some(_count int) returns table (id int, name text) language plpgsql as $$
begin
  perform set_config('response.status', '206', true);
  return query select n, 'row ' || n from generate_series(1, _count) n;
end $$;
comment on function list_some(int) is 'HTTP GET /some';
create function list_first(_count int) returns table (id int, name text) language plpgsql as $$
begin
  perform set_config('response.status', '206', true);
  return query select n, 'row ' || n from generate_series(1, _count) n;
end $$;
comment on function list_first(int) is 'HTTP GET /first
single';
create function by_columns(_id int) returns table (id int, code int, extra json, name text) language sql stable as $$
  select _id, case when _id > 9 then 404 end, case when _id > 9 then '{"X-Seen": ["a", "b"]}'::json end, 'n' || _id $$;
comment on function by_columns(int) is 'HTTP GET /by-columns
single
response_status_column code
response_headers_column extra';
create function nothing_but_status(_code int) returns table (code int, more text) language sql stable as
$$ select _code, 'x' $$;
comment on function nothing_but_status(int) is 'HTTP GET /nothing-but
response_status_column code
response_headers_column more';
create table customer (id int primary key, name text);
insert into customer values (1, 'Ada');
create table ticket (id int primary key, customer int, cancelled boolean, tenant text);
insert into ticket values (1, 1, true, 'mine'), (2, 1, true, 'theirs'), (3, 1, false, 'mine');
create function can_see(_tenant text) returns boolean language plpgsql stable as
$$ begin return _tenant = 'mine'; end $$;
create function ticket_of(_id int) returns table (code int, id int, who text) language sql stable as $$
  select case when t.cancelled then 410 end, t.id, c.name from ticket t join customer c on c.id = t.customer
  where t.id = _id and can_see(t.tenant) $$;
comment on function ticket_of(int) is 'HTTP GET /ticket
single
response_status_column code';
create function two_codes() returns table (code int, n int) language sql stable as 'values (202, 1), (410, 2)';
comment on function two_codes() is 'HTTP GET /two-codes
single
response_status_column code';
create function total() returns int language sql stable as 'select 7';
comment on function total() is 'HTTP GET /total
response_status_column status';
create function totals() returns setof int language sql stable as 'select generate_series(1, 3)';
comment on function totals() is 'HTTP GET /totals
response_status_column status';
create function lone_status(out status int) language sql stable as 'select 202';
comment on function lone_status() is 'HTTP GET /lone-status
response_status_column status';
create function inner_choice() returns void language plpgsql as $$
begin perform set_config('response.status', '202', true); end $$;
create function outer_choice() returns text language plpgsql as $$ begin perform inner_choice(); return 'x'; end $$;
comment on function outer_choice() is 'HTTP POST /outer
response_settings';
create function plain() returns text language sql stable as $$ select 'plain' $$;
comment on function plain() is 'HTTP GET /plain';
create function maybe(_text text) returns text language plpgsql as $$
begin
  if _text = 'created' then perform set_config('response.status', '201', true); end if;
  return nullif(_text, 'null');
end $$;
comment on function maybe(text) is 'HTTP POST /maybe';
create function find(_id int) returns table (id int) language sql stable as $$ select 1 where _id = 1 $$;
comment on function find(int) is 'HTTP GET /find
single
null_handling not_found';
create procedure work(_status text) language plpgsql as $$
begin perform set_config('response.status', _status, true); end $$;
comment on procedure work(text) is 'HTTP POST /work';
"""
FILES = {
    "created.sql": """-- HTTP POST /file
select set_config('response.status', '201', true) is not null as done;
""",
    "two.sql": """-- HTTP POST /two
select 1 as a, 2 as b;
select set_config('response.status', '202', true) as c, 3 as d;
""",
    "all_skipped.sql": """-- HTTP POST /all-skipped
-- @skip
select set_config('response.status', '201', true), set_config('response.headers', '{"X-Seen": "}"}', true);
-- @skip
select 1;
""",
    "hidden.sql": """-- HTTP POST /hidden
do $$ begin perform set_config('response.headers', '{"X-Seen": "}"}', true); end $$;
notify albums;
""",
    "in_block.sql": """-- HTTP POST /in-block
begin;
select set_config('response.status', '201', true); -- @skip
select set_config('response.headers', '{"X-Seen": "}"}', true); -- @skip
commit;
""",
    "earlier.sql": """-- HTTP POST /earlier
-- @result changed
update album set name = name where false;
-- @skip
select set_config('response.status', '202', true);
-- @result rows
select 1 as a, 2 as b;
-- @result added
insert into album (name) select name from album where false;
begin;
select set_config('response.headers', '{"X-Seen": "}"}', true); -- @skip
commit;
""",
    "void.sql": """-- HTTP POST /void
-- void
begin;
select set_config('response.headers', '{"X-Seen": "}"}', true);
commit;
select 1;
""",
    "rolled_back.sql": """-- HTTP POST /rolled-back
begin;
select set_config('response.status', '201', true); -- @skip
rollback;
select 1 as a, 2 as b;
""",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        Path(folder, name).write_text(text)
    return serve(database, SQL, {"Service:SqlFileSource:FilePattern": f"{folder}/*.sql"}, workers=2)


def test_a_routine_sets_status_201_and_the_location(service: Service) -> None:
    response = service.post("/records", json={"name": "Blue Train"})
    assert answer(response) == (201, JSON, '{"id":1,"name":"Blue Train"}')
    assert (response.headers["location"], response.headers["x-fixed"]) == ("/records/1", "yes")


def test_an_error_discards_status_and_headers_set_by_sql(service: Service) -> None:
    service.post("/records", json={"name": "Kind of Blue"})
    response = service.post("/records", json={"name": "Kind of Blue"})
    problem(response, 409)
    assert "location" not in response.headers


def test_status_set_by_sql_does_not_reach_the_next_request(service: Service) -> None:
    for _ in range(20):
        assert answer(service.post("/maybe", json={"text": "created"})) == (201, TEXT, "created")
        assert answer(service.post("/maybe", json={"text": "x"})) == (200, TEXT, "x")
        assert answer(service.get("/plain")) == (200, TEXT, "plain")


@pytest.mark.parametrize("status", [200, 201, 203, 226, 303, 400, 404, 451, 500])
def test_a_routine_can_set_any_status_with_a_body(service: Service, status: int) -> None:
    assert answer(service.post("/say", json={"status": str(status)})) == (status, TEXT, "said")


@pytest.mark.parametrize("status", [204, 205, 304])
def test_statuses_without_a_body_are_sent_without_one(service: Service, status: int) -> None:
    response = service.post("/say", json={"status": str(status)})
    assert (response.status_code, response.content) == (status, b"")


@pytest.mark.parametrize("status", ["abc", "99", "600", "1000", "20x"])
def test_an_invalid_status_set_by_sql_is_500(service: Service, status: str) -> None:
    assert "response.status" in problem(service.post("/say", json={"status": status}), 500)["detail"]


@pytest.mark.parametrize(
    ("headers", "received"),
    [
        ('{"X-One": "a", "X-Two": ["b", "c"]}', {"x-one": "a", "x-two": "b, c"}),
        ('[{"X-One": "a"}, {"X-One": "b"}]', {"x-one": "a, b"}),
        ('{"Content-Type": "text/csv", "X-One": 7, "X-Two": null}', {"content-type": "text/csv", "x-one": "7"}),
    ],
)
def test_headers_set_by_sql_are_accepted_in_every_form(
    service: Service, headers: str, received: dict[str, str]
) -> None:
    response = service.post("/say", json={"status": None, "fields": headers})
    assert response.status_code == 200
    assert {name: response.headers.get(name) for name in received} == received


@pytest.mark.parametrize("headers", ["{", "7", '{"a b": "x"}', '{"X": "a\\r\\nb"}', '{"Content-Length": "9"}', '["x"]'])
def test_an_invalid_header_set_by_sql_is_500(service: Service, headers: str) -> None:
    assert "response.headers" in problem(service.post("/say", json={"status": None, "fields": headers}), 500)["detail"]


def test_void_routines_and_procedures_can_set_status_202(service: Service) -> None:
    response = service.post("/accept", json={})
    assert (response.status_code, response.content) == (202, b"")
    response = service.post("/work", json={"status": "202"})
    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("count", [0, 1, 500])
def test_routines_that_return_sets_can_set_the_status_without_rows(service: Service, count: int) -> None:
    response = service.get(f"/some?count={count}")
    assert (response.status_code, len(response.json())) == (206, count)


@pytest.mark.parametrize(
    ("count", "body"), [(0, "null"), (1, '{"id":1,"name":"row 1"}'), (3, '{"id":1,"name":"row 1"}')]
)
def test_single_sends_the_first_row_with_the_status(service: Service, count: int, body: str) -> None:
    assert answer(service.get(f"/first?count={count}")) == (206, JSON, body)


def test_columns_that_set_status_and_headers_are_not_in_the_body(service: Service) -> None:
    assert answer(service.get("/by-columns?id=1")) == (200, JSON, '{"id":1,"name":"n1"}')
    response = service.get("/by-columns?id=10")
    assert answer(response) == (404, JSON, '{"id":10,"name":"n10"}')
    assert response.headers["x-seen"] == "a, b"
    assert service.get("/nothing-but?code=202").status_code == 500


@pytest.mark.parametrize(
    ("number", "status", "body"),
    [(1, 410, '{"id":1,"who":"Ada"}'), (2, 200, "null"), (3, 200, '{"id":3,"who":"Ada"}')],
)
def test_only_rows_of_the_result_set_the_status(service: Service, number: int, status: int, body: str) -> None:
    # PostgreSQL could evaluate the condition that sets the status ahead of dearer conditions of the function.
    assert answer(service.get(f"/ticket?id={number}")) == (status, JSON, body)


def test_of_a_single_result_the_first_row_sets_the_status(service: Service) -> None:
    assert answer(service.get("/two-codes")) == (202, JSON, '{"n":1}')


def test_a_column_that_the_result_lacks_has_no_effect(service: Service) -> None:
    assert answer(service.get("/total")) == (200, TEXT, "7")
    assert answer(service.get("/totals")) == (200, JSON, "[1,2,3]")
    assert service.log.count("the result has no column status") == 2


def test_a_lone_out_parameter_can_be_the_status(service: Service) -> None:
    response = service.get("/lone-status")
    assert (response.status_code, response.content) == (202, b"")


def test_status_set_by_a_called_routine_is_used(service: Service) -> None:
    assert answer(service.post("/outer", json={})) == (202, TEXT, "x")


def test_an_unset_status_keeps_the_response_to_null(service: Service) -> None:
    assert answer(service.post("/maybe", json={"text": "null"})) == (200, TEXT, "")


def test_sql_files_can_set_the_status(service: Service) -> None:
    assert answer(service.post("/file")) == (201, JSON, "[true]")
    assert answer(service.post("/two")) == (202, JSON, '{"result1":[{"a":1,"b":2}],"result2":[{"c":"202","d":3}]}')


@pytest.mark.parametrize(
    ("path", "status", "body", "seen"),
    [
        ("all-skipped", 201, "{}", "}"),
        ("hidden", 200, "{}", "}"),
        ("in-block", 201, "{}", "}"),
        ("earlier", 202, '{"changed":0,"rows":[{"a":1,"b":2}],"added":0}', "}"),
        ("rolled-back", 200, '{"result1":[{"a":1,"b":2}]}', None),
    ],
)
def test_each_transaction_of_a_file_can_set_status_and_headers(
    service: Service, path: str, status: int, body: str, seen: str | None
) -> None:
    response = service.post(f"/{path}")
    assert answer(response) == (status, JSON, body)
    assert response.headers.get("x-seen") == seen


def test_a_file_whose_results_are_discarded_can_set_headers(service: Service) -> None:
    response = service.post("/void")
    assert (response.status_code, response.content, response.headers["x-seen"]) == (204, b"", "}")


def test_single_without_a_row_is_404_if_annotated(service: Service) -> None:
    assert answer(service.get("/find?id=1")) == (200, JSON, '{"id":1}')
    assert problem(service.get("/find?id=2"), 404)["detail"] == "there is no such record"


def test_single_without_a_row_is_404_if_configured(database: Database, serve_once: Serve) -> None:
    service = serve_once(
        database,
        """create function look(_id int) returns table (id int) language sql stable as $$ select 1 where _id = 1 $$;
        comment on function look(int) is 'HTTP GET /look
single';""",
        {"Service:NotFoundWithoutRow": "true"},
    )
    problem(service.get("/look?id=2"), 404)
