"""Introspected sessions, API keys, and routines that run with the role of their caller (docs/sessions.md)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from rowcall.service.identity.introspection_cache import IntrospectionCache
from rowcall.service.request_context.request_context import ClientDisconnectedError
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import SECRET, bearer

SQL = """
create table session (id text primary key, ended boolean default false);
create table key (digest text primary key, id int, ok boolean, role text);

create function sign_in(_id int, _session text, _roles text[]) returns table (user_id int, session_id text,
    database_role text[], scheme text) language sql
as $$insert into session values (_session) on conflict do nothing; select _id, _session, _roles, 'BearerToken'$$;
comment on function sign_in(int, text, text[]) is E'HTTP POST\\nlogin';
create function sign_in_signed(_session text) returns table (user_id int, session_id text, scheme text) language sql
as $$insert into session values (_session); select 1, _session, 'Bearer'$$;
comment on function sign_in_signed(text) is E'HTTP POST\\nlogin';

create function holds(_id text, _user text) returns boolean language sql
as $$select not ended from session where id = _id$$;

create function find_key(_digest text) returns table (status boolean, user_id int, database_role text) language sql
as $$select ok, id, role from key where digest = _digest$$;

create function who(_user_id text default null) returns text language sql stable as 'select _user_id';
comment on function who(text) is E'HTTP GET\\nauthorize\\nuser_parameters';
create function any_caller(_user_id text default null) returns text language sql stable
as $$select coalesce(_user_id, 'anonymous')$$;
comment on function any_caller(text) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';

create function publish(_text text) returns void language plpgsql as $$begin raise info '%', _text; end$$;
comment on function publish(text) is E'HTTP POST\\nallow_anonymous\\nsse\\nsse_scope authorize';

create function as_role() returns text language sql stable as 'select current_user::text';
comment on function as_role() is E'HTTP GET\\nauthorize\\nrole_from_claim';
create function as_service() returns text language sql stable as 'select current_user::text';
comment on function as_service() is E'HTTP GET\\nallow_anonymous';
create function as_any_role() returns text language sql stable as 'select current_user::text';
comment on function as_any_role() is E'HTTP GET\\nallow_anonymous\\nrole_from_claim\\ncached';
create table seen (role text, pid int);
grant insert on seen to pg_monitor, pg_signal_backend;
create procedure steps() language plpgsql as $$
begin
    insert into seen values (current_user, pg_backend_pid());
    commit;
    insert into seen values (current_user, pg_backend_pid());
