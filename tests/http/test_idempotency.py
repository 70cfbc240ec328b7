"""Requests with an `Idempotency-Key` take effect once (draft-ietf-httpapi-idempotency-key-header)."""

from __future__ import annotations

import hashlib
import os
import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rowcall.service.installation.script import install_sql, newest
from tests.harness.collector import collect_over_http
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table payment (id int generated always as identity primary key, amount int check (amount > 0), note text);
create function pay(_amount int, _seconds float default 0) returns payment language plpgsql as $$
declare made payment;
begin
  insert into payment (amount) values (_amount) returning * into made;
  perform pg_sleep(_seconds);
  return made;
end $$;
comment on function pay(int, float) is 'HTTP POST /pay
idempotent
status 201
X-Paid: {amount}';
create function must_pay(_amount int) returns int language sql as
$$ insert into payment (amount) values (_amount) returning id $$;
comment on function must_pay(int) is 'HTTP POST /must-pay
idempotent required for 2 seconds';
create function located(_amount int) returns payment language plpgsql as $$
declare made payment;
begin
  insert into payment (amount) values (_amount) returning * into made;
  perform set_config('response.status', '201', true);
  perform set_config('response.headers', json_build_object('Location', '/payments/' || made.id)::text, true);
  return made;
end $$;
comment on function located(int) is 'HTTP POST /located
idempotent';
create function nothing(_amount int) returns void language sql as $$ insert into payment (amount) values (_amount) $$;
comment on function nothing(int) is 'HTTP POST /nothing
idempotent';
create function no_value(_amount int) returns text language sql as
$$ insert into payment (amount) values (_amount) returning note $$;
comment on function no_value(int) is 'HTTP POST /no-value
idempotent
null_handling null_literal';
create function raw_bytes(_amount int) returns bytea language sql as
$$ insert into payment (amount) values (_amount) returning '\\x00ff01'::bytea $$;
comment on function raw_bytes(int) is 'HTTP POST /raw-bytes
idempotent';
create function by_query(_amount int) returns int language sql as
$$ insert into payment (amount) values (_amount) returning 1 $$;
comment on function by_query(int) is 'HTTP POST /by-query
param_type query_string
idempotent';
create function whole_body(_body text) returns text language sql as
$$ insert into payment (amount, note) values (1, _body) returning note $$;
comment on function whole_body(text) is 'HTTP POST /whole-body
body_parameter_name _body
idempotent';
create procedure steps(_amount int, _fails boolean default false) language plpgsql as $$
begin
  insert into payment (amount, note) values (_amount, 'first');
  commit;
  if _fails then raise exception 'too late'; end if;
  insert into payment (amount, note) values (_amount, 'second');
end $$;
comment on procedure steps(int, boolean) is 'HTTP POST /steps
idempotent';
create function refuse(_now boolean) returns int language plpgsql as $$
begin if _now then raise exception 'refused'; end if; return 1; end $$;
create function reads() returns int language sql stable as $$ select 1 $$;
comment on function reads() is 'HTTP GET /reads
idempotent';
create function store(_meta json) returns json language sql as $$ select _meta $$;
comment on function store(json) is 'HTTP POST /store
upload for large_object
param _meta is upload metadata
idempotent required';
comment on table payment is 'HTTP
for insert_returning
HTTP PUT /payments
idempotent';
create table article (id int primary key, title text, version int not null default 1);
insert into article (id, title) values (1, 'first');
create function next_version() returns trigger language plpgsql as
$$ begin new.version := old.version + 1; return new; end $$;
create trigger next_version before update on article for each row execute function next_version();
comment on table article is 'HTTP
version column version
idempotent
disabled
enabled update_returning
for update_returning
HTTP PATCH /articles/{id}';
create function reveal(_secret text) returns table (secret text) language sql as
$$ insert into payment (amount, note) values (1, _secret) returning note $$;
comment on function reveal(text) is 'HTTP POST /reveal
encrypt _secret
decrypt secret
idempotent';
create table leaflet (id int primary key, version int not null default 1);
comment on table leaflet is 'HTTP
version column version
idempotent
disabled
enabled insert
for insert
HTTP POST /leaflets';
create function enter(_name text) returns table (status int, name_identifier text, name text) language sql as
$$ select 200, _name, _name $$;
comment on function enter(text) is 'HTTP POST /enter
login';
create function mine(_amount int) returns payment language sql as
$$ insert into payment (amount, note) values (_amount, current_user) returning * $$;
comment on function mine(int) is 'HTTP POST /mine
authorize
idempotent';
"""
CHARGE = """
create table token_number (n int);
create function next_token() returns int language sql as
$$ insert into token_number values (1); select count(*)::int from token_number $$;
create type charge as (status_code int, body json);
comment on type charge is 'POST {url}/charge

