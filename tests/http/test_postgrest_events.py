"""`PostgRest:PublishNotices`: which notices of PostgREST's interface become events, for whom (events-17)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.postgrest import SECRET, create_roles, token
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

ENDPOINTS = """
create function feed() returns void language sql as '';
comment on function feed() is 'HTTP GET /feed
sse_subscribe news';
create function finish() returns void language plpgsql as $$ begin raise info 'end'; end $$;
comment on function finish() is 'HTTP POST /finish
sse_publish on info';
create function enter(_name text, _roles text[] default null, _org text default null)
returns table (user_id text, user_name text, user_roles text[], org text)
language sql as $$ select 'id-' || _name, _name, _roles, _org $$;
comment on function enter(text, text[], text) is 'HTTP POST /enter
login';
"""
API = """
create schema api;
create function api.say(text text, hint text default null) returns text language plpgsql as $$ begin
  if hint is null then raise info '%', text; else raise info '%', text using hint = hint; end if;
  return text;
end $$;
create function api.say_steadily(text text) returns text stable language plpgsql as
  $$ begin raise info '%', text; return text; end $$;
create function api.say_when_planned(text text) returns text immutable language plpgsql as
  $$ begin raise info '%', text; return text; end $$;
create function api.say_on_all_levels() returns void language plpgsql as $$ begin
  raise log 'log'; raise notice 'notice'; raise warning 'warning'; raise info 'info';
end $$;
create function api.say_and_fail() returns void language plpgsql as
  $$ begin raise info 'halfway'; raise exception 'no'; end $$;
create function api.pipelined() returns boolean stable language sql as
  $$ select source = 'client' from pg_settings where name = 'jit' $$;
create function api.say_around_a_lock() returns void language plpgsql as
  $$ begin raise info 'begun'; perform pg_advisory_xact_lock(4717); raise info 'ended'; end $$;
create function api.before() returns void language plpgsql as $$ begin
  if current_setting('request.headers')::json ->> 'x-before' is not null then raise info 'before'; end if;
end $$;
create table api.parent (id int primary key);
create table api.item (id int primary key, name text, up int references api.parent deferrable initially deferred);
insert into api.item values (7, 'old');
create function api.report() returns trigger language plpgsql as
  $$ begin raise info '% %', lower(tg_op), new.name; return new; end $$;
create trigger report before insert or update on api.item for each row execute function api.report();
create table api.guarded (id int primary key);
insert into api.guarded values (1);
alter table api.guarded enable row level security;
create function api.passes() returns boolean stable language plpgsql as
  $$ begin raise info 'policy'; return true; end $$;
