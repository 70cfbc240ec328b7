"""Metrics for operators, for all workers together, on a separate listener."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.load import Load
from tests.harness.metrics import Numbers, admin_of, numbers_of
from tests.harness.prometheus import PROGRAM, PROMTOOL, prometheus, query
from tests.harness.raw_http import read_response
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function item(_id int) returns text language sql stable as $$ select 'item ' || _id $$;
comment on function item(int) is 'HTTP GET /items/{_id}';
create function many() returns table (n int) language sql stable as $$ select generate_series(1, 7) $$;
comment on function many() is 'HTTP GET /many';
create function wrong() returns int language sql as $$ select 1 / 0 $$;
comment on function wrong() is 'HTTP GET /wrong';
create function kept() returns text language sql stable as $$ select 'kept' $$;
comment on function kept() is 'HTTP GET /kept
cached';
create function gate() returns int language sql as 'select 1 from pg_advisory_xact_lock(22)';
comment on function gate() is 'HTTP GET /gate';
create function few() returns int language sql as 'select 1';
comment on function few() is 'HTTP GET /few
rate_limiter few';
create sequence tries;
create function shaky() returns int language plpgsql as $$ begin
    if nextval('tries') % 2 = 1 then raise exception using errcode = '40001', message = 'again'; end if;
    return 1;
end $$;
comment on function shaky() is 'HTTP GET /shaky
retry_strategy once';
create function forward() returns void language sql as '';
comment on function forward() is 'HTTP GET /forward
proxy';
create function news(_text text) returns void language plpgsql as $$begin raise info '%', _text; end$$;
comment on function news(text) is 'HTTP POST /news
sse';
create function later() returns int language sql as 'select 1';
comment on function later() is 'HTTP POST /later
job';
create function empty(_id int) returns text language sql as $$ select '' $$;
comment on function empty(int) is 'HTTP GET /empty
authorize boss';
"""
ADMIN = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0"}
LIMIT = "RateLimiterOptions:Policies:few:"
SETTINGS = {
    **ADMIN,
    "Metrics:MeasureRendering": "true",
    "CacheOptions:Enabled": "true",
    "HealthChecks:Enabled": "true",
    "Jobs:Enabled": "true",
    "RateLimiterOptions:Enabled": "true",
    f"{LIMIT}Enabled": "true",
    f"{LIMIT}Type": "FixedWindow",
    f"{LIMIT}PermitLimit": "2",
    f"{LIMIT}WindowSeconds": "3600",
    f"{LIMIT}QueueLimit": "0",
    "CommandRetryOptions:Strategies:once:RetrySequenceSeconds:0": "0.01",
    "CommandRetryOptions:Strategies:once:ErrorCodes:0": "40001",
    "Service:ProxyOptions:Enabled": "true",
}


@pytest.fixture(scope="module")
def filled(database: Database) -> Database:
    database.execute(install_sql())
    database.execute(SQL)
    return database


@pytest.fixture(scope="module")
def service(filled: Database, serve: Serve, upstream: Upstream) -> Service:
    upstream.on("/forward", answer("elsewhere"))
    return serve(filled, "", {**SETTINGS, "Service:ProxyOptions:Host": upstream.url}, workers=2)


@pytest.fixture(scope="module")
def admin(service: Service) -> Iterator[httpx.Client]:
    with admin_of(service) as client:
        yield client


def test_the_table_of_capabilities_has_every_metric(admin: httpx.Client) -> None:
    table = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    served = {
        name
        for name, family in numbers_of(admin, open_metrics=True).families.items()
        if not family.documentation.startswith("Former name")
    }
    assert len(served) > 10
    assert served - set(re.findall(r"`(rowcall_\w+)`", table)) == set()


def new_connection(service: Service, path: str) -> int:
    return service.request_once("GET", path).status_code


def grown(before: Numbers, after: Numbers, sample: str, **labels: str) -> float:
    return after.of(sample, **labels) - before.of(sample, **labels)


