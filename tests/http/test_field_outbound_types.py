"""HTTP types and resolved parameters, rule by rule, in cases that no other test covers (execution-17 to execution-19,
outbound-1 to outbound-18)."""

# ruff: noqa: E501 (tables, one declaration a line)

from __future__ import annotations

import socket

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.http.conftest import Serve

FIELDS = "body text, status_code int, success boolean, error_message text"
SHOWN = (
    "concat_ws('|', coalesce((_r).body, 'NULL'), (_r).status_code, (_r).success, coalesce((_r).error_message, 'NULL'))"
)


def http_type(name: str, comment: str, attributes: str = FIELDS) -> str:
    quoted = comment.replace("'", "''")
    return f"create type {name} as ({attributes});\ncomment on type {name} is '{quoted}';\n"


def function(head: str, body: str, comment: str, returns: str = "text") -> str:
    name = head.split("(")[0]
    return (
        f"create function {head} returns {returns} language sql as $$ {body} $$;\n"
        f"comment on function {name} is $c${comment}$c$;\n"
    )


def type_with_endpoint(name: str, request: str, parameters: str = "", attributes: str = FIELDS, lines: str = "") -> str:
    """Return a type, and an endpoint of its name that returns the response."""
    arguments = ", ".join(item for item in (f"_r {name}_type", parameters) if item)
    path = name.replace("_", "-")
    return http_type(f"{name}_type", request, attributes) + function(
        f"{name}({arguments})", f"select {SHOWN}", f"HTTP GET /{path}\n{lines}"
    )