{{"amount": {{_amount}}}}';
create function charged(_amount int, _token int default null, _charge charge default null) returns text language sql as
$$ insert into payment (amount, note) values (_amount, 'charged')
   returning concat_ws(' ', _token, (_charge).status_code, (_charge).body) $$;
comment on function charged(int, int, charge) is 'HTTP POST /charged
idempotent
_token = select next_token()';
"""
FILE = """-- HTTP POST /file
-- idempotent
-- @param $1 amount
insert into payment (amount, note) values ($1, 'file');
select count(*) as n from payment where note = 'file';
"""
OWN_TRANSACTION = """-- HTTP POST /own-transaction
-- idempotent
-- @param $1 early
-- @param $2 late
begin;
insert into payment (amount, note) values (1, 'own');
select refuse($1::boolean); -- @skip
commit;
select refuse($2::boolean);
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("files")
    Path(folder, "file.sql").write_text(FILE)
    Path(folder, "own_transaction.sql").write_text(OWN_TRANSACTION)
    database.execute(install_sql())
    settings = {
        "Service:SqlFileSource:FilePattern": f"{folder}/*.sql",
        "Service:CrudSource:Enabled": "true",
        "Auth:CookieAuth": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:HttpClientOptions:Enabled": "true",
    }
    return serve(database, SQL + CHARGE.format(url=upstream.url), settings, workers=2)


def key() -> dict[str, str]:
    return {"idempotency-key": str(uuid.uuid4())}


def repeatable_parts(response: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """Return the parts of a response that a repetition has to reproduce."""
    left_out = ("date", "idempotency-replayed", "server")
    return (
        response.status_code,
        response.content,
        {name: value for name, value in response.headers.items() if name not in left_out},
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/pay", 201),
        ("/must-pay", 200),
        ("/located", 201),
        ("/nothing", 204),
        ("/no-value", 200),
        ("/raw-bytes", 200),
        ("/file", 200),
    ],
)
def test_a_repetition_gets_the_same_response(service: Service, database: Database, path: str, status: int) -> None:
    before = database.value("select count(*) from payment")
    headers = key()
    first = service.post(path, json={"amount": 7}, headers=headers)
    assert first.status_code == status, first.text
    assert "idempotency-replayed" not in first.headers
    for _ in range(3):
        second = service.post(path, json={"amount": 7}, headers=headers)
        assert repeatable_parts(second) == repeatable_parts(first)
        assert second.headers["idempotency-replayed"] == "true"
    assert database.value("select count(*) from payment") == before + 1
    assert service.post(path, json={"amount": 7}, headers=key()).status_code == status
    assert database.value("select count(*) from payment") == before + 2


def test_a_repetition_repeats_no_effects_ahead_of_the_routine(
    service: Service, database: Database, upstream: Upstream
) -> None:
    upstream.on("/charge", answer({"paid": True}))
    headers = key()
    first = service.post("/charged", json={"amount": 7}, headers=headers)
    assert (first.status_code, first.text) == (200, '1 200 {"paid": true}')
    second = service.post("/charged", json={"amount": 7}, headers=headers)
    assert repeatable_parts(second) == repeatable_parts(first)
    assert second.headers["idempotency-replayed"] == "true"
    problem(service.post("/charged", json={"amount": 8}, headers=headers), 422)
    assert len(upstream.to("/charge")) == 1
    assert database.value("select count(*) from token_number") == 1
    assert database.value("select count(*) from payment where note = 'charged'") == 1
    headers = key()
    problem(service.post("/charged", json={"amount": -1}, headers=headers), 400)
    assert service.post("/charged", json={"amount": 1}, headers=headers).text == '3 200 {"paid": true}'


def test_stored_response_with_decrypted_values_is_encrypted(service: Service, database: Database) -> None:
    headers = key()
    first = service.post("/reveal", json={"secret": "K-4711"}, headers=headers)
    assert (first.status_code, first.text) == (200, '[{"secret":"K-4711"}]')
    assert repeatable_parts(service.post("/reveal", json={"secret": "K-4711"}, headers=headers)) == repeatable_parts(
        first
    )
    stored = "select body from rowcall.idempotency where key = %s"
    assert b"K-4711" not in bytes(database.value(stored, headers["idempotency-key"]))


