"""Jobs: calls of endpoints that run later, once, in a worker of any host."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from rowcall.core.auth.password_hash import verify_password
from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table work (id int generated always as identity, what text, who text);
create function report(_month int, _names text[] default null, _extra jsonb default null)
returns table (month int, names text[], extra jsonb) language sql as $$
  insert into work (what) values ('report ' || _month);
  select _month, _names, _extra $$;
comment on function report(int, text[], jsonb) is 'HTTP POST /reports
job queue reports
validate _month using required';
create function total(_a int) returns int language sql as
$$ insert into work (what) values ('total'); select _a * 2 $$;
comment on function total(int) is 'HTTP POST /totals/{_a}
job';
create function lines() returns text language sql as $$ select '{"a":1}' || chr(10) || '{"a":2}' $$;
comment on function lines() is 'HTTP POST /lines
Content-Type: application/json
job';
create function deep() returns jsonb language sql as
$$ select (repeat('[', 300) || repeat(']', 300))::jsonb $$;
comment on function deep() is 'HTTP POST /deep
job';
create function placed(_n int) returns table (id int) language plpgsql as $$
begin
  insert into work (what) values ('placed ' || _n);
  perform set_config('response.status', '422', true);
  return query select _n where _n > 0;
end $$;
comment on function placed(int) is 'HTTP POST /placed
single
null_handling 404
job';
create function opened_later(_stored text) returns table (secret text) language sql as $$ select _stored $$;
comment on function opened_later(text) is 'HTTP POST /opened-later
decrypt secret
job';
create function total_with_status(_a int) returns int language plpgsql as $$
begin perform set_config('response.status', '201', true); return _a * 2; end $$;
comment on function total_with_status(int) is 'HTTP POST /totals-with-status/{_a}
job';
create function nothing() returns void language sql as $$ insert into work (what) values ('nothing') $$;
comment on function nothing() is 'HTTP POST /nothing
job';
create function who() returns text language sql as $$
  insert into work (what, who) values ('who', current_setting('request.user_id', true));
  select current_setting('request.user_id', true) $$;
comment on function who() is 'HTTP POST /who
authorize
user_context
job';
create function whose(_user_id text, _note text default null) returns text language sql as
$$ insert into work (what, who) values (_note, _user_id); select _user_id $$;
comment on function whose(text, text) is 'HTTP POST /whose
user_parameters
job retries 0';
create function zone() returns text language sql as $$ select current_setting('TimeZone') $$;
comment on function zone() is 'HTTP POST /zone
timezone_from prefer
job';
create function zone_of_header() returns text language sql as $$ select current_setting('TimeZone') $$;
comment on function zone_of_header() is 'HTTP POST /zone-of-header
timezone_from header X-Zone
job';
create function announce(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function announce(text) is 'HTTP POST /announce
sse news
job';
create table trials (name text primary key, n int not null default 0);
create function flaky(_name text, _until int) returns int language plpgsql as $$
declare tried int;
begin
  -- The sequence keeps its value when the attempt is rolled back.
  tried := nextval('tries_' || _name);
  insert into work (what) values ('flaky ' || _name);
  if tried < _until then raise exception 'attempt % of %', tried, _name using errcode = 'P0007'; end if;
  return tried;
end $$;
comment on function flaky(text, int) is 'HTTP POST /flaky
job retries 2 backoff 100ms';
create sequence tries_a; create sequence tries_b;
create function slow(_seconds float) returns text language plpgsql as $$
begin
  raise info 'begun';
  insert into work (what) values ('slow');
  perform pg_sleep(_seconds / 2);
  raise info '{"percent": 50}';
  perform pg_sleep(_seconds / 2);
  return 'slept';
end $$;
comment on function slow(float) is 'HTTP POST /slow
job retries 0 timeout 30s';
create function only_once(_key text, _other int) returns text language sql as
$$ insert into work (what) values ('once ' || _key); select pg_sleep(0.3)::text $$;
comment on function only_once(text, int) is 'HTTP POST /only-once
job unique by key';
create function own_report(_month int) returns text language sql as
$$ select pg_advisory_xact_lock_shared(31)::text; select current_setting('request.user_id', true) $$;
comment on function own_report(int) is 'HTTP POST /own-reports
user_context
job unique';
create function by_trigger() returns trigger language plpgsql as $$
begin
  perform rowcall.enqueue('POST /reports', jsonb_build_object('month', new.id, 'names', array['x', 'y']), 'reports');
  return new;
end $$;
create table orders (id int primary key);
create trigger by_trigger after insert on orders for each row execute function by_trigger();
create function hashed(_password text, _hash text default null) returns text language sql as $$ select _hash $$;
comment on function hashed(text, text) is 'HTTP POST /hashed
param _hash is hash of _password
job';
create function exact(_value jsonb, _price numeric default null) returns text language sql as
$$ select concat_ws(' ', _price, _value) $$;
comment on function exact(jsonb, numeric) is 'HTTP POST /exact
job';
create function sealed(_secret text, _password text) returns table (stored text, hash text) language sql as
$$ select _secret, _password $$;
comment on function sealed(text, text) is 'HTTP POST /sealed
encrypt _secret
parameter_hash _password
job retries 0';
create function sealed_cached(_secret text, _password text) returns table (stored text, hash text) language sql as
$$ select _secret, _password $$;
comment on function sealed_cached(text, text) is 'HTTP POST /sealed-cached
encrypt _secret
parameter_hash _password
cached
job retries 0';
create sequence runs;
create function refreshed() returns bigint language sql as $$ select nextval('runs') $$;
comment on function refreshed() is 'HTTP GET /refreshed
cached
schedule @yearly';
create function doubled(_a int) returns int language sql strict as 'select _a * 2';
comment on function doubled(int) is 'HTTP POST /doubled
job retries 0';
create function opened(_stored text) returns table (secret text) language sql as $$ select _stored $$;
comment on function opened(text) is 'HTTP POST /opened
decrypt secret
single';
create function enter(_name text) returns table (status int, user_id text, user_roles text[]) language sql as
$$ select 200, _name, array[_name] $$;
comment on function enter(text) is 'HTTP POST /enter
login';
create function export(_id int) returns text language sql as $$ select 'whole ' || _id $$;
comment on function export(int) is 'HTTP POST /exports
job unique by id retries 0';
create function export(_id int, _format text) returns text language sql as $$ select _format || ' ' || _id $$;
comment on function export(int, text) is 'HTTP POST /exports
job unique by id retries 0';
create procedure commits() language plpgsql as $$ begin commit; end $$;
comment on procedure commits() is 'HTTP POST /commits
job';
create function reads() returns int language sql stable as 'select 1';
comment on function reads() is 'HTTP GET /reads
job';
create function wrong() returns int language sql as 'select 1';
comment on function wrong() is 'HTTP POST /wrong
job quickly';
"""
SETTINGS = {
    "Jobs:Enabled": "true",
    "Jobs:Roles:0": "boss",
    "CacheOptions:Enabled": "true",
    "CacheOptions:InvalidateCacheSuffix": "forget",
    "Auth:CookieAuth": "true",
    "Service:RequiresAuthorization": "false",
}


