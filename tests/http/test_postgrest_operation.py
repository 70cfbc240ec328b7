"""PostgREST's own configuration file, its environment, the root function, timings and the admin server."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database, create_database
from tests.harness.metrics import Numbers, admin_of, numbers_of
from tests.harness.postgres import PostgresServer, free_port
from tests.harness.postgrest import PLAIN, create_roles, running_by_file
from tests.harness.sql_files import save
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create table api.item (id int primary key, name text);
insert into api.item values (1, 'a'), (2, 'b'), (3, 'c');
create function api.root() returns json stable language sql as $$ select '{"hello": true}'::json $$;
create function api.setting(name text) returns text stable language sql as 'select current_setting($1, true)';
"""


@pytest.fixture(scope="module")
def anonymous(database: Database) -> str:
    database.execute(SQL)
    (role,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {role}; grant select on api.item to {role}")
    return role


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory, database: Database, anonymous: str) -> Iterator[tuple[int, int]]:
    """Serve a configuration file by the command alone; returns the ports of service and admin server."""
    folder = tmp_path_factory.mktemp("postgrest")
    port, admin = free_port(), free_port()
    (folder / "secret").write_text("a secret from a file that has more than 32 bytes\n")
    (folder / "api.conf").write_text(
        f"""
        # PostgREST's own format
        db-uri = "{database.conninfo.replace('"', "")}"
        db-schemas = "api"        # the only one
        db-anon-role = "$(ANONYMOUS)"
        db-root-spec = "root"
        max-rows = 1
        jwt-secret = "@{folder}/secret"
        server-host = "127.0.0.1"
        server-port = {port}
        admin-server-port = {admin}
        admin-server-host = "127.0.0.1"
        server-timing-enabled = true
        app.settings.color = "blue $$5"
        """
    )
    environment = {"ANONYMOUS": anonymous, "PGRST_DB_MAX_ROWS": "2", "PGRST_APP_SETTINGS_SIZE": "7"}
    with _started(folder, f"http://127.0.0.1:{port}", **environment):
        yield port, admin


