"""Exports: rows as CSV, JSON lines or a spreadsheet, if a request asks for them by Accept or by a parameter."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
from pathlib import Path

import httpx
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type crate as (width int, height int);
create table product (id int primary key, name text, price numeric, tags text[], extra jsonb, added timestamptz);
insert into product values
  (1, 'Horn, "loud"', 10.50, array['a','b'], '{"x": 1}', '2026-01-02 03:04:05+00'),
  (2, E'two\\nlines', null, null, null, null),
  (3, 'Ümlaut', 'NaN', '{}', '[]', null);
create function products(_from int default 1) returns setof product language sql stable as
$$ select * from product where id >= _from order by id $$;
comment on function products(int) is 'HTTP GET /products
X-Shop: 7';
create function searched(_name text) returns table (id int, name text) language sql stable as
$$ select id, name from product where name ilike '%' || _name || '%' order by id $$;
comment on function searched(text) is 'HTTP POST /search';
create function many(_count int) returns table ("lineNo" int, text text) language sql stable as
$$ select n, repeat('x', 50) from generate_series(1, _count) n $$;
comment on function many(int) is 'HTTP GET /many';
create function formatted(_format text) returns table (id int, f text) language sql stable as $$ select 1, _format $$;
comment on function formatted(text) is 'HTTP GET /formatted';
create function one() returns table (id int) language sql stable as $$ select 1 $$;
comment on function one() is 'HTTP GET /one
single';
create function scalar() returns int language sql stable as $$ select 1 $$;
comment on function scalar() is 'HTTP GET /scalar';
create function closed() returns table (id int) language sql stable as $$ select 1 $$;
comment on function closed() is 'HTTP GET /closed
authorize';
create function kept() returns table (at float) language sql as $$ select random() $$;
comment on function kept() is 'HTTP GET /kept
cached';
create function asked() returns table (id int, name text) language sql stable as 'select id, name from product';
comment on function asked() is 'HTTP GET /asked
queryable';
create table picture (id int primary key, format text);
insert into picture values (1, 'png'), (2, 'csv');
comment on table picture is 'HTTP GET /pictures
queryable';
create function nested() returns table (id int, size crate) language sql stable as $$ select 1, row(2, 3)::crate $$;
comment on function nested() is 'HTTP GET /nested
nested';
create function expanded() returns table (id int, size crate) language sql stable as $$ select 1, row(2, 3)::crate $$;
comment on function expanded() is 'HTTP GET /expanded';
create function stock(_shelf int) returns table (id int, shelf int) language sql stable as $$ select 1, _shelf $$;
comment on function stock(int) is 'HTTP GET /stock';
create function stock(_shelf int, _row int) returns table (id int, shelf int, line int) language sql stable as
$$ select 2, _shelf, _row $$;
comment on function stock(int, int) is 'HTTP GET /stock';
create function documents() returns table (id int, doc json) language sql stable as $$
  select 1, json_agg(v) from (values (1, E'a\\nb'), (2, 'c')) v(n, t)
  union all select 2, E'{"a":\\r\\n 1}'::json $$;
comment on function documents() is 'HTTP GET /documents';
create function nothing() returns table (id int, name text) language sql stable as $$ select 1, 'x' where false $$;
comment on function nothing() is 'HTTP GET /nothing';
"""
SQL += """
create table typed (
    small smallint, id int, big bigint, "real" real, double float8, yes boolean, day date, "time" time, at timestamp,
    at_tz timestamptz, name text, price numeric(10,2), free numeric, tags text[], extra jsonb);
insert into typed values
  (-1, 1, 9007199254740993, 0.5, 'infinity', true, '2026-01-02', '03:04:05.678', '2026-01-02 03:04:05.000001',
   '2026-01-02 03:04:05+02', E'Horn, "loud"\\r\\n', 10.5, 1.500, '{a,b}', '{"x": 1}');
insert into typed (id) values (null);
insert into typed (double, yes, name) values ('NaN', false, '');
comment on table typed is 'HTTP GET /typed';
create function odd() returns table (range tsrange, point point, list text[], "time" time, empty text, "none" text,
    yes boolean) language sql stable as $$
    select tsrange('2026-01-01', '2026-01-02'), point(1, 2), array['a,b'], time '03:04:05', '', null::text, true $$;
comment on function odd() is 'HTTP GET /odd';
create function nulls() returns table (a text) language sql stable as $$ values (null), (''), (null) $$;
comment on function nulls() is 'HTTP GET /nulls';
create function endless() returns table (day date) language sql stable as $$ select 'infinity'::date $$;
comment on function endless() is 'HTTP GET /endless';
"""
SETTINGS = {
    "Service:CrudSource:Enabled": "true",
    "Exports:Formats:0": "csv",
    "Exports:Formats:1": "jsonl",
    "Exports:Formats:2": "excel",
    "Exports:Formats:3": "parquet",
    "Exports:Enabled": "true",
    "Service:OpenApiOptions:Enabled": "true",
    "Service:OpenApiOptions:FileName": "null",
    "Service:RequiresAuthorization": "false",
    "Auth:BearerTokenAuth": "true",
    "CacheOptions:Enabled": "true",
}
FILES = {
    "crates.sql": """
-- HTTP GET /crates
-- queryable
select 1 as id, row(2, 3)::crate as outer_size, 'a' as name
union all select 2, null, 'b' order by 1;
""",
    "crate_table.sql": """
-- HTTP GET /crate-table
-- queryable
-- table_format = html
select 1 as id, row(2, 3)::crate as outer_size, 'a' as name;
""",
}
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        Path(folder, name).write_text(text)
    tables = {"Service:TableFormatOptions:Enabled": "true", "Service:TableFormatOptions:HtmlHeader": ""}
    settings = {**SETTINGS, **tables, "Service:SqlFileSource:FilePattern": f"{folder}/*.sql"}
    return serve(database, SQL, settings, workers=2)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_rows_are_exported_as_csv(service: Service) -> None:
    response = service.get("/products?format=csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert response.headers["content-disposition"] == 'attachment; filename="products.csv"'
    assert (response.headers["x-shop"], response.headers["vary"]) == ("7", "Accept")
    assert response.text.count("\r\n") >= 3
    assert rows_of(response.text) == [
        ["id", "name", "price", "tags", "extra", "added"],
        ["1", 'Horn, "loud"', "10.50", "{a,b}", '{"x": 1}', "2026-01-02 03:04:05+00"],
        ["2", "two\nlines", "", "", "", ""],
        ["3", "Ümlaut", "NaN", "{}", "[]", ""],
    ]
    assert rows_of(service.get("/products?format=csv&from=3").text)[1][0] == "3"
    assert rows_of(service.get("/products?from=3&format=CSV").text)[1][0] == "3"


def test_rows_are_exported_as_json_lines(service: Service) -> None:
    expected = service.get("/products").json()
    response = service.get("/products?format=jsonl")
    assert response.headers["content-type"] == "application/jsonl"
    assert response.text.endswith("}\n")
    assert [json.loads(line) for line in response.text.splitlines()] == expected
    lines = service.get("/products", headers={"accept": "application/x-ndjson"})
    assert (lines.headers["content-type"], lines.text) == ("application/x-ndjson", response.text)
    nested = service.get("/nested?format=jsonl")
    assert json.loads(nested.text) == {"id": 1, "size": {"width": 2, "height": 3}}


def test_a_row_is_one_line_although_its_json_has_line_feeds(service: Service) -> None:
    expected = service.get("/documents")
    assert "\n" in expected.text
    response = service.get("/documents?format=jsonl")
    assert [json.loads(line) for line in response.text.splitlines()] == expected.json()


def test_a_composite_of_a_file_is_one_column_of_a_table(service: Service) -> None:
    assert service.get("/crates").json()[0] == {"id": 1, "width": 2, "height": 3, "name": "a"}
    for query, titles, first in (
        ("", ("id", "outerSize", "name"), (1, "(2,3)", "a")),
        ("&select=name,outer_size", ("name", "outerSize"), ("a", "(2,3)")),
    ):
        sheet = openpyxl.load_workbook(io.BytesIO(service.get(f"/crates?format=excel{query}").content)).active
        assert sheet is not None
        assert list(sheet.iter_rows(values_only=True))[:2] == [titles, first]
        table = pq.read_table(io.BytesIO(service.get(f"/crates?format=parquet{query}").content))
        assert tuple(table.column_names) == titles
        assert tuple(table.to_pylist()[0].values()) == first
    shown = service.get("/crate-table?id=eq.1&select=outer_size,id").text
    assert shown == "<table><tr><th>outerSize</th><th>id</th></tr><tr><td>(2,3)</td><td>1</td></tr></table>"
    assert "<td>(2,3)</td><td>a</td>" in service.get("/crate-table").text


def test_rows_are_exported_as_a_spreadsheet(service: Service) -> None:
    response = service.get("/products", headers={"accept": EXCEL})
    assert response.headers["content-type"] == EXCEL
    assert response.headers["content-disposition"] == 'attachment; filename="products.xlsx"'
    sheet = openpyxl.load_workbook(io.BytesIO(response.content)).active
    assert sheet is not None
    assert [cell.value for cell in next(sheet.iter_rows())][:3] == ["id", "name", "price"]
    assert sheet.max_row == 4


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
        ("text/csv, application/json", "application/json"),
        ("text/csv;q=0.9, application/json", "application/json"),
        ("text/csv, application/json;q=0.9", "text/csv"),
        ("text/csv, */*;q=0.1", "text/csv"),
        ("TEXT/CSV", "text/csv"),
        ("text/csv;q=0", "application/json"),
        ("text/csv;q=0.5, application/jsonl;q=0.7", "application/jsonl"),
        ("text/csv, */*", "text/csv"),
        ("image/png", "application/json"),
        ("nonsense", "application/json"),
    ],
)
def test_accept_header_selects_the_format(service: Service, accept: str | None, kind: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    response = service.get("/many?count=1", headers=headers)
    assert response.headers["content-type"].partition(";")[0] == kind
    assert response.headers["vary"] == "Accept"


@pytest.mark.parametrize(
    ("name", "kind"), [("json", "application/json"), ("JSON", "application/json"), ("jsonl", "application/jsonl")]
)
def test_format_parameter_takes_precedence_over_accept(service: Service, name: str, kind: str) -> None:
    response = service.get(f"/many?count=1&format={name}", headers={"accept": "text/csv"})
    assert response.headers["content-type"].partition(";")[0] == kind


def test_values_of_every_type_are_exported_to_csv(service: Service) -> None:
    """Ranges, points and composites contain commas and quotes; NULL is no empty text."""
    text = service.get("/odd?format=csv").text
    assert rows_of(text) == [
        ["range", "point", "list", "time", "empty", "none", "yes"],
        ['["2026-01-01 00:00:00","2026-01-02 00:00:00")', "(1,2)", '{"a,b"}', "03:04:05", "", "", "t"],
    ]
    assert text.endswith(',"",,t\r\n')


def parquet(response: httpx.Response) -> pa.Table:
    assert response.headers["content-type"] == "application/vnd.apache.parquet"
    return pq.read_table(io.BytesIO(response.content))


def test_rows_are_exported_as_parquet(service: Service) -> None:
    response = service.get("/typed", headers={"accept": "application/vnd.apache.parquet"})
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == 'attachment; filename="typed.parquet"'
    table = parquet(response)
    assert dict(zip(table.schema.names, map(str, table.schema.types), strict=True)) == {
        "small": "int16", "id": "int32", "big": "int64", "real": "float", "double": "double", "yes": "bool",
        "day": "date32[day]", "time": "time64[us]", "at": "timestamp[us]", "atTz": "timestamp[us, tz=UTC]",
        "name": "string", "price": "decimal128(10, 2)", "free": "string", "tags": "string", "extra": "string",
    }  # fmt: skip
    first, second, third = table.to_pylist()
    assert first == {
        "small": -1, "id": 1, "big": 2**53 + 1, "real": 0.5, "double": math.inf, "yes": True,
        "day": datetime.date(2026, 1, 2), "time": datetime.time(3, 4, 5, 678000),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 1),
        "atTz": datetime.datetime(2026, 1, 2, 1, 4, 5, tzinfo=datetime.UTC),
        "name": 'Horn, "loud"\r\n', "price": decimal.Decimal("10.50"), "free": "1.500", "tags": "{a,b}",
        "extra": '{"x": 1}',
    }  # fmt: skip
    assert set(second.values()) == {None}
    assert (third["name"], third["yes"], math.isnan(third["double"])) == ("", False, True)