FILES = {
    "commits_inside.sql": "-- HTTP POST /commits-inside\n-- job\nbegin;\ncommit;\nselect 1;",
    "blocks.sql": "-- HTTP POST /blocks\n-- job\ndo $$ begin insert into work (what) values ('block'); end $$;\n"
    "do $$ begin insert into work (what) values ('block'); end $$;",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    database.execute(install_sql())
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(database, SQL, {**SETTINGS, **file_settings(folder)}, workers=2)


def enqueue(service: Service, path: str, client: httpx.Client | None = None, **body: Any) -> str:
    response = (client or service).post(path, json=body)
    assert response.status_code == 202, response.text
    location: str = response.headers["location"]
    assert response.json() == {"id": location.rpartition("/")[2], "state": "waiting"}
    return location


def ended(service: Service, location: str, client: httpx.Client | None = None) -> dict[str, Any]:
    def state() -> dict[str, Any] | None:
        response = (client or service).get(location)
        assert response.status_code == 200, response.text
        members: dict[str, Any] = response.json()
        return members if members["state"] in ("done", "failed", "cancelled") else None

    found = wait_until(state, f"{location} ends", 20)
    assert found is not None
    return found


def count(database: Database, what: str) -> int:
    result: int = database.value("select count(*) from work where what = %s", what)
    return result


def test_job_runs_and_its_result_is_stored(service: Service, database: Database) -> None:
    extra = {"a": [1.50, None, "x\u00e9"]}
    job = ended(service, enqueue(service, "/reports", month=5, names=["a,b", None, '"'], extra=extra))
    assert job["result"] == [{"month": 5, "names": ["a,b", None, '"'], "extra": extra}]
    assert (job["state"], job["attempts"], job["queue"], job["endpoint"]) == ("done", 1, "reports", "POST /reports")
    assert job["started"] >= job["created"]
    assert count(database, "report 5") == 1
    assert ended(service, enqueue(service, "/totals/21"))["result"] == "42"
    assert ended(service, enqueue(service, "/nothing"))["result"] in (None, "")
    assert ended(service, enqueue(service, "/lines"))["result"] == '{"a":1}\n{"a":2}'
    assert ended(service, enqueue(service, "/deep"))["result"] == "[" * 300 + "]" * 300


def test_a_job_whose_routine_has_committed_is_done_whatever_its_response_would_be(
    service: Service, database: Database
) -> None:
    job = ended(service, enqueue(service, "/placed", n=1))
    assert (job["state"], job["attempts"], job["result"]) == ("done", 1, {"id": 1})
    job = ended(service, enqueue(service, "/placed", n=-1))
    assert (job["state"], job["attempts"], job["error"]) == ("done", 1, None)
    assert (count(database, "placed 1"), count(database, "placed -1")) == (1, 1)
    assert "of POST /placed: attempt 1 failed" not in service.log


def test_arguments_are_validated_before_the_job_is_accepted(service: Service, database: Database) -> None:
    before = database.value("select count(*) from rowcall.job")
    problem(service.post("/reports", json={"month": "x"}), 400)
    problem(service.post("/reports", json={}), 404)
    problem(service.post("/reports", json={"month": 1, "nmaes": []}), 404)
    problem(service.post("/who"), 401)
    assert database.value("select count(*) from rowcall.job") == before


def test_job_runs_with_the_claims_of_its_caller(service: Service, database: Database) -> None:
    with service.new_client() as ann, service.new_client() as ben, service.new_client() as boss:
        for client, name in ((ann, "ann"), (ben, "ben"), (boss, "boss")):
            client.post("/enter", json={"name": name})
        location = enqueue(service, "/who", ann)
        assert ended(service, location, ann)["result"] == "ann"
        problem(ben.get(location), 404)
        problem(service.get(location), 404)
        problem(ben.delete(location), 404)
        assert boss.get(location).json()["result"] == "ann"


def test_job_of_an_anonymous_caller_is_readable_after_signing_in(service: Service) -> None:
    location = enqueue(service, "/nothing")
    with service.new_client() as client:
        client.post("/enter", json={"name": "ann"})
        assert ended(service, location, client)["state"] == "done"
        assert location.rpartition("/")[2] not in [job["id"] for job in client.get("/jobs").json()]


def test_failed_attempt_is_rolled_back_and_repeated(service: Service, database: Database) -> None:
    job = ended(service, enqueue(service, "/flaky", name="a", until=3))
    assert (job["state"], job["attempts"], job["result"], job["error"]) == ("done", 3, "3", None)
    assert count(database, "flaky a") == 1
    job = ended(service, enqueue(service, "/flaky", name="b", until=99))
    assert (job["state"], job["attempts"]) == ("failed", 3)
    assert "attempt 3 of b" in job["error"]
    assert "result" not in job
    assert count(database, "flaky b") == 0


@pytest.mark.slow
def test_job_reports_progress_and_can_be_cancelled(service: Service, database: Database) -> None:
    location = enqueue(service, "/slow", seconds=60)
    wait_until(lambda: service.get(location).json()["progress"] == "begun", "the job reports its progress")
    assert service.get(location).headers["retry-after"] == "1"
    cancelled = service.request("DELETE", location)
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "running")
    assert ended(service, location)["state"] == "cancelled"
    assert count(database, "slow") == 0
    assert service.request("DELETE", location).json()["state"] == "cancelled"
    location = enqueue(service, "/slow", seconds=1)
    job = ended(service, location)
    assert (job["state"], job["progress"], job["result"]) == ("done", '{"percent": 50}', "slept")
    problem(service.request("DELETE", location), 409)


