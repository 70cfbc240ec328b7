"""Endpoints that stand in front of other services (protection-8 to protection-11, caching-18, proxies-5 to proxies-8;
proxies-1 to proxies-16)."""

# ruff: noqa: E501 (tables, one request a line)

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve


def function(head: str, body: str, comment: str) -> str:
    name = head.split("(")[0]
    return f"create function {head} language sql as $$ {body} $$;\ncomment on function {name} is $c${comment}$c$;\n"


def nothing(name: str, comment: str, parameters: str = "") -> str:
    """A routine that never runs."""
    return (
        f"create function {name}({parameters}) returns void language plpgsql as "
        f"$$ begin raise exception 'the routine ran'; end $$;\ncomment on function {name} is $c${comment}$c$;\n"
    )


REPLY = "_proxy_status_code int, _proxy_body text, _proxy_headers json, _proxy_content_type text, _proxy_success boolean, _proxy_error_message text"
SHOWN = "concat_ws('|', _proxy_status_code, coalesce(_proxy_body, 'NULL'), _proxy_success, coalesce(_proxy_content_type, 'NULL'), coalesce(_proxy_error_message, 'NULL'))"


def schema(url: str) -> str:
    return (
        nothing("plain", f"HTTP GET /plain\nproxy {url}")
        + nothing("based", f"HTTP GET /based/{{id}}\nproxy {url}/base/")
        + nothing("by_host", "HTTP GET /by-host\nproxy")
        + nothing("posted", f"HTTP POST /posted\nproxy {url}")
        + nothing("query_posted", f"HTTP POST /query-posted\nrequest_param_type query_string\nproxy {url}", "_a int")
        + nothing("asks_body", f"HTTP POST /asks-body\nproxy {url}", "_a int, _b text default null")
        + nothing(
            "checked",
            f"HTTP POST /checked\nproxy {url}\nparam _l default {{{{1}}}}\nvalidate _l using not_empty",
            "_l int[]",
        )
        + nothing("other_method", f"HTTP GET /other-method\nproxy POST {url}")
        + nothing("queried", f"HTTP QUERY /queried\nproxy {url}")
        + nothing("put_on", f"HTTP PUT /put-on\nproxy {url}")
        + nothing("deleted", f"HTTP DELETE /deleted\nproxy {url}")
        + nothing("needs_a", f"HTTP GET /needs-a\nproxy {url}", "_a int")
        + nothing(
            "own_header", f"HTTP GET /own-header\nX-One: mine\nX-Mine: {{_a}}\nproxy {url}", "_a text default 'x'"
        )
        + nothing("refused", "HTTP GET /refused\nproxy http://127.0.0.1:1")
        + nothing("slow", f"HTTP GET /slow\nproxy {url}")
        + nothing(
            "resolved",
            f"HTTP GET /resolved\nproxy {url}\n_token = select 'a b'",
            "_token text default null, _x text default null",
        )
        + nothing(
            "resolved_body",
            f"HTTP POST /resolved-body\nproxy {url}\n_n = select 7\n_t = select 'x'\n_j = select '[1]'\n_e = select null",
            "_n int default null, _t text default null, _j json default null, _e text default null, _b boolean default null",
        )
        + nothing(
            "replaced_body",
            f"HTTP POST /replaced-body\nproxy {url}\nbody_parameter_name _b\n_b = select 'the body'",
            "_b text default null",
        )
        + nothing("body_text", f"HTTP POST /body-text\nproxy {url}\nbody_parameter_name _b", "_b text")
        + function(
            "body_bytes(_b bytea, _proxy_status_code int) returns text",
            "select encode(_b, 'hex')",
            f"HTTP POST /body-bytes\nproxy {url}\nbody_parameter_name _b",
        )
        + nothing(
            "long_value", f"HTTP GET /long-value\nproxy {url}\n_v = select repeat('x', 2049)", "_v text default null"
        )
        + function(f"shown({REPLY}) returns text", f"select {SHOWN}", f"HTTP GET /shown\nproxy {url}")
        + function(
            f"shown_posted(_a int, {REPLY}) returns text",
            f"select _a || '|' || {SHOWN}",
            f"HTTP POST /shown-posted\nproxy {url}",
        )
        + function(f"empty(_inner text, {REPLY}) returns text", f"select {SHOWN}", f"HTTP GET /empty\nproxy {url}")
        + function(
            "one_part(_x text, _PROXY_BODY text) returns text",
            "select _x || _proxy_body",
            f"HTTP GET /one-part\nproxy {url}",
        )
        + function(
            "texts(_proxy_status_code text, _proxy_success text) returns text",
            "select _proxy_status_code || _proxy_success",
            f"HTTP GET /texts\nproxy {url}",
        )
        + function(
            "renamed(_b text) returns text", "select $1", f"HTTP GET /renamed\nparam _b is _proxy_body\nproxy {url}"
        )
        + function(
            "fails(_proxy_status_code int, _proxy_error_message text, _proxy_body text) returns text",
            "select concat_ws('|', _proxy_status_code, _proxy_error_message, coalesce(_proxy_body, 'NULL'))",
            "HTTP GET /fails\nproxy http://127.0.0.1:1",
        )
        + function(
            "fails_slowly(_proxy_status_code int, _proxy_error_message text) returns text",
            "select concat_ws('|', _proxy_status_code, _proxy_error_message)",
            f"HTTP GET /fails-slowly\nproxy {url}",
        )
        + function(
            "bytes_of(_proxy_body bytea) returns text",
            "select encode(_proxy_body, 'hex')",
            f"HTTP GET /bytes-of\nproxy {url}",
        )
        + function(
            "invoice(_id int) returns json",
            "select json_build_object('id', _id)",
            f"HTTP GET /invoice\nX-Mine: 1\nproxy_out POST {url}",
        )
        + function(
            "bill(_id int) returns json", "select json_build_object('id', _id)", f"HTTP POST /bill\nproxy_out {url}/out"
        )
        + function(
            "got(_id int) returns json", "select json_build_object('id', _id)", f"HTTP GET /got\nproxy_out {url}/out"
        )
        + function("wrong(_id int) returns int", "select 1 / (_id - _id)", f"HTTP GET /wrong\nproxy_out POST {url}")
        + function(
            "many(_n int) returns table (n int, t text)",
            "select g, repeat('x', 100) from generate_series(1, _n) g",
            f"HTTP GET /many\nproxy_out POST {url}",
        )
        + function(
            "breaks_off() returns table (n int, t text) stable",
            "select 1 / (50000 - g), repeat('x', 100) from generate_series(1, 50000) g",
            f"HTTP GET /breaks-off\nproxy_out POST {url}",
        )
        + function("out_refused() returns int", "select 1", "HTTP GET /out-refused\nproxy_out POST http://127.0.0.1:1")
        + function("out_slow() returns int", "select 1", f"HTTP GET /out-slow\nproxy_out POST {url}")
        + function(
            "inner_one(_n text default 'none') returns text", "select 'inner ' || _n", "HTTP GET /inner\ninternal"
        )
        + function(
            "inner_body(_t text) returns json", "select json_build_object('got', _t)", "HTTP POST /inner-body\ninternal"
        )
        + function("who() returns text", "select 'in'", "HTTP GET /who\nauthorize")
        + nothing("to_inner", "HTTP GET /to-inner\nX-Inner: 1\nproxy /inner?n=x")
        + nothing("to_inner_body", "HTTP POST /to-inner-body\nproxy /inner-body")
        + nothing("to_who", "HTTP GET /to-who\nproxy /who")
        + function(
            "out_inner() returns json",
            'select \'{"t": "result"}\'::json',
            "HTTP GET /out-inner\nproxy_out POST /inner-body",
        )
        + nothing("closed", f"HTTP GET /closed\nauthorize\nproxy {url}")
        + nothing("redirected", f"HTTP GET /redirected\nproxy {url}")
        + nothing("redirect_posted", f"HTTP POST /redirect-posted\nproxy {url}")
        + nothing("large", f"HTTP GET /large\nproxy {url}")
        + nothing("uploaded", f"HTTP POST /uploaded\nproxy {url}")
        + nothing("events", f"HTTP GET /events\nproxy {url}")
        + nothing("stays", f"HTTP GET /stays\nproxy {url}")
        + nothing("patched", f"HTTP POST /patched\nproxy OPTIONS ftp://x {url}")
        + nothing("odd", f"HTTP GET /odd/{{what}}\nproxy {url}")
    )