@contextlib.contextmanager
def _started(folder: Path, url: str, *switches: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Serve `api.conf` of the folder at this URL, from when it answers."""
    with running_by_file(folder, *switches, **environment) as process:
        wait_until(lambda: _answers(url), "the service", 90)
        yield process


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/item").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("host", ["*6", *(pytest.param(host, marks=pytest.mark.slow) for host in ("::1", "!6"))])
def test_the_server_listens_on_ipv6(database: Database, anonymous: str, tmp_path: Path, host: str) -> None:
    port, admin = free_port(), free_port()
    lines = {
        "db-uri": database.conninfo.replace('"', ""),
        "db-schemas": "api",
        "db-anon-role": anonymous,
        "server-host": host,
        "server-port": port,
        "admin-server-port": admin,
    }
    (tmp_path / "api.conf").write_text("".join(f'{key} = "{value}"\n' for key, value in lines.items()))
    with _started(tmp_path, f"http://[::1]:{port}"):
        assert httpx.get(f"http://[::1]:{admin}/live").status_code == 200


def test_the_environment_wins_over_the_file(ports: tuple[int, int]) -> None:
    service = f"http://127.0.0.1:{ports[0]}"
    assert len(httpx.get(f"{service}/item").json()) == 2
    assert httpx.get(f"{service}/rpc/setting?name=app.settings.color").json() == "blue $5"
    assert httpx.get(f"{service}/rpc/setting?name=app.settings.size").json() == "7"


def test_urls_with_quotes_and_arrows_as_they_are(ports: tuple[int, int]) -> None:
    with socket.create_connection(("127.0.0.1", ports[0])) as client:
        client.sendall(b'GET /item?select="id",name->>x&id=eq.1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        response = b"".join(iter(lambda: client.recv(65536), b""))
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.endswith(b'[{"id":1,"x":null}]')


def test_root_function_and_timings(ports: tuple[int, int]) -> None:
    response = httpx.get(f"http://127.0.0.1:{ports[0]}/")
    assert response.json() == {"hello": True}
    parts = [part.partition(";")[0].strip() for part in response.headers["server-timing"].split(",")]
    assert parts == ["jwt", "parse", "plan", "transaction", "response"]
    response = httpx.options(f"http://127.0.0.1:{ports[0]}/")
    assert response.headers["allow"] == "OPTIONS,GET,HEAD,POST"
    assert "plan;dur=" in response.headers["server-timing"]
    assert httpx.post(f"http://127.0.0.1:{ports[0]}/", json={}).json() == {"hello": True}
    assert httpx.patch(f"http://127.0.0.1:{ports[0]}/", json={}).json()["code"] == "PGRST101"


@pytest.mark.slow
def test_admin_server(ports: tuple[int, int]) -> None:
    admin = f"http://127.0.0.1:{ports[1]}"
    assert [httpx.get(f"{admin}{path}").status_code for path in ("/live", "/ready", "/nope")] == [200, 200, 404]
    metrics = httpx.get(f"{admin}/metrics").text
    assert 'pgrst_schema_cache_loads_total{status="SUCCESS"} 1' in metrics
    for name, value in (("max", 10), ("available", 10), ("waiting", 0)):
        assert f"\npgrst_db_pool_{name} {value}.0\n" in metrics
    assert httpx.get(f"{admin}/metrics").headers["content-type"] == "text/plain; charset=utf-8"
    cache = httpx.get(f"{admin}/schema_cache").json()
    assert cache["dbTables"][0][0] == ["api", "item"]
    assert cache.keys() == {"dbMediaHandlers", "dbRelationships", "dbRepresentations", "dbRoutines", "dbTables"}
    assert [httpx.get(f"{admin}{path}").text for path in ("/live", "/ready")] == [""] * 2
    assert httpx.get(f"{admin}/config").status_code == 404
    refused = httpx.post(f"{admin}/live")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.slow
def test_the_admin_server_says_whether_the_database_is_reached(tmp_path: Path, own_postgres: PostgresServer) -> None:
    database = create_database(own_postgres)
    database.execute(SQL)
    port, admin = free_port(), free_port()
    uri, anonymous = database.conninfo.replace('"', ""), create_roles(database, "anon")[0]
    database.execute(f"grant usage on schema api to {anonymous}; grant select on api.item to {anonymous}")
    (tmp_path / "api.conf").write_text(
        f'db-uri = "{uri}"\ndb-schemas = "api"\ndb-anon-role = "{anonymous}"\nserver-host = "127.0.0.1"\n'
        f'server-port = {port}\nadmin-server-host = "127.0.0.1"\nadmin-server-port = {admin}\n'
    )
    own_postgres.stop("immediate")
    with running_by_file(tmp_path):
        wait_until(lambda: _status(admin, "/ready") == 503, "the admin server", 30)
        assert _status(admin, "/live") == 200
        assert "not loaded" in httpx.get(f"http://127.0.0.1:{admin}/schema_cache").text
        own_postgres.start()
        wait_until(lambda: _status(admin, "/ready") == 200, "the schema", 60)
        own_postgres.stop("immediate")
        assert (_status(admin, "/ready"), _status(admin, "/live")) == (503, 200)
        own_postgres.start()
        wait_until(lambda: _status(admin, "/ready") == 200, "the database", 30)


@pytest.mark.slow
def test_the_admin_server_says_whether_a_worker_runs(serve_once: Serve, database: Database, anonymous: str) -> None:
    admin = free_port()
    own = {"PostgRest:AdminServerPort": str(admin), "PostgRest:AdminServerHost": "127.0.0.1"}
    service = serve_once(database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous, **own})

    def has_no_worker() -> bool:
        # A worker that ends again soon is replaced after a growing delay.
        for pid in service.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return (_status(admin, "/live"), _status(admin, "/ready")) == (500, 500)

    wait_until(has_no_worker, "the report", 60)
    wait_until(lambda: (_status(admin, "/live"), _status(admin, "/ready")) == (200, 200), "a new worker", 60)


def _status(port: int, path: str) -> int | None:
    """Return the status of a page; None if nothing listens."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=20).status_code
    except httpx.TransportError:
        return None


def test_the_description_may_be_disabled(serve_once: Serve, database: Database, anonymous: str) -> None:
    settings = {**PLAIN, "PostgRest:AnonymousRole": anonymous, "PostgRest:OpenApiMode": "disabled"}
    response = serve_once(database, settings=settings).get("/")
    assert (response.status_code, response.json()["code"]) == (404, "PGRST126")
    assert response.json()["message"] == "Root endpoint metadata is disabled"


@pytest.mark.slow
def test_signals_read_schema_and_file_again(tmp_path: Path, database: Database, anonymous: str) -> None:
    port = free_port()

    admin = httpx.Client(transport=httpx.HTTPTransport(uds=str(tmp_path / "admin.sock")))

    def write(*lines: str) -> None:
        lines = (*lines, f'admin-server-unix-socket = "{tmp_path}/admin.sock"')
        uri = database.conninfo.replace('"', "")
        fixed = (f'db-uri = "{uri}"', 'db-schemas = "api"', f'db-anon-role = "{anonymous}"', f"server-port = {port}")
        (tmp_path / "api.conf").write_text("\n".join((*fixed, 'server-host = "127.0.0.1"', *lines)))

    def count() -> int:
        return len(httpx.get(f"http://127.0.0.1:{port}/item").json())

    write()
    with _started(tmp_path, f"http://127.0.0.1:{port}") as process:
        assert count() == 3
        assert admin.get("http://admin/ready").status_code == 200
        write("db-max-rows = 1")
        process.send_signal(signal.SIGUSR2)
        wait_until(lambda: count() == 1, "the new limit")
        write("db-max-rows = many")
        process.send_signal(signal.SIGUSR2)
        wait_until(lambda: "needs quotes" in (tmp_path / "log").read_text(), "the message")
        assert count() == 1
        write()
        process.send_signal(signal.SIGUSR1)
        wait_until(lambda: count() == 3, "the first limit")
    admin.close()


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["--watch", "--Watch:Enabled=true"])
def test_a_watched_file_is_read_again_when_it_is_saved(
    tmp_path: Path, database: Database, anonymous: str, switch: str
) -> None:
    port = free_port()

    def write(line: str) -> None:
        uri = database.conninfo.replace('"', "")
        fixed = f'db-uri = "{uri}"\ndb-schemas = "api"\ndb-anon-role = "{anonymous}"\nserver-port = {port}\n'
        save(tmp_path / "api.conf", f'{fixed}server-host = "127.0.0.1"\n{line}\n')

    def count() -> int | None:
        """Return the number of items; None while the service restarts."""
        try:
            return len(httpx.get(f"http://127.0.0.1:{port}/item").json())
        except httpx.TransportError:
            return None

    write("")
    with _started(tmp_path, f"http://127.0.0.1:{port}", switch):
        assert count() == 3
        write("db-max-rows = 1")
        wait_until(lambda: count() == 1, "the new limit", 30)
        write("db-max-rows")
        wait_until(lambda: "the last good one stays: api.conf:6:" in (tmp_path / "log").read_text(), "the message", 30)
        assert count() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("db-uri", "x.conf:1: expected = behind db-uri"),
        ("\ndb-uri = ", 'x.conf:2: db-uri has no value; write db-uri = "" for an empty one'),
        ("db-schemas = api", 'x.conf:1: the value of db-schemas needs quotes: db-schemas = "…"'),
        ('db-schemas = "api', "x.conf:1: the value of db-schemas has no closing quote"),
        ('db-anon-role = "$(NOT_SET_HERE)"', "x.conf:1: the environment variable NOT_SET_HERE is not set"),
        ('db-schemas = "pg_catalog"', "PostgRest: db-schemas does not allow schema: 'pg_catalog'"),
        ('db-schemas = ","', "PostgRest: db-schemas: ',' has no name"),
        ('server-cors-allowed-origins = " , "', "PostgRest: server-cors-allowed-origins: ' , ' has no name"),
        ('jwt-secret = "@/nowhere"', "PostgRest: jwt-secret: the file /nowhere can't be read"),
        ('jwt-secret = "@secret.bin"', "PostgRest: jwt-secret: the file secret.bin is not UTF-8"),
        ('db-tx-end = "sometimes"', "PostgRest:TransactionEnd"),
        ('log-level = "loud"', "x.conf: log-level: 'loud' is not one of crit, error, warn, info, debug"),
        ("admin-server-port = 3000", "x.conf: admin-server-port cannot be the same as server-port"),
        *(
            (
                f'server-unix-socket = "s"\nserver-unix-socket-mode = "{mode}"',
                f"x.conf: server-unix-socket-mode: '{mode}' is not an octal number between 600 and 777",
            )
            for mode in ("500", "800", "abc")
        ),
    ],
)
def test_errors_of_a_file_say_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.conf").write_text(text)
    (tmp_path / "secret.bin").write_bytes(bytes(range(256)))
    result = rowcall(tmp_path, "--postgrest", "x.conf")
    assert result.returncode == 1
    assert message in result.stderr + result.stdout


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = rowcall(tmp_path, "--postgrest", "nope.conf")
    assert (result.returncode, "nope.conf does not exist" in result.stderr) == (1, True)