@pytest.mark.slow
def test_job_state_changes_are_sent_as_events(service: Service) -> None:
    location = enqueue(service, "/slow", seconds=3)
    headers = {"accept": "text/event-stream"}
    events: list[dict[str, Any]] = []
    with service.client.stream("GET", location, headers=headers) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        lines = list(response.iter_lines())
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert events[-1]["state"] == "done"
    assert events[-1]["result"] == "slept"
    assert "running" in [event["state"] for event in events]
    assert '{"percent": 50}' in [event["progress"] for event in events]
    assert len(events) == len({json.dumps(event) for event in events})
    again = service.get(location, headers={**headers, "last-event-id": "done"})
    assert (again.status_code, again.content) == (204, b"")
    once = service.get(location, headers=headers)
    assert once.text.startswith("event: job\nid: done\ndata: {")
    problem(service.get("/jobs/1", headers=headers), 404)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["Granian", "Loop"])
def test_job_event_stream_ends_with_the_client_or_the_job(
    service: Service, database: Database, serve_once: Serve, engine: str
) -> None:
    other = serve_once(database, settings={**SETTINGS, "HttpServer:Engine": engine})
    location = enqueue(other, "/slow", seconds=60)
    headers = {"accept": "text/event-stream"}
    with other.client.stream("GET", location, headers=headers) as response:
        assert next(response.iter_lines()) == "event: job"
    with other.new_client() as client:
        for method in ("HEAD", "GET"):  # over one connection
            response = client.request(method, location, headers=headers if method == "HEAD" else {})
            assert response.status_code == 200
            assert (response.headers["content-type"] == "text/event-stream") == (method == "HEAD")
    with other.client.stream("GET", location, headers=headers) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: job"
        other.request("DELETE", location)
        assert "id: cancelled" in list(lines)
    location = enqueue(other, "/slow", seconds=60)
    with other.client.stream("GET", location, headers=headers) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: job"
        other.signal(signal.SIGTERM)
        assert "" in list(lines)
    assert other.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["Granian", "Loop"])