@pytest.mark.slow
def test_parquet_of_many_rows_is_streamed(service: Service) -> None:
    content = service.get("/many?count=600000&format=parquet").content
    file = pq.ParquetFile(io.BytesIO(content))
    assert file.metadata.num_rows == 600000
    assert file.metadata.num_row_groups > 1
    assert file.read(["lineNo"])["lineNo"].to_pylist() == [*range(1, 600001)]
    assert parquet(service.get("/nothing?format=parquet")).num_rows == 0
    assert parquet(service.get("/nulls?format=parquet")).to_pylist() == [{"a": None}, {"a": ""}, {"a": None}]


def test_values_without_a_parquet_representation_get_406(service: Service) -> None:
    detail = problem(service.get("/endless?format=parquet"), 406)["detail"]
    assert detail.startswith("the result has a value that Parquet cannot express: ")
    assert "infinity" in detail


def test_post_and_empty_results_are_exported(service: Service) -> None:
    response = service.post("/search", json={"name": "horn"}, headers={"accept": "text/csv"})
    assert rows_of(response.text) == [["id", "name"], ["1", 'Horn, "loud"']]
    assert service.post("/search?format=csv", json={"name": "horn"}).text == response.text
    assert rows_of(service.get("/nothing?format=csv").text) == [["id", "name"]]
    empty = service.get("/nothing?format=jsonl")
    assert (empty.status_code, empty.content) == (200, b"")