def test_query_raw_body_and_table_requests_are_replayed(service: Service, database: Database) -> None:
    before = database.value("select count(*) from payment")
    headers = key()
    assert service.post("/by-query?amount=3", headers=headers).text == "1"
    assert service.post("/by-query?amount=3", headers=headers).headers["idempotency-replayed"] == "true"
    problem(service.post("/by-query?amount=4", headers=headers), 422)
    headers = key()
    assert service.post("/whole-body", content="one", headers=headers).text == "one"
    assert service.post("/whole-body", content="one", headers=headers).text == "one"
    problem(service.post("/whole-body", content="two", headers=headers), 422)
    headers = key()
    put = [service.request("PUT", "/payments", json={"amount": 5}, headers=headers) for _ in range(2)]
    assert put[0].text == put[1].text
    assert database.value("select count(*) from payment") == before + 3


def test_different_request_with_the_same_key_gets_422(service: Service) -> None:
    headers = key()
    service.post("/pay", json={"amount": 7}, headers=headers)
    assert (
        "another address, body or format"
        in problem(service.post("/pay", json={"amount": 8}, headers=headers), 422)["detail"]
    )
    problem(service.post("/nothing", json={"amount": 7}, headers=headers), 422)


def test_request_without_a_key_always_takes_effect(service: Service, database: Database) -> None:
    before = database.value("select count(*) from payment")
    responses = [service.post("/pay", json={"amount": 7}) for _ in range(2)]
    assert [response.status_code for response in responses] == [201, 201]
    assert database.value("select count(*) from payment") == before + 2
    detail = problem(service.post("/must-pay", json={"amount": 7}), 400)["detail"]
    assert "requires the header Idempotency-Key" in detail


@pytest.mark.parametrize("text", ["", '""', '"open', "two words", "x" * 256, "caf\u00e9", 'a"b', '"a\\b"'])
def test_invalid_key_gets_400(service: Service, text: str) -> None:
    response = service.post("/pay", json={"amount": 7}, headers={b"idempotency-key": text.encode("latin-1")})
    assert "1 to 255 printable" in problem(response, 400)["detail"]


def test_a_key_may_be_quoted(service: Service) -> None:
    name = str(uuid.uuid4())
    first = service.post("/pay", json={"amount": 7}, headers={"idempotency-key": f'"{name}"'})
    second = service.post("/pay", json={"amount": 7}, headers={"idempotency-key": name})
    assert repeatable_parts(second) == repeatable_parts(first)
    twice = [("idempotency-key", name), ("idempotency-key", name)]
    assert "is there twice" in problem(service.post("/pay", json={"amount": 7}, headers=twice), 400)["detail"]


def test_failed_request_can_be_repeated_with_its_key(service: Service, database: Database) -> None:
    headers = key()
    problem(service.post("/pay", json={"amount": -1}, headers=headers), 400)
    problem(service.post("/pay", json={"amount": "x"}, headers=headers), 400)
    assert database.value("select count(*) from rowcall.idempotency where key = %s", headers["idempotency-key"]) == 0
    assert service.post("/pay", json={"amount": 1}, headers=headers).status_code == 201


def test_request_with_a_false_precondition_can_be_repeated_with_its_key(service: Service) -> None:
    headers = key()

    def change(version: int) -> httpx.Response:
        conditions = {**headers, "if-match": f'"{version}"'}
        return service.request("PATCH", "/articles/1", json={"title": "second"}, headers=conditions)

    for _ in range(20):  # the key is free as soon as the response is there
        problem(change(7), 412)
    first = change(1)
    assert (first.status_code, first.json()[0]["version"]) == (200, 2)
    assert repeatable_parts(change(1)) == repeatable_parts(first)
    problem(change(2), 422)


def test_digest_of_a_request_without_conditions_is_that_of_former_versions(
    service: Service, database: Database
) -> None:
    """Their keys are stored, and the requests may be repeated after an update."""
    headers, body = key(), b'{"id":1}'
    response = service.post("/leaflets", content=body, headers={**headers, "content-type": "application/json"})
    assert response.is_success, response.text
    digest = hashlib.sha256(b"4:POST9:/leaflets0:16:application/json" + body).digest()
    stored = "select request from rowcall.idempotency where key = %s"
    assert bytes(database.value(stored, headers["idempotency-key"])) == digest


