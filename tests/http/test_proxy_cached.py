"""Cached responses of other services (caching-18; caching-12 to caching-23, proxies-9 to proxies-13)."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve


def passing(name: str, comment: str, parameters: str = "") -> str:
    return (
        f"create function {name}({parameters}) returns void language sql as '';\n"
        f"comment on function {name} is 'HTTP {comment}\nproxy';\n"
    )


SQL = (
    passing("plain", "GET /plain\ncached\nX-Mine: 1")
    + passing("named", "GET /named\ncached", "_a text, _b text default null")
    + passing("chosen", "GET /some\ncached _a", "_a text, _b text default null")
    + passing("filled", "GET /filled/{id}\ncached\n_key = select 1::text", "_key text default null")
    + passing("labelled", 'GET /labelled\ncached _a\nX-Label: "{_b}"\nX-Mine: 1', "_a text, _b text default null")
    + passing("posted", "POST /posted\ncached")
    + passing("short", "GET /short\ncached\ncache_expires 200ms")
    + passing("failing", "GET /failing\ncached")
    + passing("missing", "GET /missing\ncached")
    + passing("erring", "GET /erring\ncached")
    + passing("silent", "GET /silent\ncached")
    + passing("cookie", "GET /cookie\ncached")
    + passing("large", "GET /large\ncached")
    + passing("at_once", "GET /at-once\ncached")
    + passing("varied", "GET /varied\ncached")
    + passing("packed", "GET /packed\ncached")
    + passing("hosted", "GET /hosted\ncached")
    + passing("starred", "GET /starred\ncached")
    + passing("events", "GET /events\ncached")
    + passing("few_events", "GET /few-events\ncached")
    + passing("partial", "GET /partial\ncached")
    + passing("tagged", "GET /tagged\ncached\ncache_tags all, one:{_a}", "_a text")
    + "create function find_key(_digest text) returns table (user_id int) language sql as 'select 7';\n"
    + "create function combined(_x text, _proxy_body text) returns text language sql as "
    + "$$ select _x || _proxy_body $$;\n"
    + "comment on function combined is 'HTTP GET /both\nproxy\ncached';\n"
    + "create function by_answer(_x text, _proxy_body text) returns text language sql as "
    + "$$ select _x || _proxy_body $$;\n"
    + "comment on function by_answer is 'HTTP GET /by-answer\nproxy\ncached _x, _proxy_body';\n"
)


@pytest.fixture(scope="module")
def counted(upstream: Upstream) -> Upstream:
    """Each answer has a number of its own."""
    numbers = itertools.count(1)

    def next_answer(**options: object) -> Callable[[Seen, socket.socket], bytes]:
        return lambda _seen, _connection: answer(str(next(numbers)), **options)  # type: ignore[arg-type]

    upstream.on("*", next_answer(headers=[("X-Theirs", "1"), ("X-Theirs", "2")], content_type="text/x"))
    upstream.on("/missing", next_answer(status=404))
    upstream.on("/erring", next_answer(status=503))
    waited = itertools.count(1)

    def silent(_seen: Seen, _connection: socket.socket) -> bytes:
        if next(waited) == 1:
            upstream.released.wait(60)
        return answer("spoken")

    upstream.on("/silent", silent)
    upstream.on("/varied", next_answer(headers=[("Vary", "Accept-Language, X-Shop")]))
    upstream.on("/packed", next_answer(headers=[("Content-Encoding", "x-own")]))
    upstream.on("/starred", next_answer(headers=[("Vary", "*")]))
    upstream.on("/few-events", next_answer(content_type="text/event-stream; charset=utf-8"))
    upstream.on("/cookie", next_answer(headers=[("Set-Cookie", "a=b")]))
    upstream.on("/large", lambda _seen, _connection: answer(str(next(numbers)) + "x" * 40_000_000))
    tries = itertools.count(1)

    def failing(_seen: Seen, _connection: socket.socket) -> bytes:
        return b"this is no HTTP" if next(tries) == 1 else answer("good")

    upstream.on("/failing", failing)
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, counted: Upstream) -> Service:
    settings = {
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": counted.url,
        "Service:ProxyOptions:DefaultTimeout": "3s",
        "CacheOptions:Enabled": "true",
        "CacheOptions:InvalidateCacheSuffix": "purge",
        "CacheOptions:StatusHeader": "X-Cache",
        "Auth:ApiKey:Enabled": "true",
        "Auth:ApiKey:Command": "select * from find_key($1)",
    }
    return serve(database, SQL, settings, workers=2)


def test_a_response_is_cached_with_status_headers_and_bytes(service: Service, counted: Upstream) -> None:
    first = service.get("/plain")
    others = [service.get("/plain") for _ in range(10)]
    assert {item.content for item in others} == {first.content}
    assert {item.headers["content-type"] for item in others} == {"text/x"}
    assert [item.headers.get_list("x-theirs") for item in others] == [["1", "2"]] * 10
    assert len(counted.to("/plain")) == 1


def test_a_404_response_is_cached(service: Service) -> None:
    first = service.get("/missing")
    assert first.status_code == 404
    assert {(item.status_code, item.text) for item in (service.get("/missing") for _ in range(6))} == {
        (404, first.text)
    }


def test_a_503_response_of_the_other_service_is_cached(service: Service) -> None:
    first = service.get("/erring")
    assert first.status_code == 503
    assert {(item.status_code, item.text) for item in (service.get("/erring") for _ in range(6))} == {(503, first.text)}


def test_a_routine_without_parameters_distinguishes_queries(service: Service) -> None:
    item, two = service.get("/plain?x=1").text, service.get("/plain?x=2").text
    assert item != two
    assert (service.get("/plain?x=1").text, service.get("/plain?x=2").text) == (item, two)


def test_parameters_of_the_routine_are_the_cache_key(service: Service) -> None:
    body = service.get("/named?a=1&other=1").text
    assert service.get("/named?a=1&other=2").text == body
    assert service.get("/named?a=1&b=2").text != body
    some = service.get("/some?a=1&b=1").text
    assert service.get("/some?a=1&b=2").text == some
    assert service.get("/some?a=2&b=2").text != some


def test_a_routine_with_parameters_that_the_service_fills_distinguishes_paths_and_queries(service: Service) -> None:
    paths = ("/filled/1?x=1", "/filled/1?x=2", "/filled/2?x=1")
    bodies = [service.get(path).text for path in paths]
    assert len(set(bodies)) == 3
    assert [service.get(path).text for path in paths] == bodies
    assert service.post("/filled/1/purge?x=1").json() == {"invalidated": True}
    assert [service.get(path).text == body for path, body in zip(paths, bodies, strict=True)] == [False, True, True]


def test_header_lines_of_the_comment_have_the_values_of_each_request(service: Service) -> None:
    responses = [service.get(f"/labelled?a=1&b={b}") for b in ("x", "y")]
    assert [item.headers["x-cache"] for item in responses] == ["miss", "hit"]
    assert [item.headers.get_list("x-label") for item in responses] == [['"x"'], ['"y"']]
    assert [item.headers.get_list("x-mine") for item in responses] == [["1"], ["1"]]
    assert len({item.text for item in responses}) == 1


def test_bodies_are_distinguished(service: Service) -> None:
    item, two = service.post("/posted", content=b"1").text, service.post("/posted", content=b"2").text
    assert item != two
    assert service.post("/posted", content=b"1").text == item


def test_callers_with_credentials_are_distinguished(service: Service) -> None:
    def ask(token: str) -> str:
        return service.get("/named?a=c", headers={"Authorization": token}).text

    assert ask("Bearer a") == ask("Bearer a") != ask("Bearer b")


def test_callers_with_keys_are_distinguished(service: Service) -> None:
    def ask(key: str) -> str:
        return service.get("/named?a=k", headers={"X-Api-Key": key}).text

    assert ask("a") == ask("a") != ask("b")
    assert service.get("/named?a=k").text not in (ask("a"), ask("b"))


@pytest.mark.parametrize(
    ("path", "requests"),
    [
        (
            "/varied",
            [{"Accept-Language": "de"}, {"Accept-Language": "fr"}, {"Accept-Language": "de", "X-Shop": "1"}, {}],
        ),
        ("/packed", [{"Accept-Encoding": "x-own"}, {"Accept-Encoding": "identity"}]),
        ("/hosted", [{"Host": "a.example"}, {"Host": "b.example"}, {}]),
    ],
)
def test_vary_and_accept_encoding_select_the_cached_response(
    service: Service, path: str, requests: list[dict[str, str]]
) -> None:
    """RFC 9111, 4.1. Responses with a content coding are distinguished by Accept-Encoding even without `Vary`."""
    header = [service.get(path, headers=headers).headers["content-length"] for headers in requests]
    response = [service.get(path, headers=headers) for headers in requests]
    assert [item.headers["x-cache"] for item in response] == ["hit"] * len(requests)
    assert [item.headers["content-length"] for item in response] == header
    bodies = [raw(service, path, headers) for headers in requests]
    assert len(set(bodies)) == len(requests)
    assert service.post(f"{path}/purge", headers=requests[-1]).json() == {"invalidated": True}
    assert not {raw(service, path, headers) for headers in requests} & set(bodies)


def raw(service: Service, path: str, headers: dict[str, str]) -> bytes:
    with service.client.stream("GET", path, headers=headers) as response:
        return b"".join(response.iter_raw())


def test_a_response_with_vary_star_is_not_cached(service: Service) -> None:
    assert len({service.get("/starred").text for _ in range(3)}) == 3


@pytest.mark.parametrize("name", ["Range", "If-None-Match", "If-Modified-Since"])
def test_partial_and_not_modified_responses_are_not_cached(service: Service, counted: Upstream, name: str) -> None:
    def partial(request: Seen, _connection: socket.socket) -> bytes:
        if request.header(name) is None:
            return answer("whole")
        return answer("w", 206) if name == "Range" else answer("", 304, content_type=None)

    counted.on("/partial", partial)
    path = f"/partial?{name}"
    for _ in range(2):
        response = service.get(path, headers={name: "bytes=0-0"})
        assert (response.status_code, response.headers["x-cache"]) == (206 if name == "Range" else 304, "bypass")
    assert [service.get(path).text for _ in range(2)] == ["whole"] * 2
    reply = service.get(path, headers={name: "bytes=0-0"})
    assert (reply.status_code, reply.text, reply.headers["x-cache"]) == (200, "whole", "hit")


def test_tags_invalidate_cached_proxy_responses(service: Service, database: Database) -> None:
    first = [service.get(f"/tagged?a={name}").text for name in "ab"]
    assert [service.get(f"/tagged?a={name}").text for name in "ab"] == first
    database.execute("select pg_notify('rowcall', 'forget one:a')")
    wait_until(lambda: service.get("/tagged?a=a").text != first[0], "its tag is forgotten")
    assert service.get("/tagged?a=b").text == first[1]


def test_event_streams_are_forwarded_immediately_and_not_cached(service: Service, counted: Upstream) -> None:
    """It is unknown whether they end."""
    read = threading.Event()

    def events(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n")
        read.wait(60)

    counted.on("/events", events)
    for _ in range(2):
        with service.client.stream("GET", "/events") as response:
            assert next(response.iter_lines()) == "data: first"
    read.set()
    assert service.get("/few-events").text != service.get("/few-events").text


def test_a_cached_response_expires(service: Service) -> None:
    first = service.get("/short").text
    wait_until(lambda: service.get("/short").text != first, "there is a new answer")


@pytest.mark.slow
def test_errors_of_the_connection_are_not_cached(service: Service) -> None:
    problem(service.get("/failing"), 502)
    assert service.get("/failing").text == "good"
    problem(service.get("/silent"), 504)
    assert service.get("/silent").text == "spoken"


@pytest.mark.slow
def test_a_response_over_the_size_limit_is_not_cached(service: Service) -> None:
    assert len({service.get("/large").content[:10] for _ in range(3)}) == 3


def test_set_cookie_is_not_part_of_a_cached_response(service: Service) -> None:
    result = []
    for _ in range(3):
        result.append(service.get("/cookie").headers.get("set-cookie"))
        service.client.cookies.clear()
    assert result == ["a=b", None, None]


def test_an_invalidated_response_is_not_served_again(service: Service) -> None:
    for path, method, content in (("/plain?f=1", "GET", b""), ("/named?a=f", "GET", b""), ("/posted", "POST", b"f")):
        name, mark, query = path.partition("?")
        first = service.request(method, path, content=content).text
        assert service.request(method, path, content=content).text == first
        purge = f"{name}/purge{mark}{query}"
        assert service.request("POST", purge, content=content).text == '{"invalidated":true}'
        assert service.request("POST", purge, content=content).text == '{"invalidated":false}'
        assert service.request(method, path, content=content).text != first


def test_concurrent_equal_requests_send_one_outgoing_request(service: Service, counted: Upstream) -> None:
    free = threading.Event()

    def slow(_seen: Seen, _connection: socket.socket) -> bytes:
        free.wait(20)
        return answer("together")

    counted.on("/at-once", slow)
    with ThreadPoolExecutor(16) as pool:
        values = [pool.submit(service.get, "/at-once") for _ in range(16)]
        wait_until(lambda: counted.to("/at-once"), "one has asked")
        free.set()
        assert {item.result().text for item in values} == {"together"}
    assert len(counted.to("/at-once")) == 1


def test_results_of_a_routine_that_transforms_responses_are_cached(service: Service, counted: Upstream) -> None:
    first = service.get("/both?x=a").text
    assert [service.get("/both?x=a").text for _ in range(3)] == [first] * 3
    assert len(counted.to("/both")) == 4
    for_one, for_other = ({"headers": {"Authorization": f"Bearer {name}"}} for name in ("one", "other"))
    texts = [service.get("/both?x=b", **who).text for who in (for_one, for_other, for_one, for_other)]
    assert texts[:2] == texts[2:]
    assert texts[0] != texts[1], "the response for one caller is not for all"


def test_parameters_filled_by_the_other_service_are_not_in_the_cache_key(service: Service) -> None:
    """The value differs for each request, and an invalidation does not evaluate it (caching-9)."""
    assert "_proxy_body is filled by another service and is no part of the cache key" in service.log
    assert service.get("/by-answer?x=a").text == service.get("/by-answer?x=a").text
    assert service.post("/by-answer/purge?x=a").json() == {"invalidated": True}
