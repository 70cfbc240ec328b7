"""One entry for each request, ids that go with it, and problems that name their trace (logging-6, logging-7)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest

from tests.harness.collector import Received, collect_over_grpc, collect_over_http
from tests.harness.database import Database
from tests.harness.load import Load
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function fail() returns int language plpgsql as $$begin raise division_by_zero; end$$;
create function many(_rows int) returns table(n int, filler text) language sql stable
  as $$select n, repeat('x', 100) from generate_series(1, _rows) n$$;
create function wait_for(_lock int) returns int language plpgsql volatile as $$
begin perform pg_advisory_xact_lock_shared(_lock); return _lock; end $$;
comment on function echo(int) is 'HTTP GET /echo/{_id}';
comment on function fail() is 'HTTP GET /fail';
comment on function many(int) is 'HTTP GET /many';
comment on function wait_for(int) is 'HTTP GET /wait-for';
create function reset(_token text) returns int language sql stable as 'select 1';
comment on function reset(text) is 'HTTP GET /reset/{_token}
sensitive';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Log:ConsoleFormat": "Json", "Log:CorrelationIdHeader": "X-Request-ID"})


def requests(service: Service) -> list[dict[str, object]]:
    entries = [json.loads(line) for line in service.log.splitlines()]
    return [entry for entry in entries if entry["source"] == "rowcall.http"]


def entry_of(service: Service, correlation: str) -> dict[str, object]:
    return wait_until(
        lambda: next((entry for entry in requests(service) if entry["CorrelationId"] == correlation), {}),
        f"the request {correlation} is logged",
    )


def test_the_entry_of_an_error_has_the_id_of_its_request(service: Service) -> None:
    assert service.get("/fail", headers={"X-Request-ID": "failed-1"}).status_code == 500
    service.wait_for_log("22012")
    (entry,) = (item for item in map(json.loads, service.log.splitlines()) if item.get("CorrelationId") == "failed-1"
                and item["source"] == "rowcall.database")  # fmt: skip
    assert entry["message"] == "GET /fail public.fail: 22012: division_by_zero"


@pytest.mark.parametrize(
    ("method", "target", "status", "level", "path", "endpoint"),
    [
        ("GET", "/echo/7?x=secret", 404, "Information", "/echo/7", "GET /echo/{_id} public.echo"),
        ("GET", "/echo/7", 200, "Information", "/echo/7", "GET /echo/{_id} public.echo"),
        ("HEAD", "/echo/7", 200, "Information", "/echo/7", "GET /echo/{_id} public.echo"),
        ("POST", "/echo/7", 405, "Information", "/echo/7", None),
        ("GET", "/nowhere%0aforged", 404, "Information", "/nowhere\\nforged", None),
        ("GET", "/reset/geheim", 200, "Information", "/reset/{_token}", "GET /reset/{_token} public.reset"),
        ("GET", "/fail", 500, "Error", "/fail", "GET /fail public.fail"),
        ("GET", "/many?rows=20000", 200, "Information", "/many", "GET /many public.many"),
    ],
)
def test_each_request_is_logged_with_one_entry(
    service: Service, method: str, target: str, status: int, level: str, path: str, endpoint: str | None
) -> None:
    correlation = f"{method}{target}".replace("geheim", "x")
    assert service.request(method, target, headers={"X-Request-ID": correlation}).status_code == status
    entry = entry_of(service, correlation)
    elapsed = entry["Elapsed"]
    assert entry["message"] == f"HTTP {method} {path} responded {status} in {elapsed:.4f} ms"
    assert (entry["level"], entry["Method"], entry["Path"], entry["Status"]) == (level, method, path, status)
    assert entry.get("Endpoint") == endpoint
    assert [item for item in requests(service) if item["CorrelationId"] == correlation] == [entry]
    assert "geheim" not in service.log


def test_a_client_that_disconnects_before_the_response_is_logged_as_499(database: Database, service: Service) -> None:
    with database.locked(3):
        with service.connect() as connection:
            connection.sendall(b"GET /wait-for?lock=3 HTTP/1.1\r\nHost: x\r\nX-Request-ID: gone\r\n\r\n")
            wait_until(database.waiting, "the query runs")
        entry = entry_of(service, "gone")
    assert (entry["Status"], entry["Endpoint"]) == (499, "GET /wait-for public.wait_for")


def test_the_request_id_is_returned_with_the_response(service: Service) -> None:
    assert service.get("/echo/1", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert service.get("/nope", headers={"x-request-id": "abc-2"}).headers["x-request-id"] == "abc-2"
    assert service.get("/many?rows=20000", headers={"x-request-id": "abc-3"}).headers["x-request-id"] == "abc-3"


@pytest.mark.parametrize("given", [{}, {"x-request-id": "with space"}, {"x-request-id": "x" * 129}])
def test_a_request_without_a_valid_id_gets_a_generated_one(service: Service, given: dict[str, str]) -> None:
    first, second = (service.get("/echo/1", headers=given).headers["x-request-id"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second
    assert entry_of(service, first)["Status"] == 200


def test_problems_contain_the_trace_id_if_configured(database: Database, service: Service, serve_once: Serve) -> None:
    assert "traceId" not in service.get("/nope").json()
    traced = serve_once(database, settings={"ErrorHandlingOptions:RemoveTraceId": "false"})
    trace = "0af7651916cd43dd8448eb211c80319c"
    parent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    assert re.fullmatch(f"00-{trace}-[0-9a-f]{{16}}-01", traced.get("/nope", headers=parent).json()["traceId"])
    for headers in ({}, {"traceparent": "nonsense"}):
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", traced.get("/nope", headers=headers).json()["traceId"])


def test_the_trace_id_of_a_problem_is_the_request_id(database: Database, service: Service, serve_once: Serve) -> None:
    settings = {"ErrorHandlingOptions:RemoveTraceId": "false", "Log:CorrelationIdHeader": "X-Request-ID"}
    traced = serve_once(database, settings=settings)
    assert traced.get("/fail", headers={"X-Request-ID": "abc"}).json()["traceId"] == "abc"


def test_requests_can_be_excluded_from_the_log(database: Database, service: Service, serve_once: Serve) -> None:
    quiet = serve_once(database, settings={"Log:MinimalLevels:rowcall.http": "Warning"})
    assert quiet.get("/echo/1").status_code == 200
    quiet.get("/fail")
    quiet.wait_for_log("22012")
    assert "HTTP GET" not in quiet.log


@pytest.mark.slow
def test_two_workers_write_one_rotating_file(database: Database, service: Service, serve_once: Serve) -> None:
    """Every request is one whole line in one of the files, whichever worker has served it."""
    limit = 20_000
    settings = {"Log:ToFile": "true", "Log:FileSizeLimitBytes": str(limit), "Log:RetainedFileCountLimit": "0"}
    shared = serve_once(database, settings=settings, workers=2)
    with Load(shared.port, lambda number: ("GET", f"/echo/{number}", b"")) as load:
        load.wait_for(2000)
    assert shared.stop() == 0
    files = sorted((Path(shared.folder) / "logs").iterdir())
    lines = [line for file in files for line in file.read_text().splitlines()]
    pattern = re.compile(r"\[\d\d:\d\d:\d\d\.\d{3} \w{3}\] .* \[rowcall[.\w]*\]")
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    logged = [int(result[1]) for line in lines if (result := re.search(r"HTTP GET /echo/(\d+) responded 200", line))]
    assert sorted(logged) == sorted(outcome.number for outcome in load.outcomes if outcome.status == 200)
    assert len(files) > 5
    assert all(file.stat().st_size < limit + 200 for file in files)


LOG_SQL = """
create table logged(level text, message text, at timestamptz, exception text, source text);
create procedure log(_level text, _message text, _at timestamptz, _exception text, _source text) language plpgsql as $$
begin
  raise warning 'this must not come back';
  insert into logged values (_level, _message, _at, _exception, _source);
