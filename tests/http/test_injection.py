"""Values of requests reach PostgreSQL as parameters and never as SQL.

The server logs every statement. Values of requests may occur among the parameters, and in error messages, but in no
statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Upstream, echo
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

MARK = "zq9mark"
"""In every text of the corpus, and nowhere else."""

CORPUS = [
    f"{before}{MARK}{behind}"
    for before, behind in [
        ("'", ""),
        ("", "'"),
        ("'; drop table victim; --", ""),
        ("''; drop table victim; --", ""),
        ("\\'; drop table victim; --", ""),
        ('"; drop table victim; --', '"'),
        ("'); drop table victim; --", ""),
        ("')::text); drop table victim; --", ""),
        ("' or '1'='1", ""),
        ("1) or (1=1", ""),
        ("' || pg_read_file('/etc/passwd') || '", ""),
        ("' union select current_user --", ""),
        ("$$; drop table victim; $$", ""),
        ("$body$", "$body$"),
        ("$1", "$2"),
        ("E'\\x27", ""),
        ("U&'\\0027", ""),
        ("\\", "\\"),
        ("\\\\'", "\\\\'"),
        ("%27%20", "%00"),
        ("%s%(v)s", ""),
        ("{v}{_v}{$1}{!PATH}{!HOME:x}", "{"),
        (":v ?1 @v", ""),
        ("/*", "*/"),
        ("*/;", "/*"),
        ("--", "\n; drop table victim;"),
        ("\r\n; drop table victim; --", "\r\n"),
        ("\t\v\f\x1b\x01", "\x7f"),
        ("\u02bc\uff07\u2019\u2018; drop table victim; --", ""),
        ("\u2028\u2029\ufeff\U0001f600", "\ufffc"),
        ("null", ""),
        ("default, null) --", ""),
        ('{"a":1}', ""),
        ('{1,2},"', '\\"'),
        ("(1,2)", ')","('),
        ("[0:1]={", "}"),
        ("copy victim to program 'id' ", ""),
        ("commit; begin; ", ""),
        ("<script>alert(1)</script>", "&amp;"),
        ("a&b=c;d", "#e?f"),
    ]
]

SQL = """
create table victim (id int);
insert into victim values (1);
create type pair as (a text, b text);
create domain note as text;
create type mood as enum ('calm');
create function echo(_v text) returns text language sql stable as $$ select _v $$;
comment on function echo is 'HTTP GET /echo';
create function in_path(_v text) returns text language sql stable as $$ select _v $$;
comment on function in_path is 'HTTP GET /in-path/{_v}';
create function in_body(_v text) returns text language sql as $$ select _v $$;
comment on function in_body is 'HTTP POST /in-body';
create function in_raw_body(_v text) returns text language sql as $$ select _v $$;
comment on function in_raw_body is E'HTTP POST /in-raw-body\\nbody_parameter_name _v';
create function in_document(_v jsonb) returns text language sql as $$ select _v -> 'k' ->> 0 $$;
comment on function in_document is 'HTTP POST /in-document';
create function in_array(_v text[]) returns text language sql stable as $$ select _v[2] $$;
comment on function in_array is 'HTTP GET /in-array';
create function in_array_body(variadic _v text[]) returns text language sql as $$ select _v[2] $$;
comment on function in_array_body is 'HTTP POST /in-array';
create function in_composite(_v pair) returns text language sql stable as $$ select _v.b $$;
comment on function in_composite is 'HTTP GET /in-composite';
create function in_composite_body(_v pair) returns text language sql as $$ select _v.b $$;
comment on function in_composite_body is 'HTTP POST /in-composite';
create function in_composites(_v pair[]) returns text language sql as $$ select _v[2].a $$;
comment on function in_composites is 'HTTP POST /in-composites';
create function in_domain(_v note default null, _m mood default null) returns text language sql
  as $$ select _v::text $$;
comment on function in_domain is 'HTTP POST /in-domain';
create function unnamed(text) returns text language sql stable as $$ select $1 $$;
comment on function unnamed is 'HTTP GET /unnamed';
create function retyped(_v text) returns text language sql stable as $$ select _v $$;
comment on function retyped is E'HTTP GET /retyped\\nparam _v is w note default x';
create function in_headers(_headers json default null) returns text language sql stable
  as $$ select _headers ->> 'X-Value' $$;