@pytest.fixture(scope="module")
def prepared_upstream(upstream: Upstream) -> Upstream:
    upstream.on("*", echo)
    upstream.on("/own-header", answer({}, headers=[("X-One", "theirs"), ("X-Two", "2")]))
    compressed = gzip.compress(b"hello")

    def shown(request: Seen, _connection: socket.socket) -> bytes:
        status = int(request.target.partition("status=")[2] or 200)
        return answer(compressed, status, [("Content-Encoding", "gzip"), ("X-A", "1")], "text/x")

    upstream.on("/shown", shown)

    def empty(request: Seen, _connection: socket.socket) -> bytes:
        codings = f"{request.target.partition('inner=')[2]}, gzip"
        return answer(gzip.compress(b""), headers=[("Content-Encoding", codings)], content_type="text/x")

    upstream.on("/empty", empty)
    upstream.on("/one-part", answer("said", content_type="text/plain"))
    upstream.on("/texts", answer("", 503))
    upstream.on("/renamed", answer("renamed"))
    upstream.on("/bytes-of", answer(b"\0\xff", content_type=None))

    def silent(_seen: Seen, _connection: socket.socket) -> None:
        upstream.released.wait(60)

    for path in ("/slow", "/fails-slowly", "/out-slow", "/stays"):
        upstream.on(path, silent)
    upstream.on("/redirected", b"HTTP/1.1 302 Found\r\nLocation: /there?x=1\r\nContent-Length: 3\r\n\r\nabc")
    upstream.on("/redirect-posted", b"HTTP/1.1 307 Again\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, prepared_upstream: Upstream) -> Service:
    settings = {
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": prepared_upstream.url,
        "Service:ProxyOptions:DefaultTimeout": "4s",
        "HttpServer:Limits:MaxRequestBodySize": "400000000",
    }
    return serve(database, schema(prepared_upstream.url), settings, workers=2)


def received(response: httpx.Response) -> dict[str, Any]:
    """What the upstream has seen."""
    assert response.status_code == 200, response.text
    members: dict[str, Any] = response.json()
    return members


def test_a_request_is_forwarded_unchanged(service: Service) -> None:
    forwarded = received(
        service.get("/plain?a=1&b=%20x&unknown", headers={"X-One": "1", "Accept": "text/x", "Cookie": "a=b"})
    )
    assert (forwarded["method"], forwarded["target"], forwarded["body"]) == ("GET", "/plain?a=1&b=%20x&unknown", "")
    assert forwarded["headers"]["x-one"] == "1"
    assert forwarded["headers"]["accept"] == "text/x"
    assert forwarded["headers"]["cookie"] == "a=b"


def test_the_host_is_that_of_the_other_service(service: Service, prepared_upstream: Upstream) -> None:
    assert received(service.get("/plain"))["headers"]["host"] == f"127.0.0.1:{prepared_upstream.port}"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/based/7?x=1", "/base/based/7?x=1"),
        ("/based/a%20b%3Fc", "/base/based/a%20b%3Fc"),
        ("/based/%C3%BC%25", "/base/based/%C3%BC%25"),
        ("/BASED/Aa", "/base/BASED/Aa"),
        ("/by-host?z", "/by-host?z"),
    ],
)
def test_path_and_query_are_appended_to_the_host(service: Service, path: str, target: str) -> None:
    assert received(service.get(path))["target"] == target


