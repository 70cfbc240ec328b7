"""Damaged key files, and clock steps: keys and sessions survive both. Sessions that are due for renewal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import httpx
import pytest

from rowcall.core.protection.key_ring import SECRET, Key, element_text, plain_secret
from tests.harness.clock import WORKS, WallClock
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie
from tests.http.test_key_ring_shared import DAY, in_folder, is_accepted

HOUR = 3600
LOGIN_SCHEMES = ("Cookies", "BearerToken")


def damage(folder: Path, kind: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / "key-00000000-0000-0000-0000-000000000000.json"
    match kind:
        case "no UTF-8":
            path.write_bytes(b"\xff\xfe\x00{}")
        case "a folder":
            path.mkdir()
        case "endless":
            path.write_text('{"format":"rowcall-key-1","id":"00000000-0000-0000-0000-000000000000","created":1e999}')
        case "empty":
            path.write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no UTF-8", "a folder", "endless", "empty"])
def test_damaged_key_file_does_not_affect_other_keys(
    own_database: Database, serve_once: Serve, tmp_path: Path, kind: str
) -> None:
    """Neither at the start nor while the service runs: a key that another host creates later is still found."""
    own_database.execute(member_sql())
    folder = tmp_path / "keys"
    damage(folder, kind)
    first = serve_once(own_database, settings=in_folder(folder))
    now = time.time()
    newer = Key(os.urandom(16), now, now, now + 90 * DAY, os.urandom(SECRET))
    (folder / f"{newer.name}.json").write_text(element_text(newer, plain_secret(newer.secret)))
    second = serve_once(own_database, settings=in_folder(folder))
    made = bearer(tokens(second, "BearerToken")["accessToken"])
    assert is_accepted(first, made)
    first.wait_for_log("key")


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    if not WORKS:
        pytest.skip("nothing can be loaded in front of the C library")
    made = WallClock(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def signed_in(service: Service) -> dict[str, str]:
    return with_cookie(service)


@pytest.mark.parametrize("step", [-HOUR, pytest.param(-3 * int(DAY), marks=pytest.mark.slow), 400 * int(DAY)])
def test_sign_in_works_after_clock_steps(
    own_database: Database, serve_once: Serve, clock: WallClock, step: int
) -> None:
    """No key of the ring may be active then; in that case, one is created at once."""
    own_database.execute(member_sql())
    service = serve_once(own_database, settings=EVERY_SCHEME, workers=2)
    assert is_accepted(service, signed_in(service))
    clock.move(step)
    assert is_accepted(service, signed_in(service))
    if abs(step) > DAY:
        wait_until(lambda: service.log.count("was added to the key ring") == 2, "a key for this time has been made")
    clock.move(0)
    assert is_accepted(service, signed_in(service))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", LOGIN_SCHEMES)
def test_token_from_the_future_is_refused_even_if_cached(
    own_database: Database, serve_once: Serve, clock: WallClock, scheme: str
) -> None:
    own_database.execute(member_sql())
    service = serve_once(own_database, settings=EVERY_SCHEME)
    clock.move(HOUR)
    made = signed_in(service) if scheme == "Cookies" else bearer(tokens(service, scheme)["accessToken"])
    assert is_accepted(service, made)
    clock.move(0)
    assert not is_accepted(service, made)
    clock.move(HOUR)
    assert is_accepted(service, made)


# --- sessions that are due for renewal -----------------------------------------------------------------------------

DUE = 2 * HOUR // 3
"""Seconds behind the beginning of a session of an hour, when its renewal is due."""
SESSIONS = """
create table ended (id text);
create function is_valid(_session text) returns boolean language plpgsql stable as $$begin
    if _session = 'broken' then
        raise exception 'the session cannot be checked';
    end if;
    return not exists (select from ended where id = _session);