end $$;
comment on procedure steps() is E'HTTP POST\\nauthorize\\nrole_from_claim';
create function secret_of() returns int language sql as 'select count(*)::int from key';
comment on function secret_of() is E'HTTP GET\\nauthorize\\nrole_from_claim';
"""
SETTINGS = {
    "Service:RequiresAuthorization": None,
    "CacheOptions:Enabled": "true",
    "Auth:BearerTokenAuth": "true",
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": SECRET,
    "Auth:SessionCheckCommand": "select holds($1, $2)",
    "Auth:SessionCheckInterval": "1 second",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Header": "X-Till-Key",
    "Auth:ApiKey:Command": "select * from find_key($1)",
    "Auth:ApiKey:CacheDuration": "1 second",
    "Service:AuthenticationOptions:DatabaseRoles:0": "pg_monitor",
    "Service:AuthenticationOptions:DatabaseRoles:1": "pg_signal_backend",
    "Service:AuthenticationOptions:AnonymousDatabaseRole": "pg_read_all_stats",
}
KEY = {"x-till-key": "till-1"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    service = serve(database, SQL, SETTINGS, workers=2)
    database.execute("""
        insert into key select encode(sha256(convert_to(name, 'UTF8')), 'hex'), id, ok, role
        from (values ('till-1', 7, true, 'pg_monitor'), ('till-2', 8, false, 'pg_monitor'), ('till-3', 9, true, null))
            v (name, id, ok, role)
    """)
    return service


def token(service: Service, session: str, *roles: str) -> dict[str, str]:
    response = service.post("/api/sign-in", json={"id": 1, "session": session, "roles": list(roles)})
    return bearer(response.json()["accessToken"])


def everywhere(service: Service, headers: dict[str, str], path: str = "/api/who") -> list[httpx.Response]:
    """Send requests over new connections, so that each worker receives some."""

    def ask(_number: int) -> httpx.Response:
        with service.new_client() as client:
            return client.get(path, headers=headers)

    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(ask, range(16)))


# --- sessions ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ended_session_is_refused_by_every_worker(service: Service, database: Database) -> None:
    mine, other = token(service, "s1"), token(service, "s2")
    assert {response.status_code for response in everywhere(service, mine)} == {200}
    database.execute("update session set ended = true where id = 's1'")
    wait_until(
        lambda: {response.status_code for response in everywhere(service, mine)} == {401}, "the session has ended"
    )
    assert {response.status_code for response in everywhere(service, other)} == {200}
    assert service.get("/api/any-caller", headers=mine).text == "anonymous"


def test_an_ended_session_gets_no_new_signed_token(service: Service, database: Database) -> None:
    refresh = "/api/jwt/refresh"
    ended, other = (
        service.post("/api/sign-in-signed", json={"session": name}).json()["refreshToken"] for name in ("j1", "j2")
    )
    database.execute("update session set ended = true where id = 'j1'")
    problem(service.post(refresh, json={"refreshToken": ended}), 401)
    assert service.post(refresh, json={"refreshToken": other}).status_code == 200


def test_an_unknown_session_is_refused(service: Service, database: Database) -> None:
    mine = token(service, "s4")
    database.execute("delete from session where id = 's4'")
    assert service.get("/api/who", headers=mine).status_code == 401


# --- keys ----------------------------------------------------------------------------------------------------------


def test_api_keys_are_looked_up_by_digest(service: Service) -> None:
    assert service.get("/api/who", headers=KEY).text == "7"
    for key in ("till-2", "till-9", "", "x" * 2000, "TILL-1"):
        assert service.get("/api/who", headers={"x-till-key": key}).status_code == 401, key
    assert "till-1" not in service.log


def test_invalid_api_key_makes_the_caller_anonymous_despite_a_token(service: Service) -> None:
    headers = {**token(service, "s5"), "x-till-key": "till-9"}
    assert service.get("/api/who", headers=headers).status_code == 401
    assert service.get("/api/any-caller", headers=headers).text == "anonymous"


@pytest.mark.slow
def test_revoked_api_key_is_refused(service: Service, database: Database) -> None:
    headers = {"x-till-key": "till-3"}
    assert {response.text for response in everywhere(service, headers)} == {"9"}
    database.execute("delete from key where id = 9")
    wait_until(
        lambda: {response.status_code for response in everywhere(service, headers)} == {401}, "the key has ended"
    )


@pytest.mark.slow
def test_stream_ends_when_its_api_key_is_revoked(service: Service, database: Database, serve_once: Serve) -> None:
    """Whether or not sessions can be ended too; the streams of another key of the same user continue."""
    alone = serve_once(database, "", {**SETTINGS, "Auth:SessionCheckCommand": None})
    database.execute("""
        insert into key select encode(sha256(convert_to(name, 'UTF8')), 'hex'), 10, true, 'pg_monitor'
        from unnest(array['till-4', 'till-5']) name
    """)
    for requested, ending in ((service, "update key set ok = false"), (alone, "delete from key")):
        database.execute("update key set ok = true where id = 10")
        with (
            EventStream(requested, "/api/publish/info", {"x-till-key": "till-4"}) as ended,
            EventStream(requested, "/api/publish/info", {"x-till-key": "till-5"}) as other,
        ):
            requested.post("/api/publish", json={"text": "first"})
            ended.wait_for("first")
            database.execute(f"{ending} where digest = encode(sha256('till-4'), 'hex')")
            ended.wait_for_end(30)
            requested.post("/api/publish", json={"text": "second"})
            other.wait_for("first", "second")
            assert ended.messages == ["first"]


def test_concurrent_requests_share_one_introspection() -> None:
    """If the client whose request introspects disconnects, another request introspects; the result is valid for a
    while."""

    async def drill() -> tuple[list[object], int]:
        requested = IntrospectionCache[str](60.0)
        questions = 0
        first = asyncio.Event()

        async def disconnects() -> str | None:
            nonlocal questions
            questions += 1
            await first.wait()
            raise ClientDisconnectedError("gone")

        async def completes() -> str | None:
            nonlocal questions
            questions += 1
            return "kiri"

        asking = [asyncio.ensure_future(requested.ask("k", disconnects))]
        await asyncio.sleep(0)
        asking += [asyncio.ensure_future(requested.ask("k", completes)) for _ in range(5)]
        await asyncio.sleep(0)
        first.set()
        return [*await asyncio.gather(*asking, return_exceptions=True), requested.cached_result("k")], questions

    responses, questions = asyncio.run(drill())
    assert isinstance(responses[0], ClientDisconnectedError)
    assert responses[1:] == ["kiri"] * 5 + [("kiri",)]
    assert questions == 2


# --- roles ---------------------------------------------------------------------------------------------------------


def test_a_routine_runs_as_the_role_of_the_claim(service: Service, database: Database) -> None:
    owner = database.value("select current_user")
    assert service.get("/api/as-role", headers=KEY).text == "pg_monitor"
    assert service.get("/api/as-role", headers=token(service, "r1", "anonymous", "pg_signal_backend")).text == (
        "pg_signal_backend"
    )
    roles = {response.text for response in everywhere(service, {}, "/api/as-service")}
    assert roles == {owner}, "the role ends with its transaction"


@pytest.mark.parametrize("role", ["postgres", "none", "", "PG_MONITOR", "pg_monitor; reset role"])
def test_unlisted_roles_are_refused(service: Service, role: str) -> None:
    assert service.get("/api/as-role", headers=token(service, f"r {role}", role)).status_code == 403


def test_a_caller_without_a_role_does_not_run_as_the_service(service: Service) -> None:
    assert service.get("/api/as-role").status_code == 401
    assert service.get("/api/as-role", headers=token(service, "r2")).status_code == 403
    assert service.get("/api/as-any-role", headers=token(service, "r2")).status_code == 403


def test_cached_responses_are_separate_for_each_role(service: Service) -> None:
    for _ in range(2):
        assert service.get("/api/as-any-role").text == "pg_read_all_stats"
        assert service.get("/api/as-any-role", headers=KEY).text == "pg_monitor"
        # The first permitted role is used, regardless of preceding ones.
        for number, role in enumerate(("pg_monitor", "pg_signal_backend")):
            headers = token(service, f"two-roles-{number}", "", role)
            assert service.get("/api/as-any-role", headers=headers).text == role


def test_missing_privilege_of_the_role_gets_403(service: Service) -> None:
    assert service.get("/api/secret-of", headers=KEY).status_code == 403


def test_role_is_preserved_after_commits_in_a_procedure(service: Service, database: Database) -> None:
    assert service.post("/api/steps", headers=KEY).status_code == 204
    assert database.fetch("select distinct role from seen") == [("pg_monitor",)]
    owner = database.value("select current_user")
    assert {response.text for response in everywhere(service, {}, "/api/as-service")} == {owner}


@pytest.mark.parametrize("duration", ["0", "1 hour"])
def test_api_key_lookup_is_cached_per_client_address(
    database: Database, service: Service, serve_once: Serve, duration: str
) -> None:
    """If the command has a parameter for the address: a key may be bound to an address."""
    database.execute("""
        create or replace function find_key_at(_digest text, _address text) returns table (status boolean, user_id int)
        language sql as $$select ok and _address = '192.0.2.1', id from key where digest = _digest$$
    """)
    settings = {
        **SETTINGS,
        "Auth:ApiKey:Command": "select * from find_key_at($1, $2)",
        "Auth:ApiKey:CacheDuration": duration,
        "ForwardedHeaders:Enabled": "true",
    }
    bound = serve_once(database, "", settings)

    def ask(last: int) -> int:
        with bound.new_client() as client:
            return client.get("/api/who", headers={**KEY, "X-Forwarded-For": f"192.0.2.{last}"}).status_code

    places = [2, 1, 2, 1, 3, 1]
    assert [ask(last) for last in places] == [200 if last == 1 else 401 for last in places]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, places)) == [200 if last == 1 else 401 for last in places]