@pytest.mark.slow
def test_running_request_with_the_key_gets_409(service: Service, database: Database) -> None:
    headers = key()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(service.post, "/pay", json={"amount": 7, "seconds": 1.5}, headers=headers)
        running = """select count(*) from pg_stat_activity
            where datname = current_database() and state = 'active' and wait_event = 'PgSleep'"""
        wait_until(lambda: database.value(running) == 1, "the first request runs")
        second = service.post("/pay", json={"amount": 7, "seconds": 1.5}, headers=headers)
        assert "still running" in problem(second, 409)["detail"]
        assert second.headers["retry-after"] == "1"
        assert first.result().status_code == 201
    assert service.post("/pay", json={"amount": 7, "seconds": 1.5}, headers=headers).content == first.result().content


@pytest.mark.slow
def test_fifty_parallel_repetitions_take_effect_once(service: Service, database: Database) -> None:
    for _ in range(5):
        before = database.value("select count(*) from payment")
        headers = key()
        with ThreadPoolExecutor(50) as pool:
            runs = [pool.submit(service.post, "/pay", json={"amount": 7}, headers=headers) for _ in range(50)]
            responses = [run.result() for run in runs]
        assert {response.status_code for response in responses} <= {201, 409}
        assert len({response.content for response in responses if response.status_code == 201}) == 1
        assert sum("idempotency-replayed" not in r.headers for r in responses if r.status_code == 201) == 1
        assert database.value("select count(*) from payment") == before + 1


def test_long_and_unusual_keys_are_accepted(service: Service, database: Database) -> None:
    """A key is a string of RFC 8941, and may be written without its quotation marks."""
    before = database.value("select count(*) from payment")
    drawn = uuid.uuid4().hex
    for text, same in (
        (f'"{drawn} with blanks; and, signs!"', f'"{drawn} with blanks; and, signs!"'),
        (f'"{drawn} \\"quoted\\" and a \\\\"', f'"{drawn} \\"quoted\\" and a \\\\"'),
        (f"{drawn}{'~' * 223}", f'"{drawn}{"~" * 223}"'),
        (f"{drawn}/?#[]@!$&'()*+,;=%20", f'"{drawn}/?#[]@!$&\'()*+,;=%20"'),
    ):
        first = service.post("/pay", json={"amount": 7}, headers={"idempotency-key": text})
        assert first.status_code == 201, first.text
        second = service.post("/pay", json={"amount": 7}, headers={"idempotency-key": same})
        assert repeatable_parts(second) == repeatable_parts(first)
    assert database.value("select count(*) from payment") == before + 4


def test_same_values_in_another_encoding_are_another_request(service: Service) -> None:
    headers = key()
    assert service.post("/pay", json={"amount": 7}, headers=headers).status_code == 201
    form = {"content-type": "application/x-www-form-urlencoded"}
    problem(service.post("/pay", content="amount=7", headers=headers | form), 422)
    problem(service.post("/pay", content='{"amount": 7 }', headers=headers), 422)
    headers = key()
    first = service.post("/pay", content="amount=7", headers=headers | form)
    again = service.post("/pay", content="amount=7", headers=headers | form)
    assert (first.status_code, repeatable_parts(again)) == (201, repeatable_parts(first))


def test_keys_are_separate_for_each_caller(service: Service, database: Database) -> None:
    headers = key()
    problem(service.post("/mine", json={"amount": 7}, headers=headers), 401)
    with service.new_client() as ann, service.new_client() as again, service.new_client() as ben:
        for client, name in ((ann, "ann"), (again, "ann"), (ben, "ben")):
            assert client.post("/enter", json={"name": name}).status_code == 200
        first = ann.post("/mine", json={"amount": 7}, headers=headers)
        assert again.post("/mine", json={"amount": 7}, headers=headers).content == first.content
        other = ben.post("/mine", json={"amount": 7}, headers=headers)
        assert other.status_code == 200
        assert other.content != first.content
    assert first.headers["cache-control"] == "private, no-store" or "private" in first.headers["cache-control"]