def test_events_end_when_the_job_cannot_be_read(own_database: Database, serve_once: Serve, engine: str) -> None:
    """Cleanly, as one request in the log; the client connects again."""
    own_database.execute(install_sql())
    service = serve_once(own_database, SQL, {**SETTINGS, "HttpServer:Engine": engine})
    location = enqueue(service, "/slow", seconds=60)
    with service.client.stream("GET", location, headers={"accept": "text/event-stream"}) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: job"
        own_database.execute("alter function rowcall.show_job(uuid) rename to show_no_job")
        rest = list(lines)
    assert rest[-1] == ""
    assert all(line.partition(":")[0] in ("", "id", "data", "event") for line in rest)
    wait_until(lambda: "the events of a job end" in service.log, "the reason is logged")
    assert service.log.count(f"GET {location} ") == 1, service.log


def test_a_waiting_job_is_cancelled_at_once(service: Service, database: Database) -> None:
    number = database.value("select rowcall.enqueue('POST /nothing', '{}', 'default', now() + interval '1 hour')::text")
    assert database.value("select rowcall.cancel_job(%s::uuid)", number) == "cancelled"
    problem(service.get(f"/jobs/{number}"), 404)
    problem(service.get("/jobs/1"), 404)
    problem(service.get(f"/jobs/{number[:-1]}"), 404)


def test_unique_job_is_enqueued_once_while_unfinished(service: Service, database: Database) -> None:
    locations = {enqueue(service, "/only-once", key="k", other=n) for n in range(10)}
    assert len(locations) == 1
    assert enqueue(service, "/only-once", key="other", other=1) not in locations
    ended(service, locations.pop())
    assert count(database, "once k") == 1
    ended(service, enqueue(service, "/only-once", key="k", other=1))
    assert count(database, "once k") == 2


def test_unique_jobs_are_separate_for_each_caller(service: Service, database: Database) -> None:
    """A caller gets no address of a job of another one, who alone may read it."""
    with service.new_client() as ann, service.new_client() as ben:
        places = []
        with database.locked(31):
            for client, name in ((ann, "ann"), (ben, "ben")):
                client.post("/enter", json={"name": name})
                first, second = (enqueue(service, "/own-reports", client, month=5) for _ in range(2))
                assert first == second
                places.append(first)
        assert [ended(service, place, client)["result"] for place, client in zip(places, (ann, ben), strict=True)] == [
            "ann",
            "ben",
        ]