def counted_until(admin: httpx.Client, before: Numbers, expected: float, sample: str, **labels: str) -> None:
    """Wait for the metric: a response may be counted after the client has received it."""
    wait_until(
        lambda: grown(before, numbers_of(admin), sample, **labels) == expected, f"{sample} has grown by {expected}"
    )


def test_the_requests_of_all_workers_are_counted_together(service: Service, admin: httpx.Client) -> None:
    before = numbers_of(admin)
    for number in range(40):
        assert new_connection(service, f"/items/{number}") == 200
    labels = {"method": "GET", "route": "/items/{_id}", "routine": "public.item"}
    counted_until(admin, before, 40, "rowcall_requests_total", **labels, status="2xx")
    after = numbers_of(admin)
    for histogram in ("request_duration", "request_wait", "request_database"):
        assert grown(before, after, f"rowcall_{histogram}_seconds_count", **labels) == 40
        assert grown(before, after, f"rowcall_{histogram}_seconds_bucket", **labels, le="+Inf") == 40
        assert after.of(f"rowcall_{histogram}_seconds_sum", **labels) > 0
    assert grown(before, after, "rowcall_rows_total", **labels) == 40
    assert grown(before, after, "rowcall_response_bytes_total", **labels) == 10 * len("item 1") + 30 * len("item 10")
    assert after.of("rowcall_rendering_seconds_total", route="/many") >= 0
    assert after.of("rowcall_workers") == 2
    assert after.of("rowcall_requests_in_flight", **labels) == 0


@pytest.mark.parametrize(
    ("path", "times", "sample", "labels", "expected"),
    [
        ("/many", 3, "rowcall_rows_total", {"route": "/many"}, 21),
        ("/many", 3, "rowcall_requests_total", {"route": "/many", "status": "2xx"}, 3),
        ("/wrong", 2, "rowcall_requests_total", {"route": "/wrong", "status": "4xx"}, 0),
        ("/wrong", 2, "rowcall_requests_total", {"route": "/wrong", "status": "5xx"}, 2),
        ("/items/x", 2, "rowcall_requests_total", {"route": "/items/{_id}", "status": "4xx"}, 2),
        ("/empty?id=1", 2, "rowcall_requests_total", {"route": "/empty", "status": "4xx"}, 2),
        ("/not/there", 2, "rowcall_unrouted_requests_total", {"status": "4xx"}, 2),
        ("/few", 4, "rowcall_requests_limited_total", {"route": "/few"}, 2),
        ("/kept", 5, "rowcall_cache_hits_total", {"route": "/kept"}, 4),
        ("/shaky", 4, "rowcall_retries_total", {"route": "/shaky"}, 4),
        ("/forward", 3, "rowcall_requests_total", {"route": "/forward", "status": "2xx"}, 3),
        ("/forward", 3, "rowcall_upstream_requests_total", {"status": "2xx"}, 3),
        ("/forward", 3, "rowcall_upstream_request_duration_seconds_count", {}, 3),
        ("/health/live", 2, "rowcall_requests_total", {"route": "/health/live", "status": "2xx"}, 2),
    ],
)
def test_each_request_is_counted_with_its_labels(
    service: Service, admin: httpx.Client, path: str, times: int, sample: str, labels: dict[str, str], expected: int
) -> None:
    before = numbers_of(admin)
    for _ in range(times):
        new_connection(service, path)
    counted_until(admin, before, expected, sample, **labels)


def test_cache_hits_have_no_database_time(service: Service, admin: httpx.Client) -> None:
    service.get("/kept")
    service.get("/kept")
    wait_until(
        lambda: (
            (result := numbers_of(admin)).of("rowcall_request_duration_seconds_count", route="/kept")
            == result.of("rowcall_cache_hits_total", route="/kept")
            + result.of("rowcall_cache_misses_total", route="/kept")
        ),
        "everything is counted",
    )
    result = numbers_of(admin)
    assert result.of("rowcall_cache_misses_total", route="/kept") == 1
    assert result.of("rowcall_request_database_seconds_count", route="/kept") == 1