comment on function in_headers is 'HTTP GET /in-headers';
create function in_setting() returns text language sql stable
  as $$ select current_setting('request.headers')::json ->> 'X-Value' $$;
comment on function in_setting is E'HTTP GET /in-setting\\nrequest_headers_mode context';
create procedure in_procedure(_v text) language plpgsql as $$ begin perform _v; end $$;
comment on procedure in_procedure is E'HTTP POST /in-procedure\\nrequest_headers_mode context\\ntimeout 5s';
create function placed(_v text) returns text language sql stable as $$ select _v $$;
comment on function placed is E'HTTP GET /placed\\nX-Value: {_v}\\nContent-Type: text/x-{_v}';
create function number(_n int, _d date default null) returns text language sql stable as $$ select 'ran' $$;
comment on function number is 'HTTP GET /number';
create function number_body(_n int, _l int[] default null) returns text language sql as $$ select 'ran' $$;
comment on function number_body is 'HTTP POST /number';
create function selected(_a text) returns text language sql as $$ select _a $$;
comment on function selected(text) is 'HTTP POST /selected';
create function selected(_a text, _b text) returns text language sql as $$ select _b $$;
comment on function selected(text, text) is 'HTTP POST /selected';
create function resolved(_v text, _r text default null) returns text language sql stable as $$ select _r $$;
comment on function resolved is E'HTTP GET /resolved\\n_r = select {_v}::text';
create table kept (id text primary key, note text);
comment on table kept is 'HTTP';
create function in_cookie(_headers json default null) returns text language sql stable
  as $$ select _headers ->> 'Cookie' $$;
comment on function in_cookie is 'HTTP GET /in-cookie';
create function of_upload(_meta json default null) returns json language sql as $$ select _meta -> 0 $$;
comment on function of_upload is E'HTTP POST /of-upload\\nupload for large_object\\nparam _meta is upload metadata';
create function sent_on(_v text, _proxy_body json default null) returns text language sql stable
  as $$ select _proxy_body ->> 'target' $$;
comment on function sent_on is E'HTTP GET /sent-on/{_v}\\nproxy';
"""

SCHEMA = "in'j\"; drop table victim; --"
COMPOSITE = "t'\"\\"
ATTRIBUTE = "a'\"); drop table victim; --"
FUNCTION = "f'\"()\\; --"
FIRST = "p'\"$1 => "
SECOND = "q\"'x"
COLUMN = "c'\"; drop table victim; --"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_TYPE = f"{_quoted(SCHEMA)}.{_quoted(COMPOSITE)}"
_NAME = f"{_quoted(SCHEMA)}.{_quoted(FUNCTION)}"
ODD_NAMES = f"""
create schema {_quoted(SCHEMA)};
create type {_TYPE} as ({_quoted(ATTRIBUTE)} text);
create function {_NAME}({_quoted(FIRST)} text, {_quoted(SECOND)} {_TYPE}, _many {_TYPE}[] default null)
  returns table ({_quoted(COLUMN)} text) language sql as $$ select $1 || ($2).{_quoted(ATTRIBUTE)} $$;
