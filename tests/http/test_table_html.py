"""Rows as an HTML table (formats-1 to formats-6, formats-1 to formats-9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

HTML = "text/html; charset=utf-8"
STYLE = (
    "<style>table{font-family:Calibri,Arial,sans-serif;font-size:11pt;border-collapse:collapse}"
    "th,td{border:1px solid #d4d4d4;padding:4px 8px}th{background-color:#f5f5f5;font-weight:600}</style>"
)
ON = {"Service:TableFormatOptions:Enabled": "true", "Service:CrudSource:Enabled": "true"}

SQL = """
create type gauge as (id int, label text);
create function shelves(format text default null) returns table (id int, shelf_title text) language sql stable
    as $$ values (1, 'A & B'), (2, '<b>"it''s"</b>') $$;
create function kinds() returns table (yes bool, no bool, nix text, at timestamp, list text[], doc jsonb, empty text)
    language sql stable as $$ values (true, false, null, timestamp '2024-01-15 10:30', array['a,b', '"'],
        '{"k": 1}'::jsonb, '') $$;
create function empty() returns table (id int, "Mixed Name" text) language sql stable as 'select 1, '''' where false';
create function one_gauge() returns gauge language sql stable as $$ select row(7, 'x')::gauge $$;
create function nested_gauges() returns table (n int, g gauge) language sql stable
    as $$ select 1, row(7, 'x')::gauge $$;
create function some_words() returns setof text language sql stable as $$ values ('<a>'), (null) $$;
create function first_only() returns table (n int) language sql stable as 'values (1), (2)';
create function a_value() returns int language sql stable as 'select 1';
create function nothing() returns void language sql volatile as '';
create function many(rows int) returns table (n int, pad text) language sql stable
    as $$ select n, repeat('<', 100) from generate_series(1, rows) n $$;
create function locked() returns table (n int) language sql stable as 'values (1)';
create function typed() returns table (n int) language sql stable as 'values (1)';
create function unnamed() returns table (n int) language sql stable as 'values (1)';
create table drawers (id int primary key);
insert into drawers values (1);
comment on function unnamed() is E'HTTP\\ntable_format =';
comment on table drawers is E'HTTP\\ntable_format = html\\nexcel_sheet = all';
comment on function shelves(text) is E'HTTP\\ntable_format = {format}';
comment on function kinds() is E'HTTP\\n@table_format = html';
comment on function empty() is E'HTTP\\ntable_format html';
comment on function one_gauge() is E'HTTP\\ntable_format = html';
comment on function nested_gauges() is E'HTTP\\nnested\\ntable_format = html';
comment on function some_words() is E'HTTP\\ntable_format = html';
comment on function first_only() is E'HTTP\\nsingle\\ntable_format = html';
comment on function a_value() is E'HTTP\\ntable_format = html';
comment on function nothing() is E'HTTP GET\\ntable_format = html';
comment on function many(int) is E'HTTP\\ntable_format = html';
comment on function locked() is E'HTTP\\nauthorize\\ntable_format = html';
comment on function typed() is E'HTTP\\nContent-Type: text/csv\\nX-Kind: table\\ntable_format = htlm';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, ON)


def table(head: str, *rows: str) -> str:
    return f"{STYLE}<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


SHELVES = table(
    "<th>id</th><th>shelfTitle</th>",
    "<td>1</td><td>A &amp; B</td>",
    "<td>2</td><td>&lt;b&gt;&quot;it's&quot;&lt;/b&gt;</td>",
)


def test_the_request_chooses_the_format(service: Service) -> None:
    assert answer(service.get("/api/shelves?format=html")) == (200, HTML, SHELVES)


@pytest.mark.parametrize("query", ["", "?format=", "?format=HTML", "?format=pdf"])
def test_an_unknown_format_is_json(service: Service, query: str) -> None:
    status, content_type, body = answer(service.get(f"/api/shelves{query}"))
    assert (status, content_type) == (200, JSON)
    assert body.startswith('[{"id":1,')


def test_cells_show_the_text_of_the_server(service: Service) -> None:
    head = "".join(f"<th>{name}</th>" for name in ("yes", "no", "nix", "at", "list", "doc", "empty"))
    row = (
        "<td>TRUE</td><td>FALSE</td><td></td><td>2024-01-15 10:30:00</td>"
        "<td>{&quot;a,b&quot;,&quot;\\&quot;&quot;}</td><td>{&quot;k&quot;: 1}</td><td></td>"
    )
    assert answer(service.get("/api/kinds")) == (200, HTML, table(head, row))


def test_an_empty_set_has_its_titles(service: Service) -> None:
    assert answer(service.get("/api/empty")) == (200, HTML, table("<th>id</th><th>Mixed Name</th>"))


def test_a_composite_is_flattened_into_cells(service: Service) -> None:
    assert service.get("/api/one-gauge").text == table("<th>id</th><th>label</th>", "<td>7</td><td>x</td>")
    expected = table("<th>n</th><th>id</th><th>label</th>", "<td>1</td><td>7</td><td>x</td>")
    assert service.get("/api/nested-gauges").text == expected


def test_values_without_a_name_are_titled_like_the_routine(service: Service) -> None:
    expected = table("<th>someWords</th>", "<td>&lt;a&gt;</td>", "<td></td>")
    assert service.get("/api/some-words").text == expected


def test_single_shows_the_first_row(service: Service) -> None:
    assert service.get("/api/first-only").text == table("<th>n</th>", "<td>1</td>")


def test_a_large_table_is_streamed_whole(service: Service) -> None:
    body = service.get("/api/many?rows=20000").text
    assert body.startswith(STYLE)
    assert body.endswith("</tr></table>")
    assert body.count("<tr>") == 20001
    assert body.count("&lt;") == 2_000_000


def test_table_format_of_results_without_rows_is_ignored_and_reported(service: Service) -> None:
    assert answer(service.get("/api/a-value")) == (200, "text/plain", "1")
    assert service.get("/api/nothing").status_code == 204
    service.wait_for_log("a_value(): table_format has no effect")
    service.wait_for_log("nothing(): table_format has no effect")


def test_an_unknown_table_format_is_json_and_reported(service: Service) -> None:
    response = service.get("/api/typed")
    assert answer(response) == (200, "text/csv", '[{"n":1}]')
    service.wait_for_log("'htlm' is none of html, excel")


def test_a_table_format_applies_to_operations_with_rows_only(service: Service) -> None:
    assert service.get("/api/drawers").text == table("<th>id</th>", "<td>1</td>")
    assert service.request("PUT", "/api/drawers", json={"id": 2}).status_code == 204
    log = [line for line in service.log.splitlines() if "public.drawers: " in line]
    (line,) = [line for line in log if "has no effect" in line]
    assert "excel_sheet has no effect: the endpoint gives no spreadsheets; table_format = excel makes it" in line


def test_a_format_without_a_name_is_logged(service: Service) -> None:
    assert answer(service.get("/api/unnamed"))[1] == JSON
    service.wait_for_log("public.unnamed(): a value is missing after the = (comment line: table_format =)")


def test_equal_keys_for_two_formats_end_the_start(database: Database, tmp_path: Path) -> None:
    values = {"ConnectionStrings:Default": database.conninfo, **ON, "Service:TableFormatOptions:HtmlKey": "excel"}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert "Service:TableFormatOptions:HtmlKey and ExcelKey are both 'excel'" in done.stderr


def test_html_tables_require_authorization(service: Service) -> None:
    problem(service.get("/api/locked"), 401)


def test_head_gives_the_header_fields_alone(service: Service) -> None:
    for path in ("/api/kinds", "/api/many?rows=20000"):
        response = service.request("HEAD", path)
        assert (response.status_code, response.headers["content-type"], response.content) == (200, HTML, b"")


def test_configuration_changes_key_header_and_footer(database: Database, service: Service, serve: Serve) -> None:
    """The fixture `service` loads the functions."""
    section = "Service:TableFormatOptions:"
    other = {section + "HtmlKey": "page", section + "HtmlHeader": "<h1>x</h1>", section + "HtmlFooter": "<p>end</p>"}
    custom = serve(database, settings={**ON, **other})
    expected = SHELVES.replace(STYLE, "<h1>x</h1>") + "<p>end</p>"
    assert custom.get("/api/shelves?format=page").text == expected
    assert answer(custom.get("/api/shelves?format=html"))[1] == JSON


def test_results_are_json_if_table_formats_are_disabled(database: Database, service: Service, serve: Serve) -> None:
    off = serve(database)
    assert answer(off.get("/api/first-only")) == (200, JSON, '{"n":1}')
    [result] = [line for line in off.log.splitlines() if "table_format has no effect, as it is switched off" in line]
    assert "first_only()" in result
    assert "(Service:TableFormatOptions:Enabled)" in result
