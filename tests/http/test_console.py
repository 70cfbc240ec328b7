"""The console for operators: authentication, and the reports of its JSON endpoints about all workers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.harness.console import console_client, console_link, operator
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function item(_id int) returns text language sql stable as $$ select 'item ' || _id $$;
comment on function item(int) is 'Finds an item.
HTTP GET /items/{_id}';
create function menu() returns text language sql stable as $$ select 'menu' $$;
comment on function menu() is 'HTTP GET /menu
openapi tag Shop, Gifts
cached';
create function wrong() returns int language sql as $$ select 1 / 0 $$;
comment on function wrong() is 'HTTP GET /wrong';
create function own() returns int language sql as $$ select 1 $$;
comment on function own() is 'HTTP GET /own
authorize boss';
"""
TOKEN = "an operator's token of this test"
SETTINGS = {
    "Console:Enabled": "true",
    "Console:Url": "http://127.0.0.1:0",
    "Admin:BearerToken": TOKEN,
    "CacheOptions:Enabled": "true",
    "ConnectionStrings:Other": "Host=localhost;Password=not-to-be-shown",
}
DATA = (
    "overview",
    "endpoints",
    "endpoint",
    "configuration",
    "diagnosis",
    "database",
    "queues",
    "events",
    "traces",
    "trace",
    "cache",
    "schema",
    "log",
    "sessions",
    "actions",
    "plan",
    "traffic",
)
HEADER = {"x-rowcall-console": "1"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def console(service: Service) -> Iterator[httpx.Client]:
    with operator(service, TOKEN) as client:
        yield client


def data(console: httpx.Client, name: str, **query: str) -> dict[str, object]:
    response = console.get(f"/console/api/{name}", params=query)
    assert response.status_code == 200, response.text
    result: dict[str, object] = response.json()
    return result


# --- access ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_anonymous_callers_are_refused(service: Service, method: str) -> None:
    address, _ = console_link(service)
    names = [f"api/{name}" for name in (*DATA, "live", "events/live", "log/live", "unknown")]
    with console_client(address) as client:
        for name in ("", "index.html", "console.js", "unknown", *names):
            response = client.request(method, f"/console/{name}", headers=HEADER)
            assert response.status_code == 401, name
            assert response.headers["www-authenticate"] == 'Bearer realm="rowcall console"'
            if method != "HEAD":
                problem(response, 401)


@pytest.mark.attack
@pytest.mark.parametrize("credential", ["Bearer wrong", "Bearer", "Basic YTpi", "Bearer \u00e9"])
def test_invalid_credentials_are_refused(service: Service, credential: str) -> None:
    address, _ = console_link(service)
    with console_client(address) as client:
        headers = {b"authorization": credential.encode("latin-1")}
        assert client.get("/console/api/overview", headers=headers).status_code == 401
        assert client.post("/console/api/session", headers=headers).status_code == 401
        assert client.get("/console/", headers={"cookie": "rowcall_console=wrong"}).status_code == 401


@pytest.mark.slow
def test_logged_link_signs_in_once(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Admin:BearerToken": None})
    address, token = console_link(service)
    with console_client(address, token) as client:
        assert client.get("/console/api/overview").status_code == 401  # a link is no session
        response = client.post("/console/api/session")
        assert response.status_code == 200
        assert client.post("/console/api/session").status_code == 401
        cookie = response.headers["set-cookie"]
        assert "; HttpOnly; SameSite=Strict" in cookie
        assert "; Path=/console;" in cookie
        del client.headers["authorization"]
        assert client.get("/console/").status_code == 200  # by the cookie
        assert client.get("/console/api/overview").status_code == 200
        assert client.delete("/console/api/session", headers=HEADER).status_code == 200
    with console_client(address, response.json()["token"]) as ended:
        assert ended.get("/console/api/overview").status_code == 401


@pytest.mark.parametrize("bearer", ["x", TOKEN, None], ids=["unknown", "of the listener", "of a session"])
def test_signing_out_ends_the_sessions_of_token_and_cookie(service: Service, bearer: str | None) -> None:
    address, _ = console_link(service)
    with console_client(address, TOKEN) as client, console_client(address) as cookies, operator(service, TOKEN) as own:
        cookies.headers["cookie"] = client.post("/console/api/session").headers["set-cookie"].partition(";")[0]
        authorization = own.headers["authorization"] if bearer is None else f"Bearer {bearer}"
        assert cookies.get("/console/api/overview").status_code == 200
        response = cookies.delete("/console/api/session", headers={**HEADER, "authorization": authorization})
        assert response.status_code == 200
        assert "; Max-Age=0" in response.headers["set-cookie"]
        assert cookies.get("/console/api/overview").status_code == 401
        assert own.get("/console/api/overview").status_code == (401 if bearer is None else 200)


@pytest.mark.slow
@pytest.mark.attack
def test_pages_of_other_origins_cannot_use_a_session(service: Service, console: httpx.Client) -> None:
    address, _ = console_link(service)
    with console_client(address, TOKEN) as client:
        client.post("/console/api/session")
        del client.headers["authorization"]
        assert client.get("/console/api/overview").status_code == 200
        for site in ("cross-site", "same-site"):
            problem(client.get("/console/api/overview", headers={"sec-fetch-site": site}), 403)
            problem(client.delete("/console/api/session", headers={**HEADER, "sec-fetch-site": site}), 403)
        problem(client.delete("/console/api/session", headers={**HEADER, "origin": "http://127.0.0.1:1"}), 403)
        problem(client.delete("/console/api/session"), 403)  # a form of this origin cannot send the header
        assert client.get("/console/api/overview").status_code == 200


@pytest.mark.attack
def test_foreign_host_header_is_refused(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**SETTINGS, "Admin:BearerToken": None})
    address, _ = console_link(service)
    with console_client(address) as client:
        problem(client.get("/console/sign-in", headers={"host": "rebound.example"}), 403)


PROTECTION = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def test_every_response_has_security_headers(service: Service, console: httpx.Client) -> None:
    """Pages, files, data, streams, and refusals of every kind."""
    anonymous = console_client(console_link(service)[0])
    for client, method, path, status in (
        (console, "GET", "/console/", 200),
        (console, "GET", "/console/console.js", 200),
        (console, "GET", "/console/api/overview", 200),
        (console, "HEAD", "/console/api/live", 200),
        (console, "GET", "/console/unknown", 404),
        (console, "GET", "/console/api/plan", 404),
        (console, "PUT", "/console/", 405),
        (console, "POST", "/console/api/actions/invalidate-cache", 403),
        (console, "POST", "/console/api/session", 401),
        (anonymous, "GET", "/console/sign-in", 200),
        (anonymous, "GET", "/console/", 401),
        (anonymous, "GET", "/console/api/overview", 401),
    ):
        response = client.request(method, path)
        assert response.status_code == status, (method, path)
        assert {name: response.headers.get(name) for name in PROTECTION} == PROTECTION, (method, path)
    anonymous.close()
    with console.stream("GET", "/console/api/log/live") as stream:
        assert {name: stream.headers.get(name) for name in PROTECTION} == PROTECTION


@pytest.mark.slow
def test_every_path_is_documented(database: Database, serve_once: Serve) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "console.md").read_text(encoding="utf-8")
    settings = {**SETTINGS, "Console:AllowActions": "true", "Jobs:Enabled": "true", "Webhooks:Enabled": "true"}
    service = serve_once(database, "", settings)
    with operator(service, TOKEN) as console:
        detail = problem(console.get("/console/api/unknown"), 404)["detail"]
        names = re.findall(r"/console/api/([\w/]+)", detail)
        assert set(DATA) < set(names)
        for name in names:
            assert f"| `{name}` |" in manual, name
        for action in data(console, "actions")["actions"]:  # type: ignore[attr-defined]
            assert f"| `{action['name']}` |" in manual, action
            for parameter in (*action["required"], *action["optional"]):
                assert f"`{parameter}`" in manual or f"`{parameter}=" in manual, (action, parameter)