end$$;
create function come_in(_nick text, _session text default null, _user_name text default null)
returns table (user_id int, user_name text, user_roles text[], session_id text) language sql stable
as $$select id, nick, duties, _session from member where nick = _nick$$;
comment on function come_in(text, text, text) is E'HTTP POST\\nlogin\\nuser_parameters';
create function act_as(_nick text) returns table (user_id int, user_name text) language sql stable
as $$select id, nick from member where nick = _nick$$;
comment on function act_as(text) is E'HTTP POST\\nimpersonate\\nauthorize boss';
create function be_oneself() returns table (user_id int, user_name text) language sql as $$select 41, 'kiri'$$;
comment on function be_oneself() is E'HTTP POST\\nend_impersonation';
create function leave() returns void language sql as '';
comment on function leave() is E'HTTP POST\\nlogout\\nauthorize\\ntimezone_from header X-Zone';
"""


@pytest.fixture(scope="module")
def ageing(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> tuple[Service, WallClock]:
    """Provide a service with sessions of an hour, and its clock."""
    if not WORKS:
        pytest.skip("nothing can be loaded in front of the C library")
    clock = WallClock(tmp_path_factory.mktemp("clock"))
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:CookieValid": "1 hour",
        "Batch:Enabled": "true",
        "Auth:SessionCheckCommand": "select is_valid($1)",
        "Auth:SessionCheckInterval": "0",
        "Service:AuthenticationOptions:ImpersonationValid": "2 hours",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clock.environment.items():
            patch.setenv(name, value)
        return serve(database, member_sql() + SESSIONS, settings), clock


def cookies_of(
    ageing: tuple[Service, WallClock], path: str, session: str, seconds: int, body: dict[str, str] | None = None
) -> list[str]:
    """Post with a session at this time of the clock, and return the cookies that the response sets."""
    service, clock = ageing
    clock.move(seconds)
    with service.new_client() as client:
        response = client.post(path, json=body or {}, headers={"Cookie": session})
    assert response.status_code == 200, response.text
    return response.headers.get_list("set-cookie")


def begin_session(ageing: tuple[Service, WallClock], session: str | None = None) -> str:
    body = {"nick": "kiri"} if session is None else {"nick": "kiri", "session": session}
    (cookie,) = cookies_of(ageing, "/api/come-in", "", 0, body)
    return cookie.partition(";")[0]


def user_of(ageing: tuple[Service, WallClock], cookie: str) -> str:
    with ageing[0].new_client() as client:
        response = client.get("/api/who", headers={"Cookie": cookie.partition(";")[0]})
    name: str = response.json()["userName"]
    return name


def read_later(ageing: tuple[Service, WallClock], session: str) -> httpx.Response:
    """Send a request with a session whose renewal is due."""
    service, clock = ageing
    clock.move(DUE)
    with service.new_client() as client:
        return client.get("/api/closed", headers={"Cookie": session})


def test_a_session_is_renewed_by_other_responses(ageing: tuple[Service, WallClock]) -> None:
    """Or the tests below would show nothing."""
    (cookie,) = read_later(ageing, begin_session(ageing)).headers.get_list("set-cookie")
    assert user_of(ageing, cookie) == "kiri"


def test_a_sign_in_replaces_a_session_that_is_due_for_renewal(ageing: tuple[Service, WallClock]) -> None:
    """Of two cookies with the same name, the browser would store the latter."""
    (cookie,) = cookies_of(ageing, "/api/come-in", begin_session(ageing), DUE, {"nick": "mo"})
    assert user_of(ageing, cookie) == "mo"


def test_an_impersonation_begins_and_ends_in_a_session_that_is_due(ageing: tuple[Service, WallClock]) -> None:
    (acting,) = cookies_of(ageing, "/api/act-as", begin_session(ageing), DUE, {"nick": "mo"})
    assert user_of(ageing, acting) == "mo"
    (restored,) = cookies_of(ageing, "/api/be-oneself", acting.partition(";")[0], 2 * DUE)
    assert user_of(ageing, restored) == "kiri"


def test_a_logout_ends_a_session_that_is_due_for_renewal(ageing: tuple[Service, WallClock]) -> None:
    """Also if a step between authentication and the end adds headers to the response."""
    (cookie,) = cookies_of(ageing, "/api/leave", begin_session(ageing), DUE)
    assert "expires=Thu, 01 Jan 1970" in cookie


@pytest.mark.parametrize("reads_first", [False, True])
@pytest.mark.parametrize(("path", "user"), [("/api/come-in", "mo"), ("/api/leave", None)])
def test_a_batch_begins_or_ends_a_session_that_is_due_for_renewal(
    ageing: tuple[Service, WallClock], path: str, user: str | None, reads_first: bool
) -> None:
    """Also if other requests before and behind it would renew the session."""
    batch: list[object] = [{"path": "/api/closed"}] * reads_first
    batch += [{"method": "POST", "path": path, "body": {"nick": "mo"} if user else {}}, {"path": "/api/closed"}]
    session = begin_session(ageing)
    service, clock = ageing
    clock.move(DUE)
    with service.new_client() as client:
        response = client.post("/batch?transaction=false", json=batch, headers={"Cookie": session})
    assert [item["status"] for item in response.json()] == [200] * len(batch)
    (cookie,) = response.headers.get_list("set-cookie")
    assert "expires=Thu, 01 Jan 1970" in cookie if user is None else user_of(ageing, cookie) == user


def test_a_batch_renews_a_session_that_is_due(ageing: tuple[Service, WallClock]) -> None:
    session = begin_session(ageing)
    service, clock = ageing
    clock.move(DUE)
    with service.new_client() as client:
        response = client.post("/batch", json=[{"path": "/api/closed"}] * 2, headers={"Cookie": session})
    (cookie,) = response.headers.get_list("set-cookie")
    assert user_of(ageing, cookie) == "kiri"


def test_an_ended_session_is_not_renewed(ageing: tuple[Service, WallClock], database: Database) -> None:
    session = begin_session(ageing, "s1")
    database.execute("insert into ended values ('s1')")
    response = read_later(ageing, session)
    problem(response, 401)
    assert "set-cookie" not in response.headers


def test_a_session_whose_check_fails_is_not_renewed(ageing: tuple[Service, WallClock]) -> None:
    response = read_later(ageing, begin_session(ageing, "broken"))
    problem(response, 400)
    assert "set-cookie" not in response.headers
