"""`publishes`: results are published in the transaction of their routine."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table done (n int);
create function as_row(_n int) returns table (order_id int, note text) language plpgsql as $$
begin
  insert into done values (_n);
  if _n < 0 then raise exception 'negative'; end if;
  return query select _n, 'a"b';
end $$;
comment on function as_row(int) is 'HTTP POST /row
single
idempotent
publishes order.paid key order_id';
create function as_rows(_n int) returns table (id int, filler text) language sql as
$$ insert into done values (_n); select g, repeat('x', 100) from generate_series(1, _n) g $$;
comment on function as_rows(int) is 'HTTP POST /rows
publishes order.listed';
create function as_table(_n int) returns table (id int) language sql as $$ insert into done values (_n); select _n $$;
comment on function as_table(int) is 'HTTP POST /table
table_format html
publishes order.tabled';
create function as_text() returns text language sql as $$ insert into done values (0); select 'plain "text"' $$;
comment on function as_text() is 'HTTP POST /text
publishes text.made';
create function as_json(_j json) returns json language sql as $$ insert into done values (0); select _j $$;
comment on function as_json(json) is 'HTTP POST /json
publishes json.made key the_key';
create function as_void() returns void language sql as $$ insert into done values (0) $$;
comment on function as_void() is 'HTTP POST /void
publishes void.made';
create function as_made(_n int) returns table (id int) language plpgsql as $$
begin
  perform set_config('response.status', '201', true);
  insert into done values (_n);
  return query select _n;
end $$;
comment on function as_made(int) is 'HTTP POST /made
single
publishes made.made key id';
create function as_job(_n int) returns table (id int) language sql as
$$ insert into done values (_n); select _n $$;
comment on function as_job(int) is 'HTTP POST /job
single
job
publishes job.made key id';
create function placed(_n int) returns table (id int) language plpgsql as $$
begin
  insert into done values (_n);
  perform set_config('response.status', '201', true);
  perform set_config('response.headers', json_build_object('Location', '/orders/' || _n)::text, true);
  return query select _n where _n > 0;
end $$;
comment on function placed(int) is 'HTTP POST /placed
single
publishes order.placed key id';
create function noted(_text text) returns text language plpgsql as $$
begin perform set_config('response.status', '202', true); return _text; end $$;
comment on function noted(text) is 'HTTP POST /noted
publishes order.noted';
create function by_column(_n int) returns table (id int, code int) language sql as $$ select _n, 203 $$;
comment on function by_column(int) is 'HTTP POST /by-column
response_status_column code
publishes order.coded';
create function reads() returns int language sql stable as 'select 1';
comment on function reads() is 'HTTP GET /reads
publishes a.b';
create procedure commits() language plpgsql as $$ begin commit; end $$;
comment on procedure commits() is 'HTTP POST /commits
publishes a.b';
create function misspelt() returns int language sql as 'select 1';
comment on function misspelt() is 'HTTP POST /misspelt
publishes order/paid';
create table leaflet (id int primary key, title text, version int not null default 1);
insert into leaflet values (1);
comment on table leaflet is 'HTTP
version column version
publishes leaflet.changed
disabled
enabled update_returning
for update_returning
HTTP PATCH /leaflets/{id}';
create table product (id int primary key, name text);
comment on table product is 'HTTP
publishes product.changed';
"""
SETTINGS = {
    "Jobs:Enabled": "true",
    "Batch:Enabled": "true",
    "Exports:Enabled": "true",
    "Service:TableFormatOptions:Enabled": "true",
    "Service:CrudSource:Enabled": "true",
    "Service:RequiresAuthorization": "false",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(install_sql())
    return serve(database, SQL, SETTINGS, workers=2)


def published(database: Database, topic: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = database.fetch(
        f"select key, payload from rowcall.webhook_message where topic = '{topic}' order by number"
    )
    return rows


def test_a_row_is_published_with_its_key(service: Service, database: Database) -> None:
    assert service.post("/row", json={"n": 1}).json() == {"orderId": 1, "note": 'a"b'}
    assert published(database, "order.paid") == [("1", {"orderId": 1, "note": 'a"b'})]
    problem(service.post("/row", json={"n": -1}), 400)
    headers = {"idempotency-key": "publish-1"}
    assert service.post("/row", json={"n": 2}, headers=headers).status_code == 200
    assert service.post("/row", json={"n": 2}, headers=headers).headers["idempotency-replayed"] == "true"
    assert [key for key, _ in published(database, "order.paid")] == ["1", "2"]


def test_results_of_other_shapes_are_published(service: Service, database: Database) -> None:
    assert len(service.post("/rows", json={"n": 30_000}).json()) == 30_000
    ((key, payload),) = published(database, "order.listed")
    assert (key, len(payload), payload[-1]["id"]) == (None, 30_000, 30_000)
    assert service.post("/text").text == 'plain "text"'
    assert published(database, "text.made") == [(None, 'plain "text"')]
    assert service.post("/json", json={"j": {"the_key": "k", "x": 1.50}}).status_code == 200
    assert published(database, "json.made") == [("k", {"the_key": "k", "x": 1.5})]
    assert service.post("/void").status_code == 204
    assert published(database, "void.made") == [(None, None)]


def test_results_are_published_without_the_response_set_by_sql(service: Service, database: Database) -> None:
    response = service.post("/placed", json={"n": 1})
    assert (response.status_code, response.headers["location"], response.text) == (201, "/orders/1", '{"id":1}')
    assert published(database, "order.placed") == [("1", {"id": 1})]
    assert service.post("/noted", json={"text": None}).status_code == 202
    assert service.post("/noted", json={"text": "plain"}).text == "plain"
    assert published(database, "order.noted") == [(None, None), (None, "plain")]
    response = service.post("/by-column", json={"n": 3})
    assert (response.status_code, response.text) == (203, '[{"id":3}]')
    assert published(database, "order.coded") == [(None, [{"id": 3}])]


@pytest.mark.parametrize("target", ["/rows?format=jsonl", "/rows", "/table"])
def test_results_are_published_as_json_whatever_the_client_accepts(
    service: Service, database: Database, target: str
) -> None:
    topic = "order.tabled" if target == "/table" else "order.listed"
    before = len(published(database, topic))
    response = service.post(target, json={"n": 1}, headers={"accept": "text/csv"})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert [payload for _, payload in published(database, topic)[before:]] == [response.json()]


def test_returned_rows_of_tables_are_published(service: Service, database: Database) -> None:
    response = service.request("PUT", "/api/product/returning", json={"id": 1, "name": "a"})
    assert response.status_code == 200, response.text
    assert published(database, "product.changed")[-1][1] == response.json()


def test_a_write_that_does_not_find_its_version_publishes_nothing(service: Service, database: Database) -> None:
    for version, status, count in ((7, 412, 0), (1, 200, 1)):
        response = service.request("PATCH", "/leaflets/1", json={"title": "b"}, headers={"if-match": f'"{version}"'})
        assert (response.status_code, len(published(database, "leaflet.changed"))) == (status, count)


def test_results_of_jobs_and_batches_are_published(service: Service, database: Database) -> None:
    assert service.post("/job", json={"n": 5}).status_code == 202
    wait_until(lambda: published(database, "job.made") == [("5", {"id": 5})], "the job has published its result")
    before = len(published(database, "order.paid"))
    failing = [{"method": "POST", "path": "/row", "body": {"n": n}} for n in (7, -7)]
    assert service.post("/batch", json=failing).status_code >= 400
    assert len(published(database, "order.paid")) == before
    assert service.post("/batch", json=failing[:1]).status_code == 200
    assert published(database, "order.paid")[-1][0] == "7"


def test_the_result_of_a_routine_that_sets_the_status_is_published(service: Service, database: Database) -> None:
    response = service.post("/made", json={"n": 7})
    assert (response.status_code, response.json()) == (201, {"id": 7})
    assert published(database, "made.made") == [("7", {"id": 7})]


def test_lines_without_effect_are_reported(service: Service) -> None:
    assert "as_table(integer): table_format has no effect: publishes sends the response, as JSON" in service.log
    log = service.log
    assert "this service publishes messages and does not deliver them; Webhooks:Enabled=true here" in log
    assert "GET /reads: publishes has no effect: a GET changes nothing" in log
    assert "POST /commits: publishes has no effect: it may commit, which ends the transaction" in log
    assert "'order/paid' is none of: order.paid, order.paid key order_id" in log


def test_without_the_schema_rowcall(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    assert "POST /row: publishes needs the schema rowcall, which is not in the database" in service.log
    assert service.post("/row", json={"n": 1}).status_code == 404