def test_a_ninth_stream_is_refused_until_another_ends(console: httpx.Client) -> None:
    with ExitStack() as opened:
        lines = []  # A stream is closed with its iterator.
        for _ in range(8):
            stream = opened.enter_context(console.stream("GET", "/console/api/log/live"))
            assert stream.status_code == 200
            lines.append(stream.iter_lines())
            assert next(lines[-1]) == "retry: 2000"
        refused = opened.enter_context(console.stream("GET", "/console/api/log/live"))
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "5"
        assert "8 event streams" in json.loads(refused.read())["detail"]
        assert console.get("/console/api/overview").status_code == 200
        stream.close()
        stream = opened.enter_context(console.stream("GET", "/console/api/log/live"))
        assert stream.status_code == 200, "the stream of a disconnected client still counts"


def test_the_public_listener_has_no_console(service: Service) -> None:
    assert service.get("/console/").status_code == 404
    assert service.get("/console/api/overview").status_code == 404


# --- data ------------------------------------------------------------------------------------------------


def test_overview_counts_requests_of_all_workers(service: Service, console: httpx.Client) -> None:
    before = _requests(console)
    for _ in range(30):
        assert service.request_once("GET", "/items/7").status_code == 200
    wait_until(lambda: _requests(console) >= before + 30, "the overview counts the requests of both workers")
    processes = data(console, "overview")["processes"]
    assert isinstance(processes, list)
    assert {process["pid"] for process in processes} == {service.process.pid, *service.pids()}