@pytest.mark.parametrize(
    ("method", "path", "sent", "body"),
    [
        ("POST", "/posted", "POST", "text"),
        ("PUT", "/put-on", "PUT", "text"),
        ("QUERY", "/queried", "QUERY", "text"),
        ("DELETE", "/deleted", "DELETE", ""),
        ("GET", "/other-method", "POST", "text"),
    ],
)
def test_a_body_is_forwarded_with_methods_that_have_one(
    service: Service, method: str, path: str, sent: str, body: str
) -> None:
    forwarded = received(service.request(method, path, content=b"text", headers={"Content-Type": "text/x"}))
    assert (forwarded["method"], forwarded["body"]) == (sent, body)
    assert forwarded["headers"].get("content-type") == ("text/x" if body else None)


def test_an_invalid_word_of_a_proxy_annotation_is_ignored_and_logged(service: Service) -> None:
    assert received(service.post("/patched", content=b"x"))["method"] == "POST"
    service.wait_for_log("'OPTIONS' is none of GET, PUT, POST")
    service.wait_for_log("'ftp://x' is none of")


def test_a_body_without_a_type_is_text(service: Service) -> None:
    assert received(service.post("/posted", content=b"x"))["headers"]["content-type"] == "text/plain; charset=utf-8"


def test_bytes_of_a_body_are_forwarded_unchanged(service: Service) -> None:
    forwarded = received(
        service.post("/posted", content=bytes(range(256)), headers={"Content-Encoding": "x", "Content-Other": "y"})
    )
    assert forwarded["body"].encode("latin-1") == bytes(range(256))
    assert forwarded["headers"]["content-encoding"] == "x"
    assert "content-other" not in forwarded["headers"]