def schema(url: str) -> str:
    return (
        # The head of the comment.
        type_with_endpoint("lowered", f"get {url}/echo HTTP/1.1")
        + type_with_endpoint("mixed", f"PaTcH   {url}/echo   HTTP/1.1\n\npatched")
        + type_with_endpoint("queried", f"QUERY {url}/echo\n\nasked")
        + type_with_endpoint(
            "remarks",
            f"\n  # a remark\n\n  # neither this\n   GET {url}/echo\n   X-Key:  one \n  X-KEY: two\n no colon here\n",
        )
        + type_with_endpoint(
            "windows", f"timeout 5s\r\nPOST {url}/echo\r\nContent-Type: text/plain\r\n\r\n  first\r\n\r\n  second  \r\n"
        )
        + type_with_endpoint("got_with_body", f'GET {url}/echo\n\n{{"in": "get"}}')
        + type_with_endpoint("blank_body", f"POST {url}/echo\nContent-Type: text/x\n\n   \n\t\n")
        + type_with_endpoint(
            "unsent",
            f"POST {url}/echo\nContent-Length: 1000\nContent-Encoding: gzip\nAllow: GET\nExpires: 0\nLast-Modified: x\nX-Key: k\n\nb",
        )
        + type_with_endpoint(
            "among", f"GET {url}/slow-once?k=among\n@timeout = 250ms\nX-Key: a\nretry_delay: 1ms\nX-Other: b"
        )
        + type_with_endpoint(
            "last_wins", f"timeout 1ms\ntimeout 20s\nretry_delay 1s\nretry_delay 1ms\nGET {url}/flaky?k=last"
        )
        + type_with_endpoint("clock_form", f"#@TIMEOUT=00:00:30\nGET {url}/echo")
        + type_with_endpoint(
            "no_directive", f"GET {url}/echo\nTimeout-Policy: x\nCache-Control: no-store\nRetry_Delay_Hint: 3"
        )
        + type_with_endpoint("bad_timeout", f"timeout soon\nGET {url}/echo")
        + type_with_endpoint("bad_codes", f"retry_delay 1ms on many, 9\nGET {url}/flaky?k=codes")
        + type_with_endpoint("bad_delay", f"retry_delay whenever\nGET {url}/echo")
        + type_with_endpoint("codes_and_timeout", f"timeout 250ms\nretry_delay 1ms on 503\nGET {url}/slow-once?k=codes")
        + type_with_endpoint("codes_and_no_server", "retry_delay 1ms, 1ms on 503\nGET http://127.0.0.1:1/")
        + type_with_endpoint("unlisted", f"retry_delay 1ms, 1ms on 503\nGET {url}/flaky?k=unlisted")
        + type_with_endpoint("exhausted", f"retry_delay 1ms, 1ms\nGET {url}/always?s=503")
        + type_with_endpoint("then_silent", f"timeout 250ms\nretry_delay 1ms\nGET {url}/broken-then-silent")
        # No request at all: the parameter is an ordinary composite.
        + http_type("headed", f"HEAD {url}/echo", "a int, body text")
        + function("no_request(_r headed)", "select concat_ws('|', (_r).a, (_r).body)", "HTTP GET /no-request")
        + http_type("no_url", "GET", "a int, body text")
        + function("no_address(_r no_url)", "select concat_ws('|', (_r).a, (_r).body)", "HTTP GET /no-address")
        + http_type("prose", "What a customer has said to us.", "a int, body text")
        + function("prosaic(_r prose)", "select concat_ws('|', (_r).a, (_r).body)", "HTTP GET /prosaic")
        # Placeholders.
        + type_with_endpoint(
            "places",
            f"POST {url}/echo?a={{_id}}&b={{ID}}&c={{name}}&d={{_NAME}}\nX-Key: {{a{{_id}}}}\nContent-Type: {{_kind}}\n\n{{_flag}} {{_n}} {{_list}} {{_none}}. {{unknown}} {{ id }} {{1}} {{}}",
            "_id int, _name text, _kind text, _flag boolean, _n numeric, _list int[], _none text default null",
        )
        + type_with_endpoint(
            "fallbacks",
            f"POST {url}/echo\n\n{{!_a:x:y}} {{!_a}} {{!_missing:z}} {{!_b:no}} {{!OUT_UNSET:env}} {{OUT_UNSET}} {{out_set}}",
            "_a text default null, _b text default 'd'",
        )
        + type_with_endpoint("shadowed", f"POST {url}/echo\n\n{{OUT_SET}}", "out_set text")
        + type_with_endpoint("plain_json", f'POST {url}/echo\n\n{{"a": {{}}, "b": [1]}}', "_a int default 1")
        + type_with_endpoint(
            "by_attribute",
            f"POST {url}/echo\n\n{{tenant}} {{_r_tenant}} {{rTenant}} {{_R_TENANT}}",
            attributes=f"{FIELDS}, tenant text",
        )
        # Parameters.
        + http_type("shared", f"GET {url}/counted", "body text, tenant text")
        + function(
            "sharing(_a shared, _b shared)",
            "select concat_ws('|', (_a).body = (_b).body, (_a).tenant, (_b).tenant)",
            "HTTP GET /sharing",
        )
        + http_type(
            "as_text",
            f"GET {url}/always?s=201",
            "success text, status_code varchar, error_message text, content_type text, headers json",
        )
        + function(
            "texts(_r as_text)",
            "select concat_ws('|', (_r).success, (_r).status_code, (_r).error_message, (_r).content_type, (_r).headers)",
            "HTTP GET /texts",
        )
        + http_type("few", f"GET {url}/echo", "status_code int")
        + function("only_status(_r few)", "select (_r).status_code::text", "HTTP GET /only-status")
        + http_type("cased", f"GET {url}/echo", '"Body" text, status_code int')
        + function(
            "case_counts(_r cased)", "select concat_ws('|', (_r).\"Body\", (_r).status_code)", "HTTP GET /case-counts"
        )
        + http_type("posted_type", f"POST {url}/echo\n\n{{_a}}", FIELDS)
        + function("posted(_a text, _r posted_type)", f"select {SHOWN}", "HTTP POST /posted")
        + http_type("rows_type", f"GET {url}/echo", FIELDS)
        + function(
            "rows_of(_r rows_type)",
            "select (_r).status_code, g from generate_series(1, 2) g",
            "HTTP GET /rows-of",
            "table (status int, n int)",
        )
        # Redirects.
        + type_with_endpoint("moved", f"POST {url}/moved?s={{_s}}\nContent-Type: text/x\n\nmine", "_s int")
        + type_with_endpoint("circling", f"GET {url}/circling")
        # Calls of this service.
        + function(
            "inner_echo(_a text default null, _headers json default null)",
            "select json_build_object('a', _a, 'k', _headers ->> 'X-Key', 'host', _headers ->> 'Host', 'type', _headers ->> 'Content-Type')",
            "HTTP POST /Inner/Echo\ninternal",
            "json",
        )
        + function(
            "inner_by_id(_id int, _x text default null)",
            "select format('%s %s', _id, coalesce(_x, '-'))",
            "HTTP GET /inner/{_id}/end\ninternal_only",
        )
        + function("inner_closed()", "select 'closed'", "HTTP GET /inner-closed\ninternal\nauthorize")
        + "create sequence inner_tries; create function inner_flaky() returns text language plpgsql as $$ begin if nextval('inner_tries') < 3 then raise exception 'not yet'; end if; return 'third'; end $$;\n"
        + "comment on function inner_flaky is 'HTTP GET /inner-flaky\ninternal';\n"
        + type_with_endpoint("to_echo", 'POST /inner/echo?ignored=1\nX-Key: {_k}\n\n{"a": "{_k}"}', "_k text")
        + type_with_endpoint("to_id", "GET /INNER/{_n}/end?x={_x}", "_n text, _x text")
        + type_with_endpoint("to_kept", "@cache\nGET /inner/8/end")
        + type_with_endpoint("to_any", "@cache\nGET {_url}", "_url text")
        + type_with_endpoint("to_one", "@cache\nGET /inner/{_n}/{_x}", "_n text, _x text")
        + type_with_endpoint("to_near", "@cache\nGET /{_x}", "_x text")
        + type_with_endpoint("to_slash", "GET /inner/7/end/")
        + type_with_endpoint("to_other_method", "DELETE /inner/7/end")
        + type_with_endpoint("to_closed", "GET /inner-closed")
        + type_with_endpoint("to_flaky", "timeout 1ms\nretry_delay 1ms, 1ms\nGET /inner-flaky")
        # Resolved parameters.
        + "create table tokens (u text, t text); insert into tokens values ('7', 'secret'), ('abroad', 'zäh €');\n"
        + function(
            "push(_uid text, _text text, _token text default null)",
            "select concat_ws('|', _uid, _text, coalesce(_token, 'NULL'))",
            "HTTP GET /push\n_token = select t from tokens where u = {_uid} and {_uid} <> ''",
        )
        + function(
            "by_other_case(_Uid text, _token text)",
            "select _token",
            "HTTP GET /by-other-case\n_TOKEN = select 'not taken'\n_token = select {UID} || {uid} || coalesce({unknown}, '-')",
        )
        + function("from_nowhere(_t text)", "select $1", "HTTP GET /from-nowhere\n_t = select t from nowhere")
        + function("odd_braces(_t text)", "select $1", "HTTP GET /odd-braces\n_t = select 'a}b{c'")
        + function(
            "many_rows(_t text)",
            "select $1",
            "HTTP GET /many-rows\n_t = select * from (values ('one', 1), ('two', 2)) v",
        )
        + function(
            "no_row(_t text default 'd')",
            "select coalesce($1, 'NULL')",
            "HTTP GET /no-row\nX-T: [{_t}]\n_t = select 'x' where false",
        )
        + function(
            "as_number(_t text, _n int)", "select _t || _n", "HTTP GET /as-number\n_t = select 7\n_n = select '8'::text"
        )
        + function("raised(_t text)", "select $1", "HTTP GET /raised\n_t = select refuse()")
        + function("optioned(path text)", "select $1", "HTTP GET /optioned\npath = select 'ran'")
        + function(
            "strictly(_a text, _b text)", "select _a || _b", "HTTP GET /strictly\n_b = select null::text"
        ).replace(
            "returns text language sql as $$ select _a || _b", "returns text strict language sql as $$ select _a || _b"
        )
        + type_with_endpoint(
            "resolved_in_type",
            f"GET {url}/echo\nX-Key: {{_token}}",
            "_uid text, _token text",
            lines="_token = select t from tokens where u = {_uid}",
        )
    )