def _requests(console: httpx.Client) -> float:
    statuses = data(console, "overview")["statuses"]
    assert isinstance(statuses, dict)
    return sum(statuses.values())


def test_the_overview_has_rates_latencies_and_pools(console: httpx.Client) -> None:
    overview = data(console, "overview")
    assert {"requestsPerSecond", "errorsPerSecond", "latency", "inFlight", "cache", "host"} <= overview.keys()
    pools = overview["pools"]
    assert isinstance(pools, list)
    assert {"connection", "pool", "connections", "inFlight", "most", "saturation", "waiting"} == pools[0].keys()


@pytest.mark.slow
def test_the_overview_is_sent_live(console: httpx.Client) -> None:
    with console.stream("GET", "/console/api/live") as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = (line for line in response.iter_lines() if line.startswith("data: "))
        events = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]
    assert all("requestsPerSecond" in event for event in events)


def test_requests_without_a_body_occupy_no_stream(console: httpx.Client) -> None:
    for _ in range(20):
        assert console.head("/console/api/live").status_code == 200


def test_endpoints_are_grouped(console: httpx.Client) -> None:
    by_tag = data(console, "endpoints", group="tag")
    assert by_tag["groups"] == [{"name": "", "count": 3}, {"name": "Gifts", "count": 1}, {"name": "Shop", "count": 1}]
    listed = by_tag["endpoints"]
    assert isinstance(listed, list)
    assert [item["path"] for item in listed] == ["/items/{_id}", "/own", "/wrong", "/menu", "/menu"]
    assert data(console, "endpoints", group="schema")["groups"] == [{"name": "public", "count": 4}]
    page = data(console, "endpoints", group="tag", offset="3", limit="1")["endpoints"]
    assert isinstance(page, list)
    assert [item["path"] for item in page] == ["/menu"]
    problem(console.get("/console/api/endpoints", params={"group": "path"}), 400)
    problem(console.get("/console/api/endpoints", params={"group": "path", "search": "no such endpoint"}), 400)


def test_endpoints_are_searched_and_paged(console: httpx.Client) -> None:
    whole = data(console, "endpoints")
    assert whole["total"] == 4
    page = data(console, "endpoints", offset="1", limit="2")["endpoints"]
    assert isinstance(page, list)
    assert [item["path"] for item in page] == ["/menu", "/own"]
    found = data(console, "endpoints", search="finds ITEM")["endpoints"]
    assert isinstance(found, list)
    assert [(item["method"], item["path"], item["access"]) for item in found] == [("GET", "/items/{_id}", "anyone")]
    problem(console.get("/console/api/endpoints?limit=many"), 400)


def test_an_endpoint_has_its_comment_sql_and_traffic(service: Service, console: httpx.Client) -> None:
    service.get("/items/1")
    item = data(console, "endpoint", method="GET", path="/items/{_id}")
    assert item["comment"] == "Finds an item.\nHTTP GET /items/{_id}"
    assert "select 'item ' || _id" in str(item["sql"])
    assert str(item["example"]).startswith(f"GET {service.url}/items/")
    assert isinstance(item["traffic"], dict)
    assert item["traffic"]["requests"] >= 1
    assert data(console, "endpoint", method="GET", path="/own")["access"] == "boss"
    problem(console.get("/console/api/endpoint?path=/nothing"), 404)


def test_traffic_of_the_last_hour_includes_all_workers(service: Service, console: httpx.Client) -> None:
    def seen() -> dict[str, float]:
        listed = data(console, "traffic", limit="1000")["endpoints"]
        assert isinstance(listed, list)
        nothing = {"errors": 0.0}
        return next((item for item in listed if item["path"] == "/wrong"), nothing)

    before = seen()["errors"]
    for _ in range(12):
        service.request_once("GET", "/wrong")
    wait_until(lambda: seen()["errors"] >= before + 12, "the errors of both workers are counted")
    wrong = seen()
    assert 0 < wrong["p50Seconds"] <= wrong["p99Seconds"]
    last_hour = data(console, "endpoint", method="GET", path="/wrong")["lastHour"]
    assert isinstance(last_hour, dict)
    assert last_hour["errors"] >= before + 12
    problem(console.get("/console/api/traffic?sort=color"), 400)


def test_a_plan_is_explained_on_demand(console: httpx.Client) -> None:
    plan = data(console, "plan", method="GET", path="/items/{_id}")
    assert "Result" in str(plan["plan"])
    assert "$1" in str(plan["statement"])
    problem(console.get("/console/api/plan?method=GET&path=/nothing"), 404)


def test_the_configuration_has_sources_and_no_secrets(console: httpx.Client) -> None:
    response = console.get("/console/api/configuration")
    assert "not-to-be-shown" not in response.text
    assert TOKEN not in response.text
    keys = {key["key"]: key for key in response.json()["keys"]}
    assert keys["Console:Enabled"]["source"] == "command line"
    assert keys["Console:Enabled"]["value"] is True
    assert keys["Tracing:Enabled"]["source"] is None
    changed = data(console, "configuration", changed="true", search="console:")["keys"]
    assert isinstance(changed, list)
    assert {key["key"] for key in changed} == {"Console:Enabled", "Console:Url"}