def test_jobs_enqueued_in_a_transaction_run_after_commit(service: Service, database: Database) -> None:
    database.execute("begin; insert into orders values (101); rollback")
    database.execute("begin; insert into orders values (102), (103); commit")
    wait_until(lambda: count(database, "report 102") == 1 and count(database, "report 103") == 1, "the jobs have run")
    assert count(database, "report 101") == 0
    assert database.value("select count(*) from rowcall.job where arguments ->> 'month' = '101'") == 0
    database.execute("select rowcall.enqueue('POST /reports', '{\"month\": \"x\"}', 'reports')")
    wait_until(
        lambda: (
            database.fetch("select state, error from rowcall.job where arguments ->> 'month' = 'x'")[0][0] == "failed"
        ),
        "the arguments are refused",
    )


@pytest.mark.parametrize(
    ("arguments", "claims", "user"),
    [
        ({"note": "claims"}, [["user_id", "41"]], "41"),
        ({"note": "both", "userId": "7"}, [["user_id", "41"]], "41"),
        ({"note": "number"}, [["user_id", 123456789012345678901234567890]], "123456789012345678901234567890"),
        ({"note": "boolean"}, [["user_id", True]], "true"),
        ({"note": "null"}, [["user_id", None]], None),
        ({"note": "argument", "userId": "7"}, None, "7"),
    ],
)
def test_claims_of_a_job_enqueued_in_sql_fill_parameters(
    service: Service, database: Database, arguments: dict[str, str], claims: Any, user: str | None
) -> None:
    sql = "select rowcall.enqueue('POST /whose', $${}$$::jsonb, _claims => nullif($${}$$::jsonb, 'null'))::text"
    number = database.value(sql.format(json.dumps(arguments), json.dumps(claims)))
    ends = "select state = 'done' from rowcall.job where id = '{}' and finished is not null"
    wait_until(lambda: database.fetch(ends.format(number)), "the job ends")
    assert database.fetch(f"select who from work where what = '{arguments['note']}'") == [(user,)]


def test_job_uses_the_time_zone_of_its_request(service: Service) -> None:
    for path, header, value in (
        ("/zone", "Prefer", "timezone=Asia/Tokyo"),
        ("/zone-of-header", "X-Zone", "Asia/Tokyo"),
    ):
        response = service.post(path, headers={header: value})
        assert ended(service, response.headers["location"])["result"] == "Asia/Tokyo"


def test_job_publishes_events_with_the_execution_id_of_its_request(service: Service) -> None:
    with EventStream(service, "/announce/news?a") as of_one, EventStream(service, "/announce/news") as of_all:
        for text, execution in (("1", "a"), ("2", "b"), ("end", "a")):
            response = service.post("/announce", json={"text": text}, headers={"X-NpgsqlRest-ID": execution})
            assert ended(service, response.headers["location"])["state"] == "done"
        of_one.wait(lambda: "end" in of_one.messages, "the last event")
        of_all.wait(lambda: "end" in of_all.messages, "the last event")
        assert of_one.messages == ["1", "end"]
        assert of_all.messages == ["1", "2", "end"]


def test_secrets_are_stored_as_hashes(service: Service, database: Database) -> None:
    job = ended(service, enqueue(service, "/hashed", password="correct horse"))
    assert job["state"] == "done"
    assert job["result"] != "correct horse"
    assert len(job["result"]) > 20


def result_in_sql(database: Database, endpoint: str, arguments: str) -> Any:
    """Enqueue a job in SQL, and return its result as JSON."""
    number = database.value(f"select rowcall.enqueue('{endpoint}', '{arguments}')::text")
    query = f"select convert_from(result, 'UTF8') from rowcall.job where id = '{number}' and state = 'done'"
    return wait_until(lambda: database.fetch(query), "the job is done", 20)[0][0]


def reason_in_sql(database: Database, endpoint: str, arguments: str, claims: str) -> Any:
    """Enqueue a job in SQL, and return why it has failed."""
    enqueue_it = f"select rowcall.enqueue('{endpoint}', '{arguments}', _claims => '{claims}')::text"
    query = f"select error from rowcall.job where id = '{database.value(enqueue_it)}' and state = 'failed'"
    return wait_until(lambda: database.fetch(query), "the job has failed", 20)[0][0]


