"""Jobs of which some at a time run for each key, lists of jobs, and their traces and audit entries."""

from __future__ import annotations

import psycopg
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rowcall.service.installation.script import install_sql
from tests.harness.collector import collect_over_http
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table work (customer text, number int, running int, id int generated always as identity);
create function bill(_customer text, _number int) returns int language plpgsql as $$
begin
  perform pg_sleep(0.03);
  insert into work select _customer, _number, count(*) from rowcall.job
  where state = 'running' and serial_key like '%"' || _customer || '"%';
  return _number;
end $$;
comment on function bill(text, int) is 'HTTP POST /bills
user_context
job serial by _customer retries 0';
create function print(_customer text, _page int) returns int language plpgsql as $$
begin
  perform pg_sleep(0.03);
  insert into work select _customer, _page, count(*) from rowcall.job
  where state = 'running' and serial_key like '%"' || _customer || '"%';
  return _page;
end $$;
comment on function print(text, int) is 'HTTP POST /prints
job concurrency 3 per customer retries 0';
create function wrong(_customer text) returns int language sql as 'select 1';
comment on function wrong(text) is 'HTTP POST /wrong
job concurrency 3 per client';
create function broken() returns int language sql as $$ select 1 / (random() * 0)::int $$;
comment on function broken() is 'HTTP POST /broken
job queue other retries 1 backoff 50ms';
create function enter(_id text, _role text default null) returns table (user_id text, user_roles text)
language sql as $$ select _id, _role $$;
comment on function enter(text, text) is 'HTTP POST /enter
login
allow_anonymous';
create table call (entry jsonb);
create procedure audit_trail(_calls json) language sql
begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end;
"""
SETTINGS = {
    "Jobs:Enabled": "true",
    "Jobs:Roles:0": "boss",
    "Auth:BearerTokenAuth": "true",
    "Service:RequiresAuthorization": "false",
    "Service:AuditTrail:Enabled": "true",
    "Service:AuditTrail:Interval": "100 milliseconds",
}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(install_sql())
    return serve(database, SQL, SETTINGS, workers=2)


def signed_in(service: Service, user: str, role: str | None = None) -> dict[str, str]:
    token = service.post("/enter", json={"id": user, "role": role}).json()["accessToken"]
    return {"Authorization": f"Bearer {token}"}


def all_ended(database: Database) -> None:
    sql = "select count(*) from rowcall.job where state in ('waiting', 'running')"
    wait_until(lambda: database.value(sql) == 0, "all jobs have ended", 40)


def test_jobs_with_the_same_key_run_one_at_a_time(service: Service, database: Database) -> None:
    for number in range(8):
        for customer in ("ana", "ben", "cy"):
            assert service.post("/bills", json={"customer": customer, "number": number}).status_code == 202
    all_ended(database)
    failed = "select state, attempts, error from rowcall.job where state <> 'done' and endpoint = 'POST /bills'"
    assert database.fetch(failed) == []
    assert database.value("select count(*) from rowcall.job where state = 'done' and endpoint = 'POST /bills'") == 24
    assert database.value("select max(running) from work") == 1
    order = "select customer, array_agg(w.number order by w.id) from work w group by customer"
    assert database.fetch(order + " order by customer") == [(name, list(range(8))) for name in ("ana", "ben", "cy")]


def test_at_most_three_jobs_with_the_same_key_run_at_the_same_time(service: Service, database: Database) -> None:
    database.execute("truncate work")
    for page in range(20):
        for customer in ("eve", "fay"):
            assert service.post("/prints", json={"customer": customer, "page": page}).status_code == 202
    all_ended(database)
    totals = "select customer, count(*), max(running) <= 3 from work group by 1 order by 1"
    assert database.fetch(totals) == [("eve", 20, True), ("fay", 20, True)]
    assert database.fetch("select state from rowcall.job where endpoint = 'POST /prints' and state <> 'done'") == []


def test_unknown_key_parameter_leaves_the_endpoint_out(service: Service) -> None:
    assert service.post("/wrong", json={"customer": "ana"}).status_code == 404
    assert "POST /wrong: job names client, which is no parameter; the endpoint is left out" in service.log


def test_concurrent_workers_respect_the_limit_of_a_key(own_database: Database) -> None:
    own_database.execute(install_sql())
    take = "select arguments -> 0, serial_slot from rowcall.take_jobs(array['POST /x'], null, {}) order by serial_slot"
    conninfo = own_database.conninfo
    with psycopg.connect(conninfo) as one, psycopg.connect(conninfo) as other:
        for number in range(5):
            one.execute(
                "select rowcall.enqueue('POST /x', jsonb_build_array(%s::int), _serial_key => 'k', _serial_limit => 3)",
                (number,),
            )
            one.commit()
        assert one.execute(take.format(2)).fetchall() == [(0, 1), (1, 2)]
        # They are not committed yet, so they are waiting jobs here, whose slots stay free for them.
        assert other.execute(take.format(9)).fetchall() == [(2, 3)]
        other.commit()
        one.commit()
        assert one.execute(take.format(9)).fetchall() == []
        one.execute("update rowcall.job set state = 'done' where arguments = '[1]'")
        assert one.execute(take.format(9)).fetchall() == [(3, 2)]
        with pytest.raises(psycopg.errors.UniqueViolation):
            one.execute("update rowcall.job set state = 'running' where arguments = '[4]'")


def test_jobs_with_the_same_key_are_acquired_in_order(own_database: Database) -> None:
    own_database.execute(install_sql())
    take = "select arguments from rowcall.take_jobs(array['POST /x'], null, 9)"
    conninfo = own_database.conninfo
    with psycopg.connect(conninfo) as one, psycopg.connect(conninfo) as other:
        for number in range(3):
            one.execute("select rowcall.enqueue('POST /x', jsonb_build_array(%s::int), _serial_key => 'k')", (number,))
            one.commit()
        one.execute("select from rowcall.job where arguments = '[0]' for update")
        assert other.execute(take).fetchall() == []
        one.rollback()
        assert other.execute(take).fetchall() == [([0],)]


def test_serial_key_applies_to_jobs_enqueued_in_sql(service: Service, database: Database) -> None:
    database.execute("truncate work")
    arguments = "jsonb_build_object('customer', 'dora', 'number', n)"
    database.execute(
        f"select rowcall.enqueue('POST /bills', {arguments}, _serial_key => '\"dora\"') from generate_series(1, 9) n"
    )
    all_ended(database)
    assert database.fetch("select count(*), max(running) from work") == [(9, 1)]


def test_callers_list_their_own_jobs(service: Service, database: Database) -> None:
    ana, ben, boss = (signed_in(service, name, role) for name, role in (("1", None), ("2", None), ("3", "boss")))
    own = [service.post("/bills", json={"customer": "own", "number": n}, headers=ana).json()["id"] for n in range(5)]
    assert service.post("/broken", headers=ben).status_code == 202
    all_ended(database)
    listed = service.get("/jobs", headers=ana)
    assert [job["id"] for job in listed.json()] == own[::-1]
    assert "link" not in listed.headers
    assert listed.headers["cache-control"] == "no-store"
    assert {job["state"] for job in listed.json()} == {"done"}
    (failed,) = service.get("/jobs?state=failed", headers=ben).json()
    assert (failed["endpoint"], failed["queue"], failed["attempts"]) == ("POST /broken", "other", 2)
    assert "division by zero" in failed["error"]
    assert service.get("/jobs?queue=other", headers=ana).json() == []
    assert len(service.get("/jobs?queue=other", headers=boss).json()) == 1
    every = service.get("/jobs?limit=500&endpoint=POST%20/bills", headers=boss).json()
    assert len(every) == database.value("select count(*) from rowcall.job where endpoint = 'POST /bills'")


def test_job_lists_are_paginated(service: Service, database: Database) -> None:
    headers = signed_in(service, "pages")
    own = [
        service.post("/bills", json={"customer": "pages", "number": n}, headers=headers).json()["id"] for n in range(5)
    ]
    all_ended(database)
    received, address = [], "/jobs?limit=2&state=done"
    while address:
        response = service.get(address, headers=headers)
        received.append([job["id"] for job in response.json()])
        address = response.links["next"]["url"] if "next" in response.links else ""
    assert received == [own[:2:-1], own[2:0:-1], own[:1]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("state=dead", "state 'dead' is none of waiting, running, done, failed, cancelled"),
        ("limit=0", "limit '0' is no number from 1 to 500"),
        ("limit=501", "no number from 1 to 500"),
        ("limit=0000000011111111", "no number from 1 to 500"),
        ("limit=000000001" + "1" * 5000, "no number from 1 to 500"),
        ("limit=000000500999", "no number from 1 to 500"),
        ("before=7", "before '7' is no id of a job"),
        ("owner=2", "'owner' is no filter of jobs; they are state, queue, endpoint, before, limit"),
    ],
)
def test_invalid_filters_get_400(service: Service, query: str, message: str) -> None:
    assert message in problem(service.get(f"/jobs?{query}", headers=signed_in(service, "1")), 400)["detail"]


def test_anonymous_callers_list_nothing(service: Service) -> None:
    problem(service.get("/jobs"), 401)


def test_attempts_are_in_the_audit_trail(service: Service, database: Database) -> None:
    number = service.post("/broken", headers=signed_in(service, "audited")).json()["id"]
    all_ended(database)
    entries = "select entry from call where entry ->> 'userId' = 'audited' and entry ->> 'endpoint' = 'POST /broken'"
    wait_until(lambda: len(database.fetch(entries)) == 3, "the calls have been recorded", 20)
    found = sorted((entry["status"], entry["job"]) for (entry,) in database.fetch(entries) if entry["job"])
    assert found == [(500, number), (500, number)]
    assert [entry["status"] for (entry,) in database.fetch(entries) if entry["job"] is None] == [202]


@pytest.mark.slow
def test_metrics_count_finished_jobs(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    admin = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0"}
    service = serve_once(own_database, SQL, SETTINGS | admin, workers=2)
    for number in range(6):
        assert service.post("/prints", json={"customer": "ana", "page": number}).status_code == 202
    assert service.post("/broken").status_code == 202
    all_ended(own_database)
    expected = {
        ("POST /prints", "completed"): 6,
        ("POST /broken", "retried"): 1,
        ("POST /broken", "failed"): 1,
        ("POST /prints", "failed"): 0,
    }
    with admin_of(service) as client:

        def counted() -> bool:
            numbers = numbers_of(client)
            return expected == {
                (endpoint, outcome): numbers.of("rowcall_jobs_ended_total", endpoint=endpoint, outcome=outcome)
                for endpoint, outcome in expected
            }

        wait_until(counted, "all ends are counted", 20)


@pytest.mark.slow
def test_jobs_that_no_service_runs_are_reported(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    past = "_run_at => now() - interval '2 minutes'"
    own_database.execute(
        f"select rowcall.enqueue('POST /print', {past}); select rowcall.enqueue('POST /print', {past});"
        f"select rowcall.enqueue('POST /bills', _queue => 'bils', {past}); select rowcall.enqueue('POST /soon')"
    )
    service = serve_once(own_database, SQL, SETTINGS | {"Jobs:Queues:0": "default"}, workers=2)
    wait_until(lambda: "no service runs them" in service.log, "the jobs are reported", 30)
    lines = sorted(line.split("WRN] ")[1] for line in service.log.splitlines() if "no service runs them" in line)
    assert [line.partition(" wait")[0] for line in lines] == [
        "1 jobs of 'POST /bills' in the queue 'bils'",
        "2 jobs of 'POST /print' in the queue 'default'",
    ]


def test_jobs_of_endpoints_that_run_are_not_reported(own_database: Database) -> None:
    """They belong to another service, which has many jobs."""
    own_database.execute(install_sql())
    past = "_run_at => now() - interval '2 minutes'"
    names = ["POST /running", "POST /done", "POST /idle"]
    for name in names:
        own_database.execute(f"select rowcall.enqueue('{name}', {past}) from generate_series(1, 2)")
    taken = own_database.fetch(f"select id, endpoint from rowcall.take_jobs(array{names[:2]}, null, 4)")
    running = next(number for number, endpoint in taken if endpoint == "POST /running")
    for number, endpoint in taken:
        if endpoint == "POST /done":
            own_database.execute(f"select rowcall.finish_job('{number}', 1, 'text/plain', null)")
        elif number != running:
            own_database.execute(f"select rowcall.release_job('{number}', 1, 'stopped')")
    own_database.execute(f"select rowcall.enqueue('POST /done', {past})")
    report = "select endpoint, jobs from rowcall.report_unserved_jobs(array['POST /own'], null)"
    assert own_database.fetch(report) == [("POST /idle", 2)]
    assert own_database.fetch(report) == []


@pytest.mark.slow
def test_a_job_continues_the_trace_of_its_request(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    with collect_over_http() as collector:
        tracing = {
            "Tracing:Enabled": "true",
            "Tracing:SampleRatio": "0",
            "Tracing:Interval": "50ms",
            "Tracing:Endpoint": collector.url,
        }
        service = serve_once(own_database, SQL, {**SETTINGS, **tracing}, workers=2)
        headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        assert service.post("/bills", json={"customer": "t", "number": 1}, headers=headers).status_code == 202
        assert service.post("/bills", json={"customer": "t", "number": 2}).status_code == 202
        all_ended(own_database)

        def ends() -> list[Span]:
            return [span for span in collector.spans if span.kind == Span.SPAN_KIND_CONSUMER]

        (job,) = wait_until(ends, "the span of the job has arrived", 30)
        assert job.trace_id.hex() == TRACE
        request = next(span for span in collector.spans if span.kind == Span.SPAN_KIND_SERVER)
        assert (job.parent_span_id, job.name, request.name) == (request.span_id, "POST /bills", "POST /bills")
        within = {span.name for span in collector.spans if span.parent_span_id == job.span_id}
        assert within == {"wait for a connection", "database"}


@pytest.mark.slow
def test_a_job_enqueued_in_sql_continues_the_trace_of_the_request(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(
        "create function order_bill() returns void language sql as"
        ' $$ select rowcall.enqueue(\'POST /bills\', \'{"customer": "t", "number": 1}\') $$;'
        "comment on function order_bill() is 'HTTP POST /orders'"
    )
    with collect_over_http() as collector:
        tracing = {"Tracing:Enabled": "true", "Tracing:Interval": "50ms", "Tracing:Endpoint": collector.url}
        service = serve_once(own_database, SQL, {**SETTINGS, **tracing})
        headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        assert service.post("/orders", headers=headers).status_code == 204
        jobs = wait_until(
            lambda: [span for span in collector.spans if span.kind == Span.SPAN_KIND_CONSUMER], "the span arrives", 30
        )
        assert [(job.trace_id.hex(), job.name) for job in jobs] == [(TRACE, "POST /bills")]