comment on function {_NAME} is 'HTTP POST /odd-names';
"""

Send = Callable[[Service, str], httpx.Response]


def _json(path: str, make: Callable[[str], object]) -> Send:
    return lambda service, text: service.post(path, json=make(text))


def _query(path: str, key: str = "v") -> Send:
    return lambda service, text: service.get(f"{path}?{quote_plus(key)}={quote_plus(text)}")


def _headers(path: str) -> Send:
    return lambda service, text: service.get(path, headers={"x-value": text})


WAYS: dict[str, Send] = {
    "query": _query("/echo"),
    "path": lambda service, text: service.get(f"/in-path/{quote(text, safe='')}"),
    "body": _json("/in-body", lambda text: {"v": text}),
    "form": lambda service, text: service.post("/in-body", data={"v": text}),
    "multipart": lambda service, text: service.post("/in-body", files=[("v", (None, text))]),
    "raw body": lambda service, text: service.post("/in-raw-body", content=text.encode()),
    "document": _json("/in-document", lambda text: {"v": {"k": [text]}}),
    "array in query": lambda service, text: service.get(f"/in-array?v=x&v={quote_plus(text)}"),
    "array in body": _json("/in-array", lambda text: {"v": [None, text]}),
    "field in query": _query("/in-composite", "vB"),
    "object in query": lambda service, text: service.get("/in-composite", params={"v": json.dumps({"b": text})}),
    "field in body": _json("/in-composite", lambda text: {"vB": text}),
    "object in body": _json("/in-composite", lambda text: {"v": {"a": text, "b": text}}),
    "composite in array": _json("/in-composites", lambda text: {"v": [None, {"a": text, "b": text}]}),
    "domain": _json("/in-domain", lambda text: {"v": text}),
    "unnamed": _query("/unnamed", "$1"),
    "renamed": _query("/retyped", "w"),
    "overload": _json("/selected", lambda text: {"a": "x", "b": text}),
    "placeholder": _query("/placed"),
    "expression": _query("/resolved"),
}

REFUSED: dict[str, Send] = {
    "unknown key": lambda service, text: service.get(f"/echo?v=x&{quote_plus(text)}=1"),
    "unknown member": _json("/in-body", lambda text: {"v": "x", text: 1}),
    "unknown attribute": _json("/in-composite", lambda text: {"v": {text: "x"}}),
    "unknown form field": lambda service, text: service.post("/in-body", data={"v": "x", text: "1"}),
    "overload": _json("/selected", lambda text: {text: "x"}),
    "number": _query("/number", "n"),
    "number in body": _json("/number", lambda text: {"n": text}),
    "numbers in body": _json("/number", lambda text: {"n": 1, "l": [text]}),
    "array literal": _json("/number", lambda text: {"n": 1, "l": f"{{{text}}}"}),
    "enum": _json("/in-domain", lambda text: {"m": text}),
    "composite": _json("/in-composites", lambda text: {"v": [text]}),
    "unknown filter": lambda service, text: service.get(f"/api/kept?{quote_plus(text)}=1"),
    "unknown column": lambda service, text: service.request("PUT", "/api/kept", json={"id": "x", text: 1}),
    "route": lambda service, text: service.get(f"/{quote(text, safe='')}"),
    "method": lambda service, text: service.request(f"{MARK}-{len(text)}", "/echo"),
}


@pytest.fixture(scope="module")
def watched(database: Database) -> Database:
    database.execute(f"alter database {database.name} set log_statement = 'all'")
    return database


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    server.on("*", echo)
    yield server
    server.close()


@pytest.fixture(scope="module")
def service(watched: Database, serve: Serve, upstream: Upstream) -> Service:
    settings = {
        "Service:CrudSource:Enabled": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
    }
    return serve(watched, SQL + ODD_NAMES, settings)


@pytest.fixture(scope="module", autouse=True)
def statements_hold_no_value_of_a_request(watched: Database, service: Service) -> Iterator[None]:
    """Check the log after all tests of this module in this process; one more request proves that it is the log of the
    server."""
    yield
    last = f"{MARK} sent last"
    assert service.get("/echo", params={"v": last}).text == last
    entries = list(_log_of(watched))
    statements = [text for kind, text in entries if kind in ("execute", "statement", "STATEMENT")]
    parameters = [text for kind, text in entries if kind == "DETAIL"]
    assert [text for text in statements if "echo" in text]
    assert [text for text in statements if MARK in text] == []
    assert [text for text in parameters if last in text]
    assert watched.fetch("select id from victim") == [(1,)]


def _log_of(database: Database) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each entry about this database. Further lines of an entry begin with a tab."""
    log = Path(database.server.folder, "server.log").read_text(errors="replace")
    entry = re.compile(rf"^\S+ \S+ \S+ \[\d+\] {database.name} (LOG|DETAIL|STATEMENT|ERROR|CONTEXT): +(.*)")
    kind, lines = "", []
    for line in log.split("\n"):
        if line.startswith("\t"):
            lines.append(line)
            continue
        yield kind, "\n".join(lines)
        match = entry.match(line)
        kind, lines = ("", [line]) if match is None else (_kind(match[1], match[2]), [match[2]])
    yield kind, "\n".join(lines)


