"""Each shape and format of a result, the same from every worker, over plain HTTP and over TLS with HTTP/2."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import openpyxl
import pytest

from tests.harness.database import Database
from tests.harness.each_worker import Way, ways
from tests.harness.expect import BYTES, JSON, PROBLEM, TEXT
from tests.harness.postgres import free_port
from tests.http.conftest import Serve
from tests.http.test_table_excel import XLSX
from tests.http.test_tls import settings

SQL = r"""
create type spot as (x int, label text);
create function rows() returns table (id int, name text, tags text[], home spot) language sql stable as
  $$ values (1, 'a "b" ☃', '{x,NULL}'::text[], row(4, 'in')::spot), (2, null, null, null) $$;
create function rows_nested() returns table (id int, home spot) language sql stable as 'select id, home from rows()';
create function bare() returns setof int language sql stable as 'values (3), (5)';
create function one_row() returns table (id int, name text) language sql stable as $$ values (1, 'a'), (2, 'b') $$;
create function a_text() returns text language sql stable as $$ select 'häl"lo' $$;
create function a_json() returns json language sql stable as $$ select '{"a": [1, null]}'::json $$;
create function an_array() returns int[] language sql stable as 'select array[1, null, 3]';
create function a_null() returns text language sql stable as 'select null::text';
create function nothing() returns void language sql as '';
create function lines() returns table (a int, b text) language sql stable as $$ values (1, 'x,y'), (2, null) $$;
create function bytes() returns setof bytea language sql stable as $$ values ('\x00ff'::bytea), ('\x0a'::bytea) $$;
create function picture() returns bytea language sql stable as $$ select '\x89504e47'::bytea $$;
create function sheet(_format text) returns table (id int, name text) language sql stable as
  $$ values (1, '<a & "b">'), (2, null) $$;
create function many() returns table (n int, t text) language sql stable as
  $$ select n, repeat('☃', 20) from generate_series(1, 30000) n $$;
create function many_lines() returns table (n int) language sql stable as 'select generate_series(1, 200000)';
create function many_bytes() returns setof bytea language sql stable as
  $$ select decode(repeat('00ff', 500), 'hex') from generate_series(1, 3000) $$;
create function refuse() returns int language plpgsql stable as $$ begin raise exception 'no more ☃'; end $$;

