"""Every key of PostgREST's configuration: requests to services with different values.

The three services have one database. `first` has defaults where possible, `second` and `third` have other values.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS, SERVICE_KEYS
from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.postgrest import create_roles, running_by_file
from tests.harness.waiting import wait_until

SECRET = "a secret of the tests that has more than 32 bytes"
SQL = """
create schema api;
create schema other;
create table api.parent (id int primary key);
create table api.child (id int primary key, parent_id int references api.parent);
insert into api.parent select generate_series(1, 3);
insert into api.child values (1, 1), (2, 2);
create table api.hidden (id int);
create table other.thing (id int);
create function api.setting(name text) returns text stable language sql as 'select current_setting($1, true)';
create function api.caller() returns text stable language sql as 'select current_user::text';
create function api.isolation() returns text language sql set default_transaction_isolation = 'serializable' as
  $$ select current_setting('transaction_isolation') $$;
create function api.parents() returns setof api.parent stable language sql as 'select * from api.parent';
create function api.root() returns json stable language sql as $$ select '{"hello": true}'::json $$;
create function api.failing() returns int language plpgsql as
  $$ begin raise 'no' using detail = 'details', hint = 'hint'; end $$;
create function other.before() returns void language sql as
  $$ select set_config('response.headers', '[{"X-Before": "yes"}]', true) $$;
create function other.configuration() returns void language sql as
  $$ select set_config('pgrst.server_cors_allowed_origins', 'http://set-by-function', true) $$;
