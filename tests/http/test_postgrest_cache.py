"""`PostgRest:AnonymousCache`: which results are cached, for whom, and until when."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, Case, create_roles, error, token
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create table api.note (id int primary key, text text, owner text); insert into api.note values (1, 'a', 'x'), (2, 'b', 'y');
create function api.run() returns text stable language sql as 'select gen_random_uuid()::text';
create function api.volatile() returns text language sql as 'select gen_random_uuid()::text';
create function api.with_header() returns text stable language plpgsql as
  $$ begin perform set_config('response.headers', '[{"X-A":"b"}]', true); return gen_random_uuid(); end $$;
create function api.claimed() returns text stable language sql as
  $$ select gen_random_uuid() || current_setting('request.jwt.claims') $$;
create function api.held() returns text stable language plpgsql as
  $$ begin perform pg_advisory_xact_lock_shared(4711); return gen_random_uuid(); end $$;
create function api.two() returns setof int stable language sql as 'select generate_series(1, 2)';
create function api.failing() returns int stable language plpgsql as $$ begin raise '%', gen_random_uuid(); end $$;
"""  # noqa: E501 (each line is one object)


@pytest.fixture(scope="module")
def roles(database: Database) -> tuple[str, ...]:
    database.execute(SQL)
    roles = create_roles(database, "anon", "member")
    database.execute(
        f"grant usage on schema api to {roles[0]}, {roles[1]};"
        f"grant select on api.note to {roles[0]}, {roles[1]}; grant insert on api.note to {roles[0]}"
    )
    return roles


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database, roles: tuple[str, ...]) -> Service:
    settings = {
        **PLAIN,
        "PostgRest:AnonymousRole": roles[0],
        "PostgRest:AnonymousCache": "1 hour",
        "CacheOptions:Enabled": "true",
        "CacheOptions:StatusHeader": "X-Cache",
    }
    return serve(database, settings=settings, workers=2)


def outcome(service: Service, path: str, method: str = "GET", **headers: str) -> str | None:
    response = service.request_once(method, path, headers=headers)
    assert response.status_code in (200, 206), response.text
    result: str | None = response.headers.get("x-cache")
    return result


def test_reads_are_cached_for_all_workers(service: Service) -> None:
    first = service.request_once("GET", "/note?id=eq.1&select=text")
    assert first.headers["x-cache"] == "miss"
    for number in range(8):
        again = service.request_once("GET", "/note?id=eq.1&select=text", headers={"x-number": str(number)})
        assert again.headers["x-cache"] == "hit"
        assert again.content == first.content
        assert again.headers["content-range"] == first.headers["content-range"]


def test_other_requests_have_other_results(service: Service) -> None:
    assert outcome(service, "/note?id=eq.2") == "miss"
    assert outcome(service, "/note?id=eq.2", "HEAD") == "miss"
    assert outcome(service, "/note?id=eq.2", prefer="count=exact") == "miss"
    assert outcome(service, "/note?id=eq.2", accept="text/csv") == "miss"
    assert outcome(service, "/note?id=eq.2") == "hit"
    single = {"accept": "application/vnd.pgrst.object+json"}
    for _ in range(2):
        Case("GET /note?id=eq.9", 406, error("PGRST116"), headers=single).check(service.client)


def test_a_cached_result_is_checked_for_each_request(service: Service) -> None:
    assert outcome(service, "/rpc/two") == "miss"
    assert outcome(service, "/rpc/two") == "hit"
    limited = {"prefer": "handling=strict, max-affected=1"}
    Case("GET /rpc/two", 400, error("PGRST124"), headers=limited).check(service.client)


def test_a_value_cannot_stand_for_another_key(service: Service) -> None:
    assert outcome(service, "/note?text=eq.a&owner=eq.b") == "miss"
    Case("GET /note?text=eq.a%00tb&owner=eq.", 400, error("22021")).check(service.client)
    assert service.get("/note?text=eq.a&owner=eq.b").headers["x-cache"] == "hit"


def test_only_the_anonymous_role_and_per_claims(service: Service, roles: tuple[str, ...]) -> None:
    assert outcome(service, "/note?id=lt.9", **token(role=roles[1])) is None
    first = service.get("/rpc/claimed", headers=token(role=roles[0], sub="a")).json()
    assert service.get("/rpc/claimed", headers=token(role=roles[0], sub="a")).json() == first
    assert '"sub":"b"' in service.get("/rpc/claimed", headers=token(role=roles[0], sub="b")).json()
    assert "sub" not in service.get("/rpc/claimed").json()


def test_calls_by_post_volatile_functions_and_writes_run_each_time(service: Service) -> None:
    assert service.get("/rpc/run").json() == service.get("/rpc/run").json()
    for name in ("run", "volatile"):
        first, second = (service.post(f"/rpc/{name}", json={}) for _ in range(2))
        assert "x-cache" not in first.headers
        assert first.json() != second.json()
    for number in (11, 12):
        Case("POST /note", 201, body=f'{{"id":{number}}}').check(service.client)


def test_headers_set_by_sql_and_errors_are_not_cached(service: Service) -> None:
    first, second = service.get("/rpc/with_header"), service.get("/rpc/with_header")
    assert first.headers["x-a"] == second.headers["x-a"] == "b"
    assert first.json() != second.json()
    failed, again = service.get("/rpc/failing"), service.get("/rpc/failing")
    assert failed.status_code == again.status_code == 400
    assert failed.json()["message"] != again.json()["message"]


def test_equal_requests_at_the_same_time_run_once(service: Service, database: Database) -> None:
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(service.request_once("GET", "/rpc/held").json())) for _ in "abcd"
    ]
    with database.locked(4711):
        for thread in threads:
            thread.start()
        wait_until(database.waiting, "the call")
        assert len(database.waiting()) == 1
    for thread in threads:
        thread.join(30)
    assert len(results) == 4
    assert len(set(results)) == 1


def test_a_reload_ends_cached_results(service: Service, database: Database) -> None:
    assert outcome(service, "/note?id=lt.5") == "miss"
    database.execute("insert into api.note values (3, 'c', 'z'); notify pgrst, 'reload schema'")
    wait_until(lambda: len(service.get("/note?id=lt.5").json()) == 3, "the new row")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"CacheOptions:Enabled": "false"}, "needs CacheOptions:Enabled"),
        ({"CacheOptions:Enabled": "true", "PostgRest:PreRequest": "api.check"}, "would skip the function"),
    ],
)
def test_a_start_without_effect_or_protection_is_refused(
    database: Database, tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    options = {**PLAIN, "PostgRest:AnonymousCache": "5s", **settings, "ConnectionStrings:Default": database.conninfo}
    done = rowcall(tmp_path, *(f"--{name}={value}" for name, value in options.items()))
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