WITH_SECRETS = """
db-uri = "postgresql://a:hidden@b/c"
jwt-secret = "hidden"
db-anon-role = "anon"
app.settings.api-token = "hidden"
app.settings.jwt_secret = "hidden too"
app.settings.jwt.secret = "hidden, too"
"""


def test_the_shown_configuration_has_placeholders_for_secrets(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(WITH_SECRETS)
    result = rowcall(tmp_path, "--postgrest", "x.conf", "--config")
    assert (result.returncode, "hidden" in result.stdout + result.stderr) == (0, False)
    assert '"AnonymousRole": "anon"' in result.stdout


def test_the_equivalent_configuration_has_placeholders_for_secrets(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(WITH_SECRETS)
    result = rowcall(tmp_path, "--from-postgrest", "x.conf")
    assert (result.returncode, "hidden" in result.stdout + result.stderr) == (0, False)
    content = json.loads(result.stdout)
    assert content["ConnectionStrings"] == {"Default": "{DB_URI}"}
    assert content["PostgRest"] == {
        "Enabled": "true",
        "AnonymousRole": "anon",
        "JwtSecret": "{JWT_SECRET}",
        "AppSettings": {
            "api-token": "{APP_SETTINGS_API_TOKEN}",
            "jwt_secret": "{APP_SETTINGS_JWT_SECRET}",
            "jwt.secret": "{APP_SETTINGS_JWT_SECRET_2}",
        },
    }
    variables = ("API_TOKEN", "JWT_SECRET", "JWT_SECRET_2")
    for name in ("DB_URI", "JWT_SECRET", *(f"APP_SETTINGS_{name}" for name in variables)):
        assert f"set the variable {name} " in result.stderr


@pytest.mark.slow
def test_endpoints_win_over_the_interface_and_share_no_session_with_it(
    serve_once: Serve, own_database: Database
) -> None:
    own_database.execute(
        SQL
        + """
        create function api.leave() returns text language sql as $$ select set_config('app.left', 'x', false) $$;
        create function public.look() returns text language sql as $$ select current_setting('app.left', true) $$;
        comment on function public.look() is 'HTTP GET /look';
        create function public.item() returns text language sql as $$ select 'endpoint' $$;
        comment on function public.item() is 'HTTP GET /item';
        """
    )
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}")
    settings = {"PostgRest:Enabled": "true", "PostgRest:Schemas": "api", "PostgRest:AnonymousRole": role}
    service = serve_once(own_database, settings=settings)
    assert service.get("/item").text == "endpoint"
    service.wait_for_log("Endpoints win over PostgREST's interface: GET /item has the path of api.item; PostgRest:Path")
    own_database.execute("comment on function public.look() is 'HTTP GET /rpc/setting'; notify pgrst")
    service.wait_for_log("GET /item has the path of api.item, GET /rpc/setting has the path of api.setting; PostgRest")
    own_database.execute("comment on function public.look() is 'HTTP GET /look'; notify pgrst")
    wait_until(lambda: service.get("/look").status_code == 200, "the former path")
    for _ in range(3):
        assert service.post("/rpc/leave", json={}).json() == "x"
        assert service.get("/look").text == ""


@pytest.mark.slow
def test_metrics_count_requests_by_method_and_kind(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(SQL)
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}; grant all on api.item to {role}")
    metrics = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0"}
    service = serve_once(own_database, settings={**PLAIN, **metrics, "PostgRest:AnonymousRole": role}, workers=2)
    for _ in range(8):
        assert service.request_once("GET", "/item").status_code == 200
    for method, path, status in (
        ("HEAD", "/item", 200),
        ("POST", "/item", 400),
        ("DELETE", "/nothing", 404),
        ("GET", "/rpc/setting?name=x", 200),
        ("POST", "/rpc/setting", 404),
    ):
        assert service.request_once(method, path).status_code == status
    expected = {
        ("GET", "/{relation}", "2xx"): 8,
        ("HEAD", "/{relation}", "2xx"): 1,
        ("POST", "/{relation}", "4xx"): 1,
        ("DELETE", "/{relation}", "4xx"): 1,
        ("GET", "/rpc/{function}", "2xx"): 1,
        ("POST", "/rpc/{function}", "4xx"): 1,
    }
    with admin_of(service) as admin:
        wait_until(lambda: _requests(numbers_of(admin), expected) == expected, "the numbers")


def _requests(numbers: Numbers, labels: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], float]:
    return {
        (method, route, status): numbers.of("rowcall_requests_total", method=method, route=route, status=status)
        for method, route, status in labels
    }