end $$;
"""


def test_entries_of_all_workers_reach_the_database(own_database: Database, serve_once: Serve) -> None:
    settings = {"Log:ToPostgres": "true", "Log:PostgresMinimumLevel": "Information"}
    service = serve_once(own_database, SQL + LOG_SQL, settings, 2)
    for number in range(20):
        with service.connect() as connection:
            connection.sendall(b"GET /echo/%d HTTP/1.1\r\nHost: x\r\n\r\n" % number)
            assert connection.recv(1000)

    def stored() -> list[tuple[str, str]]:
        with psycopg.connect(own_database.conninfo) as connection:
            return connection.execute("select source, message from logged").fetchall()

    wait_until(lambda: sum("HTTP GET /echo" in message for _, message in stored()) == 20, "all are stored")
    assert service.stop() == 0
    messages = [message for _, message in stored()]
    assert any(message.startswith("Started in") for message in messages)
    assert "stopped" in messages
    assert not [message for message in messages if "come back" in message]
    assert "come back" not in service.log


def test_a_log_table_that_refuses_entries_does_not_stop_the_service(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Log:ToPostgres": "true"})
    service.wait_for_log("the log sink PostgreSQL does not take entries")
    assert service.get("/echo/1").text == "1"
    assert service.stop() == 0
    assert service.log.count("does not take entries") == 1


def check(received: Received, service: Service) -> None:
    assert service.get("/echo/5").text == "5"
    wait_until(lambda: any("/echo/5" in body for _, _, body in received.records), "the request is collected")
    [record] = [record for record in received.records if "/echo/5" in record[2]]
    assert record[:2] == ("rowcall.http", "Information")
    assert received.resource == {"service.name": "shop", "service.version": "1.0", "service.environment": "Test"}
    assert received.requests[0][0]["x-token"] == "geheim"
    assert service.stop() == 0
    assert received.records[-1][2] == "stopped"
    assert "geheim" not in service.log


OTEL = {
    "Log:ToOpenTelemetry": "true",
    "ApplicationName": "shop",
    "EnvironmentName": "Test",
    "Log:OTLPHeaders:X-Token": "geheim",
}


@pytest.mark.slow
def test_entries_reach_a_collector_over_http(database: Database, service: Service, serve_once: Serve) -> None:
    with collect_over_http() as received:
        settings = {**OTEL, "Log:OTLPProtocol": "HttpProtobuf", "Log:OTLPEndpoint": received.url}
        check(received, serve_once(database, settings=settings, workers=2))
    assert set(received.paths) == {"/v1/logs"}


def test_entries_reach_a_collector_over_grpc(database: Database, service: Service, serve_once: Serve) -> None:
    with collect_over_grpc() as received:
        check(received, serve_once(database, settings={**OTEL, "Log:OTLPEndpoint": received.url}, workers=2))


@pytest.mark.slow
def test_an_unreachable_collector_is_logged_once_and_does_not_delay_requests(
    database: Database, service: Service, serve_once: Serve
) -> None:
    away = serve_once(database, settings={**OTEL, "Log:OTLPEndpoint": f"http://127.0.0.1:{free_port()}"})
    assert away.get("/echo/5").text == "5"
    away.wait_for_log("the log sink OpenTelemetry does not take entries", 60)
    assert away.stop() == 0
    assert away.log.count("does not take entries") == 1
    assert "Transient error" not in away.log


def test_a_failed_start_does_not_wait_for_the_log(tmp_path: Path) -> None:
    """The database that entries should go to is the one that cannot be reached."""
    settings = {
        "ConnectionStrings:Default": f"host=127.0.0.1 port={free_port()} dbname=x user=x",
        "ConnectionSettings:RetryOptions:Enabled": "false",
        "Log:ToPostgres": "true",
    }
    failing = Service(tmp_path, settings)
    assert failing.process.wait(30) == 1
    failing.stop()
    assert "the log sink PostgreSQL does not take entries" in failing.log
    assert "supervisor" not in failing.log