@pytest.mark.parametrize("path", ["/sealed", "/sealed-cached"])
@pytest.mark.parametrize("in_sql", [True, False])
def test_job_values_are_encrypted_and_hashed_once(
    service: Service, database: Database, in_sql: bool, path: str
) -> None:
    if in_sql:
        arguments = '{"secret": "K-4711", "password": "correct horse"}'
        (row,) = json.loads(result_in_sql(database, f"POST {path}", arguments))
    else:
        (row,) = ended(service, enqueue(service, path, secret="K-4711", password="correct horse"))["result"]
    assert database.value("select count(*) from rowcall.job where bound and arguments::text ~ 'K-4711'") == 0
    assert row["stored"] != "K-4711"
    assert service.post("/opened", json={"stored": row["stored"]}).json() == {"secret": "K-4711"}
    assert verify_password("correct horse", row["hash"])


def test_result_with_decrypted_values_is_stored_encrypted(service: Service, database: Database) -> None:
    (row,) = ended(service, enqueue(service, "/sealed", secret="K-4712", password="x"))["result"]
    location = enqueue(service, "/opened-later", stored=row["stored"])
    assert ended(service, location)["result"] == [{"secret": "K-4712"}]
    stored = f"select result from rowcall.job where id = '{location.rpartition('/')[2]}'"
    assert b"K-4712" not in bytes(database.value(stored))


def test_an_attempt_runs_its_routine_although_responses_are_cached(service: Service, database: Database) -> None:
    first = service.get("/refreshed").text
    assert service.get("/refreshed").text == first
    runs = [result_in_sql(database, "GET /refreshed", "{}") for _ in range(2)]
    assert len({first, *runs}) == 3
    assert service.get("/refreshed").text == first
    problem(service.post("/sealed-cached/forget", json={"secret": "a", "password": "b"}), 404)


def test_a_job_with_null_for_a_strict_function_is_done(service: Service) -> None:
    job = ended(service, enqueue(service, "/doubled", a=None))
    assert (job["state"], job["result"], job["attempts"]) == ("done", None, 1)
    assert ended(service, enqueue(service, "/doubled", a=4))["result"] == "8"


def test_arguments_enqueued_in_sql_are_received_unchanged(service: Service, database: Database) -> None:
    arguments = '{"price": 12345678901234567890.10, "value": {"n": 0.10}}'
    assert result_in_sql(database, "POST /exact", arguments) == '12345678901234567890.10 {"n": 0.10}'
    nested = "[" * 1000 + "]" * 1000
    assert result_in_sql(database, "POST /exact", f'{{"value": {nested}}}') == nested


def test_job_with_unparsable_arguments_fails(service: Service, database: Database) -> None:
    nested = "[" * 2000 + "]" * 2000
    assert "depth limit exceeded" in reason_in_sql(database, "POST /exact", f'{{"value": {nested}}}', "[]")


@pytest.mark.parametrize(
    "claims",
    ['["user_id"]', '{"user_id": "7"}', "7", '["ab"]', "[" * 2000 + "]" * 2000, '[["a", [1]]]'],
    ids=["texts", "object", "number", "letters", "nested", "array"],
)
def test_job_with_malformed_claims_fails(service: Service, database: Database, claims: str) -> None:
    reason = reason_in_sql(database, "POST /exact", '{"value": 1}', claims)
    assert reason == "the claims of the job are no array of pairs of type and value"


def test_hash_parameter_is_hashed_for_a_job_enqueued_in_sql(service: Service, database: Database) -> None:
    result = result_in_sql(database, "POST /hashed", '{"password": "correct horse"}')
    assert verify_password("correct horse", result)


@pytest.mark.slow
def test_jobs_of_overloads_run_their_own_routine(service: Service, database: Database) -> None:
    locations = [enqueue(service, "/exports", id=1), enqueue(service, "/exports", id=1, format="csv")]
    assert [ended(service, location)["result"] for location in locations] == ["whole 1", "csv 1"]
    assert result_in_sql(database, "POST /exports", '{"id": 2}') == "whole 2"
    assert result_in_sql(database, "POST /exports", '{"id": 2, "format": "csv"}') == "csv 2"


