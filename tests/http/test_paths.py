"""Segments of the path as parameters, and overloads that share a path (routing-13 to routing-19)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function parcel(_id int, _note text default 'none') returns text language sql stable
  as $$select 'parcel ' || coalesce(_id::text, 'NULL') || ' ' || _note$$;
create function parcel_new() returns text language sql stable as $$select 'new'$$;
create function by_name(_name text) returns text language sql stable as 'select _name';
create function page(_number int default 1) returns text language sql stable as $$select 'page ' || _number$$;
create function wild() returns text language sql stable as $$select 'wild'$$;
create function two(_a text, _b text) returns text language sql stable as $$select _a || '-' || _b$$;
create function null_id(_id int) returns text language sql stable as $$select coalesce(_id::text, 'NULL')$$;
create function add_label(_parcel int, _texts text[]) returns text language sql
  as $$select _parcel || _texts::text$$;
create function fixed_part(_id int) returns text language sql stable as $$select 'suffix ' || _id$$;
comment on function parcel(int, text) is 'HTTP GET /parcels/{_id}';
comment on function parcel_new() is 'HTTP GET /parcels/new';
comment on function by_name(text) is 'HTTP GET /names/{NAME}';
comment on function page(int) is 'HTTP GET /pages/{number?}';
comment on function wild() is 'HTTP GET /wild/{anything}/end';
comment on function two(text, text) is 'HTTP GET /two/{a}/and/{b}';
comment on function null_id(int) is E'HTTP GET /nullable/{id}\\nquery_string_null_handling null_literal';
comment on function add_label(int, text[]) is 'HTTP POST /parcels/{_parcel}/labels';
comment on function fixed_part(int) is 'HTTP GET /parcels/{_id}/details';

create function f(_a int) returns text language sql as $$select 'one'$$;
create function f(_a int, _b text, _c boolean default true) returns text language sql
  as $$select 'three ' || _b || _c$$;
comment on function f(int) is 'HTTP POST /f/{_a}';
comment on function f(int, text, boolean) is 'HTTP POST /f/{_a}';
create function g() returns text language sql stable as $$select 'none'$$;
create function g(_a int) returns text language sql stable as $$select 'a'$$;
create function g(_a int, _b int) returns text language sql stable as $$select 'ab'$$;
comment on function g() is 'HTTP';
comment on function g(int) is 'HTTP';
comment on function g(int, int) is 'HTTP';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


@pytest.mark.parametrize(
    ("path", "received"),
    [
        ("/parcels/7", "parcel 7 none"),
        ("/parcels/7/", "parcel 7 none"),
        ("/PARCELS/7", "parcel 7 none"),
        ("/parcels/7?note=x", "parcel 7 x"),
        ("/parcels/%37", "parcel 7 none"),
        ("/parcels/new", "new"),
        ("/parcels/7/details", "suffix 7"),
        ("/names/Ann%20B+c", "Ann B+c"),
        ("/names/%D0%B6%F0%9F%98%80", "ж😀"),
        ("/names/a%252Fb", "a%2Fb"),
        ("/names/null", "null"),
        ("/names/MiXed", "MiXed"),
        ("/names/%3Fq%23", "?q#"),
        ("/pages", "page 1"),
        ("/pages/", "page 1"),
        ("/pages/4", "page 4"),
        ("/pages?number=5", "page 5"),
        ("/wild/anything/end", "wild"),
        ("/wild/else/end", "wild"),
        ("/two/x/and/y", "x-y"),
        ("/nullable/null", "NULL"),
        ("/nullable/NULL", "NULL"),
        ("/nullable/5", "5"),
    ],
)
def test_segments_are_bound(service: Service, path: str, received: str) -> None:
    assert answer(service.get(path)) == (200, TEXT, received)


@pytest.mark.parametrize(
    "path",
    ["/parcels", "/parcels/", "/parcels/7/8", "/names/a/b", "/wild/end", "/pages/1/2", "/two/x/and"],
)
def test_segments_that_do_not_fit_are_not_found(service: Service, path: str) -> None:
    problem(service.get(path), 404)


@pytest.mark.parametrize("path", ["/parcels/q", "/parcels/q?id=3"])
def test_a_segment_with_a_value_of_the_wrong_type_is_refused(service: Service, path: str) -> None:
    [error] = problem(service.get(path), 400)["errors"]
    assert error["message"] == "parameter 'id' (integer): 'q' is not an integer"


@pytest.mark.parametrize(
    ("body", "status", "received"),
    [
        (b'{"texts":["a",null]}', 200, "7{a,NULL}"),
        (b"{}", 404, ""),
        (b'{"texts":["a"],"x":1}', 404, ""),
        (b"[1]", 400, ""),
    ],
)
def test_path_and_body_together(service: Service, body: bytes, status: int, received: str) -> None:
    response = service.post("/parcels/7/labels", content=body)
    if status == 200:
        assert answer(response) == (200, TEXT, received)
    else:
        problem(response, status)


def test_path_has_precedence_over_a_key_of_the_same_name(service: Service) -> None:
    assert answer(service.post("/parcels/7/labels", content=b'{"parcel":8,"texts":[]}'))[2] == "7{}"


@pytest.mark.parametrize(
    ("body", "received"), [(b"{}", "one"), (b'{"b":"x"}', "three xtrue"), (b'{"b":"x","c":false}', "three xfalse")]
)
def test_overloads_are_selected_by_the_supplied_parameters(service: Service, body: bytes, received: str) -> None:
    assert answer(service.post("/f/1", content=body)) == (200, TEXT, received)


@pytest.mark.parametrize(("query", "received"), [("", "none"), ("?a=1", "a"), ("?a=1&b=2", "ab"), ("?b=2&a=1", "ab")])
def test_overloads_of_a_query_endpoint(service: Service, query: str, received: str) -> None:
    assert answer(service.get(f"/api/g{query}")) == (200, TEXT, received)


def test_a_key_without_matching_overload_is_404(service: Service) -> None:
    problem(service.get("/api/g?a=1&z=2"), 404)


AMBIGUOUS = """
create function by_x(_x int) returns int language sql stable as 'select _x';
create function by_y(_y int) returns int language sql stable as 'select _y';
create function good() returns int language sql stable as 'select 1';
comment on function by_x(int) is 'HTTP GET /a/{_x}';
comment on function by_y(int) is 'HTTP GET /a/{_y}';
comment on function good() is 'HTTP GET /good';
"""


def test_ambiguous_templates_are_reported_at_the_start(own_database: Database, serve_once: Serve) -> None:
    """Never a coin toss at request time (routing-9): the others are served, the clash is in the log."""
    service = serve_once(own_database, AMBIGUOUS)
    assert answer(service.get("/good")) == (200, TEXT, "1")
    service.wait_for_log("/a/{_y}")


@pytest.mark.parametrize("path", ["/names/a%2Fb", "/names/a%2fb"])
def test_encoded_slash_is_a_slash(service: Service, path: str) -> None:
    """granian hands over the path decoded, so `%2F` cannot be distinguished from `/`: another path, and here none."""
    problem(service.get(path), 404)