@pytest.mark.slow
def test_a_rate_limit_counts_all_requests_below_the_path(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(SQL)
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}; grant select on api.item to {role}")
    policy = "RateLimiterOptions:Policies:twice:"
    limits = {
        "RateLimiterOptions:Enabled": "true",
        policy + "Enabled": "true",
        policy + "Type": "FixedWindow",
        policy + "PermitLimit": "2",
        policy + "WindowSeconds": "3600",
        policy + "QueueLimit": "0",
        policy + "Partition:Sources:0:Type": "Header",
        policy + "Partition:Sources:0:Name": "X-Client",
        "PostgRest:RateLimiterPolicy": "twice",
    }
    service = serve_once(own_database, settings={**PLAIN, **limits, "PostgRest:AnonymousRole": role}, workers=2)
    statuses = [
        service.request_once("GET", path, headers={"x-client": "a"}).status_code for path in ("/item", "/rpc/root")
    ]
    assert statuses == [200, 200]
    refused = service.request_once("POST", "/item", headers={"x-client": "a"}, content="{}")
    assert refused.status_code == 429
    assert refused.json() == {
        "code": "PT429",
        "details": None,
        "hint": None,
        "message": "Too many requests. Please try again later.",
    }
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["proxy-status"] == "PostgREST; error=PT429"
    assert service.request_once("GET", "/item", headers={"x-client": "b"}).status_code == 200


