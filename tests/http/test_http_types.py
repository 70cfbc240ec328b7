"""Composite types that represent outgoing requests (outbound-1 to outbound-18)."""

# ruff: noqa: E501 (tables, one request a line)

from __future__ import annotations

import gzip
import socket

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

TYPE = "body text, status_code int, success boolean, error_message text, headers json, content_type text"
SHOWN = (
    "concat_ws('|', coalesce(({0}).body, 'NULL'), ({0}).status_code, ({0}).success, "
    "coalesce(({0}).error_message, 'NULL'), ({0}).content_type)"
)


def http_type(name: str, comment: str, attributes: str = TYPE) -> str:
    return f"create type {name} as ({attributes});\ncomment on type {name} is $c${comment}$c$;\n"


def caller(name: str, parameters: str, annotations: str = "", shown: str = "_r") -> str:
    """Return a function that returns what its parameter has received."""
    return (
        f"create function {name}({parameters}) returns text language sql as $$ select {SHOWN.format(shown)} $$;\n"
        f"comment on function {name} is $c$HTTP GET /{name.replace('_', '-')}\n{annotations}$c$;\n"
    )


def strict(head: str, annotation: str, expression: str) -> str:
    name = head.split("(")[0]
    return (
        f"create function {head} returns text strict language sql as $$ select {expression} $$;\n"
        f"comment on function {name} is $c$HTTP GET /{name.replace('_', '-')}\n{annotation}$c$;\n"
    )