@pytest.mark.slow
def test_stored_responses_expire(service: Service, database: Database) -> None:
    before = database.value("select count(*) from payment")
    headers = key()
    first = service.post("/must-pay", json={"amount": 7}, headers=headers)
    assert service.post("/must-pay", json={"amount": 7}, headers=headers).content == first.content
    expired = "select count(*) from rowcall.idempotency where key = %s and expires < clock_timestamp()"
    wait_until(lambda: database.value(expired, headers["idempotency-key"]) == 1, "the result expires")
    assert service.post("/must-pay", json={"amount": 7}, headers=headers).content != first.content
    assert database.value("select count(*) from payment") == before + 2
    database.execute("update rowcall.idempotency set expires = now() - interval '1 minute'")
    left = database.value("select count(*) from rowcall.idempotency")
    assert database.value("select rowcall.remove_expired_requests(1000000)") == left > 0


def test_procedure_with_commits_runs_once(service: Service, database: Database) -> None:
    count = "select count(*) from payment where amount = 77"
    headers = key()
    first = service.post("/steps", json={"amount": 77}, headers=headers)
    assert first.status_code == 204, first.text
    second = service.post("/steps", json={"amount": 77}, headers=headers)
    assert repeatable_parts(second) == repeatable_parts(first)
    assert database.value(count) == 2
    headers = key()
    failed = service.post("/steps", json={"amount": 77, "fails": True}, headers=headers)
    assert "may have taken effect in part" in problem(failed, 409)["detail"]
    again = service.post("/steps", json={"amount": 77, "fails": True}, headers=headers)
    assert "its outcome is not known" in problem(again, 409)["detail"]
    assert database.value(count) == 3


def test_file_with_commit_runs_once(service: Service, database: Database) -> None:
    count = "select count(*) from payment where note = 'own'"
    headers = key()
    body = {"early": False, "late": False}
    first = service.post("/own-transaction", json=body, headers=headers)
    assert (first.status_code, first.text) == (200, '{"result1":1,"result2":[1]}')
    assert repeatable_parts(service.post("/own-transaction", json=body, headers=headers)) == repeatable_parts(first)
    assert database.value(count) == 1
    headers = key()
    body["late"] = True
    failed = service.post("/own-transaction", json=body, headers=headers)
    assert "the file has failed and may have taken effect in part" in problem(failed, 409)["detail"]
    again = service.post("/own-transaction", json=body, headers=headers)
    assert "its outcome is not known" in problem(again, 409)["detail"]
    assert database.value(count) == 2


def test_key_is_released_if_a_file_fails_before_its_commit(service: Service, database: Database) -> None:
    headers = key()
    problem(service.post("/own-transaction", json={"early": True, "late": False}, headers=headers), 400)
    stored = "select count(*) from rowcall.idempotency where key = %s"
    wait_until(lambda: not database.value(stored, headers["idempotency-key"]), "the key is forgotten")
    response = service.post("/own-transaction", json={"early": False, "late": False}, headers=headers)
    assert response.status_code == 200, response.text


