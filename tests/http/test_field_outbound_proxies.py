"""Proxies, rule by rule, in cases that no other test covers (proxies-1 to proxies-16)."""

# ruff: noqa: E501 (tables, one declaration a line)

from __future__ import annotations

import gzip
import json
import socket
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer, echo
from tests.http.conftest import Serve


def function(head: str, body: str, comment: str, returns: str = "text", kind: str = "sql") -> str:
    name = head.split("(")[0]
    return (
        f"create function {head} returns {returns} language {kind} as $$ {body} $$;\n"
        f"comment on function {name} is $c${comment}$c$;\n"
    )


def passing(name: str, comment: str, parameters: str = "") -> str:
    return function(f"{name}({parameters})", "begin raise exception 'the routine ran'; end", comment, "void", "plpgsql")


REPLY = "_proxy_status_code int default null, _proxy_body text default null, _proxy_headers json default null, _proxy_content_type text default null, _proxy_success boolean default null, _proxy_error_message text default null"
SHOWN = "concat_ws('|', _proxy_status_code, coalesce('<' || _proxy_body || '>', 'NULL'), coalesce(_proxy_headers::text, 'NULL'), coalesce(_proxy_content_type, 'NULL'), _proxy_success, coalesce(_proxy_error_message, 'NULL'))"