def test_a_chunked_body_is_forwarded(service: Service) -> None:
    assert received(service.post("/posted", content=iter([b"one ", b"two"])))["body"] == "one two"


@pytest.mark.slow
@pytest.mark.parametrize(
    "context",
    cases([
        ("GET /needs-a", "404 is required"),
        ("GET /needs-a?a=x", "400 is not an integer"),
        ("POST /query-posted?b=1 [1]", "404 is required"),
        ("POST /asks-body {}", "404 is required"),
        ("POST /asks-body [1]", "404 is required"),
        ("GET /refused", "502 Connection refused"),
        ("GET /slow", "504 Proxy request timed out after 4 seconds"),
        ("GET /shown", "200T 200|hello|t|text/x|NULL"),
        ("GET /shown?unknown=1", "404 unknown parameter"),
        ("GET /shown?proxyBody=evil", "200T 200|hello|t|text/x|NULL"),
        ("GET /empty?inner=deflate", "200T 200||t|text/x|NULL"),
        ("GET /empty?inner=gzip", "200T 200||t|text/x|NULL"),
        ("GET /empty?inner=br", "200T 200||t|text/x|NULL"),
        ("GET /empty?inner=br,br,br,br,br", "200T 502|NULL|f|NULL|the response has more than 5 content codings"),
        ("GET /one-part?x=it+", "200T it said"),
        ("GET /one-part", "404 is required"),
        ("GET /texts", "200T 503false"),
        ("GET /renamed", "200T renamed"),
        ("GET /bytes-of", "200T 00ff"),
        ("GET /fails", "200T 502|no connection to 127.0.0.1:1: Connection refused|NULL"),
        ("GET /fails-slowly", "200T 504|Proxy request timed out after 4 seconds"),
        ("GET /wrong?id=1", "500 22012"),
        ("GET /out-refused", "502 Connection refused"),
        ("GET /out-slow", "504 ProxyOut request timed out after 4 seconds"),
        ("GET /to-inner?n=y", "200T inner x", {"x-inner": "1"}),
        ("GET /inner", "404 there is no endpoint"),
        ('POST /to-inner-body {"t":"hi"}', '200 {"got" : "hi"}'),
        ("GET /out-inner", '200 {"got" : "result"}'),
        ("GET /to-who", "401"),
        ("GET /closed", "401"),
    ]),
)  # fmt: skip
def test_documented_responses_are_returned(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_bodies_and_queries_with_unknown_parameters_are_forwarded(service: Service) -> None:
    forwarded = received(
        service.post("/asks-body", content=b'{"a": 1, "other": [2]}', headers={"Content-Type": "application/json"})
    )
    assert forwarded["body"] == '{"a": 1, "other": [2]}'
    assert received(service.post("/query-posted?a=1&zz=2", content=b"[1]"))["body"] == "[1]"


def test_a_body_without_fields_is_forwarded_if_a_default_is_validated(service: Service) -> None:
    assert received(service.post("/checked", content=b"no JSON"))["body"] == "no JSON"


def test_a_response_is_returned_unchanged(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on(
        "/plain",
        answer(
            "gone",
            410,
            [("X-One", "1"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Keep-Alive", "x")],
            "text/x; charset=y",
        ),
    )
    try:
        response = service.get("/plain")
    finally:
        prepared_upstream.on("/plain", echo)
    assert (response.status_code, response.text, response.headers["content-type"]) == (410, "gone", "text/x; charset=y")
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert response.headers["x-one"] == "1"
    assert "keep-alive" not in response.headers


def test_headers_of_the_comment_have_precedence(service: Service) -> None:
    response = service.get("/own-header?a=x")
    assert response.headers.get_list("x-one") == ["mine"]
    assert (response.headers["x-mine"], response.headers["x-two"]) == ("x", "2")


def test_resolved_parameters_are_forwarded_in_the_query(service: Service) -> None:
    assert received(service.get("/resolved?x=1&token=evil&y=2"))["target"] == "/resolved?x=1&y=2&token=a%20b"


def test_resolved_parameters_are_forwarded_in_a_json_body(service: Service) -> None:
    forwarded = received(service.post("/resolved-body", json={"n": 1, "b": True, "u": [1]}))
    assert json.loads(forwarded["body"]) == {"n": 7, "b": True, "u": [1], "t": "x", "j": [1], "e": None}
    other = received(service.post("/resolved-body", content=b"[1]", headers={"Content-Type": "application/json"}))
    assert json.loads(other["body"]) == {"n": 7, "t": "x", "j": [1], "e": None}


def test_resolved_parameters_are_forwarded_in_the_query_beside_other_bodies(service: Service) -> None:
    forwarded = received(service.post("/resolved-body", content=b"text", headers={"Content-Type": "text/x"}))
    assert (forwarded["target"], forwarded["body"]) == ("/resolved-body?n=7&t=x&j=%5B1%5D", "text")


def test_a_resolved_body_parameter_is_forwarded_as_the_body(service: Service) -> None:
    assert received(service.post("/replaced-body", content=b"mine"))["body"] == "the body"


@pytest.mark.parametrize(
    ("body", "detail"),
    [(b"Gr\xfc\xdfe", "the body is not valid UTF-8"), (b"a\0b", "the body holds a NUL character")],
)
def test_body_that_is_the_text_of_a_parameter_must_be_utf8(service: Service, body: bytes, detail: str) -> None:
    assert received(service.post("/body-text", content="Grüße".encode()))["body"].encode("latin-1") == "Grüße".encode()
    assert problem(service.post("/body-text", content=body), 400)["detail"] == detail


def test_body_that_is_a_bytea_parameter_may_have_any_bytes(service: Service) -> None:
    assert service.post("/body-bytes", content=b"a\0\xff").text == "6100ff"


def test_a_resolved_value_that_is_too_long_is_omitted(service: Service) -> None:
    assert received(service.get("/long-value"))["target"] == "/long-value"
    service.wait_for_log("v is not forwarded: it is longer than 2048 characters")


def test_a_routine_receives_the_request_and_the_response(service: Service, prepared_upstream: Upstream) -> None:
    text = service.post("/shown-posted", json={"a": 3}).text
    assert text.startswith("3|200|{")
    assert '"a":3' in prepared_upstream.to("/shown-posted")[-1].body.decode()


def test_a_result_is_forwarded_as_the_request_body(service: Service, prepared_upstream: Upstream) -> None:
    response = service.get("/invoice?id=9", headers={"X-One": "1"})
    forwarded = received(response)
    assert (forwarded["method"], forwarded["target"], forwarded["body"]) == ("POST", "/invoice?id=9", '{"id" : 9}')
    assert forwarded["headers"]["content-type"] == "application/json; charset=utf-8"
    assert "x-one" not in forwarded["headers"]
    assert "x-mine" not in response.headers
    assert received(service.post("/bill", json={"id": 2}))["target"] == "/out/bill"
    assert received(service.get("/got?id=2"))["body"] == ""


MANY = len(json.dumps([{"n": n, "t": "x" * 100} for n in range(1, 50_001)], separators=(",", ":")))
"""Bytes of the result of `/many?n=50000`."""


def test_a_large_result_is_forwarded_in_chunks(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on("/many", lambda request, _: answer(str(len(request.body)), content_type="text/plain"))
    assert service.get("/many?n=50000").text == str(MANY)
    service.wait_for_log("HTTP GET /many responded 200")
    assert "HTTP GET /many responded 0" not in service.log, "the end of the result is not that of the response"


def test_a_response_may_begin_before_the_result_was_read(service: Service, prepared_upstream: Upstream) -> None:
    def count(connection: socket.socket, pieces: Iterator[bytes]) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        connection.sendall(str(sum(map(len, pieces))).encode())

    prepared_upstream.on_pieces("/many", count)
    response = service.get("/many?n=50000")
    assert (response.status_code, response.text) == (200, str(MANY))


@pytest.mark.slow
def test_a_service_may_send_each_piece_of_a_result_back_at_once(service: Service, prepared_upstream: Upstream) -> None:
    """A service that does not read on until its response is taken: the result is larger than all buffers in between."""

    def reflect(connection: socket.socket, pieces: Iterator[bytes]) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        for piece in pieces:
            connection.sendall(piece)

    prepared_upstream.on_pieces("/many", reflect)
    response = service.get("/many?n=400000")
    assert response.status_code == 200
    assert len(response.json()) == 400_000


def test_a_service_that_needs_no_more_of_the_result_ends_it(service: Service, prepared_upstream: Upstream) -> None:
    def refuse(connection: socket.socket, pieces: Iterator[bytes]) -> None:
        next(pieces)
        connection.sendall(answer("too much", 413, content_type="text/plain"))
        # A connection that is closed with unread data is reset, and the response may be lost.
        with contextlib.suppress(OSError, ValueError):
            for _ in pieces:
                pass

    prepared_upstream.on_pieces("/many", refuse)
    response = service.get("/many?n=50000")
    assert (response.status_code, response.text) == (413, "too much")


def test_a_result_that_breaks_off_does_not_look_complete(service: Service, prepared_upstream: Upstream) -> None:
    ended = []

    def take(connection: socket.socket, pieces: Iterator[bytes]) -> None:
        try:
            for _ in pieces:
                pass
        except (OSError, ValueError):
            ended.append("cut off")
            return
        ended.append("complete")
        connection.sendall(answer("taken"))

    prepared_upstream.on_pieces("/breaks-off", take)
    problem(service.get("/breaks-off"), 502)
    wait_until(lambda: ended, "the other service has seen the end of the result")
    assert ended == ["cut off"]


def test_a_large_result_is_not_compressed_for_the_other_service(
    own_database: Database, serve_once: Serve, prepared_upstream: Upstream
) -> None:
    many = function(
        "packed() returns table (n int)",
        "select generate_series(1, 200000)",
        f"HTTP GET /packed\nproxy_out POST {prepared_upstream.url}",
    )
    on = {"Service:ProxyOptions:Enabled": "true", "ResponseCompression:Enabled": "true"}
    prepared_upstream.on("/packed", lambda request, _: answer(request.body, content_type="text/plain"))
    response = serve_once(own_database, many, on).get("/packed", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.json()) == 200_000


def test_redirects_are_followed(service: Service) -> None:
    assert received(service.get("/redirected"))["target"] == "/there?x=1"
    forwarded = received(service.post("/redirect-posted", content=b"again"))
    assert (forwarded["method"], forwarded["target"], forwarded["body"]) == ("POST", "/there", "again")


def test_a_head_request_is_forwarded_as_head(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on("/large", lambda request, _: b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-A: 1\r\n\r\n")
    response = service.request("HEAD", "/large")
    assert prepared_upstream.to("/large")[-1].method == "HEAD"
    assert (response.status_code, response.headers["content-length"], response.headers["x-a"]) == (200, "12345", "1")


def test_a_partial_response_is_returned(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on(
        "/large",
        lambda request, _: answer(request.header("range") or "", 206, [("Content-Range", "bytes 0-9/100")], "text/x"),
    )
    response = service.get("/large", headers={"Range": "bytes=0-9"})
    assert (response.status_code, response.headers["content-range"], response.text) == (
        206,
        "bytes 0-9/100",
        "bytes=0-9",
    )


def test_a_not_modified_response_is_returned(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on("/large", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n')
    response = service.get("/large", headers={"If-None-Match": '"x"'})
    assert (response.status_code, response.headers["etag"], response.content) == (304, '"x"', b"")


@pytest.mark.parametrize("chunked", [True, False], ids=["chunks", "length"])
def test_large_response_bodies_are_returned_whole(service: Service, prepared_upstream: Upstream, chunked: bool) -> None:
    piece = bytes(range(256)) * 256

    def large(_seen: Seen, connection: socket.socket) -> bytes:
        framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (len(piece) * 300)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: x/y\r\n" + framing + b"\r\n\r\n")
        for _ in range(300):
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        return b"0\r\n\r\n" if chunked else b""

    prepared_upstream.on("/large", large)
    response = service.get("/large")
    assert hashlib.sha256(response.content).digest() == hashlib.sha256(piece * 300).digest()
    assert response.headers.get("content-length") == (None if chunked else str(len(piece) * 300))


def test_large_request_bodies_are_forwarded_whole(service: Service, prepared_upstream: Upstream) -> None:
    prepared_upstream.on(
        "/uploaded", lambda request, _: answer(hashlib.sha256(request.body).hexdigest(), content_type="text/x")
    )
    piece = bytes(range(256)) * 4096
    whole = hashlib.sha256(piece * 40).hexdigest()
    assert service.post("/uploaded", content=piece * 40).text == whole
    assert service.post("/uploaded", content=(piece for _ in range(40))).text == whole


def test_server_sent_events_are_forwarded_immediately(service: Service, prepared_upstream: Upstream) -> None:
    def events(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n")
        read.wait(20)
        connection.sendall(b"data: more\n\n")

    read = threading.Event()
    prepared_upstream.on("/events", events)
    with service.client.stream("GET", "/events") as response:
        lines = response.iter_lines()
        assert next(lines) == ": hello"
        read.set()
        assert [line for line in lines if line] == ["data: more"]
    assert response.headers["content-type"] == "text/event-stream"


@pytest.mark.slow
@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
@pytest.mark.parametrize("silent", [False, True])
def test_an_event_stream_ends_when_its_client_disconnects(
    service: Service, prepared_upstream: Upstream, http2: bool, silent: bool
) -> None:
    ended = threading.Event()

    def events(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            if silent:
                connection.sendall(b"data: one of few\n\n")
                if connection.recv(1) == b"":
                    ended.set()
            while not prepared_upstream.released.wait(0.05):
                connection.sendall(b"data: one of few\n\n")
        except OSError:
            ended.set()

    prepared_upstream.on("/events", events)
    with (
        httpx.Client(base_url=service.url, http1=not http2, http2=http2, trust_env=False) as client,
        client.stream("GET", "/events") as response,
    ):
        assert next(response.iter_lines()) == "data: one of few"
    assert ended.wait(20), "the other service goes on sending without a reader"


def test_an_outgoing_request_ends_when_its_client_disconnects(service: Service, prepared_upstream: Upstream) -> None:
    before = prepared_upstream.open_connections
    with service.connect() as connection:
        connection.sendall(b"GET /stays HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: prepared_upstream.to("/stays"), "the call is under way")
    wait_until(lambda: prepared_upstream.open_connections <= before + 1, "its connection is closed", 5)


ODD = {
    "reset-at-once": b"",
    "garbage": b"this is no HTTP\r\n\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length-and-chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "endless-head": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %b\r\n" % (number, b"y" * 1000) for number in range(200)),
    "endless-interim": b"HTTP/1.1 102 Processing\r\n\r\n" * 6000,
    "upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "short-body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    "bad-chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "nothing-of-much": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
}


@pytest.mark.parametrize("what", ODD)
def test_invalid_responses_are_502(service: Service, prepared_upstream: Upstream, what: str) -> None:
    def odd(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(ODD[what])

    prepared_upstream.on(f"/odd/{what}", odd)
    problem(service.get(f"/odd/{what}"), 502)


GOOD = {
    "until-close": b"HTTP/1.1 200 OK\r\nContent-Type: t/x\r\n\r\nabc",
    "http-1.0": b"HTTP/1.0 200 OK\r\nContent-Type: t/x\r\n\r\nabc",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: t/x\r\nContent-Length: 3\r\n\r\nabc",
    "too-much": b"HTTP/1.1 200 OK\r\nContent-Type: t/x\r\nContent-Length: 3\r\n\r\nabcdef",
    "trailers": b"HTTP/1.1 200 OK\r\nContent-Type: t/x\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    "empty-header": b"HTTP/1.1 200 OK\r\nContent-Type: t/x\r\nX-Empty:\r\nContent-Length: 3\r\n\r\nabc",
}


@pytest.mark.parametrize("what", GOOD)
def test_unusual_but_valid_responses_are_returned(service: Service, prepared_upstream: Upstream, what: str) -> None:
    def odd(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(GOOD[what])

    prepared_upstream.on(f"/odd/{what}", odd)
    response = service.get(f"/odd/{what}")
    assert (response.status_code, response.text, response.headers["content-type"]) == (200, "abc", "t/x")


def test_requests_succeed_although_the_server_closed_the_idle_connection(
    service: Service, prepared_upstream: Upstream
) -> None:
    """The server closes the connection after each response, without `Connection: close`."""

    def closing(request: Seen, connection: socket.socket) -> None:
        connection.sendall(answer("x"))

    prepared_upstream.on("/odd/closing", closing)
    assert [service.get("/odd/closing").text for _ in range(10)] == ["x"] * 10


def test_connections_are_used_again(service: Service, prepared_upstream: Upstream) -> None:
    before = prepared_upstream.accepted
    for _ in range(20):
        received(service.get("/plain"))
    assert prepared_upstream.accepted - before <= 2


SWITCHED = """
create function gone() returns text language sql as 'select 1::text';
comment on function gone() is 'HTTP GET /gone
proxy http://127.0.0.1:1';
"""


def test_the_routine_is_called_if_proxying_is_disabled(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SWITCHED)
    assert service.get("/gone").text == "1"
    service.wait_for_log("proxy has no effect, as Service:ProxyOptions:Enabled is false")


def test_a_proxy_without_a_host_is_reported_and_answered_with_500(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(
        own_database, nothing("lost", "HTTP GET /lost\nproxy"), {"Service:ProxyOptions:Enabled": "true"}
    )
    assert "Proxy host is not configured" in problem(service.get("/lost"), 500)["detail"]
    assert "GET /lost: proxy has no host, so every request is answered with 500" in service.log


def test_another_endpoint_cannot_forge_the_client_address(
    own_database: Database, serve_once: Serve, prepared_upstream: Upstream
) -> None:
    """An internal subrequest has no client address, and no proxy that could report one."""
    sql = """
        create function who(_ip_address text default null) returns text language sql
        as $$select coalesce(_ip_address, 'unknown')$$;
        comment on function who(text) is E'HTTP GET /who\\nallow_anonymous\\nuser_parameters';
        create function outer_who() returns void language sql as 'select';
        comment on function outer_who() is E'HTTP GET /outer\\nallow_anonymous\\nproxy /who';
    """
    settings = {"ForwardedHeaders:Enabled": "true"}
    service = serve_once(own_database, sql, {"Service:ProxyOptions:Enabled": "true", **settings})
    forged = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    assert service.get("/who", headers=forged).text == "6.6.6.6"  # a proxy on the same host is believed
    assert service.get("/outer", headers=forged).text == "unknown"