def test_exported_columns_have_the_names_of_json_members(service: Service) -> None:
    assert rows_of(service.get("/many?count=1&format=csv").text)[0] == ["lineNo", "text"]
    keys = list(service.get("/expanded").json()[0])
    assert rows_of(service.get("/expanded?format=csv").text) == [keys, ["1", "2", "3"]]


@pytest.mark.slow
def test_many_rows_are_streamed(service: Service) -> None:
    text = service.get("/many?count=200000&format=csv").text
    rows = rows_of(text)
    assert (len(rows), rows[-1][0]) == (200001, "200000")
    lines = service.get("/many?count=200000&format=jsonl").text.splitlines()
    assert (len(lines), json.loads(lines[-1])["lineNo"]) == (200000, 200000)


def test_exports_respect_access_caching_and_query_parameters(service: Service) -> None:
    problem(service.get("/closed?format=csv"), 401)
    first = service.get("/kept").json()
    assert service.get("/kept").json() == first
    assert service.get("/kept?format=jsonl").json() != first[0]
    assert service.get("/kept").json() == first
    response = service.get("/asked?id=gt.1&order=id.desc&select=id&format=csv")
    assert rows_of(response.text) == [["id"], ["3"], ["2"]]
    response = service.get("/asked?limit=1&format=jsonl")
    assert (response.text.count("\n"), "link" in response.headers) == (1, False)