REFUSE = "create function refuse() returns text language plpgsql as $$ begin raise exception 'not today'; end $$;\n"


@pytest.fixture(scope="module")
def prepared_upstream(upstream: Upstream) -> Upstream:
    def echo(request: Seen, _connection: socket.socket) -> bytes:
        expected = (
            "content-type",
            "content-encoding",
            "allow",
            "expires",
            "last-modified",
            "x-key",
            "timeout-policy",
            "cache-control",
            "retry_delay_hint",
            "cookie",
        )
        headers = " ".join(f"{name}={value}" for name in expected for value in request.all(name))
        message = f"{request.method} {request.target} [{headers}] <{request.body.decode()}>"
        return answer(message, content_type="text/plain", headers=[("Set-Cookie", "a=b")])

    counts: dict[str, int] = {}

    def count(request: Seen) -> int:
        counts[request.target] = counts.get(request.target, 0) + 1
        return counts[request.target]

    def slow_once(request: Seen, _connection: socket.socket) -> bytes:
        if count(request) == 1:
            upstream.released.wait(2)
        return answer("then", content_type="text/plain")

    def broken_then_silent(request: Seen, _connection: socket.socket) -> bytes:
        if count(request) > 1:
            upstream.released.wait(2)
        return answer("broken", 500)

    def redirect(request: Seen, _connection: socket.socket) -> bytes:
        return answer(b"", int(request.target.partition("=")[2]), [("Location", "/echo?moved")])

    upstream.on("/echo", echo)
    upstream.on("/slow-once", slow_once)
    upstream.on("/broken-then-silent", broken_then_silent)
    upstream.on(
        "/flaky",
        lambda request, _: answer("good" if count(request) > 1 else "bad", 200 if count(request) > 2 else 404),
    )
    upstream.on(
        "/always",
        lambda request, _: answer(
            f"{count(request)}",
            int(request.target.partition("=")[2]),
            [("X-A", "1"), ("X-A", "ü")],
            "text/x; charset=utf-8",
        ),
    )
    upstream.on("/counted", lambda request, _: answer(str(count(request))))
    upstream.on("/moved", redirect)
    upstream.on("/circling", answer(b"", 302, [("Location", "/circling")]))
    return upstream


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, prepared_upstream: Upstream) -> Service:
    settings = {
        "Service:HttpClientOptions:Enabled": "true",
        "Service:AvailableEnvVars:OUT_UNSET": "dflt",
        "Service:AvailableEnvVars:OUT_SET": "dflt",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUT_SET", "from env")
        patch.delenv("OUT_UNSET", raising=False)
        return serve(database, REFUSE + schema(prepared_upstream.url), settings)


GOOD = "|200|t|NULL"
ABROAD = "zäh €".encode().decode("latin-1")
"""As the upstream receives a header: unchanged bytes."""


@pytest.mark.parametrize(
    "context",
    cases([
        ("GET /lowered", f"200T GET /echo [] <>{GOOD}"),
        ("GET /mixed", f"200T PATCH /echo [content-type=application/json] <patched>{GOOD}"),
        ("GET /queried", f"200T QUERY /echo [content-type=application/json] <asked>{GOOD}"),
        ("GET /remarks", f"200T GET /echo [x-key=two] <>{GOOD}"),
        ("GET /windows", f"200T POST /echo [content-type=text/plain] <  first\r\n\r\n  second  \r\n>{GOOD}"),
        ("GET /got-with-body", f'200T GET /echo [content-type=application/json] <{{"in": "get"}}>{GOOD}'),
        ("GET /blank-body", f"200T POST /echo [] <>{GOOD}"),
        ("GET /unsent", f"200T POST /echo [content-type=application/json x-key=k] <b>{GOOD}"),
        ("GET /among", f"200T then{GOOD}"),
        ("GET /last-wins", "200T good|200|t|NULL"),
        ("GET /clock-form", f"200T GET /echo [] <>{GOOD}"),
        ("GET /no-directive", f"200T GET /echo [timeout-policy=x cache-control=no-store retry_delay_hint=3] <>{GOOD}"),
        ("GET /bad-timeout", f"200T GET /echo [] <>{GOOD}"),
        ("GET /bad-codes", "200T good|200|t|NULL"),
        ("GET /bad-delay", f"200T GET /echo [] <>{GOOD}"),
        ("GET /codes-and-timeout", f"200T then{GOOD}"),
        ("GET /codes-and-no-server", "200T NULL|0|f|no connection to 127.0.0.1:1: Connection refused"),
        ("GET /unlisted", "200T bad|404|f|NULL"),
        ("GET /exhausted", "200T 3|503|f|NULL"),
        ("GET /then-silent", "200T NULL|408|f|Request timed out after 0.25 seconds"),
        ("GET /no-request?rA=1&rBody=x", "200T 1|x"),
        ("GET /no-address?rA=1&rBody=x", "200T 1|x"),
        ("GET /prosaic?rA=1&rBody=x", "200T 1|x"),
        ("GET /places?id=7&name=n%20n&kind=text/k&flag=TRUE&n=1.50&list=1&list=2",
         f"200T POST /echo?a=7&b=7&c=n%20n&d=n%20n [content-type=text/k x-key={{a7}}] <true 1.50 {{1,2}} . {{unknown}} {{ id }} {{1}} {{}}>{GOOD}"),
        ("GET /fallbacks", f"200T POST /echo [content-type=application/json] <x:y  {{!_missing:z}} no dflt dflt from env>{GOOD}"),
        ("GET /fallbacks?a=1&b=2", f"200T POST /echo [content-type=application/json] <1 1 {{!_missing:z}} 2 dflt dflt from env>{GOOD}"),
        ("GET /resolved-in-type?uid=abroad", f"200T GET /echo [x-key={ABROAD}] <>{GOOD}"),
        ("GET /shadowed?outSet=mine", f"200T POST /echo [content-type=application/json] <mine>{GOOD}"),
        ("GET /plain-json", f'200T POST /echo [content-type=application/json] <{{"a": {{}}, "b": [1]}}>{GOOD}'),
        ("GET /by-attribute?rTenant=T", f"200T POST /echo [content-type=application/json] <T T T T>{GOOD}"),
        ("GET /by-attribute", f"200T POST /echo [content-type=application/json] <   >{GOOD}"),
        ("GET /sharing?aTenant=x&bTenant=y", "200T t|x|y"),
        ("GET /texts", '200T true|201|text/x; charset=utf-8|{"X-A":"1, ü","Content-Length":"1","Content-Type":"text/x; charset=utf-8"}'),
        ("GET /only-status", "200T 200"),
        ("GET /case-counts?rBody=mine", "200T mine|200"),
        ('POST /posted {"a": "b\\"c"}', f'200T POST /echo [content-type=application/json] <b"c>{GOOD}'),
        ('POST /posted {"a": "b", "rBody": "evil", "rStatusCode": 7}', f"200T POST /echo [content-type=application/json] <b>{GOOD}"),
        ("GET /rows-of", '200 [{"status":200,"n":1},{"status":200,"n":2}]'),
        ("GET /moved?s=302", f"200T GET /echo?moved [] <>{GOOD}"),
        ("GET /moved?s=303", f"200T GET /echo?moved [] <>{GOOD}"),
        ("GET /moved?s=307", f"200T POST /echo?moved [content-type=text/x] <mine>{GOOD}"),
        ("GET /moved?s=308", f"200T POST /echo?moved [content-type=text/x] <mine>{GOOD}"),
        ("GET /circling", "200T |302|f|NULL"),
        ("GET /to-echo?k=v", '200T {"a" : "v", "k" : "v", "host" : "localhost", "type" : "application/json"}|200|t|NULL'),
        ("GET /to-id?n=7&x=y", "200T 7 y|200|t|NULL"),
        ("GET /to-flaky", "200T third|200|t|NULL"),
        ("GET /push?uid=7&text=x&token=evil", "200T 7|x|secret"),
        ("GET /push?uid=&text=x", "200T |x|NULL"),
        ("GET /push?uid=8&text=x", "200T 8|x|NULL"),
        ("GET /by-other-case?uid=u", "200T uu-"),
        ("GET /odd-braces", "200T a}b{c"),
        ("GET /many-rows", "200T one"),
        ("GET /no-row", "200T NULL", {"x-t": "[]"}),
        ("GET /as-number", "200T 78"),
        ("GET /raised", "500 P0001|not today"),
        ("GET /from-nowhere", "500 42P01|nowhere"),
        ("GET /optioned?path=evil", "200T ran"),
        ("GET /strictly?a=x", "204"),
        ("GET /resolved-in-type?uid=7&token=evil", f"200T GET /echo [x-key=secret] <>{GOOD}"),
        ("POST /inner/echo", "404"),
        ("GET /inner/7/end", "404"),
    ]),
)  # fmt: skip
def test_http_types_and_resolved_parameters_follow_the_specification(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize(("path", "status"), [("/to-slash", 404), ("/to-other-method", 404), ("/to-closed", 401)])
def test_failed_internal_subrequest_reports_its_status(service: Service, path: str, status: int) -> None:
    assert service.get(path).text.endswith(f"|{status}|f|Internal request returned {status}")


def test_mistakes_in_a_comment_are_logged_at_the_start(service: Service) -> None:
    for result in (
        "'soon' is not an interval",
        "'many' is no status code",
        "'whenever' is not an interval",
        "'HEAD' is none of",
        "requests GET /inner/7/end/, but this service has no such endpoint",
    ):
        assert result in service.log


def test_client_selected_url_does_not_reach_internal_endpoints(service: Service) -> None:
    """Neither an internal endpoint nor a cached response of one; other requests lead as far as usual."""
    assert service.get("/to-kept").text.startswith("8 -|200|")
    for target in ("/inner/8/end", "/INNER/8/end", "/inner-flaky"):
        response = service.get("/to-any", params={"url": target})
        assert (response.status_code, "|404|f|Internal request returned 404" in response.text) == (200, True), (
            response.text
        )
    for path in ("/to-near?x=inner/8/end", "/to-near?x=inner-flaky", "/to-one?n=8&x=end", "/to-one?n=8&x=end%3F"):
        assert "|404|f|Internal request returned 404" in service.get(path).text, path
    assert service.get("/to-near?x=to-id%3Fn=7%26x=y").text.endswith("7 y|200|t|NULL|200|t|NULL")
    response = service.get("/to-any", params={"url": "/to-id?n=7&x=y"})
    assert response.text == "7 y|200|t|NULL|200|t|NULL"