def schema(url: str) -> str:
    return (
        passing("as_it_is", f"HTTP GET /as-it-is/{{_rest}}\n@reverse_proxy {url}", "_rest text")
        + passing("status_of", f"HTTP GET /status-of\nproxy {url}")
        + passing(
            "typed_here", f"HTTP GET /typed-here\nContent-Type: text/mine\nCache-Control: private\nproxy get {url}"
        )
        + passing("put_for_post", f"HTTP POST /put-for-post\nproxy put {url}")
        + passing("posted", f"HTTP POST /posted\nproxy {url}")
        + passing("bodiless", f"HTTP GET /bodiless\nproxy {url}")
        + passing("twice_named", f"HTTP GET /twice-named\nproxy http://127.0.0.1:1\nproxy {url}")
        + passing("odd_url", "HTTP GET /odd-url\nproxy stock.example.net")
        + "create type asked as (body text, status_code int, success boolean, error_message text);\n"
        + f"comment on type asked is 'GET {url}/small';\n"
        + passing("with_type", f"HTTP GET /with-type\nproxy {url}", "_r asked")
        + passing("with_type_body", f"HTTP POST /with-type-body\nproxy {url}", "_r asked")
        + passing(
            "resolved_null",
            f"HTTP GET /resolved-null\nproxy {url}\n_a = select null\n_b = select 'ä &='",
            "_a text default null, _b text default null",
        )
        + passing(
            "resolved_post_query",
            f"HTTP POST /resolved-post-query\nrequest_param_type query_string\nproxy {url}\n_a = select 1",
            "_a int default null",
        )
        + passing(
            "resolved_get_as_post",
            f"HTTP GET /resolved-get-as-post\nproxy POST {url}\n_a = select 1",
            "_a int default null",
        )
        + passing("checked", f"HTTP GET /checked\nvalidate _a using not_empty\nproxy {url}", "_a text")
        + function(f"shown({REPLY})", f"select {SHOWN}", f"HTTP GET /shown\nproxy {url}")
        + function(f"unreachable({REPLY})", f"select {SHOWN}", "HTTP GET /unreachable\nproxy http://127.0.0.1:1")
        + function(f"nowhere({REPLY})", f"select {SHOWN}", "HTTP GET /nowhere\nproxy")
        + function(f"cut({REPLY})", f"select {SHOWN}", f"HTTP GET /cut\nproxy {url}")
        + function(f"inside({REPLY})", f"select {SHOWN}", "HTTP GET /inside\nproxy /inner")
        + function(
            "rated(_cur text, _proxy_body text, _proxy_success boolean)",
            "select concat_ws('|', _cur, _proxy_body, _proxy_success)",
            f"HTTP GET /rated\nX-Cur: {{_cur}}\nproxy {url}",
        )
        + function(
            "as_rows(_proxy_body json)",
            "select (v ->> 'n')::int from json_array_elements($1) v",
            f"HTTP GET /as-rows\nproxy {url}",
            "table (n int)",
        )
        + function(
            "small_code(_proxy_status_code smallint, _proxy_success text, _proxy_headers jsonb, _PROXY_error_message text)",
            "select concat_ws('|', $1, $2, $3 ->> 'X-A', $4)",
            f"HTTP GET /small-code\nproxy {url}",
        )
        + function("status_from(_proxy_status_code varchar)", "select $1", f"HTTP GET /status-from\nproxy {url}")
        + function(
            "strictly(_a text, _proxy_body text)", "select _a || _proxy_body", f"HTTP GET /strictly\nproxy {url}"
        ).replace("language sql as", "strict language sql as")
        + function(
            "inner_one(_headers json default null, _q text default null)",
            "select json_build_object('host', _headers ->> 'Host', 'a', _headers ->> 'X-A', 'q', _q)",
            "HTTP GET /inner\nX-Inner: 1\ninternal",
            "json",
        )
        + function("inner_post(_t text)", "select 'got ' || _t", "HTTP POST /inner-post\ninternal")
        + passing("to_inner", "HTTP GET /to-inner\nproxy /inner")
        + passing("to_inner_post", "HTTP PUT /to-inner-post\nproxy POST /inner-post")
        + passing("to_no_inner", "HTTP GET /to-no-inner\nproxy /no-such")
        + "create table kept (id int);\n"
        + function(
            "sends(_id int)",
            "insert into kept values (_id); select json_build_object('id', _id)",
            f"HTTP POST /sends\nX-Mine: 1\nContent-Type: text/mine\nforward_proxy {url}/out/",
            "json",
        )
        + function(
            "sends_void(_id int)", "insert into kept values (_id)", f"HTTP POST /sends-void\nproxy_out {url}", "void"
        )
        + function(
            "sends_lost(_id int)",
            "insert into kept values (_id); select 1",
            "HTTP POST /sends-lost\nproxy_out http://127.0.0.1:1",
            "int",
        )
        + function("sends_text()", "select 'plain'", f"HTTP GET /sends-text\nproxy_out put {url}")
        + function(
            "sends_rows()",
            "select g from generate_series(1, 2) g",
            f"HTTP GET /sends-rows\nproxy_out POST {url}",
            "setof int",
        )
        + function("sends_nothing()", "select 1", f"HTTP DELETE /sends-nothing\nproxy_out {url}", "int")
        + function(
            "sends_wrong()",
            "begin raise exception 'not so'; end",
            f"HTTP GET /sends-wrong\nproxy_out POST {url}",
            "int",
            "plpgsql",
        )
        + function("sends_nowhere()", "select 1", "HTTP GET /sends-nowhere\nproxy_out", "int")
        + function("kept_ids()", "select array_agg(id order by id) from kept", "HTTP GET /kept-ids", "int[]")
    )


@pytest.fixture(scope="module")
def prepared_upstream(upstream: Upstream) -> Upstream:
    def of_status(request: Seen, _connection: socket.socket) -> bytes:
        status = int(request.target.partition("=")[2] or 200)
        return answer(
            b"" if status in (204, 304) else f"said {status}",
            status,
            [("X-A", "1"), ("X-A", "2"), ("Server", "theirs"), ("WWW-Authenticate", 'Basic realm="x"')],
            None,
        )

    upstream.on("*", echo)
    for path in ("/status-of", "/shown", "/small-code", "/status-from", "/sends-void"):
        upstream.on(path, of_status)
    upstream.on("/small", answer("s", content_type="text/plain"))
    upstream.on(
        "/typed-here", answer("t", content_type="text/theirs", headers=[("Cache-Control", "public"), ("Vary", "X")])
    )
    upstream.on("/rated", answer(gzip.compress(b"1.5"), 503, [("Content-Encoding", "gzip")], "text/plain"))
    upstream.on("/as-rows", answer([{"n": 1}, {"n": 2}]))
    upstream.on("/cut", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    upstream.on("/strictly", answer("b"))
    upstream.on("/sends-text", answer(b"\x00\xff", 201, [("X-Theirs", "1"), ("Location", "/x")], "application/pdf"))
    upstream.on("/sends-wrong", answer("never"))
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, prepared_upstream: Upstream) -> Service:
    settings = {"Service:ProxyOptions:Enabled": "true", "Service:HttpClientOptions:Enabled": "true"}
    return serve(database, schema(prepared_upstream.url), settings)