def test_the_diagnosis_reports_findings(console: httpx.Client) -> None:
    diagnosis = data(console, "diagnosis")
    assert "GET /items/{_id}" in str(diagnosis["open"])
    findings = diagnosis["findings"]
    assert isinstance(findings, list)
    assert all({"severity", "code", "about", "message", "remedy"} == finding.keys() for finding in findings)


def test_the_database_reports_sessions_and_locks(database: Database, console: httpx.Client) -> None:
    report = data(console, "database")
    sessions = report["sessions"]
    assert isinstance(sessions, list)
    assert sessions
    assert report["locks"] == []
    assert "replicas" in report
    unavailable = report["unavailable"]
    assert isinstance(unavailable, dict)
    assert ("statements" in report) != ("statements" in unavailable)


def test_locks_that_sessions_of_the_database_wait_for_are_reported(
    database: Database, own_database: Database, console: httpx.Client
) -> None:
    """Sessions of other databases of the server wait too, for relations whose OIDs belong to other relations here."""
    with waiting_session(database, 71) as pid, waiting_session(own_database, 71):
        locks = data(console, "database")["locks"]
        assert isinstance(locks, list)
        assert [(lock["pid"], lock["type"]) for lock in locks] == [(pid, "advisory")]
        assert locks[0]["blockedBy"]


@contextmanager
def waiting_session(database: Database, key: int) -> Iterator[int]:
    """Let a session wait for an advisory lock, and yield its process id."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        waiting = threading.Thread(target=connection.execute, args=("select pg_advisory_lock(%s)", [key]))
        with database.locked(key):
            waiting.start()
            wait_until(database.waiting, "the session waits")
            yield connection.info.backend_pid
        waiting.join()


def test_missing_job_tables_are_reported_as_unavailable(console: httpx.Client) -> None:
    unavailable = data(console, "queues")["unavailable"]
    assert isinstance(unavailable, dict)
    assert 'relation "rowcall.job" does not exist' in unavailable["jobs"]


def test_the_cache_has_hits_of_all_workers(service: Service, console: httpx.Client) -> None:
    for _ in range(10):
        service.request_once("GET", "/menu")
    cache = data(console, "cache")["endpoints"]
    assert isinstance(cache, list)
    assert [item["endpoint"] for item in cache] == ["GET /menu"]
    assert cache[0]["hits"] + cache[0]["misses"] >= 10


def test_the_log_has_entries_of_workers(service: Service, console: httpx.Client) -> None:
    service.get("/wrong")
    wait_until(
        lambda: "division by zero" in json.dumps(data(console, "log", search="division")),
        "the log has the error of a worker",
    )
    assert data(console, "log", search="no entry contains this text")["entries"] == []
    problem(console.get("/console/api/log?level=loud"), 400)


@pytest.mark.slow
def test_the_log_is_sent_live(service: Service, console: httpx.Client) -> None:
    last = str(data(console, "log")["last"])
    with console.stream("GET", "/console/api/log/live", params={"search": "division", "after": last}) as response:
        service.get("/wrong")
        event = next(line for line in response.iter_lines() if line.startswith("data: "))
    assert "division by zero" in event


@pytest.mark.slow
def test_reloads_are_listed(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    own_database.execute("create function new() returns int language sql as 'select 1'")
    own_database.execute("comment on function new() is 'HTTP GET /new'; notify rowcall")
    with operator(service, TOKEN) as console:
        wait_until(
            lambda: "GET /new" in json.dumps(data(console, "schema")["reloads"]), "the console lists the new endpoint"
        )
        added = data(console, "schema")["reloads"]
        assert isinstance(added, list)
        assert added[0]["contract"] == [{"severity": "compatible", "endpoint": "GET /new", "change": "added"}]
        own_database.execute(
            "drop function item(int); create function item(_id text) returns int language sql as 'select 1'"
        )
        own_database.execute("comment on function item(text) is 'HTTP GET /items/{_id}'; notify rowcall")
        wait_until(
            lambda: "breaking" in json.dumps(data(console, "schema")["reloads"]),
            "the console lists what clients break on",
        )


def test_disabled_console_returns_404(database: Database, serve_once: Serve) -> None:
    settings = {**SETTINGS, "Console:Enabled": None, "Admin:Url": "http://127.0.0.1:0"}
    service = serve_once(database, "", settings)
    address = service.wait_for_log("the admin listener is at").rpartition("listener is at ")[2].split()[0]
    with console_client(address, TOKEN) as client:
        assert client.get("/console/").status_code == 404