comment on function rows() is 'HTTP';
comment on function rows_nested() is E'HTTP\nnested';
comment on function bare() is 'HTTP';
comment on function one_row() is E'HTTP\nsingle\nX-Mark: yes';
comment on function a_text() is 'HTTP';
comment on function a_json() is 'HTTP';
comment on function an_array() is 'HTTP';
comment on function a_null() is E'HTTP\nresponse_null 204';
comment on function nothing() is 'HTTP GET';
comment on function lines() is E'HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns\nContent-Type: text/csv';
comment on function bytes() is 'HTTP';
comment on function picture() is E'HTTP\nContent-Type: image/png';
comment on function sheet(text) is E'HTTP\ntable_format = {_format}\nexcel_file_name = list';
comment on function many() is 'HTTP';
comment on function many_lines() is E'HTTP\nraw\nnew_line \\n';
comment on function many_bytes() is 'HTTP';
comment on function refuse() is 'HTTP';
create table thing (id int primary key, name text);
comment on table thing is 'HTTP';
insert into thing values (1, 'one');
"""

MANY = json.dumps(
    [{"n": n, "t": "☃" * 20} for n in range(1, 30001)], separators=(",", ":"), ensure_ascii=False
).encode()
HTML = "text/html; charset=utf-8"
TABLE = b"<table><tr><th>id</th><th>name</th></tr>\n<tr><td>1</td><td>&lt;a &amp; &quot;b&quot;&gt;</td></tr>"
ERROR = (
    '{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"no more ☃","status":400,"detail":"P0001"}'
)

ANSWERS: list[tuple[str, int, str | None, bytes]] = [
    (
        "rows",
        200,
        JSON,
        '[{"id":1,"name":"a \\"b\\" ☃","tags":["x",null],"x":4,"label":"in"},'
        '{"id":2,"name":null,"tags":null,"x":null,"label":null}]'.encode(),
    ),
    ("rows-nested", 200, JSON, b'[{"id":1,"home":{"x":4,"label":"in"}},{"id":2,"home":null}]'),
    ("bare", 200, JSON, b"[3,5]"),
    ("one-row", 200, JSON, b'{"id":1,"name":"a"}'),
    ("a-text", 200, TEXT, 'häl"lo'.encode()),
    ("a-json", 200, JSON, b'{"a": [1, null]}'),
    ("an-array", 200, JSON, b"[1,null,3]"),
    ("a-null", 204, None, b""),
    ("nothing", 204, None, b""),
    ("lines", 200, "text/csv", b'"a","b"\n1,"x,y"\n2,""'),
    ("bytes", 200, BYTES, b"\x00\xff\n"),
    ("picture", 200, "image/png", b"\x89PNG"),
    ("sheet?format=json", 200, JSON, b'[{"id":1,"name":"<a & \\"b\\">"},{"id":2,"name":null}]'),
    ("many", 200, JSON, MANY),
    ("many-lines", 200, JSON, "\n".join(map(str, range(1, 200001))).encode()),
    ("many-bytes", 200, BYTES, b"\x00\xff" * 500 * 3000),
    ("thing?id=1", 200, JSON, b'[{"id":1,"name":"one"}]'),
    ("refuse", 400, PROBLEM, ERROR.encode()),
]


@pytest.fixture(scope="module")
def everywhere(database: Database, serve: Serve, certificate: tuple[Path, Path]) -> Iterator[list[Way]]:
    port, secure = free_port(), free_port()
    service = serve(
        database,
        SQL,
        {
            "Urls": f"http://127.0.0.1:{port};https://127.0.0.1:{secure}",
            **settings(*certificate),
            "Service:TableFormatOptions:Enabled": "true",
            "Service:TableFormatOptions:HtmlHeader": "",
            "Service:CrudSource:Enabled": "true",
        },
        2,
        port,
    )
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with ExitStack() as stack:
        yield [
            *ways(service, f"http://127.0.0.1:{port}", "/api/bare", stack),
            *ways(service, f"https://127.0.0.1:{secure}", "/api/bare", stack, verify=context, http1=False, http2=True),
        ]


def test_both_workers_are_reached_over_both_protocols(everywhere: list[Way]) -> None:
    reached = sorted((way.version, way.worker) for way in everywhere)
    assert [version for version, _ in reached] == ["HTTP/1.1", "HTTP/1.1", "HTTP/2", "HTTP/2"]
    assert len({worker for _, worker in reached}) == 2


@pytest.mark.parametrize(("path", "status", "content_type", "body"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_response_is_the_same_over_all_connections(
    everywhere: list[Way], path: str, status: int, content_type: str | None, body: bytes
) -> None:
    for way in everywhere:
        response = way.client.get(f"/api/{path}")
        assert (response.status_code, response.headers.get("content-type")) == (status, content_type), way
        # Not one assertion: pytest would explain a difference in megabytes for minutes.
        assert len(response.content) == len(body), (way, response.content[:500])
        assert response.content[:2000] == body[:2000], way
        assert hash(response.content) == hash(body), way


def test_html_is_the_same_over_all_connections(everywhere: list[Way]) -> None:
    for way in everywhere:
        response = way.client.get("/api/sheet?format=html")
        assert (response.status_code, response.headers["content-type"]) == (200, HTML)
        assert response.content.replace(b"\n", b"").startswith(TABLE.replace(b"\n", b"")), response.text


def test_spreadsheet_is_the_same_over_all_connections(everywhere: list[Way]) -> None:
    for way in everywhere:
        response = way.client.get("/api/sheet?format=excel")
        assert (response.status_code, response.headers["content-type"]) == (200, XLSX)
        assert response.headers["content-disposition"] == 'attachment; filename="list.xlsx"'
        cells = list(openpyxl.load_workbook(io.BytesIO(response.content)).active.iter_rows(values_only=True))
        assert cells == [("id", "name"), (1, '<a & "b">'), (2, None)]


def test_comment_headers_are_sent_over_all_connections(everywhere: list[Way]) -> None:
    assert [way.client.get("/api/one-row").headers["x-mark"] for way in everywhere] == ["yes"] * 4


def test_head_response_is_the_same_over_all_connections(everywhere: list[Way]) -> None:
    for way in everywhere:
        response = way.client.head("/api/rows")
        assert (response.status_code, response.headers["content-type"], response.content) == (200, JSON, b"")


def test_request_body_is_read_over_all_connections(everywhere: list[Way]) -> None:
    for way in everywhere:
        row = {"id": 10, "name": "x" * 200_000}
        assert way.client.put("/api/thing/returning", json=row).json() == [row]
        assert way.client.delete("/api/thing/returning?id=10").json() == [row]