def test_a_column_with_the_name_of_the_parameter_can_be_filtered(service: Service) -> None:
    assert service.get("/pictures?format=eq.png").json() == [{"id": 1, "format": "png"}]
    response = service.get("/pictures?format=eq.csv", headers={"accept": "text/csv"})
    assert rows_of(response.text) == [["id", "format"], ["2", "csv"]]
    problem(service.get("/pictures?format=csv"), 400)


def test_the_format_parameter_does_not_select_an_overload(service: Service) -> None:
    assert rows_of(service.get("/stock?shelf=2&format=csv").text) == [["id", "shelf"], ["1", "2"]]
    assert rows_of(service.get("/stock?format=csv&shelf=2&row=3").text) == [["id", "shelf", "line"], ["2", "2", "3"]]


def test_unsupported_formats_and_results_are_refused(service: Service) -> None:
    detail = problem(service.get("/products?format=pdf"), 400)["detail"]
    assert detail == "format 'pdf' is none of csv, jsonl, excel, parquet, json"
    assert service.get("/products?format=json").json() == service.get("/products").json()
    assert service.get("/formatted?format=csv").json() == [{"id": 1, "f": "csv"}]
    for path in ("/one", "/scalar"):
        problem(service.get(f"{path}?format=csv"), 404)
        assert "json" in service.get("/one", headers={"accept": "text/csv"}).headers["content-type"]
    problem(service.get("/nested?format=csv"), 400)


def test_exports_are_off_by_default(database: Database, serve_once: Serve) -> None:
    plain = serve_once(database, "", {"Service:RequiresAuthorization": "false"})
    problem(plain.get("/products?format=csv"), 404)
    response = plain.get("/products", headers={"accept": "text/csv"})
    assert response.headers["content-type"] == "application/json"
    assert "vary" not in response.headers


@pytest.mark.parametrize(
    ("path", "media_types", "by_parameter"),
    [
        ("/products", {"text/csv", "application/jsonl", "application/x-ndjson", EXCEL, PARQUET}, True),
        ("/formatted", {"text/csv", "application/jsonl", "application/x-ndjson", EXCEL, PARQUET}, False),
        ("/nested", {"application/jsonl", "application/x-ndjson"}, True),
        ("/one", set(), False),
    ],
)
def test_the_openapi_document_names_the_formats(
    service: Service, path: str, media_types: set[str], by_parameter: bool
) -> None:
    operation = service.get("/openapi.json").json()["paths"][path]["get"]
    assert operation["responses"]["200"]["content"].keys() == {"application/json", *media_types}
    choices = [item for item in operation.get("parameters", ()) if item["schema"].get("enum")]
    assert [item["name"] for item in choices] == (["format"] if by_parameter else [])
    for choice in choices:
        for name in choice["schema"]["enum"]:
            response = service.get(path, params={"format": name})
            assert response.headers["content-type"].partition(";")[0] in operation["responses"]["200"]["content"]