def _kind(level: str, text: str) -> str:
    if level != "LOG":
        return level
    return "execute" if text.startswith(("execute ", "parse ", "bind ")) else text.partition(":")[0]


@pytest.mark.parametrize("way", WAYS)
def test_every_text_is_received_unchanged(service: Service, way: str) -> None:
    for text in CORPUS:
        if way == "path" and "/" in text:
            continue  # another path
        response = WAYS[way](service, text)
        assert (response.status_code, response.content.decode()) == (200, text), repr(text)


@pytest.mark.parametrize("way", ["/in-headers", "/in-setting"])
def test_header_values_are_received_unchanged(service: Service, way: str) -> None:
    for text in CORPUS:
        if text.isascii() and text.isprintable():
            assert _headers(way)(service, text).text == text.strip()


@pytest.mark.parametrize("way", REFUSED)
def test_texts_for_other_types_get_a_proper_error(service: Service, way: str) -> None:
    for text in CORPUS:
        response = REFUSED[way](service, text)
        assert response.status_code in (400, 404, 405, 500), repr(text)
        problem = response.json()
        if response.status_code == 500:
            assert re.fullmatch(r"[0-9A-Z]{5}|parameter '.*", problem["detail"], re.DOTALL), problem


def test_procedure_receives_value_and_settings_as_parameters(service: Service) -> None:
    for text in CORPUS:
        headers = {"x-value": text} if text.isascii() and text.isprintable() else {}
        assert service.post("/in-procedure", json={"v": text}, headers=headers).status_code == 204


def test_header_placeholder_value_cannot_inject_headers(service: Service) -> None:
    for text in CORPUS:
        response = _query("/placed")(service, text)
        assert len(response.headers.get_list("x-value")) == 1
        assert "\n" not in response.headers["content-type"]


def test_catalogue_names_are_quoted(service: Service) -> None:
    for text in CORPUS:
        sent = {FIRST: text, SECOND: {ATTRIBUTE: text}, "many": [{ATTRIBUTE: text}]}
        response = service.post("/odd-names", json=sent)
        assert response.status_code == 200, response.text
        assert response.json() == [{COLUMN: text + text}]


@pytest.mark.slow
def test_table_columns_and_filters_hold_values_unchanged(service: Service) -> None:
    for text in CORPUS:
        row = {"id": text, "note": text}
        assert service.request("PUT", "/api/kept", json=row).status_code == 204
        again = service.request("PUT", "/api/kept/on-conflict-do-update/returning", json=row)
        changed = service.post("/api/kept/returning", json=row)
        for result in (
            again,
            changed,
            service.get("/api/kept", params=row),
            service.get("/api/kept", params={"id": text}),
        ):
            assert (result.status_code, result.json()) == (200, [row]), repr(text)
        deleted = service.request("DELETE", "/api/kept/returning", params=row)
        assert deleted.json() == [row]
    assert service.get("/api/kept").json() == []


def test_cookie_values_are_received_unchanged(service: Service) -> None:
    for text in CORPUS:
        if text.isascii() and text.isprintable():
            assert service.get("/in-cookie", headers={"cookie": f"v={text}"}).text == f"v={text}".strip()


def test_upload_metadata_is_passed_as_a_parameter(service: Service) -> None:
    """The client escapes quotes and line breaks of names."""
    for text in CORPUS:
        kind = f"text/plain; a={text}" if text.isascii() and text.isprintable() else "text/plain"
        response = service.post("/of-upload", files=[("file", (text, b"x", kind)), (text, (None, "x"))])
        assert response.status_code in (200, 400, 404), response.text
        alone = service.post("/of-upload", files=[("file", (text, b"x", kind))])
        assert alone.status_code == 200, alone.text
        if "\\" not in text and "/" not in text:  # of a path, its last part is the name
            assert MARK in alone.json()["fileName"]


def test_proxied_path_value_stays_one_encoded_segment(service: Service) -> None:
    for text in CORPUS:
        if "/" in text:
            continue  # another path
        target = service.get(f"/sent-on/{quote(text, safe='')}").text
        assert unquote(target) == f"/sent-on/{text}"
        assert (target.count("/"), "?" in target) == (2, False)
