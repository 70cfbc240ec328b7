"""Exports: rows as CSV, JSON lines or a spreadsheet, if a request asks for them by Accept or by a parameter."""

from __future__ import annotations

import csv
import io
import json

import openpyxl
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
create function nested() returns table (id int, size crate) language sql stable as $$ select 1, row(2, 3)::crate $$;
comment on function nested() is 'HTTP GET /nested
nested';
create function expanded() returns table (id int, size crate) language sql stable as $$ select 1, row(2, 3)::crate $$;
comment on function expanded() is 'HTTP GET /expanded';
create function nothing() returns table (id int, name text) language sql stable as $$ select 1, 'x' where false $$;
comment on function nothing() is 'HTTP GET /nothing';
"""
SETTINGS = {
    "Exports:Enabled": "true",
    "Service:RequiresAuthorization": "false",
    "Auth:BearerTokenAuth": "true",
    "CacheOptions:Enabled": "true",
}
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_csv(service: Service) -> None:
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


def test_json_lines(service: Service) -> None:
    expected = service.get("/products").json()
    response = service.get("/products?format=jsonl")
    assert response.headers["content-type"] == "application/jsonl"
    assert response.text.endswith("}\n")
    assert [json.loads(line) for line in response.text.splitlines()] == expected
    lines = service.get("/products", headers={"accept": "application/x-ndjson"})
    assert (lines.headers["content-type"], lines.text) == ("application/x-ndjson", response.text)
    nested = service.get("/nested?format=jsonl")
    assert json.loads(nested.text) == {"id": 1, "size": {"width": 2, "height": 3}}


def test_a_spreadsheet(service: Service) -> None:
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
def test_the_format_by_accept(service: Service, accept: str | None, kind: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    response = service.get("/many?count=1", headers=headers)
    assert response.headers["content-type"].partition(";")[0] == kind
    assert response.headers["vary"] == "Accept"


def test_posts_and_empty_results(service: Service) -> None:
    response = service.post("/search", json={"name": "horn"}, headers={"accept": "text/csv"})
    assert rows_of(response.text) == [["id", "name"], ["1", 'Horn, "loud"']]
    assert service.post("/search?format=csv", json={"name": "horn"}).text == response.text
    assert rows_of(service.get("/nothing?format=csv").text) == [["id", "name"]]
    empty = service.get("/nothing?format=jsonl")
    assert (empty.status_code, empty.content) == (200, b"")


def test_columns_have_the_names_of_json(service: Service) -> None:
    assert rows_of(service.get("/many?count=1&format=csv").text)[0] == ["lineNo", "text"]
    keys = list(service.get("/expanded").json()[0])
    assert rows_of(service.get("/expanded?format=csv").text) == [keys, ["1", "2", "3"]]


def test_many_rows_are_streamed(service: Service) -> None:
    text = service.get("/many?count=200000&format=csv").text
    rows = rows_of(text)
    assert (len(rows), rows[-1][0]) == (200001, "200000")
    lines = service.get("/many?count=200000&format=jsonl").text.splitlines()
    assert (len(lines), json.loads(lines[-1])["lineNo"]) == (200000, 200000)


def test_access_caching_and_queries(service: Service) -> None:
    problem(service.get("/closed?format=csv"), 401)
    first = service.get("/kept").json()
    assert service.get("/kept").json() == first
    assert service.get("/kept?format=jsonl").json() != first[0]
    assert service.get("/kept").json() == first
    response = service.get("/asked?id=gt.1&order=id.desc&select=id&format=csv")
    assert rows_of(response.text) == [["id"], ["3"], ["2"]]


def test_what_cannot_be_exported(service: Service) -> None:
    detail = problem(service.get("/products?format=pdf"), 400)["detail"]
    assert detail == "format 'pdf' is none of csv, jsonl, excel, json"
    assert service.get("/products?format=json").json() == service.get("/products").json()
    assert service.get("/formatted?format=csv").json() == [{"id": 1, "f": "csv"}]
    for path in ("/one", "/scalar"):
        problem(service.get(f"{path}?format=csv"), 404)
        assert "json" in service.get("/one", headers={"accept": "text/csv"}).headers["content-type"]
    problem(service.get("/nested?format=csv"), 400)


def test_without_the_key_nothing_changes(database: Database, serve_once: Serve) -> None:
    plain = serve_once(database, "", {"Service:RequiresAuthorization": "false"})
    problem(plain.get("/products?format=csv"), 404)
    response = plain.get("/products", headers={"accept": "text/csv"})
    assert response.headers["content-type"] == "application/json"
    assert "vary" not in response.headers