def test_procedure_of_a_killed_worker_is_not_repeated(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql = """
create table step (name text);
create procedure steps() language plpgsql as $$
begin
  insert into step values ('first');
  commit;
  perform pg_sleep(60);
  insert into step values ('second');
end $$;
comment on procedure steps() is 'HTTP POST /steps
idempotent';
"""
    service = serve_once(own_database, sql)
    headers = key()
    sleeping = "wait_event = 'PgSleep'"
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(service.request_once, "POST", "/steps", headers=headers)
        wait_until(lambda: own_database.backends(sleeping), "the procedure has committed its first step", 30)
        os.kill(service.pids()[0], signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            first.result(60)
    own_database.terminate(sleeping)
    again = service.request_once("POST", "/steps", headers=headers)
    assert "its outcome is not known" in problem(again, 409)["detail"]
    assert own_database.fetch("select name from step") == [("first",)]


NARROW = {
    "ConnectionSettings:Pool:Sharing": "false",
    "ConnectionSettings:Pool:ExclusiveConnections": "1",
    "ConnectionSettings:Pool:QueueLimit": "1",
}


def test_key_is_released_if_the_procedure_has_not_begun(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql = """
create table step (name text);
create procedure steps() language plpgsql as $$ begin insert into step values ('first'); commit; end $$;
comment on procedure steps() is 'HTTP POST /steps
idempotent';
create function hold() returns int language sql as 'select 1 from pg_advisory_xact_lock(9)';
comment on function hold() is 'HTTP POST /hold';
"""
    service = serve_once(own_database, sql, NARROW)
    headers = key()
    with ThreadPoolExecutor(3) as pool, own_database.locked(9):
        with psycopg.connect(own_database.conninfo) as session:
            session.execute("lock table rowcall.idempotency")
            first = pool.submit(service.request_once, "POST", "/steps", headers=headers)
            wait_until(lambda: own_database.backends("wait_event = 'relation'"), "the key is about to be recorded")
            holding = [pool.submit(service.request_once, "POST", "/hold") for _ in range(2)]
            wait_until(lambda: any(future.done() for future in holding), "one is refused, and the other one waits")
        assert "the queue of waiting requests is full" in problem(first.result(60), 503)["detail"]
        wait_until(lambda: not own_database.value("select count(*) from rowcall.idempotency"), "the key is forgotten")
    assert service.request_once("POST", "/steps", headers=headers).status_code == 204
    assert own_database.fetch("select name from step") == [("first",)]


def test_procedure_with_commits_is_answered_if_the_pool_is_exhausted(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql = """
create table step (name text);
create procedure steps() language plpgsql as $$
begin
  insert into step values ('first');
  commit;
  perform pg_advisory_xact_lock(8);
end $$;
comment on procedure steps() is 'HTTP POST /steps
idempotent';
create function hold() returns int language sql as 'select 1 from pg_advisory_xact_lock(9)';
comment on function hold() is 'HTTP POST /hold';
"""
    service = serve_once(own_database, sql, NARROW)
    headers = key()
    with ThreadPoolExecutor(3) as pool, own_database.locked(9):
        with own_database.locked(8):
            first = pool.submit(service.request_once, "POST", "/steps", headers=headers)
            wait_until(own_database.waiting, "the procedure runs")
            holding = [pool.submit(service.request_once, "POST", "/hold") for _ in range(2)]
            wait_until(lambda: any(future.done() for future in holding), "one is refused, and the other one waits")
        assert first.result(60).status_code == 204
        wait_until(lambda: own_database.value("select finished from rowcall.idempotency"), "the result is stored")
    second = service.request_once("POST", "/steps", headers=headers)
    assert (second.status_code, second.headers["idempotency-replayed"]) == (204, "true")
    assert own_database.fetch("select name from step") == [("first",)]


@pytest.mark.slow
def test_late_procedure_result_is_not_stored_for_a_newer_request(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql = """
create procedure short() language plpgsql as $$ begin commit; perform pg_advisory_xact_lock(8); end $$;
comment on procedure short() is 'HTTP POST /short
idempotent for 1 second';
create procedure long() language plpgsql as $$ begin commit; perform pg_advisory_xact_lock(9); end $$;
comment on procedure long() is 'HTTP POST /long
idempotent';
"""
    service = serve_once(own_database, sql)
    headers = key()
    expired = "select expires < clock_timestamp() from rowcall.idempotency"
    with ThreadPoolExecutor(2) as pool, own_database.locked(9):
        with own_database.locked(8):
            first = pool.submit(service.request_once, "POST", "/short", headers=headers)
            wait_until(own_database.waiting, "the first procedure runs")
            wait_until(lambda: own_database.value(expired), "its key expires")
            pool.submit(service.request_once, "POST", "/long", headers=headers)
            wait_until(lambda: not own_database.value(expired), "the key is that of the second procedure")
        assert first.result(60).status_code == 204
        assert not own_database.value("select finished from rowcall.idempotency")
    wait_until(lambda: own_database.value("select finished from rowcall.idempotency"), "the result is stored")


@pytest.mark.slow
def test_stored_responses_survive_a_restart_and_are_shared_by_hosts(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql, headers = SQL.partition("create function must_pay")[0], key()
    former, other = serve_once(own_database, sql), serve_once(own_database)
    first = former.post("/pay", json={"amount": 7}, headers=headers)
    former.stop()
    restarted = serve_once(own_database)
    for service in (other, restarted):
        again = service.post("/pay", json={"amount": 7}, headers=headers)
        assert repeatable_parts(again) == repeatable_parts(first)
        assert again.headers["idempotency-replayed"] == "true"
    assert own_database.value("select count(*) from payment") == 1


def test_stored_responses_expire_after_a_day_or_the_annotated_time(service: Service, database: Database) -> None:
    hours = "select round(extract(epoch from expires - now()) / 3600)::int from rowcall.idempotency where key = %s"
    headers = key()
    service.post("/pay", json={"amount": 7}, headers=headers)
    assert database.value(hours, headers["idempotency-key"]) == 24


def test_annotations_without_effect_are_reported(service: Service) -> None:
    assert "GET /reads: idempotent has no effect: a GET only reads" in service.log
    assert "POST /store: idempotent has no effect: uploads are not recorded" in service.log
    assert "/payments: idempotent has no effect" not in service.log


def test_other_roles_have_no_access_to_stored_keys(service: Service, database: Database) -> None:
    service.post("/pay", json={"amount": 7}, headers=key())
    database.execute("drop role if exists idem_reader; create role idem_reader")
    try:
        for sql in ("select * from rowcall.idempotency", "delete from rowcall.idempotency"):
            with pytest.raises(Exception, match="permission denied"):
                database.execute(f"set role idem_reader; {sql}")
    finally:
        database.execute("drop role idem_reader")


@pytest.mark.slow
def test_each_key_takes_effect_once_if_workers_are_killed(own_database: Database, serve_once: Serve) -> None:
    """Clients repeat their requests until they get a response, while the workers are killed around COMMIT."""
    own_database.execute(install_sql())
    service = serve_once(
        own_database, SQL, {"Auth:CookieAuth": "true", "Service:CrudSource:Enabled": "true"}, workers=2
    )
    stop = time.monotonic() + 6
    statuses: list[int] = []

    def work(number: int) -> int:
        done = 0
        with service.new_client(timeout=10) as client:
            while time.monotonic() < stop:
                headers = key()
                amount = number * 1_000_000 + done + 1
                while True:
                    try:
                        status = client.post("/pay", json={"amount": amount}, headers=headers).status_code
                    except httpx.TransportError:
                        continue
                    statuses.append(status)
                    if status == 201:
                        break
                    assert status in (409, 503), status
                done += 1
        return done

    with ThreadPoolExecutor(9) as pool:
        runs = [pool.submit(work, number) for number in range(1, 9)]
        while time.monotonic() < stop - 1:
            time.sleep(0.5)
            for pid in service.pids()[:1]:
                os.kill(pid, signal.SIGKILL)
        total = sum(run.result() for run in runs)
    counts = own_database.fetch("select count(*), count(distinct amount) from payment")[0]
    assert counts == (total, total)
    assert total > 50


@pytest.mark.slow
def test_idempotent_endpoint_is_left_out_without_the_schema(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    sql = SQL.partition("create function must_pay")[0]
    service = serve_once(own_database, sql)
    assert service.post("/pay", json={"amount": 1}).status_code == 404
    assert "run rowcall --install; the endpoint is left out" in service.log
    connection = f"--ConnectionStrings:Default={own_database.conninfo}"
    printed = rowcall(tmp_path, "--install", "--print")
    assert printed.returncode == 0
    assert printed.stdout == install_sql()
    assert own_database.value("select to_regnamespace('rowcall') is null")
    first = rowcall(tmp_path, "--install", connection)
    assert (first.returncode, first.stdout.strip()) == (0, f"the schema rowcall has version {newest()}"), first.stderr
    again = rowcall(tmp_path, "--install", connection)
    assert again.stdout.strip() == f"the schema rowcall has version {newest()} already"
    refused = rowcall(tmp_path, "--print")
    assert refused.returncode != 0
    wait_until(lambda: service.post("/pay", json={"amount": 1}).status_code == 201, "the endpoint is served", 30)


@pytest.mark.slow
def test_the_schema_is_installed_by_an_ordinary_role(own_database: Database, tmp_path: Path) -> None:
    name = own_database.name
    own_database.execute(f"create role installer_{name} login; grant create on database {name} to installer_{name}")
    try:
        connection = f"--ConnectionStrings:Default={own_database.conninfo_as(f'installer_{name}')}"
        result = rowcall(tmp_path, "--install", connection)
        assert result.returncode == 0, result.stderr
        own_database.execute(f"revoke create on database {name} from installer_{name}")
        assert rowcall(tmp_path, "--install", connection).returncode == 0
        denied = f"--ConnectionStrings:Default={own_database.conninfo_as(f'installer_{name}')}"
        own_database.execute("drop schema rowcall cascade")
        failed = rowcall(tmp_path, "--install", denied)
        assert failed.returncode != 0
        assert "permission denied" in failed.stderr + failed.stdout
    finally:
        own_database.execute(
            f"drop owned by installer_{name} cascade; drop role installer_{name}; drop schema if exists rowcall cascade"
        )


def test_parse_all_exposes_nothing_of_the_schema(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    sql = "create function hello() returns int language sql stable as 'select 1'"
    settings = {"Service:CommentsMode": "ParseAll", "Service:CrudSource:Enabled": "true",
                "Service:CrudSource:CommentsMode": "ParseAll", "Service:UrlPathPrefix": ""}  # fmt: skip
    service = serve_once(own_database, sql, settings)
    assert service.get("/hello").status_code == 200
    assert service.post("/rowcall/forget-request", json={}).status_code == 404
    assert service.get("/rowcall/idempotency").status_code == 404
    assert service.get("/idempotency").status_code == 404


@pytest.mark.slow
def test_span_of_a_replayed_request_is_marked(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    with collect_over_http() as collector:
        tracing = {
            "Tracing:Enabled": "true",
            "Tracing:SampleRatio": "1",
            "Tracing:Interval": "50ms",
            "Tracing:Endpoint": collector.url,
            "Auth:CookieAuth": "true",
            "Service:CrudSource:Enabled": "true",
        }
        service = serve_once(own_database, SQL, tracing, workers=2)
        headers = key()
        for amount in (7, 7, 8):
            service.request_once("POST", "/pay", json={"amount": amount}, headers=headers)

        def spans() -> list[Span]:
            return sorted(
                (span for span in collector.spans if span.name == "POST /pay"),
                key=lambda span: span.start_time_unix_nano,
            )

        found = wait_until(lambda: len(spans()) == 3 and spans(), "the spans have arrived", 20)
        replayed = [
            [item.value.bool_value for item in span.attributes if item.key == "rowcall.idempotency.replayed"]
            for span in found
        ]
        assert replayed == [[], [True], []]


@pytest.mark.slow
def test_metrics_count_outcomes(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    admin = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0", "Auth:CookieAuth": "true"}
    service = serve_once(own_database, SQL, {**admin, "Service:CrudSource:Enabled": "true"}, workers=2)
    headers = key()
    for amount in (7, 7, 7, 8):
        service.request_once("POST", "/pay", json={"amount": amount}, headers=headers)
    with admin_of(service) as client:
        numbers = numbers_of(client)
        found = {
            outcome: numbers.of("rowcall_idempotent_requests_total", outcome=outcome)
            for outcome in ("new", "replayed", "mismatch")
        }
    assert found == {"new": 1, "replayed": 2, "mismatch": 1}


EXPORTED = """
create table sale (id int generated always as identity, at timestamptz not null default '2026-07-01T22:30:00Z');
create function sell(_n int) returns setof sale language sql as
$$ insert into sale select from generate_series(1, _n) returning * $$;
comment on function sell(int) is 'HTTP POST /sell
idempotent
timezone_from prefer';
"""


def test_key_is_bound_to_the_response_format(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    service = serve_once(own_database, EXPORTED, {"Exports:Enabled": "true"})
    formats: list[tuple[str, dict[str, str], str]] = [
        ("", {}, "application/json"),
        ("", {"accept": "text/csv"}, "text/csv"),
        ("", {"accept": "application/jsonl"}, "application/jsonl"),
        ("?format=excel", {}, "application/vnd.openxmlformats"),
        ("", {"prefer": "timezone=Asia/Tokyo"}, "application/json"),
    ]
    for number, (query, headers, media_type) in enumerate(formats, 1):
        name = key()
        first, again = (service.post(f"/sell{query}", json={"n": 2}, headers=headers | name) for _ in range(2))
        assert first.headers["content-type"].startswith(media_type), first.text
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.content == first.content
        for other_query, other_headers, _ in formats:
            if (other_query, other_headers) != (query, headers):
                other = service.post(f"/sell{other_query}", json={"n": 2}, headers=other_headers | name)
                assert "another address, body or format" in problem(other, 422)["detail"]
        assert own_database.value("select count(*) from sale") == 2 * number
    # Two ways to choose the same format.
    name = key()
    assert service.post("/sell?format=csv", json={"n": 1}, headers=name).status_code == 200
    same = service.post("/sell", json={"n": 1}, headers={"accept": "text/csv, */*;q=0.1", **name})
    assert same.headers["idempotency-replayed"] == "true"