@pytest.mark.slow
def test_a_request_that_is_refused_in_the_queue_of_a_rate_limit_is_answered_once(
    serve_once: Serve, own_database: Database
) -> None:
    own_database.execute(
        SQL + "create function api.held() returns void language sql as 'select pg_advisory_xact_lock(1)'"
    )
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}")
    policy = "RateLimiterOptions:Policies:single:"
    limits = {
        "RateLimiterOptions:Enabled": "true",
        policy + "Enabled": "true",
        policy + "Type": "Concurrency",
        policy + "PermitLimit": "1",
        policy + "QueueLimit": "1",
        policy + "OldestFirst": "false",
        "PostgRest:RateLimiterPolicy": "single",
    }
    service = serve_once(own_database, settings={**PLAIN, **limits, "PostgRest:AnonymousRole": role})
    with ThreadPoolExecutor() as threads, own_database.locked(1), contextlib.ExitStack() as queued:
        threads.submit(service.request_once, "POST", "/rpc/held", json={})
        wait_until(own_database.waiting, "the call that has the permit")
        asking = [queued.enter_context(service.connect()) for _ in range(2)]
        for connection in asking:
            connection.sendall(b"GET /item HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a.b\r\n\r\n")
        refused, _, _ = select.select(asking, [], [], 30)
        assert [connection.recv(12) for connection in refused] == [b"HTTP/1.1 429"]
        queued.close()
        service.wait_for_log("GET /item responded 499")
    assert [service.log.count(f"GET /item responded {status}") for status in (429, 401)] == [1, 0]