"""
ELSEWHERE = {
    "db-pool",
    "db-pool-acquisition-timeout",
    "db-pool-max-idletime",
    "db-pool-max-lifetime",
    "db-pool-automatic-recovery",
    "db-prepared-statements",
    "log-query",
    "server-reuseport",
}
"""Keys of tests in `test_postgrest_pool`."""
UNIT = {"jwt-cache-max-entries"}
"""Keys of tests in `tests/service/postgrest`."""


@dataclass(frozen=True)
class Served:
    client: httpx.Client
    folder: Path
    role: str
    port: int
    database: Database

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def setting(self, name: str) -> Any:
        return self.get(f"/rpc/setting?name={name}").json()


Services = dict[str, Served]


@pytest.fixture(scope="module")
def services(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    database.execute(SQL)
    uri = database.conninfo.replace('"', "")
    roles = create_roles(database, "one", "two", "three")
    listed = ", ".join(roles)
    database.execute(
        f"grant usage on schema api, other to {listed}; grant select on all tables in schema api, other to {listed};"
        f"revoke select on api.hidden from {listed}; grant insert on api.parent to {listed};"
        f"alter default privileges in schema api grant select on tables to {listed};"
        f"alter role current_user in database {database.name} set pgrst.server_trace_header = 'X-Database'"
    )
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second", "third")]
    ports = [free_port() for _ in range(6)]
    (folders[2] / "uri").write_text(f"{uri}?application_name=named")
    first = f"""
        db-uri = "{uri}"
        db-schemas = "api"
        db-anon-role = "{roles[0]}"
        server-host = "127.0.0.1"
        server-port = {ports[0]}
        admin-server-port = {ports[3]}
        """
    second = f"""
        db-uri = "{uri}?application_name=of%20the%20string"
        db-schemas = "api, other"
        db-anon-role = "{roles[1]}"
        db-extra-search-path = "other, public"
        db-pre-request = "other.before"
        db-max-rows = 2
        db-aggregates-enabled = true
        db-plan-enabled = true
        db-tx-end = "rollback-allow-override"
        db-hoisted-tx-settings = "statement_timeout"
        db-root-spec = "root"
        db-channel = "elsewhere"
        db-pre-config = "other.configuration"
        jwt-secret = "YSBzZWNyZXQgb2YgdGhlIHRlc3RzIHRoYXQgaGFzIG1vcmUgdGhhbiAzMiBieXRlcw=="
        jwt-secret-is-base64 = true
        client-error-verbosity = "minimal"
        url-use-legacy-target-names = false
        server-timing-enabled = true
        server-host = "127.0.0.2"
        server-port = {ports[1]}
        admin-server-host = "127.0.0.3"
        admin-server-port = {ports[4]}
        app.settings.color = "blue"
        log-level = "info"
        """
    third = f"""
        db-uri = "@{folders[2]}/uri"
        db-schemas = "api"
        db-anon-role = "{roles[2]}"
        db-config = false
        db-channel-enabled = false
        jwt-secret = "{SECRET}"
        jwt-aud = "us"
        jwt-role-claim-key = "$.app.role"
        openapi-mode = "ignore-privileges"
        openapi-security-active = true
        openapi-server-proxy-uri = "https://example.com/api"
        server-cors-allowed-origins = "http://good"
        server-trace-header = "X-Trace"
        db-tx-end = "rollback"
        server-unix-socket = "socket"
        server-unix-socket-mode = "0600"
        admin-server-unix-socket = "admin"
        """
    addresses: tuple[dict[str, Any], ...] = (
        {"base_url": f"http://127.0.0.1:{ports[0]}"},
        {"base_url": f"http://127.0.0.2:{ports[1]}"},
        {"base_url": "http://third", "transport": httpx.HTTPTransport(uds=f"{folders[2]}/socket")},
    )
    with contextlib.ExitStack() as stack:
        result = {}
        for folder, text, address, role, port in zip(
            folders, (first, second, third), addresses, roles, ports[3:], strict=True
        ):
            client = stack.enter_context(httpx.Client(**address, timeout=60))
            result[folder.name.rstrip("0123456789")] = Served(client, folder, role, port, database)
            stack.enter_context(_started(folder, text, client))
        yield result
    database.execute(f"alter role current_user in database {database.name} reset pgrst.server_trace_header")


@contextlib.contextmanager
def _started(folder: Path, text: str, client: httpx.Client) -> Iterator[None]:
    (folder / "api.conf").write_text(text)
    with running_by_file(folder):
        # The transport of httpx leaks a socket that the service does not accept.
        wait_until(lambda: "listening on" in (folder / "log").read_text(), "the service", 90)
        wait_until(lambda: client.get("/rpc/caller").status_code == 200, "the schema", 90)
        yield


def token(**claims: Any) -> str:
    return f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"


def status_with(**claims: Any) -> Callable[[Served], int]:
    return lambda service: service.get("/rpc/caller", authorization=token(**claims)).status_code


def status_of(path: str, **headers: str) -> Callable[[Served], int]:
    return lambda service: service.get(path, **headers).status_code


def header_of(name: str, path: str = "/parent", **headers: str) -> Callable[[Served], str | None]:
    return lambda service: service.get(path, **headers).headers.get(name)


def rows_after_an_insert(service: Served) -> int:
    number = 100 + service.port
    response = service.client.post("/parent", json={"id": number})
    assert response.status_code == 201
    rows = len(service.get(f"/parent?id=eq.{number}").json())
    service.database.execute(f"delete from api.parent where id = {number}")
    return rows


def answer_of_admin(service: Served, host: str) -> bool:
    try:
        return httpx.get(f"http://{host}:{service.port}/live").status_code == 200
    except httpx.TransportError:
        return False


def description(service: Served) -> dict[str, Any]:
    result: dict[str, Any] = service.get("/").json()
    return result


def socket_mode(service: Served) -> int:
    return stat.S_IMODE((service.folder / "socket").stat().st_mode)


def admin_of_socket(service: Served) -> int:
    with httpx.Client(transport=httpx.HTTPTransport(uds=f"{service.folder}/admin")) as client:
        return client.get("http://admin/live").status_code


def port_of(service: Served) -> bool:
    return service.client.base_url.port is not None and service.get("/rpc/caller").status_code == 200


@dataclass(frozen=True)
class Row:
    """What the key changes. observe: one value of a service, by the names of services in `expected`."""

    key: str
    observe: Callable[[Served], Any]
    expected: dict[str, Any]


PLAN = "application/vnd.pgrst.plan+json"
ROWS = (
    Row("db-schemas", status_of("/thing", accept_profile="other"), {"first": 406, "second": 200}),
    Row("db-extra-search-path", lambda s: "other" in s.setting("search_path"), {"first": False, "second": True}),
    Row("db-anon-role", lambda s: s.get("/rpc/caller").json() == s.role, {"first": True, "second": True}),
    Row("db-pre-request", header_of("x-before"), {"first": None, "second": "yes"}),
    Row("db-max-rows", lambda s: len(s.get("/parent").json()), {"first": 3, "second": 2}),
    Row("db-aggregates-enabled", status_of("/parent?select=count()"), {"first": 400, "second": 200}),
    Row("db-plan-enabled", status_of("/parent", accept=PLAN), {"first": 406, "second": 200}),
    Row("db-tx-end", rows_after_an_insert, {"first": 1, "second": 0}),
    Row(
        "db-hoisted-tx-settings",
        lambda s: s.client.post("/rpc/isolation").json(),
        {"first": "serializable", "second": "read committed"},
    ),
    Row("db-root-spec", lambda s: "hello" in description(s), {"first": False, "second": True}),
    Row("db-config", header_of("x-database", x_database="a"), {"first": "a", "third": None}),
    Row(
        "db-pre-config",
        header_of("access-control-allow-origin", origin="http://set-by-function"),
        {"first": "*", "second": "http://set-by-function"},
    ),
    Row("jwt-secret", status_with(aud="us"), {"first": 500, "third": 200}),
    Row("jwt-secret-is-base64", status_with(), {"second": 200}),
    Row("jwt-aud", status_with(aud="them"), {"second": 200, "third": 401}),
    Row("jwt-role-claim-key", status_with(role="absent"), {"second": 401, "third": 200}),
    Row("openapi-mode", lambda s: "/hidden" in description(s)["paths"], {"first": False, "third": True}),
    Row("openapi-security-active", lambda s: "security" in description(s), {"first": False, "third": True}),
    Row(
        "openapi-server-proxy-uri",
        lambda s: description(s)["host"] == "example.com:443",
        {"first": False, "third": True},
    ),
    Row("client-error-verbosity", lambda s: len(s.get("/rpc/failing").json()), {"first": 4, "second": 2}),
    Row(
        "url-use-legacy-target-names",
        status_of("/parent?select=id,c:child(id)&child.id=eq.1"),
        {"first": 200, "second": 400},
    ),
    Row(
        "server-cors-allowed-origins",
        header_of("access-control-allow-origin", origin="http://good"),
        {"first": "*", "third": "http://good"},
    ),
    Row(
        "server-timing-enabled", lambda s: "server-timing" in s.get("/parent").headers, {"first": False, "second": True}
    ),
    Row("server-trace-header", header_of("x-trace", x_trace="a"), {"first": None, "third": "a"}),
    Row("admin-server-host", lambda s: answer_of_admin(s, "127.0.0.3"), {"first": False, "second": True}),
    Row("admin-server-port", lambda s: answer_of_admin(s, "127.0.0.1"), {"first": True, "second": False}),
    Row("admin-server-unix-socket", admin_of_socket, {"third": 200}),
    Row("app.settings", lambda s: s.setting("app.settings.color") or None, {"first": None, "second": "blue"}),
    Row("db-uri", lambda s: s.setting("application_name") == "named", {"first": False, "third": True}),
    Row("server-host", lambda s: s.client.base_url.host, {"first": "127.0.0.1", "second": "127.0.0.2"}),
    Row("server-port", port_of, {"first": True, "second": True, "third": False}),
    Row("server-unix-socket-mode", socket_mode, {"third": 0o600}),
    Row("server-unix-socket", status_of("/parent"), {"third": 200}),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_value_of_a_key_changes_the_behaviour(services: Services, row: Row) -> None:
    assert {name: row.observe(services[name]) for name in row.expected} == row.expected


@pytest.mark.parametrize(
    ("name", "preference", "rows", "applied"),
    [
        ("first", "commit", 1, None),
        ("first", "rollback", 1, None),
        ("second", "commit", 1, "tx=commit"),
        ("second", "rollback", 0, "tx=rollback"),
        ("third", "commit", 0, None),
        ("third", "rollback", 0, None),
    ],
)
def test_ends_of_transactions(services: Services, name: str, preference: str, rows: int, applied: str | None) -> None:
    service = services[name]
    response = service.client.post("/parent", json={"id": 500}, headers={"prefer": f"tx={preference}"})
    assert (response.status_code, response.headers.get("preference-applied")) == (201, applied)
    assert len(service.get("/parent?id=eq.500").json()) == rows
    service.database.execute("delete from api.parent where id = 500")


def test_the_limit_of_rows(services: Services) -> None:
    """It applies to each level of reads and to results of functions, but not to writes."""
    service = services["second"]
    assert len(service.get("/rpc/parents").json()) == 2
    service.database.execute("insert into api.child select n, 1 from generate_series(11, 14) n")
    assert [len(row["child"]) for row in service.get("/parent?select=child(id)&id=eq.1").json()] == [2]
    service.database.execute("delete from api.child where id > 10")
    headers = {"prefer": "return=representation"}
    assert len(service.client.post("/parent", json=[{"id": n} for n in (601, 602, 603)], headers=headers).json()) == 3
    totals = {}
    for query in ("id=lt.3", "id=gte.1"):
        response = service.get(f"/parent?{query}", prefer="count=estimated")
        totals[query] = int(response.headers["content-range"].partition("/")[2])
    assert totals["id=lt.3"] == 2
    assert totals["id=gte.1"] >= 3


def test_the_name_of_the_application_may_be_in_the_connection_string(services: Services) -> None:
    assert services["second"].setting("application_name") == "of the string"
    assert services["first"].setting("application_name") not in ("", "of the string")


def test_a_token_without_a_secret(services: Services) -> None:
    response = services["first"].get("/parent", authorization=token())
    assert (response.status_code, response.json()["code"]) == (500, "PGRST300")
    assert response.json()["message"] == "Server lacks JWT secret"
    assert "www-authenticate" not in response.headers


@pytest.mark.slow
def test_the_channel_of_reloads(services: Services, database: Database) -> None:
    """`db-channel` and `db-channel-enabled`."""
    database.execute("create table api.late (id int); notify pgrst, 'reload schema'")
    wait_until(lambda: services["first"].get("/late").status_code == 200, "the new table")
    assert services["second"].get("/late").status_code == 404
    database.execute("notify elsewhere, 'reload schema'")
    wait_until(lambda: services["second"].get("/late").status_code == 200, "the new table")
    assert services["third"].get("/late").status_code == 404


def test_the_level_of_the_log(services: Services) -> None:
    first, second = services["first"], services["second"]
    assert (first.get("/nothing").status_code, second.get("/nothing").status_code) == (404, 404)
    wait_until(lambda: "/nothing" in second.log, "the line of the request")
    assert "/nothing" not in first.log


def test_every_key_has_a_test() -> None:
    keys = {key.postgrest for key in INTERFACE_KEYS} | {*SERVICE_KEYS, "app.settings"}
    here = {row.key for row in ROWS} | {"db-channel", "db-channel-enabled", "log-level"}
    assert here | ELSEWHERE | UNIT == keys
