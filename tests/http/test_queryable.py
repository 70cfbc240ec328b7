"""Queries over the results of endpoints: `queryable` with select, filter, order and page."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type cabin as (deck int, label text);
create type bunk as (bed int);
create table ship (
  id int primary key, ship_name text not null, home text, crew int, built timestamptz, about jsonb, tags text[],
  weight numeric);
insert into ship
select n, 'ship ' || n, case n % 4 when 0 then null when 1 then 'Kiel' when 2 then 'Bremen' else 'Kiel, "Ost"' end,
  nullif(n % 7, 3), timestamptz '2020-01-01T00:00:00Z' + n * interval '1 day',
  jsonb_build_object('deck', n % 3, 'x', jsonb_build_object('y', 'v' || n % 5)), array['a', 'b' || n % 2], n / 8.0
from generate_series(1, 60) n;
comment on table ship is 'HTTP GET /ships
queryable select filter order page 10
max_rows 25';
create table port (name text, country text, primary key (country, name));
insert into port select 'p' || n % 10, 'c' || n / 10 from generate_series(0, 39) n;
comment on table port is 'HTTP GET /ports/{country}
queryable';
create function fleet(_berth text default null) returns setof ship language sql stable as
$$ select * from ship where _berth is null or home = _berth order by id desc $$;
comment on function fleet(text) is 'HTTP GET /fleet
queryable page 10 filter order select by id';
create function harbours() returns table (name text, ships bigint) language sql stable as
$$ select home, count(*) from ship where home is not null group by 1 $$;
comment on function harbours() is 'HTTP GET /harbours
queryable filter order';
create function numbers(_n int) returns table (n int) language sql volatile as $$ select generate_series(1, _n) $$;
comment on function numbers(int) is 'HTTP GET /numbers/{_n}
queryable page';
create function by_body(_least int) returns setof ship language sql stable as
$$ select * from ship where crew >= _least $$;
comment on function by_body(int) is 'HTTP POST /by-body
param_type body_json
queryable by id';
create function cabins() returns table (id int, place cabin, "select" int) language sql stable as
$$ select n, row(n, 'c' || n)::cabin, -n from generate_series(1, 5) n $$;
comment on function cabins() is 'HTTP GET /cabins
queryable by id';
create function nested_cabins() returns table (id int, place cabin) language sql stable as
$$ select n, row(n, 'c' || n)::cabin from generate_series(1, 5) n $$;
comment on function nested_cabins() is 'HTTP GET /nested-cabins
nested
queryable by id';
create function own(_user_id text default null) returns table (id int, owner text) language sql stable as
$$ select n, case when n % 2 = 0 then 'ann' else 'ben' end from generate_series(1, 10) n
where _user_id is null or _user_id = case when n % 2 = 0 then 'ann' else 'ben' end $$;
comment on function own(text) is 'HTTP GET /own
queryable by id';
create function raw_ships() returns table (id int, ship_name text) language sql stable as
$$ select id, ship_name from ship $$;
comment on function raw_ships() is 'HTTP GET /raw-ships
raw
separator ,
new_line \\n
columns
queryable page 3 filter by id';
create function few_ships() returns setof ship language sql stable as $$ select * from ship limit 1 $$;
comment on function few_ships() is 'HTTP GET /few-ships
queryable filter by id
max_rows 5';
create function unsure() returns setof ship language sql stable as $$ select * from ship limit 1 $$;
comment on function unsure() is 'HTTP GET /unsure
queryable page by number';
create function one_ship() returns setof ship language sql stable as $$ select * from ship limit 1 $$;
comment on function one_ship() is 'HTTP GET /one-ship
single
queryable';
create function long_texts() returns table (id int, story text) language sql stable as
$$ select n, chr(64 + n) || repeat('x', n * 5000) from generate_series(1, 4) n $$;
comment on function long_texts() is 'HTTP GET /long-texts
queryable page 1 order by id';
create function berths(_deck int) returns table (id int, line int) language sql stable as
$$ select n, _deck from generate_series(1, 3) n $$;
comment on function berths(int) is 'HTTP GET /berths
queryable by id';
create function berths(_deck int, _line int) returns table (id int, line int) language sql stable as
$$ select n, _line from generate_series(1, 3) n $$;
comment on function berths(int, int) is 'HTTP GET /berths
queryable order by id';
create function named() returns table (count bigint, "order" int, "weird ""name" text) language sql stable as
$$ select 1::bigint, 2, 'x' $$;
comment on function named() is 'HTTP GET /named
queryable';
"""
FILES = {
    "bunks.sql": """
-- HTTP GET /bunks
-- queryable by id
select 1 as id, row(2)::bunk as place;
""",
    "crew.sql": """-- HTTP GET /crew
-- @param $1 least
-- queryable page 5 filter by id
select id, ship_name, crew from ship where crew >= $1 -- the least
;
""",
    "writes.sql": """-- HTTP POST /writes
-- queryable
with gone as (delete from ship where false returning id, crew) select * from gone;
""",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        Path(folder, name).write_text(text)
    settings = {
        "Service:SqlFileSource:FilePattern": f"{folder}/*.sql",
        "Service:CrudSource:Enabled": "true",
        "Service:RequiresAuthorization": "false",
    }
    return serve(database, SQL, settings, workers=2)


def rows(service: Service, path: str, **options: Any) -> list[dict[str, Any]]:
    response = service.get(path, **options)
    assert response.status_code == 200, response.text
    result: list[dict[str, Any]] = response.json()
    return result


def ids(service: Service, path: str) -> list[int]:
    return [row["id"] for row in rows(service, path)]


def walk(service: Service, path: str, rel: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the pages that follow each other by their links."""
    url: str | None = path
    for _ in range(100):
        assert url is not None
        response = service.get(url)
        assert response.status_code == 200, response.text
        yield response.json()
        link = response.links.get(rel)
        if link is None:
            return
        url = path.partition("?")[0] + link["url"]
    pytest.fail("the pages have no end")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id=eq.5", [5]),
        ("id=not.gt.2", [1, 2]),
        ("id=in.(3,1,99)", [1, 3]),
        ("id=gt.2&id=lt.5", [3, 4]),
        ("ship_name=eq.ship%203", [3]),
        ("shipName=like.ship*59", [59]),
        ("home=is.null&id=lte.8", [4, 8]),
        ("home=eq.Kiel,%20%22Ost%22&id=lt.8", [3, 7]),
        ('or=(id.eq.3,home.in.("Kiel, \\"Ost\\""))&id=lt.8', [3, 7]),
        ("and=(id.gt.3,not.or(id.gt.6,id.eq.5))", [4, 6]),
        ("not.and=(id.gt.2,id.lt.60)", [1, 2, 60]),
        ("about->>deck=eq.2&id=lt.9", [2, 5, 8]),
        ("about->x->>y=eq.v0&id=lt.11", [5, 10]),
        ("tags=cs.{b1}&id=lt.4", [1, 3]),
        ("shipName=fts.59", [59]),
        ("built=gte.2020-02-28T00:00:00Z", [58, 59, 60]),
        ("crew=isdistinct.1&id=lt.4", [2, 3]),
        ("home=eq(any).{Bremen,Kiel}&id=lt.4", [1, 2]),
    ],
)
@pytest.mark.parametrize("path", ["/ships", "/fleet"])
def test_conditions_filter_rows(service: Service, path: str, condition: str, expected: list[int]) -> None:
    query = quote(condition, safe="=&%")
    assert ids(service, f"{path}?{query}&select=id&order=id") == expected


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("id,shipName", '[{"id":3,"shipName":"ship 3"}]'),
        ("ship_name,name:ship_name", '[{"shipName":"ship 3","name":"ship 3"}]'),
        ("name:shipName,id", '[{"name":"ship 3","id":3}]'),
        ("id::text,weight", '[{"id":"3","weight":0.37500000000000000000}]'),
        ("built::date", '[{"built":"2020-01-04"}]'),
        ("about->x->>y,d:about->deck", '[{"y":"v3","d":0}]'),
        ("tags,crew", '[{"tags":["a","b1"],"crew":null}]'),
    ],
)
def test_selections_choose_columns(service: Service, select: str, expected: str) -> None:
    response = service.get(f"/ships?id=eq.3&select={quote(select)}")
    assert (response.status_code, response.text) == (200, expected)


def test_without_a_selection_the_result_is_unchanged(service: Service) -> None:
    whole = service.get("/ships?id=eq.3").text
    names = "id,shipName,home,crew,built,about,tags,weight"
    assert service.get(f"/ships?id=eq.3&select={names}").text == whole
    assert service.get("/ships?id=eq.3&select=*").text == whole
    assert service.get("/fleet?id=eq.3").text == whole


@pytest.mark.parametrize(
    "order",
    [
        "",
        "id.desc",
        "crew",
        "crew.desc",
        "crew.nullsfirst",
        "crew.desc.nullslast,shipName",
        "home.desc,crew.asc.nullsfirst",
        "about->deck,built.desc",
        "home,id.desc",
        "weight.desc",
    ],
)
@pytest.mark.parametrize("path", ["/ships", "/fleet"])
def test_paging_forwards_and_backwards_returns_every_row_once(
    service: Service, database: Database, path: str, order: str
) -> None:
    """Every row is on exactly one page, in the order of PostgreSQL, also with NULLs at both ends."""
    terms = [term for term in order.split(",") if term]
    expressions = [_order_sql(term) for term in terms] + ([] if "id" in order.replace("id.desc", "id") else ["id"])
    expected = [row[0] for row in database.fetch(f"select id from ship order by {', '.join(expressions)}")]
    query = f"select=id&limit=7{f'&order={quote(order)}' if order else ''}"
    forwards = [row["id"] for page in walk(service, f"{path}?{query}", "next") for row in page]
    assert forwards == expected
    pages = list(walk(service, f"{path}?{query}&before=", "prev"))
    assert [row["id"] for page in reversed(pages) for row in page] == expected
    assert all(len(page) == 7 for page in pages[:-1])


def _order_sql(term: str) -> str:
    name, *words = term.split(".")
    column = {"shipName": "ship_name", "about->deck": "about->'deck'"}.get(name, name)
    replaced = [{"nullsfirst": "nulls first", "nullslast": "nulls last"}.get(word, word) for word in words]
    return " ".join((column, *replaced))


def test_pages_of_a_key_of_two_columns(service: Service) -> None:
    found = [row["name"] for page in walk(service, "/ports/c2?limit=3&order=name.desc", "next") for row in page]
    assert found == [f"p{n}" for n in range(9, -1, -1)]


def test_rows_that_appear_or_vanish_move_no_other_row_to_another_page(service: Service, database: Database) -> None:
    first = service.get("/ports/c3?limit=4")
    database.execute("delete from port where country = 'c3' and name in ('p0', 'p1')")
    database.execute("insert into port values ('a', 'c3')")
    after = service.get("/ports/c3" + first.links["next"]["url"])
    assert [row["name"] for row in after.json()] == ["p4", "p5", "p6", "p7"]
    before = service.get("/ports/c3" + after.links["prev"]["url"])
    assert [row["name"] for row in before.json()] == ["a", "p2", "p3"]
    assert "prev" not in before.links
    assert before.links["next"]


def test_links_lead_to_the_other_pages(service: Service) -> None:
    first = service.get("/ships?limit=20&select=id")
    assert set(first.links) == {"next", "first", "last"}
    middle = service.get("/ships" + first.links["next"]["url"])
    assert set(middle.links) == {"next", "prev", "first", "last"}
    last = service.get("/ships" + middle.links["next"]["url"])
    assert set(last.links) == {"prev", "first", "last"}
    assert last.json()[-1] == {"id": 60}
    assert service.get("/ships" + last.links["first"]["url"]).json() == first.json()
    assert service.get("/ships" + first.links["last"]["url"]).json() == last.json()
    assert "link" not in service.get("/ships?id=eq.1").headers
    assert "link" not in service.get("/ships?limit=0").headers
    assert service.get("/ships?limit=0").json() == []


def test_links_by_offset(service: Service) -> None:
    middle = service.get("/ships?limit=20&offset=20&select=id&a%22b=1".replace("&a%22b=1", ""))
    assert [link["url"] for link in middle.links.values()] == [
        "?limit=20&select=id&offset=40",
        "?limit=20&select=id&offset=0",
        "?limit=20&select=id&offset=0",
    ]
    counted = service.get("/numbers/50?limit=20&offset=40", headers={"prefer": "count=exact"})
    assert [row["n"] for row in counted.json()] == list(range(41, 51))
    assert {rel: link["url"] for rel, link in counted.links.items()} == {
        "prev": "?limit=20&offset=20",
        "first": "?limit=20&offset=0",
        "last": "?limit=20&offset=40",
    }
    assert counted.headers["content-range"] == "40-49/50"


def test_links_keep_the_query_of_the_request(service: Service) -> None:
    found = [
        row["id"]
        for page in walk(service, "/ships?home=in.(%22Kiel,%20%5C%22Ost%5C%22%22)&select=id&limit=4", "next")
        for row in page
    ]
    assert found == [n for n in range(1, 61) if n % 4 == 3]


def test_a_page_has_the_usual_and_at_most_the_largest_number_of_rows(service: Service) -> None:
    assert len(rows(service, "/ships")) == 10
    assert len(rows(service, "/ships?limit=24")) == 24
    assert len(rows(service, "/ships?limit=1000000")) == 25
    assert len(rows(service, "/numbers/1500")) == 1000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/ships?limit=3", "0-2/60"),
        ("/ships?limit=3&home=is.null", "0-2/15"),
        ("/ships?limit=3&offset=58", "58-59/60"),
        ("/ships?limit=3&offset=600", "*/60"),
        ("/ships?id=eq.600", "*/0"),
        ("/ships?limit=0", "*/60"),
        ("/fleet?berth=Kiel&limit=3", "0-2/15"),
        ("/ships?limit=3&before=", "*/60"),
        ("/crew?least=5&limit=1", "0-0/16"),
    ],
)
def test_the_total_number_of_rows_is_sent_if_requested(service: Service, path: str, expected: str) -> None:
    plain, counted = service.get(path), service.get(path, headers={"prefer": "return=minimal, count=exact"})
    assert counted.text == plain.text
    assert counted.headers["content-range"] == expected
    assert counted.headers["preference-applied"] == "count=exact"
    assert "content-range" not in plain.headers
    assert plain.headers["vary"] == counted.headers["vary"] == "Prefer"


def test_parameters_of_the_routine_are_not_filters(service: Service) -> None:
    assert {row["home"] for row in rows(service, "/fleet?berth=Kiel")} == {"Kiel"}
    assert rows(service, "/fleet?berth=eq.Kiel") == []
    assert [row["id"] for row in rows(service, "/own?userId=ann&owner=neq.ben&id=gt.6")] == [8, 10]
    assert len(rows(service, "/own?owner=eq.ben&userId=ann")) == 0


def test_parameters_of_the_query_do_not_select_an_overload(service: Service) -> None:
    assert service.get("/berths?deck=7&order=id.desc&limit=1").json() == [{"id": 3, "line": 7}]
    assert service.get("/berths?deck=7&id=eq.2&and=(line.eq.7)").json() == [{"id": 2, "line": 7}]
    assert service.get("/berths?deck=7&line=4&order=id.desc&select=id").status_code == 404
    assert service.get("/berths?deck=7&line=4&order=id.desc").json()[0] == {"id": 3, "line": 4}


def test_values_in_a_body_and_a_query_in_the_url(service: Service) -> None:
    response = service.post("/by-body?select=id&id=lt.20&order=id.desc&limit=2", json={"least": 6})
    assert response.json() == [{"id": 13}, {"id": 6}]
    assert problem(service.post("/by-body?select=id", json={"most": 6}), 404)["detail"].startswith("unknown parameter")


def test_a_file_can_be_queried_and_paged(service: Service) -> None:
    assert ids(service, "/crew?least=5&id=lt.20") == [5, 6, 12, 13, 19]
    found = [row["id"] for page in walk(service, "/crew?least=6&limit=2", "next") for row in page]
    assert found == [n for n in range(1, 61) if n % 7 == 6]


def test_columns_of_composites_and_with_odd_names(service: Service) -> None:
    assert rows(service, "/cabins?deck=eq.2") == [{"id": 2, "deck": 2, "label": "c2", "select": -2}]
    assert rows(service, "/cabins?select=label,id&order=label.desc&limit=1") == [{"label": "c5", "id": 5}]
    assert rows(service, "/cabins?and=(select.eq.-3)&select=select") == [{"select": -3}]
    assert rows(service, "/nested-cabins?id=eq.2") == [{"id": 2, "place": {"deck": 2, "label": "c2"}}]
    assert rows(service, "/nested-cabins?place->>label=eq.c3&select=place") == [{"place": {"deck": 3, "label": "c3"}}]
    assert rows(service, "/bunks") == rows(service, "/bunks?select=*") == [{"id": 1, "bed": 2}]
    assert rows(service, "/bunks?select=place") == [{"bed": 2}]
    assert rows(service, "/bunks?select=a:place,b:id") == [{"a": 2, "b": 1}]
    assert rows(service, "/named?select=count") == [{"count": 1}]
    assert rows(service, '/named?weird "name=eq.x&select="weird \\"name"') == [{'weird "name': "x"}]
    assert rows(service, '/named?and=(order.eq.2)&order="order".desc') == rows(service, "/named")


def test_other_formats_have_pages_without_links(service: Service) -> None:
    response = service.get("/raw-ships?id=gt.57&limit=2")
    assert response.text == '"id","ship_name"\n58,"ship 58"\n59,"ship 59"'
    assert "link" not in response.headers


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/ships?id=5", 400, "'5' begins with no operator, such as id=eq.5"),
        ("/ships?id=equals.5", 400, "parameter 'id': 'equals.5' is no filter"),
        ("/ships?idd=eq.5", 404, "did you mean 'id'?"),
        ("/ships?nothing=eq.5", 404, "there are id, shipName, home, crew"),
        ("/ships?id=eq.abc", 400, "parameter 'id' (integer): invalid input syntax"),
        ("/ships?id=like.1*", 400, "operator does not exist"),
        ("/ships?crew=fts.1", 400, "to_tsvector(integer) does not exist"),
        ("/ships?shipName=fts.two words", 400, 'syntax error in tsquery: "two words"'),
        ("/ships?shipName=not.fts.!", 400, 'no operand in tsquery: "!"'),
        ("/ships?shipName=fts.'two", 400, "syntax error in tsquery"),
        ("/ships?shipName=match.[", 400, "2201B"),
        ("/ships?select=id,id", 400, "two columns would be called 'id'"),
        ("/ships?select=nope", 404, "unknown column 'nope'"),
        ("/ships?select=id,port(name)", 400, "'port' cannot be embedded"),
        ("/ships?select=crew.sum()", 400, "sum() is not allowed"),
        ("/ships?select=id::regclass", 400, "there is no cast to 'regclass'"),
        ("/ships?select=shipName::int", 400, "22P02"),
        ("/ships?select=id&select=crew", 400, "parameter 'select': it is there twice"),
        ("/ships?order=id.up", 400, "parameter 'order'"),
        ("/ships?order=nope", 404, "unknown column 'nope'"),
        ("/ships?order=port(name)", 400, "nothing below 'port'"),
        ("/ships?limit=-1", 400, "parameter 'limit': '-1' is not a number of rows"),
        ("/ships?limit=ten", 400, "'ten' is not a number of rows"),
        ("/ships?limit=1&limit=2", 400, "it is there twice"),
        ("/ships?offset=99999999999999999999", 400, "is not a number of rows"),
        ("/ships?after=abc", 400, "no cursor of this service"),
        ("/ships?after=abc&offset=1", 400, "cannot be used together"),
        ("/ships?or=(id.eq.1", 400, "parameter 'or'"),
        ("/ships?or=(nope.eq.1)", 404, "unknown column 'nope'"),
        ("/ships?port.or=(id.eq.1)", 404, "there is nothing below 'port'"),
        ("/ships?shipName=eq.%00", 400, "NUL"),
        ("/ships?shipName=eq.%ff", 400, "UTF-8"),
        ("/numbers/5?after=x", 400, "no unique order"),
        ("/numbers/5?n=eq.1", 404, "unknown parameter 'n'"),
        ("/harbours?limit=1", 404, "unknown parameter 'limit'"),
        ("/harbours?select=name", 404, "unknown parameter 'select'"),
        ("/fleet?bert=Kiel", 404, "did you mean 'berth'?"),
    ],
)
def test_mistakes_are_named(service: Service, path: str, status: int, part: str) -> None:
    for _ in range(2):
        assert part in problem(service.get(path), status)["detail"]


def test_an_invalid_query_does_not_cause_a_reading_of_the_catalogue(service: Service) -> None:
    for _ in range(3):
        service.get("/ships?crew=like.1*")
    assert "the database has changed" not in service.log


@pytest.mark.parametrize(("order", "other"), [("about->x", "about->deck"), ("crew", "crew.asc.nullslast")])
def test_orders_with_the_same_sql_have_different_cursors(service: Service, order: str, other: str) -> None:
    """The SQL contains neither the keys of a JSON path nor what PostgreSQL assumes anyway."""
    for each in (order, other, order, other):
        response = service.get(f"/ships?limit=5&order={each}")
        for _ in range(3):
            response = service.get(f"/ships{response.links['next']['url']}")
            assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("order", "other"),
    [
        ('about->"x|ASC|,crew"', "about->x,crew"),
        ("""about->"x'|ASC|,crew" """, "about->x,crew"),
        ("about->0", 'about->"0"'),
    ],
)
def test_keys_of_a_json_path_cannot_imitate_another_order(service: Service, order: str, other: str) -> None:
    response = service.get("/ships", params={"limit": "5", "order": order.strip()})
    cursor = httpx.QueryParams(response.links["next"]["url"])["after"]
    refused = problem(service.get("/ships", params={"limit": "5", "order": other, "after": cursor}), 400)
    assert "another order" in refused["detail"]


def test_a_cursor_is_bound_to_its_endpoint_and_order_and_cannot_be_changed(service: Service) -> None:
    response = service.get("/ships?limit=5&order=crew")
    cursor = httpx.QueryParams(response.links["next"]["url"])["after"]
    assert service.get(f"/ships?order=crew&after={cursor}").status_code == 200
    other_order = problem(service.get(f"/ships?order=crew.desc&after={cursor}"), 400)
    assert "another order" in other_order["detail"]
    assert "one of GET /ships" in problem(service.get(f"/fleet?order=crew&after={cursor}"), 400)["detail"]
    for changed in (cursor[:-1], cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB"), cursor + "A" * 5000, "%20"):
        assert "no cursor" in problem(service.get(f"/ships?order=crew&after={changed}"), 400)["detail"]


def test_a_cursor_may_have_long_texts(service: Service) -> None:
    response = service.get("/long-texts?order=story")
    lengths = [len(response.json()[0]["story"])]
    while "next" in response.links:
        response = service.get(f"/long-texts{response.links['next']['url']}")
        assert response.status_code == 200, response.text
        lengths.append(len(response.json()[0]["story"]))
    assert lengths == [5_001, 10_001, 15_001, 20_001]


def test_ineffective_queryable_annotations_are_reported_at_the_start(service: Service) -> None:
    log = service.log
    assert "queryable has no effect: single returns one row" in log
    assert "only a file that is one SELECT can be queried" in log
    assert "GET /few-ships: by has no effect without queryable page" in log
    assert "GET /few-ships: max_rows has no effect without queryable page" in log
    assert "GET /unsure: by number names no column of the result" in log
    assert "GET /numbers/{_n}: no columns identify a row" in log
    assert "/ships" not in "".join(line for line in log.splitlines() if "no effect" in line)
    assert service.post("/writes?select=id").status_code == 200


@pytest.mark.slow
def test_random_queries_give_no_server_error_and_no_foreign_rows(service: Service) -> None:
    """Whatever is sent, the status is 200, 400 or 404, and every row is one of the result."""
    chance = random.Random(11)
    keys = [
        "id",
        "shipName",
        "home",
        "about->deck",
        "tags",
        "or",
        "and",
        "not.or",
        "select",
        "order",
        "limit",
        "offset",
    ]
    values = [
        *(
            "eq.1",
            "gt.2",
            "in.(1,2)",
            "is.null",
            "like.*1*",
            "(id.eq.1,crew.gt.2)",
            "id,home",
            "id.desc",
            "3",
            "not.in.(1)",
        ),
        *("cs.{a}", "';drop table ship;--", '"', "\\", "eq.\u00e4'", "fts(english).x", "id::text"),
    ]
    known = {row["id"] for page in walk(service, "/ships?limit=25", "next") for row in page}
    for _ in range(400):
        pairs = [(chance.choice(keys), chance.choice(values)) for _ in range(chance.randint(1, 4))]
        response = service.get("/ships", params=pairs)
        assert response.status_code in (200, 400, 404), (pairs, response.text)
        if response.status_code == 200 and not any(key == "select" for key, _ in pairs):
            assert {row["id"] for row in response.json()} <= known


def test_head_has_the_headers_of_get(service: Service) -> None:
    found, head = service.get("/ships?limit=2&offset=2"), service.request("HEAD", "/ships?limit=2&offset=2")
    assert (head.status_code, head.headers["link"]) == (200, found.headers["link"])
    assert head.content == b""


CACHED = """
create sequence runs;
create function seen() returns table (id int, run bigint) language plpgsql stable as $$
declare r bigint := (select nextval('runs'));
begin return query select n, r from generate_series(1, 9) n; end $$;
comment on function seen() is 'HTTP GET /seen
cached
queryable by id';
create function mine(_user_id text default null) returns table (id int, owner text) language sql stable as
$$ select n, _user_id from generate_series(1, 5) n $$;
comment on function mine(text) is 'HTTP GET /mine
authorize
user_parameters
queryable by id';
create function enter(_name text) returns table (status int, name_identifier text, name text) language sql as
$$ select 200, _name, _name $$;
comment on function enter(text) is 'HTTP POST /enter
login';
"""


@pytest.fixture(scope="module")
def other(database: Database, serve: Serve) -> Service:
    settings = {
        "CacheOptions:Enabled": "true",
        "Auth:CookieAuth": "true",
        "Service:UnknownQueryParameters": "Ignore",
        "Service:AuthenticationOptions:ParameterNameClaimsMapping:_user_id": "name_identifier",
    }
    return serve(database, CACHED, settings, workers=2)


def test_each_query_of_a_cached_endpoint_is_cached_with_its_page(other: Service) -> None:
    def page(query: str) -> tuple[str, Sequence[str]]:
        response = other.get(f"/seen{query}")
        assert response.status_code == 200, response.text
        return response.text, sorted(str(rel) for rel in response.links)

    first = page("?limit=2&id=gt.1")
    assert page("?limit=2&id=gt.1") == first
    assert page("?limit=2&id=gt.2") != first
    assert [row["id"] for row in json.loads(first[0])] == [2, 3]
    assert first[1] == ["first", "last", "next"]
    assert page("?limit=3&id=gt.1") != first
    assert page("?limit=2&id=gt.1&select=a:run") != page("?limit=2&id=gt.1&select=b:run")


def test_access_is_checked_before_the_query(other: Service) -> None:
    problem(other.get("/mine?id=gt.3"), 401)
    with other.new_client() as client:
        client.post("/enter", json={"name": "ann"})
        assert client.get("/mine?id=gt.3&owner=neq.ben").json() == [
            {"id": 4, "owner": "ann"},
            {"id": 5, "owner": "ann"},
        ]
        assert client.get("/mine?userId=ben&limit=1&owner=eq.ann").json() == [{"id": 1, "owner": "ann"}]


def test_unknown_parameters_are_ignored_if_configured(other: Service) -> None:
    response = other.get("/seen?limit=1&utm_source=x&nope=eq.1")
    assert (response.status_code, len(response.json())) == (200, 1)