def schema(url: str) -> str:
    return (
        http_type("plain", f"GET {url}/json")
        + caller("get_plain", "_r plain")
        + http_type(
            "placed",
            f"GET {url}/echo/{{_id}}?n={{NAME}}&x={{unknown}}&t={{tenant}}\nX-Id: {{_id}}\nAccept: text/x",
            f"{TYPE}, tenant text",
        )
        + caller("get_placed", "_id int, _name text, _r placed")
        + http_type(
            "posted",
            f'POST {url}/echo\nContent-Type: text/plain; charset=utf-8\nContent-Language: de\n\n{{_t}} {{!_n:none}} {{}} {{"a": 1}}\nsecond',
        )
        + caller("get_posted", "_t text, _n text default null, _r posted default null")
        + http_type("deflt", f'PUT {url}/echo\n\n{{"a":"{{_a}}"}}')
        + caller("get_deflt", "_a text, _r deflt")
        + http_type("failing", f"GET {url}/status?s={{_s}}")
        + caller("get_failing", "_s int, _r failing")
        + http_type("patient", f"@retry_delay 10ms, 20ms on 429, 503\nGET {url}/retried?k={{_k}}")
        + caller("get_patient", "_k text, _r patient")
        + http_type("any_code", f"retry_delay 1ms, 1ms, 1ms\nGET {url}/flaky?k={{_k}}")
        + caller("get_any_code", "_k text, _r any_code")
        + http_type("slow", f"timeout 0.2s\nGET {url}/silent")
        + caller("get_slow", "_r slow")
        + http_type("slow_then_good", f"timeout = 300ms\n# retry_delay: 10ms\nGET {url}/slow-then-good")
        + caller("get_slow_then_good", "_r slow_then_good")
        + http_type("unreachable", "retry_delay 1ms\nGET http://127.0.0.1:1/x")
        + caller("get_unreachable", "_r unreachable")
        + http_type("invalid", "retry_delay 1s\nGET ftp://x/y")
        + caller("get_invalid", "_r invalid")
        + http_type("unknown_host", "GET http://no-such-host.invalid/")
        + caller("get_unknown_host", "_r unknown_host")
        + http_type("first", f"GET {url}/meet?who=a")
        + http_type("second", f"GET {url}/meet?who=b")
        + "create function get_both(_one first, _two second, _again first) returns text language sql as\n"
        + "$$ select concat_ws('|', (_one).body, (_two).body, (_again).body) $$;\n"
        + "comment on function get_both is 'HTTP GET /get-both';\n"
        + http_type("texts", f"GET {url}/json", "status_code text, success text, body json, headers text")
        + "create function get_texts(_r texts) returns text language sql as\n"
        + "$$ select concat_ws('|', (_r).status_code, (_r).success, (_r).body ->> 'a', (_r).headers) $$;\n"
        + "comment on function get_texts is 'HTTP GET /get-texts';\n"
        + http_type("strict_type", f"GET {url}/json")
        + "create function get_strict(_r strict_type) returns text strict language sql as $$ select (_r).body $$;\n"
        + "comment on function get_strict is 'HTTP GET /get-strict';\n"
        + http_type("strict_resolved", f"GET {url}/echo?t={{_token}}")
        + strict("get_strict_resolved(_token text, _r strict_resolved)", "_token = select 'tok-2'", "(_r).body")
        + strict("get_strict_null(_token text, _r strict_resolved)", "_token = select null::text", "(_r).body")
        + strict("get_strict_proxied(_r strict_type, _proxy_body text)", f"proxy {url}", "(_r).body || _proxy_body")
        + http_type("not_json", f"GET {url}/words", "body json")
        + "create function get_not_json(_r not_json) returns text language sql as $$ select (_r).body::text $$;\n"
        + "comment on function get_not_json is 'HTTP GET /get-not-json';\n"
        + http_type("binary_type", f"GET {url}/bytes", "body bytea")
        + "create function get_binary(_r binary_type) returns text language sql as $$ select encode((_r).body, 'hex') $$;\n"
        + "comment on function get_binary is 'HTTP GET /get-binary';\n"
        + http_type("resolved_first", f"GET {url}/echo?t={{_token}}")
        + caller("get_resolved", "_token text, _r resolved_first", "_token = select 'tok-' || 1")
        + http_type("kept_encoding", f"GET {url}/echo?q={{_q}}")
        + caller("get_encoded", "_q text, _r kept_encoding")
        + http_type("split", f"GET {url}/echo\nX-Value: {{_v}}")
        + caller("get_split", "_v text, _r split")
        + http_type("in_env", f"GET {url}/echo\nX-Key: {{outbound_key}}\nX-Other: {{!OUTBOUND_NONE:else}}")
        + caller("get_env", "_r in_env")
        + http_type("inside_good", "GET /inner/{_n}?twice=1")
        + caller("get_inside", "_n text, _r inside_good")
        + http_type("inside_missing", "GET /nowhere")
        + caller("get_inside_missing", "_r inside_missing")
        + http_type("inside_posted", 'POST /inner-post\nX-Given: {_n}\n\n{"text": "{_n}"}')
        + caller("get_inside_posted", "_n text, _r inside_posted")
        + http_type("inside_circle", "GET /get-circle", "body text, status_code int, error_message text")
        + "create function get_circle(_r inside_circle) returns text language sql as "
        + "$$ select coalesce((_r).error_message, (_r).body) $$;\ncomment on function get_circle is 'HTTP GET /get-circle';\n"
        + "create function inner_one(_n text) returns text language sql stable as $$ select 'inner ' || _n $$;\n"
        + "comment on function inner_one is 'HTTP GET /inner/{_n}\ninternal';\n"
        + "create function inner_one(_n text, _twice int) returns text language sql stable as $$ select 'inner ' || _n || _twice $$;\n"
        + "comment on function inner_one(text, int) is 'HTTP GET /inner/{_n}\ninternal';\n"
        + "create function inner_post(_text text, _headers json default null) returns json language sql as\n"
        + "$$ select json_build_object('text', _text, 'given', _headers ->> 'X-Given') $$;\n"
        + "comment on function inner_post is 'HTTP POST /inner-post\ninternal_only';\n"
        + http_type("odd", f"GET {url}/odd/{{_p}}")
        + caller("get_odd", "_p text, _r odd")
        + http_type("stay", f"GET {url}/stay")
        + caller("get_stay", "_r stay")
    )


