"""The spans of single requests, sent to a collector of OpenTelemetry (W3C Trace Context)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.harness.collector import Received, collect_over_http
from tests.harness.database import Database
from tests.harness.postgres import SUPERUSER
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function item(_id int) returns text language sql stable as $$ select 'item ' || _id $$;
comment on function item(int) is 'HTTP GET /items/{_id}
mcp Finds an item.';
create function many() returns table (n int) language sql stable as $$ select generate_series(1, 7) $$;
comment on function many() is 'HTTP GET /many';
create function wrong() returns int language sql as $$ select 1 / 0 $$;
comment on function wrong() is 'HTTP GET /wrong';
create function named() returns text language sql as $$ select current_setting('application_name') $$;
comment on function named() is 'HTTP GET /named';
create function commented() returns text language plpgsql as
    $$ begin return (select query from pg_stat_activity where pid = pg_backend_pid()); end $$;
comment on function commented() is 'HTTP GET /commented';
create function noisy() returns text language plpgsql as
$$ begin raise notice 'here I am'; raise info 'to readers'; return 'x'; end $$;
comment on function noisy() is 'HTTP GET /noisy
sse progress on info';
create function kept() returns text language sql stable as $$ select 'kept' $$;
comment on function kept() is 'HTTP GET /kept
cached';
create function forward() returns void language sql as '';
comment on function forward() is 'HTTP GET /forward
proxy';
create type of_self as (body text);
comment on type of_self is 'GET /items/8';
create function calls_itself(_r of_self) returns text language sql as $$ select (_r).body $$;
comment on function calls_itself(of_self) is 'HTTP GET /calls-itself';
create function hidden(_secret text) returns text language sql stable as $$ select 'x' $$;
comment on function hidden(text) is 'HTTP GET /hidden/{_secret}
sensitive';
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=1"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-00"}
SETTINGS = {
    "Tracing:Enabled": "true",
    "Tracing:SampleRatio": "1",
    "Tracing:Interval": "50ms",
    "Tracing:ApplicationName": "true",
    "Tracing:QueryTags": "true",
    "Tracing:Headers:x-token": "secret-of-the-collector",
    "Tracing:Resource:service.namespace": "shops",
    "ApplicationName": "record-shop",
    "CacheOptions:Enabled": "true",
    "Service:ProxyOptions:Enabled": "true",
    "Service:HttpClientOptions:Enabled": "true",
    "ErrorHandlingOptions:RemoveTraceId": "false",
    "Log:ConsoleFormat": "Json",
    "Log:MinimalLevels:NpgsqlRest": "Debug",
    "Service:LogCommands": "true",
    "StartupMessage": "Started in {time}",
    "Batch:Enabled": "true",
    "Service:McpOptions:Enabled": "true",
    "PostgRest:Enabled": "true",
    "PostgRest:Path": "/rest",
    "PostgRest:AnonymousRole": SUPERUSER,
}


@pytest.fixture(scope="module")
def collector() -> Iterator[Received]:
    with collect_over_http() as received:
        yield received


@pytest.fixture(scope="module")
def service(collector: Received, upstream: Upstream, database: Database, serve: Serve) -> Service:
    upstream.on("/forward", echo_trace_headers)
    settings = {**SETTINGS, "Tracing:Endpoint": collector.url, "Service:ProxyOptions:Host": upstream.url}
    return serve(database, SQL, settings, workers=2)


def echo_trace_headers(request: Seen, _connection: Any) -> bytes:
    """Respond with the trace headers that the other server has received."""
    return answer({"traceparent": request.all("traceparent"), "tracestate": request.all("tracestate")})


def spans_of(collector: Received, trace: str) -> dict[str, Span]:
    """By name, once the first one of the trace has ended; it ends last."""

    def found() -> list[Span]:
        spans = [span for span in collector.spans if span.trace_id.hex() == trace]
        return spans if any(span.kind == Span.SPAN_KIND_SERVER for span in spans) else []

    return {span.name: span for span in wait_until(found, "the spans have arrived", 30)}


def attributes(span: Span) -> dict[str, Any]:
    return {
        item.key: item.value.int_value if item.value.HasField("int_value") else item.value.string_value
        for item in span.attributes
    }


def traced(number: int, *, flags: str = "01") -> tuple[str, dict[str, str]]:
    """A trace of its own."""
    trace = f"{number:032x}"
    return trace, {"traceparent": f"00-{trace}-{CALLER}-{flags}"}


def test_a_request_has_spans_for_the_request_the_wait_the_database_and_rendering(
    service: Service, collector: Received
) -> None:
    trace, headers = traced(1)
    service.get("/items/7", headers=headers)
    spans = spans_of(collector, trace)
    assert set(spans) == {"GET /items/{_id}", "wait for a connection", "database", "render"}
    request = spans["GET /items/{_id}"]
    assert (request.parent_span_id.hex(), request.kind) == (CALLER, Span.SPAN_KIND_SERVER)
    assert (
        attributes(request).items()
        >= {
            "http.request.method": "GET",
            "http.route": "/items/{_id}",
            "url.path": "/items/7",
            "http.response.status_code": 200,
            "code.function.name": "public.item",
        }.items()
    )
    database = spans["database"]
    assert database.kind == Span.SPAN_KIND_CLIENT
    assert attributes(database).items() >= {"db.system.name": "postgresql", "db.response.returned_rows": 1}.items()
    for name, parent in (("wait for a connection", request), ("database", request), ("render", database)):
        assert spans[name].parent_span_id == parent.span_id
    for span in spans.values():
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert request.start_time_unix_nano <= span.start_time_unix_nano
        assert span.end_time_unix_nano <= request.end_time_unix_nano
    assert spans["wait for a connection"].end_time_unix_nano == database.start_time_unix_nano


def test_requests_of_postgrest_have_spans_with_templates_of_their_paths(service: Service, collector: Received) -> None:
    trace, headers = traced(20)
    assert service.get("/rest/rpc/item?_id=7", headers=headers).json() == "item 7"
    spans = spans_of(collector, trace)
    assert spans.keys() >= {"GET /rest/rpc/{function}", "wait for a connection", "database"}
    assert spans["database"].parent_span_id == spans["GET /rest/rpc/{function}"].span_id
    trace, headers = traced(21)
    assert service.get("/rest/none", headers=headers).status_code == 404
    spans = spans_of(collector, trace)
    assert attributes(spans["GET /rest/{relation}"])["http.response.status_code"] == 404


@pytest.mark.parametrize(
    ("number", "path", "message"),
    [
        (22, "/batch", [{"method": "GET", "path": "/items/7"}]),
        (
            23,
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "item", "arguments": {"id": 7}}},
        ),
    ],
)
def test_requests_within_a_request_continue_its_trace(
    service: Service, collector: Received, number: int, path: str, message: Any
) -> None:
    trace, headers = traced(number)
    assert "item 7" in service.post(path, json=message, headers=headers).text
    assert wait_until(
        lambda: [span for span in collector.spans if span.trace_id.hex() == trace and span.name == "GET /items/{_id}"],
        "the span of the inner request has arrived",
        30,
    )


def test_internal_subrequests_have_child_spans(service: Service, collector: Received) -> None:
    trace, headers = traced(24)
    assert service.get("/calls-itself", headers=headers).text == "item 8"

    def both() -> dict[str, Span]:
        spans = {span.name: span for span in collector.spans if span.trace_id.hex() == trace}
        return spans if {"GET /calls-itself", "GET /items/{_id}"} <= spans.keys() else {}

    spans = wait_until(both, "the spans have arrived", 30)
    assert spans["GET /items/{_id}"].parent_span_id == spans["GET /calls-itself"].span_id


def test_the_collector_gets_the_name_of_the_service(service: Service, collector: Received) -> None:
    trace, headers = traced(2)
    service.get("/many", headers=headers)
    spans_of(collector, trace)
    sent, request = collector.traces[0]
    assert sent["x-token"] == "secret-of-the-collector"
    resource = {item.key: item.value.string_value for item in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "record-shop"
    assert resource["service.namespace"] == "shops"
    assert "secret-of-the-collector" not in service.log


def test_an_error_is_recorded(service: Service, collector: Received) -> None:
    trace, headers = traced(3)
    assert service.get("/wrong", headers=headers).json()["traceId"].split("-")[1] == trace
    spans = spans_of(collector, trace)
    assert spans["GET /wrong"].status.code == Status.STATUS_CODE_ERROR
    assert attributes(spans["GET /wrong"])["http.response.status_code"] == 500
    assert attributes(spans["database"])["db.response.status_code"] == "22012"


def test_refused_requests_are_traced(service: Service, collector: Received) -> None:
    trace, headers = traced(4)
    service.get("/items/x", headers=headers)
    spans = spans_of(collector, trace)
    assert set(spans) == {"GET /items/{_id}"}
    assert attributes(spans["GET /items/{_id}"])["http.response.status_code"] == 400
    assert spans["GET /items/{_id}"].status.code == Status.STATUS_CODE_UNSET


def test_a_cache_hit_has_no_database_span(service: Service, collector: Received) -> None:
    service.get("/kept", headers=NOT_SAMPLED)
    trace, headers = traced(5)
    service.get("/kept", headers=headers)
    assert set(spans_of(collector, trace)) == {"GET /kept"}


def test_outgoing_requests_carry_the_span_of_the_request(service: Service, collector: Received) -> None:
    body = service.get("/forward", headers=SAMPLED).json()
    spans = spans_of(collector, TRACE)
    outgoing = next(span for span in spans.values() if span.kind == Span.SPAN_KIND_CLIENT)
    assert body == {"traceparent": [f"00-{TRACE}-{outgoing.span_id.hex()}-01"], "tracestate": ["vendor=1"]}
    assert outgoing.parent_span_id == spans["GET /forward"].span_id
    assert attributes(outgoing)["http.response.status_code"] == 200


def test_an_unsampled_trace_is_forwarded_and_not_exported(service: Service, collector: Received) -> None:
    before, headers = traced(6, flags="00")
    body = service.get("/forward", headers=headers).json()
    assert re.fullmatch(f"00-{before}-[0-9a-f]{{16}}-00", body["traceparent"][0])
    trace, headers = traced(7)
    for _ in range(4):  # of both workers
        service.get("/many", headers=headers)
    spans_of(collector, trace)
    assert before not in {span.trace_id.hex() for span in collector.spans}


def test_head_of_an_unsampled_trace_has_the_header_section_of_get(service: Service) -> None:
    got, head = (service.request(method, "/items/7", headers=NOT_SAMPLED) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (got.status_code, b"") == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize("given", [None, "nonsense", f"00-{'0' * 32}-{CALLER}-01", "ff-1-2-3"])
def test_a_request_without_a_usable_trace_begins_one(service: Service, given: str | None) -> None:
    """Bit 2 says that its id is random (W3C Trace Context, level 2)."""
    headers = {} if given is None else {"traceparent": given}
    body = service.get("/forward", headers=headers).json()["traceparent"]
    assert len(body) == 1
    assert re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-0[13]", body[0])


def test_the_log_has_the_trace(service: Service) -> None:
    trace, headers = traced(8)
    service.get("/many", headers=headers)
    assert "GET /many" in service.wait_for_log(trace)


def test_log_entries_of_a_request_have_its_trace(service: Service) -> None:
    """Its command, and what its routine raises."""
    trace, headers = traced(11)
    service.get("/noisy", headers=headers)
    service.wait_for_log("here I am")
    for source, text in (
        ("rowcall.commands", "noisy"),
        ("rowcall.notices", "NOTICE"),
        ("rowcall.http", "responded 200"),
    ):

        def has_trace(source: str = source, text: str = text) -> bool:
            lines = [json.loads(line) for line in service.log.splitlines() if trace in line]
            return any(
                (item["source"], item["TraceId"]) == (source, trace) and text in item["message"] for item in lines
            )

        wait_until(has_trace, f"{source} has the trace")


def test_streams_of_events_are_traced(service: Service, collector: Received) -> None:
    trace, headers = traced(12)
    with service.client.stream("GET", "/noisy/progress", headers=headers) as response:
        assert response.status_code == 200
        # The reader may stay for as long as it likes.
        span = spans_of(collector, trace)["GET /noisy/progress"]
    assert {item.key: item.value.string_value for item in span.attributes}["http.route"] == "/noisy/progress"


def test_the_database_receives_the_trace(service: Service) -> None:
    trace, headers = traced(9)
    assert re.fullmatch(f"00-{trace}-[0-9a-f]{{16}}-01", service.get("/named", headers=headers).text)
    assert trace not in service.get("/named", headers=NOT_SAMPLED).text


def test_the_database_receives_the_endpoint_in_a_comment(service: Service) -> None:
    assert service.get("/commented").text.startswith("/* GET /commented */ ")


def test_spans_contain_no_values_of_sensitive_endpoints(service: Service, collector: Received) -> None:
    trace, headers = traced(10)
    service.get("/hidden/password", headers=headers)
    spans_of(collector, trace)
    assert all(b"password" not in request.SerializeToString() for _, request in collector.traces)


def test_untrusted_callers_are_sampled_and_an_unavailable_collector_does_not_stop_the_service(
    database: Database, serve_once: Serve, upstream: Upstream
) -> None:
    service = serve_once(
        database,
        "",
        {
            "Tracing:Enabled": "true",
            "Tracing:SampleRatio": "0",
            "Tracing:TrustCallers": "false",
            "Tracing:Endpoint": "http://127.0.0.1:9",
            "Service:ProxyOptions:Enabled": "true",
            "Service:ProxyOptions:Host": upstream.url,
        },
    )
    body = service.get("/forward", headers=SAMPLED).json()["traceparent"]
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-00", body[0])
    assert service.stop() == 0