REPLIED = '{"X-A":"1, 2","Server":"theirs","WWW-Authenticate":"Basic realm=\\"x\\"","Content-Length":"%d"}'


@pytest.mark.parametrize(
    "context",
    cases([
        ("GET /status-of?s=200", "200B said 200", {"content-type": None, "x-a": "1, 2", "server": "theirs"}),
        ("GET /status-of?s=201", "201B said 201", {"content-type": None}),
        ("GET /status-of?s=204", "204", {"x-a": "1, 2"}),
        ("GET /status-of?s=302", "302B said 302", {"content-type": None}),
        ("GET /status-of?s=401", "401B said 401", {"content-type": None, "www-authenticate": 'Basic realm="x"'}),
        ("GET /status-of?s=418", "418B said 418", {"content-type": None}),
        ("GET /status-of?s=500", "500B said 500", {"content-type": None}),
        ("GET /status-of?s=599", "599B said 599", {"content-type": None}),
        ("GET /typed-here", "200B t", {"content-type": "text/theirs", "cache-control": "private", "vary": "X"}),
        ("GET /checked?a=", "400"),
        ("GET /checked", "404"),
        ("GET /shown?s=200", "404 unknown parameter"),
        ("GET /shown", f"200T 200|<said 200>|{REPLIED % 8}|NULL|t|NULL"),
        ("GET /unreachable", "200T 502|NULL|NULL|NULL|f|no connection to 127.0.0.1:1: Connection refused"),
        ("GET /nowhere", "200T 500|NULL|NULL|NULL|f|Proxy host is not configured. Name one in the annotation, or set Service:ProxyOptions:Host."),
        ("GET /odd-url", "500 Proxy host is not configured"),
        ("GET /rated?cur=EUR", "200T EUR|1.5|f", {"x-cur": "EUR"}),
        ("GET /rated", "404"),
        ("GET /as-rows", "200 [{\"n\":1},{\"n\":2}]"),
        ("GET /small-code", "200T 200|true|1, 2"),
        ("GET /status-from", "200T 200"),
        ("GET /strictly?a=a", "200T ab"),
        ("GET /to-inner?q=x", '200 {"host" : "localhost", "a" : null, "q" : null}', {"x-inner": None}),
        ('PUT /to-inner-post {"t": "x"}', "200T got x"),
        ("GET /to-no-inner", "404"),
        ("GET /inside", '200T 200|<{"host" : "localhost", "a" : null, "q" : null}>|{"x-inner":"1","Content-Type":"application/json"}|application/json|t|NULL'),
        ("GET /sends-wrong", "400 not so"),
        ("GET /sends-nowhere", "500 Proxy host is not configured"),
    ]),
)  # fmt: skip
def test_client_of_a_proxy_gets_the_expected_response(service: Service, context: RequestContext) -> None:
    check(service, context)


def received(
    service: Service, method: str, path: str, content: bytes = b"", headers: dict[str, str] | None = None
) -> Any:
    """Return the request that the upstream has received."""
    response = service.request(method, path, content=content, headers=headers or {})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("method", "path", "content", "target", "body"),
    [
        ("GET", "/as-it-is/a%252Fb?a=%2F&b=+&&c=%c3%bc&d", b"", "/as-it-is/a%252Fb?a=%2F&b=+&&c=%c3%bc&d", ""),
        ("GET", "/as-it-is/a;b=c,d@e:f", b"", "/as-it-is/a;b=c,d@e:f", ""),
        ("GET", "/bodiless", b"left here", "/bodiless", ""),
        ("GET", "/twice-named", b"", "/twice-named", ""),
        ("POST", "/put-for-post?x", b"text", "/put-for-post?x", "text"),
        ("POST", "/posted", b"", "/posted", ""),
        ("GET", "/with-type?x=1", b"", "/with-type?x=1&rBody=s&rStatusCode=200&rSuccess=true", ""),
        ("GET", "/resolved-null?a=mine", b"", "/resolved-null?b=%C3%A4%20%26%3D", ""),
        ("POST", "/resolved-post-query", b'{"b": 2}', "/resolved-post-query?a=1", '{"b": 2}'),
        ("GET", "/resolved-get-as-post", b'{"b": 2}', "/resolved-get-as-post?a=1", '{"b": 2}'),
    ],
)  # fmt: skip
def test_proxy_sends_the_specified_target_and_body(
    service: Service, method: str, path: str, content: bytes, target: str, body: str
) -> None:
    forwarded = received(service, method, path, content, {"Content-Type": "application/json"} if content else {})
    assert (forwarded["target"], forwarded["body"]) == (target, body)