def test_queue_limits_bound_concurrent_jobs(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(
        "create table work (what text, running int);"
        "create function busy() returns void language sql as $$ select pg_sleep(0.15); insert into work "
        "select 'busy', count(*) from rowcall.job where state = 'running' and queue = 'few' $$;"
        "comment on function busy() is 'HTTP POST /busy\njob queue few';"
        "create function free() returns void language sql as $$ insert into work values ('free') $$;"
        "comment on function free() is 'HTTP POST /free\njob';"
    )
    limited = {**SETTINGS, "Jobs:QueueLimits:few": "2"}
    for _ in range(2):
        serve_once(own_database, settings=limited, workers=2)
    own_database.execute("select rowcall.enqueue('POST /busy', '{}', 'few') from generate_series(1, 20)")
    own_database.execute("select rowcall.enqueue('POST /free') from generate_series(1, 20)")
    wait_until(lambda: own_database.value("select count(*) from work") == 40, "all jobs have run", 40)
    assert own_database.value("select max(running) from work where what = 'busy'") == 2
    assert own_database.value("select count(*) from rowcall.job where state = 'done'") == 40


def test_a_job_whose_routine_sets_the_status_has_its_result(service: Service) -> None:
    assert ended(service, enqueue(service, "/totals-with-status/21"))["result"] == "42"


def test_a_file_of_commands_is_a_job(service: Service, database: Database) -> None:
    assert ended(service, enqueue(service, "/blocks"))["state"] == "done"
    assert database.value("select count(*) from work where what = 'block'") == 2


def test_job_starts_immediately_after_commit(service: Service) -> None:
    began = time.monotonic()
    for _ in range(5):
        ended(service, enqueue(service, "/nothing"))
    # Without notifications, a worker looks for jobs every ten seconds.
    assert time.monotonic() - began < 20


def test_annotations_without_effect_are_logged(service: Service) -> None:
    log = service.log
    assert "POST /commits: job has no effect: it may commit" in log
    assert "POST /commits-inside: job has no effect: it may commit" in log
    assert "GET /reads: job has no effect: a GET has to answer at once" in log
    assert "POST /sealed-cached: results of this kind are never cached; cached has no effect" in log
    assert "'quickly' is none of queue <name>" in log or "is none of queue <name>" in log


@pytest.mark.usefixtures("service")
def test_job_endpoint_is_left_out_if_jobs_are_disabled(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, settings={"Auth:CookieAuth": "true"})
    assert service.post("/nothing").status_code == 404
    assert "job is switched off (Jobs:Enabled); the endpoint is left out" in service.log


@pytest.mark.slow
def test_killed_workers_lose_no_job_and_repeat_no_committed_work(own_database: Database, serve_once: Serve) -> None:
    """Two hosts whose workers are killed all the time run every job once."""
    own_database.execute(install_sql())
    own_database.execute(SQL)
    hosts = [serve_once(own_database, settings=SETTINGS, workers=2) for _ in range(2)]
    own_database.execute("create unlogged table done (n int)")
    own_database.execute(
        "create function counted(_n int) returns void language plpgsql as $$ begin insert into done values (_n); "
        "perform pg_sleep(0.002); end $$; comment on function counted(int) is 'HTTP POST /counted\njob retries 100'; "
        "notify rowcall, 'reload'"
    )
    for host in hosts:
        wait_until(lambda: host.post("/counted", json={"n": -1}).status_code == 202, "the endpoint is served", 30)  # noqa: B023 (called at once)
    own_database.execute(
        "select rowcall.enqueue('POST /counted', jsonb_build_object('n', n)) from generate_series(1, 2000) n"
    )
    deadline = time.monotonic() + 90
    left = "select count(*) from rowcall.job where state in ('waiting', 'running')"
    with ThreadPoolExecutor(1):
        kills = 0
        while own_database.value(left) and time.monotonic() < deadline:
            time.sleep(0.5)
            if kills < 12:
                victim = hosts[kills % 2].pids()[:1]
                kills += 1
                for pid in victim:
                    os.kill(pid, signal.SIGKILL)
    assert own_database.value(left) == 0
    assert own_database.fetch("select count(*), count(distinct n) from done where n > 0") == [(2000, 2000)]
    assert own_database.value("select count(*) from rowcall.job where state = 'failed'") == 0