def test_requests_in_flight_and_disconnected_clients_are_counted(
    service: Service, admin: httpx.Client, database: Database
) -> None:
    with database.locked(22):
        with service.connect() as client:
            client.sendall(b"GET /gate HTTP/1.1\r\nhost: localhost\r\n\r\n")
            wait_until(
                lambda: numbers_of(admin).of("rowcall_requests_in_flight", route="/gate") == 1, "it is under way"
            )
            busy = numbers_of(admin)
            assert busy.of("rowcall_database_requests_in_flight", connection="main", lane="exclusive") >= 1
            assert busy.of("rowcall_database_connections", connection="main", lane="exclusive") >= 1
            assert busy.of("rowcall_requests_in_progress") == busy.of("rowcall_exchanges_running") >= 1
        gone = wait_until(
            lambda: numbers_of(admin).of("rowcall_requests_total", route="/gate", status="499"), "it is noticed"
        )
        assert gone == 1
        wait_until(lambda: numbers_of(admin).of("rowcall_requests_in_flight", route="/gate") == 0, "nothing is left")


def test_open_event_streams_are_counted(service: Service, admin: httpx.Client) -> None:
    before = numbers_of(admin)
    with EventStream(service, "/news/info") as item, EventStream(service, "/news/info") as other:
        assert numbers_of(admin).of("rowcall_event_streams", path="/news/info") == 2
        service.post("/news", json={"text": "now"})
        item.wait_for("now")
        other.wait_for("now")
        counted_until(admin, before, 1, "rowcall_events_published_total")
    wait_until(lambda: numbers_of(admin).of("rowcall_event_streams", path="/news/info") == 0, "both have gone", 30)


def test_each_process_reports_its_memory(admin: httpx.Client) -> None:
    result = numbers_of(admin)
    for process in ("supervisor", "worker 0", "worker 1"):
        assert result.of("rowcall_process_resident_memory_bytes", process=process) > 1_000_000
        assert result.of("rowcall_process_open_fds", process=process) > 3
        assert result.of("rowcall_process_start_time_seconds", process=process) > 1_600_000_000
    assert result.of("rowcall_process_cpu_seconds_total") > 0
    assert result.of("rowcall_build_info") == 1


def test_both_formats_have_the_same_samples(service: Service, admin: httpx.Client) -> None:
    new_connection(service, "/many")
    plain, open_metrics = numbers_of(admin), numbers_of(admin, open_metrics=True)
    assert plain.samples == open_metrics.samples
    assert plain.of("rowcall_requests_total") == open_metrics.of("rowcall_requests_total")


@pytest.mark.slow
def test_counts_of_a_killed_worker_are_preserved(service: Service, admin: httpx.Client, database: Database) -> None:
    for _ in range(20):
        new_connection(service, "/many")
    with database.locked(22), service.connect() as client:
        client.sendall(b"GET /gate HTTP/1.1\r\nhost: localhost\r\n\r\n")
        wait_until(lambda: numbers_of(admin).of("rowcall_requests_in_flight", route="/gate") == 1, "it is under way")
        before = numbers_of(admin)
        for pid in service.pids():
            os.kill(pid, signal.SIGKILL)
    killed = numbers_of(admin)
    assert killed.of("rowcall_requests_total") >= before.of("rowcall_requests_total")
    wait_until(lambda: numbers_of(admin).of("rowcall_worker_restarts_total") == 2, "both are replaced")
    wait_until(lambda: new_connection(service, "/many") == 200, "they serve", 30)
    wait_until(
        lambda: grown(before, numbers_of(admin), "rowcall_requests_total", route="/many") >= 1, "the next one counts on"
    )
    after = numbers_of(admin)
    assert after.of("rowcall_requests_in_flight", route="/gate") == 0
    decreasing = [
        item.name
        for family in before.families.values()
        if family.type in ("counter", "histogram")
        for item in family.samples
        if after.of(item.name, **item.labels) < item.value
    ]
    assert decreasing == []