def test_http_type_result_is_forwarded_in_the_json_body(service: Service) -> None:
    forwarded = received(
        service, "POST", "/with-type-body", b'{"rBody": "mine", "x": 1.50}', {"Content-Type": "application/vnd.x+json"}
    )
    assert (
        forwarded["body"].replace(" ", "")
        == '{"rBody":"s","x":1.50,"rStatusCode":200,"rSuccess":true,"rErrorMessage":null}'
    )


def test_proxy_forwards_headers_unchanged(service: Service, prepared_upstream: Upstream) -> None:
    received(
        service,
        "GET",
        "/as-it-is/h",
        headers={
            "Authorization": "Basic eDp5",
            "User-Agent": "mine",
            "Accept-Encoding": "br",
            "Content-Language": "de",
            "X-A": "1",
        },
    )
    forwarded = prepared_upstream.to("/as-it-is/h")[-1]
    assert [forwarded.header(name) for name in ("authorization", "user-agent", "accept-encoding", "x-a")] == [
        "Basic eDp5",
        "mine",
        "br",
        "1",
    ]
    assert forwarded.header("content-language") is None
    assert forwarded.all("host") == [f"127.0.0.1:{prepared_upstream.port}"]


def test_routine_result_is_sent_as_json_without_request_headers(service: Service, prepared_upstream: Upstream) -> None:
    response = service.post("/sends", content=b'{"id": 1}', headers={"Content-Type": "application/json", "X-A": "1"})
    forwarded = response.json()
    assert (forwarded["method"], forwarded["target"], json.loads(forwarded["body"])) == (
        "POST",
        "/out/sends",
        {"id": 1},
    )
    assert forwarded["headers"]["content-type"] == "application/json; charset=utf-8"
    assert "x-a" not in forwarded["headers"]
    assert response.headers["content-type"] == "application/json"
    assert "x-mine" not in response.headers
    paper = service.get("/sends-text")
    assert (paper.status_code, paper.content, paper.headers["content-type"]) == (201, b"\0\xff", "application/pdf")
    assert (paper.headers["x-theirs"], paper.headers["location"]) == ("1", "/x")
    sent = prepared_upstream.to("/sends-text")[-1]
    assert (sent.method, sent.body) == ("PUT", b"plain")
    assert sent.header("content-type") == "application/json; charset=utf-8"
    assert received(service, "GET", "/sends-rows")["body"] == "[1,2]"
    nothing = received(service, "DELETE", "/sends-nothing")
    assert (nothing["method"], nothing["body"]) == ("DELETE", "")
    assert "content-type" not in nothing["headers"]


def test_routine_effects_remain_if_the_upstream_fails(service: Service, prepared_upstream: Upstream) -> None:
    assert service.post("/sends-lost", json={"id": 8}).status_code == 502
    void = service.post("/sends-void", json={"id": 9})
    assert void.text == "said 200"
    assert prepared_upstream.to("/sends-void")[-1].body == b""
    assert [item for item in service.get("/kept-ids").json() if item in (8, 9)] == [8, 9]


def test_proxy_targets_are_logged_at_the_start(service: Service, prepared_upstream: Upstream) -> None:
    assert f"GET /status-of: proxy, method of the request, host {prepared_upstream.url}" in service.log
