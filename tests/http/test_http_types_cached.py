"""Cached responses to outgoing requests: `cache` in the comment of a type (outbound-18)."""

from __future__ import annotations

import itertools
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve


def type_with_endpoint(name: str, request: str) -> str:
    return (
        f"create type {name} as (body text, status_code int, content_type text, error_message text);\n"
        f"comment on type {name} is '{request}';\n"
        f"create function ask_{name}(_k text, _r {name}) returns text language sql as\n"
        "$$ select concat_ws('|', (_r).body, (_r).status_code, (_r).content_type, (_r).error_message) $$;\n"
        f"comment on function ask_{name} is 'HTTP GET /{name}';\n"
    )


def schema(url: str) -> str:
    return (
        type_with_endpoint("kept", f"cache 1h\nGET {url}/n?k={{_k}}")
        + type_with_endpoint("named", f"@cache 1 hour\nGET {url}/n\nX-K: {{_k}}")
        + type_with_endpoint("short", f"cache 200ms\nGET {url}/n?short={{_k}}")
        + type_with_endpoint("posted", f"cache 1h\nPOST {url}/n?k={{_k}}")
        + type_with_endpoint("failing", f"cache 1h\nGET {url}/failing?k={{_k}}")
        + type_with_endpoint("slow", f"cache 1h\nGET {url}/slow?k={{_k}}")
    )


@pytest.fixture(scope="module")
def counting_upstream(upstream: Upstream) -> Upstream:
    numbers = itertools.count(1)
    upstream.on("/n", lambda _seen, _connection: answer(str(next(numbers)), content_type="text/x"))
    upstream.on("/failing", lambda _seen, _connection: answer(str(next(numbers)), 404, content_type="text/x"))
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, counting_upstream: Upstream) -> Service:
    return serve(database, schema(counting_upstream.url), {"Service:HttpClientOptions:Enabled": "true"}, workers=2)


def test_equal_requests_share_a_cached_response_over_all_workers(service: Service) -> None:
    assert len({service.get("/kept?k=a").text for _ in range(12)}) == 1
    assert service.get("/kept?k=a").text != service.get("/kept?k=b").text


def test_headers_are_part_of_the_cache_key(service: Service) -> None:
    body = service.get("/named?k=a").text
    assert service.get("/named?k=b").text != body
    assert service.get("/named?k=a").text == body


def test_trace_headers_are_not_part_of_the_cache_key(service: Service, counting_upstream: Upstream) -> None:
    """A client that traces has another `traceparent` in each request, which is forwarded."""
    traces = [
        {"traceparent": f"00-{number:032x}-b7ad6b7169203331-01", "tracestate": f"a={number}"} for number in (1, 2)
    ]
    assert len({service.get("/kept?k=traced", headers=item).text for item in traces}) == 1
    assert [item.header("traceparent") for item in counting_upstream.to("/n") if "k=traced" in item.target] == [
        traces[0]["traceparent"]
    ]


def test_cached_response_expires(service: Service) -> None:
    first = service.get("/short?k=1").text
    wait_until(lambda: service.get("/short?k=1").text != first, "a new response is served")


@pytest.mark.parametrize("path", ["/posted?k=1", "/failing?k=1"])
def test_only_successful_get_responses_are_cached(service: Service, path: str) -> None:
    assert len({service.get(path).text for _ in range(4)}) == 4


def test_concurrent_requests_share_one_outgoing_request(service: Service, counting_upstream: Upstream) -> None:
    free = threading.Event()

    def slow(_seen: Seen, _connection: socket.socket) -> bytes:
        free.wait(20)
        return answer("together", content_type="text/x")

    counting_upstream.on("/slow", slow)
    with ThreadPoolExecutor(12) as pool:
        values = [pool.submit(service.get, "/slow?k=1") for _ in range(12)]
        wait_until(lambda: counting_upstream.to("/slow"), "one request has arrived")
        free.set()
        assert {item.result().text for item in values} == {"together|200|text/x"}
    assert len(counting_upstream.to("/slow")) == 1


def test_setting_disables_caching_of_http_types(
    own_database: Database, serve_once: Serve, counting_upstream: Upstream
) -> None:
    settings = {"Service:HttpClientOptions:Enabled": "true", "Service:HttpClientOptions:CacheEnabled": "false"}
    service = serve_once(own_database, type_with_endpoint("kept", f"cache 1h\nGET {counting_upstream.url}/n"), settings)
    assert len({service.get("/kept?k=1").text for _ in range(3)}) == 3


def test_number_of_cached_responses_is_limited(
    own_database: Database, serve_once: Serve, counting_upstream: Upstream
) -> None:
    settings = {"Service:HttpClientOptions:Enabled": "true", "Service:HttpClientOptions:MaxCacheEntries": "2"}
    service = serve_once(
        own_database,
        type_with_endpoint("kept", f"cache 1h\nGET {counting_upstream.url}/n?k={{_k}}"),
        settings,
        workers=2,
    )
    text = [service.get(f"/kept?k={number}").text for number in (1, 2, 3)]
    again = [service.get(f"/kept?k={number}").text for number in (1, 2, 3)]
    assert [item == other for item, other in zip(text, again, strict=True)] == [True, True, False]
