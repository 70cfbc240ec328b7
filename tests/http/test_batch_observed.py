"""Batches in metrics, traces and the audit trail: each request is one of its endpoint."""

from __future__ import annotations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.harness.collector import collect_over_http
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table item (id int primary key);
create function add(_id int) returns item language sql as $$ insert into item values (_id) returning * $$;
comment on function add(int) is 'HTTP POST /add
allow_anonymous';
create table call (entry jsonb);
create procedure audit_trail(_calls json) language sql
begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end;
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BATCH = [{"method": "POST", "path": "/add", "body": {"id": 1}}, {"method": "POST", "path": "/add", "body": {"id": 2}}]


@pytest.mark.slow
def test_each_batch_request_has_metrics_spans_and_audit_records(own_database: Database, serve_once: Serve) -> None:
    with collect_over_http() as collector:
        settings = {
            "Batch:Enabled": "true",
            "Service:AuditTrail:Enabled": "true",
            "Service:AuditTrail:Interval": "100 ms",
            "Metrics:Enabled": "true",
            "Admin:Url": "http://127.0.0.1:0",
            "Tracing:Enabled": "true",
            "Tracing:Interval": "50ms",
            "Tracing:Endpoint": collector.url,
        }
        service = serve_once(own_database, SQL, settings)
        headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        assert service.post("/batch", json=BATCH, headers=headers).status_code == 200
        assert problem(service.post("/batch", json=BATCH), 409)["item"] == 1
        entries = "select entry ->> 'status' from call where entry ->> 'endpoint' = 'POST /add'"
        wait_until(lambda: len(own_database.fetch(entries)) == 3, "the calls are recorded", 20)
        assert sorted(status for (status,) in own_database.fetch(entries)) == ["200", "200", "409"]
        with admin_of(service) as client:
            numbers = numbers_of(client)
            assert numbers.of("rowcall_requests_total", route="/add", status="2xx") == 2
            assert numbers.of("rowcall_requests_total", route="/batch", status="2xx") == 1
        spans = wait_until(
            lambda: [
                span for span in collector.spans if span.trace_id.hex() == TRACE and span.kind == Span.SPAN_KIND_SERVER
            ],
            "the span arrives",
            20,
        )
        assert {span.name for span in spans} <= {"POST /batch", "POST /add"}