create policy seen on api.guarded using (api.passes());
"""
SETTINGS = {
    "PostgRest:Enabled": "true",
    "PostgRest:Path": "/rest",
    "PostgRest:Schemas": "api",
    "PostgRest:JwtSecret": SECRET,
    "PostgRest:PreRequest": "api.before",
    "PostgRest:TransactionEnd": "commit-allow-override",
    "PostgRest:PublishNotices": "INFO",
    "ConnectionSettings:Pool:SlowThreshold": "1 second",
    "Auth:BearerTokenAuth": "true",
}
STREAM = "/feed/news"


def prepare(database: Database) -> tuple[str, str]:
    """Create the schema, and return its roles: the anonymous one and that of clerks."""
    database.execute(ENDPOINTS + API)
    anonymous, clerk = create_roles(database, "anon", "clerk")
    database.execute(
        f"grant usage on schema api to {anonymous}, {clerk};"
        f"grant all on all tables in schema api to {anonymous}, {clerk}"
    )
    return anonymous, clerk


@pytest.fixture(scope="module")
def roles(database: Database) -> tuple[str, str]:
    return prepare(database)


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database, roles: tuple[str, str]) -> Service:
    return serve(database, settings={**SETTINGS, "PostgRest:AnonymousRole": roles[0]}, workers=2)


@pytest.fixture(scope="module")
def clerk(service: Service, roles: tuple[str, str]) -> dict[str, str]:
    """The header of a subscriber that has the role of clerks."""
    return signed_in(service, "cleo", roles[1])


def signed_in(service: Service, name: str, role: str | None = None, org: str | None = None) -> dict[str, str]:
    body = {"name": name, "roles": [role] if role else [], "org": org}
    return {"authorization": f"Bearer {service.post('/enter', json=body).json()['accessToken']}"}


def say(service: Service, text: str, hint: str | None = None, headers: Mapping[str, str] | None = None) -> None:
    response = service.post("/rest/rpc/say", json={"text": text, "hint": hint}, headers=headers)
    assert response.status_code == 200, response.text


def finish(service: Service) -> None:
    """Publish `end` for all streams, on the connection, and so by the worker, of the requests before."""
    assert service.post("/finish").status_code == 204


def test_notices_of_exactly_the_level_are_events(
    service: Service, roles: tuple[str, str], clerk: dict[str, str]
) -> None:
    with EventStream(service, STREAM, clerk) as stream:
        assert service.post("/rest/rpc/say_on_all_levels", json={}, headers=token(role=roles[1])).status_code == 204
        finish(service)
        stream.wait_for("info", "end")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "expected"),
    [
        ("POST", "/rpc/say", '{"text": "by POST"}', {}, "by POST"),
        ("GET", "/rpc/say_steadily?text=by%20GET", "", {}, "by GET"),
        ("POST", "/item", '{"id": 1, "name": "a"}', {}, "insert a"),
        ("POST", "/item", '{"id": 2, "name": "b"}', {"prefer": "tx=rollback"}, "insert b"),
        (
            "POST",
            "/item",
            '{"id": 3, "name": "c"}',
            {"prefer": "return=representation", "accept": "application/vnd.pgrst.object+json"},
            "insert c",
        ),
        ("PATCH", "/item?id=eq.7", '{"name": "d"}', {"prefer": "max-affected=1, handling=strict"}, "update d"),
        ("PUT", "/item?id=eq.7", '{"id": 7, "name": "e", "up": null}', {}, "insert e;update e"),
        ("GET", "/guarded", "", {}, "policy"),
        ("GET", "/guarded", "", {"prefer": "count=exact", "accept": "text/csv"}, "policy;policy"),
        ("GET", "/item", "", {"x-before": "1"}, "before"),
        ("POST", "/rpc/say_and_fail", "{}", {}, "halfway"),
    ],
)
def test_notices_of_all_statements_of_a_request_are_events(
    service: Service,
    roles: tuple[str, str],
    clerk: dict[str, str],
    method: str,
    path: str,
    body: str,
    headers: Mapping[str, str],
    expected: str,
) -> None:
    caller = {**token(role=roles[1]), "content-type": "application/json", **headers}
    with EventStream(service, STREAM, clerk) as stream:
        response = service.request(method, f"/rest{path}", content=body, headers=caller)
        assert response.status_code < 300 or "fail" in path, response.text
        finish(service)
        stream.wait(lambda: "end" in stream.messages, "the last event")
        assert stream.messages == [*expected.split(";"), "end"]


def test_events_leave_while_the_request_runs(
    service: Service, database: Database, roles: tuple[str, str], clerk: dict[str, str]
) -> None:
    with EventStream(service, STREAM, clerk) as stream, ThreadPoolExecutor(1) as pool:
        with database.locked(4717):
            response = pool.submit(
                service.request_once, "POST", "/rest/rpc/say_around_a_lock", json={}, headers=token(role=roles[1])
            )
            stream.wait_for("begun")
        stream.wait_for("begun", "ended")
        assert response.result().status_code == 204


def test_streams_of_all_workers_get_each_event_once_and_in_order(
    service: Service, roles: tuple[str, str], clerk: dict[str, str]
) -> None:
    expected = [str(number) for number in range(50)]
    with ExitStack() as opened:
        streams = [opened.enter_context(EventStream(service, STREAM, clerk)) for _ in range(6)]
        for text in expected:
            say(service, text, headers=token(role=roles[1]))
        finish(service)
        for stream in streams:
            stream.wait_for(*expected, "end")


def runs_pipelined(service: Service) -> bool:
    """Return whether a fast read runs on a pipelined connection: the service sets `jit` on these only."""
    response = service.get("/rest/rpc/pipelined")
    assert response.text in ("true", "false")
    return response.text == "true"


@pytest.mark.slow
@pytest.mark.parametrize("function", ["say_steadily", "say_when_planned"])
def test_parallel_requests_publish_with_their_own_execution_id(
    service: Service, roles: tuple[str, str], clerk: dict[str, str], function: str
) -> None:
    """No request is pipelined: a notice could be attributed to another one, also one that is raised in planning."""
    names = [f"{function}-{number}" for number in range(12)]

    def send(name: str) -> None:
        headers = {**token(role=roles[1]), "x-npgsqlrest-id": name}
        with service.new_client() as client:
            for number in range(25):
                # Functions of constant arguments are evaluated in planning.
                path = f"/rest/rpc/{function}?text={name}.{number}"
                assert client.get(path, headers=headers).status_code == 200

    with ExitStack() as opened, ThreadPoolExecutor(len(names)) as pool:
        streams = [opened.enter_context(EventStream(service, f"{STREAM}?{name}", clerk)) for name in names]
        list(pool.map(send, names))
        for name, stream in zip(names, streams, strict=True):
            stream.wait_for(*(f"{name}.{number}" for number in range(25)))
    assert not any(runs_pipelined(service) for _ in range(40))


@pytest.mark.parametrize(
    ("as_clerk", "hint", "received"),
    [
        (False, None, "anne"),
        (True, None, "cleo"),
        (True, "matching", "cleo"),
        (False, "all", "anonymous anne cleo dora"),
        (True, "all", "anonymous anne cleo dora"),
        (False, "authorize", "anne cleo dora"),
        (True, "authorize", "anne cleo dora"),
        (True, "authorize user:id-dora", "dora"),
        (True, "authorize name:anne, user:id-dora", "anne dora"),
        (True, "authorize dora", ""),
        (True, "try again", "cleo"),
        (False, "", "anne"),
    ],
)
def test_without_a_hint_events_are_for_users_with_the_role_of_the_request(
    service: Service, roles: tuple[str, str], as_clerk: bool, hint: str | None, received: str
) -> None:
    users = {
        "anonymous": None,
        "anne": signed_in(service, "anne", roles[0]),
        "cleo": signed_in(service, "cleo", roles[1]),
        "dora": signed_in(service, "dora"),
    }
    with ExitStack() as opened:
        streams = {name: opened.enter_context(EventStream(service, STREAM, user)) for name, user in users.items()}
        say(service, "it", hint, token(role=roles[1], sub="id-dora") if as_clerk else None)
        finish(service)
        for name, stream in streams.items():
            stream.wait_for(*(["it"] if name in received.split() else []), "end")


def test_a_hint_that_names_no_scope_is_logged(service: Service, roles: tuple[str, str]) -> None:
    say(service, "it", "harder next time", token(role=roles[1]))
    assert f"PostgREST's interface as {roles[1]}" in service.wait_for_log("'harder' is none of all, matching")


@pytest.mark.slow
def test_events_of_transactions_that_do_not_commit_are_not_sent_after_the_commit(
    serve_once: Serve, database: Database, roles: tuple[str, str]
) -> None:
    settings = {
        **SETTINGS,
        "PostgRest:AnonymousRole": roles[0],
        "Service:ServerSentEvents:AfterCommit": "true",
    }
    service = serve_once(database, settings=settings, workers=2)
    one = {"prefer": "return=representation", "accept": "application/vnd.pgrst.object+json"}
    with EventStream(service, STREAM, signed_in(service, "anne", roles[0])) as stream:

        def insert(body: str, status: int, headers: Mapping[str, str] | None = None) -> None:
            all_headers = {"content-type": "application/json", **(headers or {})}
            response = service.post("/rest/item", content=body, headers=all_headers)
            assert response.status_code == status, response.text

        assert service.post("/rest/rpc/say_and_fail", json={}).status_code == 400
        insert('{"id": 11, "name": "without a parent", "up": 99}', 409)
        insert('{"id": 11, "name": "without a parent, alone", "up": 99}', 409, one)
        insert('[{"id": 11, "name": "one of two"}, {"id": 12, "name": "two of two"}]', 406, one)
        insert('{"id": 11, "name": "rolled back"}', 201, {"prefer": "tx=rollback"})
        insert('{"id": 11, "name": "in one segment"}', 201)
        insert('{"id": 12, "name": "in several segments"}', 201, one)
        finish(service)
        stream.wait_for("insert in one segment", "insert in several segments", "end")


def test_a_cached_result_publishes_nothing(serve_once: Serve, own_database: Database) -> None:
    anonymous, _ = prepare(own_database)
    settings = {
        **SETTINGS,
        "PostgRest:AnonymousRole": anonymous,
        "PostgRest:PreRequest": "",
        "PostgRest:AnonymousCache": "1 hour",
        "CacheOptions:Enabled": "true",
    }
    service = serve_once(own_database, settings=settings, workers=2)
    with EventStream(service, STREAM, signed_in(service, "anne", anonymous)) as stream:
        for _ in range(5):
            assert service.get("/rest/rpc/say_steadily?text=it").status_code == 200
        finish(service)
        stream.wait_for("it", "end")


@pytest.mark.slow
def test_events_have_the_tenant_that_all_endpoints_take_from_a_request(
    serve_once: Serve, own_database: Database
) -> None:
    anonymous, clerk = prepare(own_database)
    settings = {**SETTINGS, "PostgRest:AnonymousRole": anonymous, "Service:Tenant": "from claim org"}
    # A caller has no tenant before the login, and the last event is for all.
    own_database.execute(
        "comment on function enter(text, text[], text) is 'HTTP POST /enter\nlogin\ntenant off';"
        "comment on function finish() is 'HTTP POST /finish\nsse_publish on info\ntenant off'"
    )
    service = serve_once(own_database, settings=settings, workers=2)
    with ExitStack() as opened:
        red, blue = (
            opened.enter_context(EventStream(service, STREAM, signed_in(service, name, clerk, name)))
            for name in ("red", "blue")
        )
        say(service, "for red", headers=token(role=clerk, org="red"))
        say(service, "for blue", "all", token(role=clerk, org="blue"))
        say(service, "without a tenant", "all", token(role=clerk))
        say(service, "anonymous", "all")
        finish(service)
        red.wait_for("for red", "end")
        blue.wait_for("for blue", "end")


@pytest.mark.slow
def test_nothing_is_published_without_the_key_and_reads_are_pipelined(
    serve_once: Serve, database: Database, roles: tuple[str, str]
) -> None:
    settings = {**SETTINGS, "PostgRest:AnonymousRole": roles[0], "PostgRest:PublishNotices": ""}
    service = serve_once(database, settings=settings)
    with EventStream(service, STREAM) as stream:
        say(service, "it", "all")
        finish(service)
        stream.wait_for("end")
    wait_until(lambda: runs_pipelined(service), "a fast read is pipelined")


def test_a_level_without_events_is_refused(tmp_path: Path, database: Database) -> None:
    options = {**SETTINGS, "PostgRest:PublishNotices": "debug", "ConnectionStrings:Default": database.conninfo}
    done = rowcall(tmp_path, *(f"--{name}={value}" for name, value in options.items()))
    assert done.returncode != 0
    assert "PostgRest:PublishNotices" in done.stdout + done.stderr
    assert "INFO, NOTICE, WARNING" in done.stdout + done.stderr