def test_the_public_listener_does_not_serve_metrics(service: Service) -> None:
    problem(service.get("/metrics"), 404)


def test_the_admin_listener_refuses_other_paths_methods_and_hosts(admin: httpx.Client) -> None:
    problem(admin.get("/items/1"), 404)
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        refused = admin.request(method, "/metrics")
        assert problem(refused, 405)["detail"] == "/metrics answers GET, HEAD"
        assert (refused.headers["allow"], refused.headers["connection"]) == ("GET, HEAD", "close")
    assert (admin.head("/metrics").status_code, admin.head("/metrics").content) == (200, b"")
    problem(admin.get("/metrics", headers={"host": "evil.example"}), 403)


def test_endpoints_beyond_the_maximum_are_counted_together(filled: Database, serve_once: Serve) -> None:
    service = serve_once(filled, "", {**ADMIN, "Metrics:MaxEndpoints": "2"})
    with admin_of(service) as admin:
        for path in ("/many", "/items/1", "/wrong"):
            service.get(path)
        wait_until(lambda: numbers_of(admin).of("rowcall_requests_total") == 3, "all are counted")
        result = numbers_of(admin)
        assert result.of("rowcall_requests_total", route="/many") == 1
        assert result.of("rowcall_requests_total", route="(others)") == 2


@pytest.mark.parametrize("target", ["*", "metrics", "http://[/metrics", "http://127.0.0.1", "//"])
def test_a_target_without_a_path(service: Service, target: str) -> None:
    with socket.create_connection(("127.0.0.1", admin_of(service).base_url.port or 0), 30) as connection:
        connection.sendall(f"OPTIONS {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        response = read_response(connection)
    assert response is not None
    assert response.status == (404 if target == "//" else 400)
    assert "on the admin listener failed" not in service.log


@pytest.mark.slow
def test_a_token_and_a_unix_socket(filled: Database, serve_once: Serve, tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    token = "0123456789abcdef"
    service = serve_once(filled, "", {**ADMIN, "Admin:Url": f"http://unix:{path}", "Admin:BearerToken": token})
    assert path.stat().st_mode & 0o777 == 0o600
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=60, base_url="http://any.name") as client:
        refused = client.get("/metrics")
        problem(refused, 401)
        assert refused.headers["www-authenticate"].startswith("Bearer")
        problem(client.get("/metrics", headers={"authorization": "Bearer 0123456789abcdeg"}), 401)
        problem(client.get("/metrics", headers={"authorization": f"Basic {token}"}), 401)
        client.headers["authorization"] = f"bearer {token}"
        assert numbers_of(client).of("rowcall_workers") == 1
    assert token not in service.log
    service.stop()
    assert not path.exists()


def test_head_and_body_arrive_in_one_segment(service: Service) -> None:
    # Otherwise the body waits 40 ms until the client acknowledges the head (delayed ACK and the Nagle algorithm).
    with socket.create_connection(("127.0.0.1", admin_of(service).base_url.port or 0), 30) as connection:
        for _ in range(3):
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            head, _, body = connection.recv(65_536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 404")
            assert f"content-length: {len(body)}".encode() in head
            assert body.endswith(b"}")


def test_a_client_that_waits_for_100_sends_its_body(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", admin_of(service).base_url.port or 0), 30) as connection:
        head = "POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("framing", ["Content-Length: 41", "Transfer-Encoding: chunked"])
def test_a_body_is_not_read_as_the_next_request(service: Service, method: str, framing: str) -> None:
    inner = "GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", admin_of(service).base_url.port or 0), 30) as connection:
        connection.sendall(f"{method} /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n{framing}\r\n\r\n{inner}".encode())
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65_536):
                received += part
    assert received.count(b"HTTP/1.1 ") == received.count(b"HTTP/1.1 200") == 1