class Counted:
    """Responds in turn, for each value of the query."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = answers
        self._count: dict[str, int] = {}

    def __call__(self, request: Seen, _connection: socket.socket) -> bytes:
        number = self._count[request.target] = self._count.get(request.target, 0) + 1
        return self._answers[min(number, len(self._answers)) - 1]


@pytest.fixture(scope="module")
def prepared_upstream(upstream: Upstream) -> Upstream:
    """Provide the upstream with its behaviours."""
    upstream.on("/json", answer('{"a":1}', headers=[("X-One", "1"), ("x-two", "a"), ("X-Two", "b")]))
    upstream.on("/words", answer("not json", content_type="text/plain"))
    upstream.on("/get-strict-proxied", answer("words", content_type="text/plain"))
    upstream.on("/odd/way", answer(b"", 302, [("Location", "http://[::1")]))
    upstream.on("/odd/time", answer(b"", 503, [("Retry-After", f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT")]))
    upstream.on("/odd/text", answer(b"+2AA-", content_type="text/plain; charset=utf-7"))
    upstream.on("/odd/charset", answer(b"one-two", content_type="text/plain; charset=punycode"))
    upstream.on("/odd/files", answer(gzip.compress(b"") * 10_001, headers=[("Content-Encoding", "gzip")]))
    upstream.on("/bytes", answer(b"\x00\xff\x01", content_type="application/octet-stream"))
    upstream.on("/status", lambda request, _: answer({"s": 1}, int(request.target.partition("=")[2])))
    upstream.on("/retried", Counted(answer({}, 503), answer({}, 429), answer({"n": 3})))
    upstream.on("/flaky", Counted(answer({}, 500), answer({}, 404), answer({"n": 3})))

    def silent(_seen: Seen, _connection: socket.socket) -> None:
        upstream.released.wait(60)

    upstream.on("/silent", silent)
    upstream.on("/stay", silent)
    waited = iter([True])

    def slow_then_good(_seen: Seen, _connection: socket.socket) -> bytes | None:
        if next(waited, False):
            upstream.released.wait(5)
        return answer({"good": 1})

    upstream.on("/slow-then-good", slow_then_good)
    meeting: list[str] = []

    def respond_when_both_arrived(request: Seen, _connection: socket.socket) -> bytes:
        """Respond when both requests are there: only concurrent requests get a response."""
        meeting.append(request.target)
        wait_until(lambda: len(set(meeting)) == 2, "both requests have come")
        return answer(request.target[-1], content_type="text/plain")

    upstream.on("/meet", respond_when_both_arrived)
    for path in ("/echo/7", "/echo"):
        upstream.on(
            path,
            lambda request, _: answer(
                f"{request.method} {request.target} {request.header('x-id')} {request.header('content-type')} "
                f"{request.header('content-language')} {request.header('x-key')} {request.header('x-other')} {request.body.decode()}",
                content_type="text/plain",
            ),
        )
    return upstream


@pytest.fixture(scope="module")
def service(
    database: Database, serve: Serve, prepared_upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Service:
    folder = tmp_path_factory.mktemp("sql")
    write_files(folder, {
        "reply.sql": "-- HTTP GET /file-reply\n-- @param $1 reply plain\n-- @param $2 note\n"
                     "select ($1::plain).body, ($1::plain).status_code, ($1::plain).success, $2 as note;",
        "named.sql": "-- HTTP GET /file-named\n-- @param :answer answer public.words\n"
                     "select (:answer::words).body as said, :n::int as n;",
    })  # fmt: skip
    sql = schema(prepared_upstream.url) + http_type(
        "words", f"GET {prepared_upstream.url}/lines", "error_message text, body text"
    )
    prepared_upstream.on("/lines", answer('back\\slash "quoted"\nline, (end)', content_type="text/plain"))
    settings = {
        "Service:HttpClientOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:AvailableEnvVars:0": "OUTBOUND_KEY",
        "Service:AvailableEnvVars:1": "OUTBOUND_NONE",
        **file_settings(folder),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUTBOUND_KEY", "key-7")
        patch.delenv("OUTBOUND_NONE", raising=False)
        return serve(database, sql, settings, workers=2)


JSON_REPLY = '{"a":1}|200|t|NULL|application/json'


@pytest.mark.parametrize(
    "context",
    cases([
        ("GET /get-plain", f"200T {JSON_REPLY}"),
        # Clients cannot set attributes of the response, but others.
        ("GET /get-plain?rBody=evil&rStatusCode=7", f"200T {JSON_REPLY}"),
        ("GET /get-plain?rStatusCode=x", f"200T {JSON_REPLY}"),
        ("GET /get-plain?unknown=1", "404 unknown parameter"),
        ("GET /get-placed?id=7&name=a&rTenant=t%201", "200T GET /echo/7?n=a&x=%7Bunknown%7D&t=t%201 7 None None None None |200|t|NULL|text/plain"),
        ("GET /get-posted?t=%C3%BC", '200T POST /echo None text/plain; charset=utf-8 None None None \u00fc none {} {"a": 1}\nsecond|200|t|NULL|text/plain'),
        ("GET /get-posted?t=%7B%7D&n=7", '200T POST /echo None text/plain; charset=utf-8 None None None {} 7 {} {"a": 1}\nsecond|200|t|NULL|text/plain'),
        ("GET /get-deflt?a=x", '200T PUT /echo None application/json None None None {"a":"x"}|200|t|NULL|text/plain'),
        ("GET /get-failing?s=404", '200T {"s": 1}|404|f|NULL|application/json'),
        ("GET /get-failing?s=500", '200T {"s": 1}|500|f|NULL|application/json'),
        ("GET /get-failing?s=299", '200T {"s": 1}|299|t|NULL|application/json'),
        ("GET /get-patient?k=1", '200T {"n": 3}|200|t|NULL|application/json'),
        ("GET /get-any-code?k=1", '200T {"n": 3}|200|t|NULL|application/json'),
        ("GET /get-slow", "200T NULL|408|f|Request timed out after 0.2 seconds"),
        ("GET /get-slow-then-good", '200T {"good": 1}|200|t|NULL|application/json'),
        ("GET /get-unreachable", "200T NULL|0|f|no connection to 127.0.0.1:1: Connection refused"),
        ("GET /get-invalid", "200T NULL|0|f|the scheme ftp is neither http nor https"),
        ("GET /get-both", "200T a|b|a"),
        ("GET /get-texts", '200T 200|true|1|{"X-One":"1","x-two":"a, b","Content-Length":"7","Content-Type":"application/json"}'),
        ("GET /get-strict", '200T {"a":1}'),
        ("GET /get-strict-resolved", "200T GET /echo?t=tok-2 None None None None None "),
        ("GET /get-strict-null", "204"),
        ("GET /get-strict-proxied", '200T {"a":1}words'),
        ("GET /get-not-json", "400 22P02|invalid input syntax for type json"),
        ("GET /get-odd?p=way", "200T |302|f|NULL|application/json"),
        ("GET /get-odd?p=time", "200T |503|f|NULL|application/json"),
        ("GET /get-odd?p=text", "200T ?|200|t|NULL|text/plain; charset=utf-7"),
        ("GET /get-odd?p=charset", "200T one-two|200|t|NULL|text/plain; charset=punycode"),
        ("GET /get-odd?p=files", "200T NULL|0|f|the response consists of more than 10000 compressed files"),
        ("GET /get-binary", "200T 00ff01"),
        ("GET /get-resolved", "200T GET /echo?t=tok-1 None None None None None |200|t|NULL|text/plain"),
        ("GET /get-resolved?token=evil", "200T GET /echo?t=tok-1 None None None None None |200|t|NULL|text/plain"),
        ("GET /get-encoded?q=a%20b%25%C3%BC%26c=d", "200T GET /echo?q=a%20b%25%C3%BC&c=d None None None None None |200|t|NULL|text/plain"),
        ("GET /get-encoded?q=%2541", "200T GET /echo?q=%41 None None None None None |200|t|NULL|text/plain"),
        ("GET /get-split?v=a%0D%0AX-Evil:1", "200T NULL|0|f|the value of the header X-Value holds a line end"),
        ("GET /get-env", "200T GET /echo None None None key-7 else |200|t|NULL|text/plain"),
        ("GET /get-inside?n=x", "200T inner x1|200|t|NULL|text/plain"),
        ("GET /inner/x", "404 there is no endpoint"),
        ("GET /get-inside-posted?n=hi", '200T {"text" : "hi", "given" : "hi"}|200|t|NULL|application/json'),
        ("GET /get-circle", "200T endpoints of this service call each other more than 8 times deep"),
        ("GET /file-reply?note=n", '200 [{"body":"{\\"a\\":1}","statusCode":200,"success":true,"note":"n"}]'),
        ("GET /file-reply?note=n&reply=(evil)", '200 [{"body":"{\\"a\\":1}","statusCode":200,"success":true,"note":"n"}]'),
        ("GET /file-named?n=3", '200 [{"said":"back\\\\slash \\"quoted\\"\\nline, (end)","n":3}]'),
    ]),
)  # fmt: skip
def test_http_type_fields_receive_the_response(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_an_unknown_host_is_a_network_error(service: Service) -> None:
    text = service.get("/get-unknown-host").text
    assert text.startswith("NULL|0|f|the name no-such-host.invalid is not known")


def test_failed_internal_subrequest_reports_its_status(service: Service) -> None:
    text = service.get("/get-inside-missing").text
    assert '"status":404' in text
    assert text.endswith("|404|f|Internal request returned 404|application/problem+json")


def test_outgoing_request_is_cancelled_when_the_client_disconnects(
    service: Service, prepared_upstream: Upstream
) -> None:
    before = len(prepared_upstream.to("/stay"))
    with service.connect() as connection:
        connection.sendall(b"GET /get-stay HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: len(prepared_upstream.to("/stay")) > before, "the call is under way")
        port = prepared_upstream.to("/stay")[-1].peer
    wait_until(lambda: not _is_open(port, prepared_upstream.port), "its connection is closed", 5)


def _is_open(port: int, server: int) -> bool:
    import psutil

    return any(
        item.laddr
        and item.raddr
        and item.laddr.port == port
        and item.raddr.port == server
        and item.status == "ESTABLISHED"
        for item in psutil.net_connections("tcp")
    )