def test_an_address_in_use_is_logged(tmp_path: Path, database: Database) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = rowcall(
            tmp_path,
            f"--ConnectionStrings:Default={database.conninfo}",
            "--Urls=http://127.0.0.1:0",
            f"--Admin:Url=http://127.0.0.1:{taken.getsockname()[1]}",
        )
    assert ended.returncode != 0
    assert "Admin:Url: cannot listen on" in ended.stdout + ended.stderr


DASHBOARD = json.loads((Path(__file__).parents[2] / "examples/grafana-dashboard.json").read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
OF_GRAFANA = {"$__rate_interval": "1m", "$job": ".*", "$route": ".*"}
MAY_BE_EMPTY = ('status="5xx"', 'status="499"', "> 0")
"""Parts of expressions that may be empty: nothing has failed, disconnected or waited."""


def some_of_everything(service: Service) -> None:
    for path in ("/many", "/kept", "/kept", "/forward", "/not/there", "/shaky", "/few"):
        new_connection(service, path)
    service.post("/news", json={"text": "without a subscriber"})
    service.post("/later")


def filled_in(expression: str) -> str:
    for name, value in OF_GRAFANA.items():
        expression = expression.replace(name, value)
    return expression


def test_the_dashboard_queries_only_existing_metrics(service: Service, admin: httpx.Client) -> None:
    some_of_everything(service)
    kinds = ("rowcall_upstream_requests_total", "rowcall_jobs_ended_total")
    wait_until(lambda: all(numbers_of(admin).of(kind) > 0 for kind in kinds), "all kinds are counted")
    samples = numbers_of(admin).samples
    for expression in [*EXPRESSIONS, *(item["query"]["query"] for item in DASHBOARD["templating"]["list"][1:])]:
        names = re.findall(r"\browcall_\w+", expression)
        assert names, expression
        assert [name for name in names if name not in samples] == [], expression
        known = {label for name in names for label in samples[name]} | {"job", "instance"}
        values = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        values |= set(re.findall(r"[{,](\w+)(?:=|!=|=~|!~)\"", expression))
        assert values <= known, expression


@pytest.mark.skipif(PROMTOOL is None, reason="promtool of the Debian package prometheus is not installed")
def test_promtool_reports_no_problems(admin: httpx.Client) -> None:
    text = admin.get("/metrics").text
    checked = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="the Debian package prometheus is not installed")
def test_prometheus_evaluates_the_queries_of_the_dashboard(
    service: Service, admin: httpx.Client, tmp_path: Path
) -> None:
    some_of_everything(service)
    with prometheus(tmp_path, str(admin.base_url.netloc.decode())) as requested:
        wait_until(lambda: query(requested, "count_over_time(rowcall_build_info[1m]) >= 3"), "it has looked thrice", 60)
        some_of_everything(service)
        wait_until(
            lambda: (
                [
                    expression
                    for expression in EXPRESSIONS
                    if not query(requested, filled_in(expression))
                    and not any(part in expression for part in MAY_BE_EMPTY)
                ]
                == []
            ),
            "every panel shows something",
            30,
        )


@pytest.mark.slow
def test_counts_are_exact_under_load(service: Service, admin: httpx.Client) -> None:
    wait_until(lambda: new_connection(service, "/many") == 200, "they serve", 30)
    before = numbers_of(admin)
    with Load(service.port, lambda number: ("GET", f"/items/{number}", b"")) as load:
        load.wait_for(2000)
    answered = sum(load.statuses().values())
    wait_until(lambda: numbers_of(admin).of("rowcall_requests_in_flight", route="/items/{_id}") == 0, "all have ended")
    counted = grown(before, numbers_of(admin), "rowcall_requests_total", route="/items/{_id}")
    assert answered <= counted <= answered + 16
