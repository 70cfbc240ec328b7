"""From the query string to parameters: every type, lists, defaults, NULL, what does not fit (routing-13 to routing-15,
binding-3 to binding-26)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

CONVERSIONS = [
    ("smallint", "-7", "-7"),
    ("smallint", "32768", None),
    ("int", "%20%2B7%20", "7"),
    ("int", "2147483648", None),
    ("int", "1.0", None),
    ("int", "0x10", None),
    ("int", "1_000", None),
    ("int", "%D9%A1", None),  # an Arabic-Indic digit
    ("int", "", "NULL"),
    ("bigint", "9223372036854775807", "9223372036854775807"),
    ("bigint", "9223372036854775808", None),
    ("real", "1.5e3", "1500"),
    ("float8", "1,234.5", "1234.5"),
    ("float8", "NaN", "NaN"),
    ("float8", "-Infinity", "-Infinity"),
    ("float8", "one", None),
    ("numeric", "1.50", "1.50"),
    ("numeric", "1,000.25", "1000.25"),
    ("numeric", "1e3", "1000"),
    ("numeric", "abc", None),
    ("money", "12.5", "$12.50"),
    ("boolean", "true", "true"),
    ("boolean", "FALSE", "false"),
    ("boolean", "t", None),
    ("boolean", "1", None),
    ("boolean", "", "NULL"),
    ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("uuid", "%7Ba0eebc999c0b4ef8bb6d6bb9bd380a11%7D", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("uuid", "a0eebc99", None),
    ("timestamptz", "2026-03-01T10:00:00", "2026-03-01 10:00:00+00"),
    ("timestamptz", "2026-03-01T10:00:00%2B02:00", "2026-03-01 08:00:00+00"),
    ("timestamp", "2026-03-01T10:00:00%2B02:00", "2026-03-01 08:00:00"),
    ("timestamp", "2026-03-01%2010:00:00.25", "2026-03-01 10:00:00.25"),
    ("timestamp", "tomorrow-ish", None),
    ("date", "2026-03-01", "2026-03-01"),
    ("date", "2026-03-01T23:30:00-02:00", "2026-03-02"),
    ("date", "2026-02-30", None),
    ("time", "10:30:00.5", "10:30:00.5"),
    ("timetz", "10:30", "10:30:00+00"),
    ("time", "25:00", None),
    ("text", "a%20b%2Bc+d%26e", "a b+c d&e"),
    ("text", "%D0%B6%E2%82%AC%F0%9F%98%80", "ж€😀"),
    ("text", "", ""),
    ("text", "null", "null"),
    ("text", "%27%22%5C;--", "'\"\\;--"),
    ("varchar", "x", "x"),
    ("json", "%7B%22a%22:%201%7D", '{"a": 1}'),
    ("jsonb", "[1,%202]", "[1, 2]"),
    ("bytea", "%5Cx00ff", "\\x00ff"),
    ("interval", "1%20day%2002:00", "1 day 02:00:00"),
    ("inet", "10.0.0.1", "10.0.0.1/32"),
    ("int4range", "[1,5)", "[1,5)"),
    ("mood", "calm", "calm"),
    ("percentage", "50", "50"),
]
"""Type, value of `v` in the query, and the text PostgreSQL then sees; None: it does not fit."""

SQL = """
create type mood as enum ('calm', 'amber');
create domain percentage as int check (value between 0 and 100);
""" + "\n".join(
    f"create function take_{n}(_v {type}) returns text language sql stable as $$select coalesce(_v::text, 'NULL')$$;"
    f" comment on function take_{n}({type}) is 'HTTP GET /take/{n}';"
    for n, (type, _, _) in enumerate(CONVERSIONS)
)

OTHERS = """
create function arrays(_v int[]) returns text language sql stable as 'select _v::text';
create function not_array(_v anynonarray) returns text language sql stable as 'select _v::text';
create function any_array(_v anyarray) returns text language sql stable as 'select _v::text';
create function texts(_v text[]) returns text language sql stable as 'select _v::text';
create function flags(_v boolean[]) returns text language sql stable as 'select _v::text';
create function spread(variadic _v int[]) returns text language sql stable as 'select _v::text';
create function defaults(_a int, _b int default 10, _c text default 'x, y') returns text language sql stable
  as $$select format('%s|%s|%s', coalesce(_a::text, 'NULL'), coalesce(_b::text, 'NULL'), coalesce(_c, 'NULL'))$$;
create function unnamed(int, text) returns text language sql stable as $$select $1 || $2$$;
create function quoted("MyParam" int, "from" int) returns int language sql stable as 'select "MyParam" + "from"';
create function strict_one(_a int, _b text) returns text language sql stable strict as $$select 'ran'$$;
create function ignoring(_v text) returns text language sql stable as $$select coalesce(_v, 'NULL')$$;
create function emptying(_v text) returns text language sql stable as $$select coalesce(_v, 'NULL')$$;
create function literally(_v text, _n int default 1) returns text language sql stable
  as $$select coalesce(_v, 'NULL') || coalesce(_n::text, 'NULL')$$;
create function literal_items(_v text[]) returns text language sql stable as 'select _v::text';
create type box_size as (width int, unit_code text);
create function fit(_box box_size) returns text language sql stable as 'select _box::text';
comment on function arrays(int[]) is 'HTTP';
comment on function not_array(anynonarray) is 'HTTP';
comment on function any_array(anyarray) is 'HTTP';
comment on function texts(text[]) is 'HTTP';
comment on function flags(boolean[]) is 'HTTP';
comment on function spread(int[]) is 'HTTP';
comment on function defaults(int, int, text) is 'HTTP';
comment on function unnamed(int, text) is 'HTTP';
comment on function quoted(int, int) is 'HTTP';
comment on function strict_one(int, text) is 'HTTP';
comment on function ignoring(text) is E'HTTP\\nquery_string_null_handling ignore';
comment on function emptying(text) is E'HTTP\\nquery_string_null_handling empty_string';
comment on function literally(text, int) is E'HTTP\\nquery_null null_literal';
comment on function literal_items(text[]) is E'HTTP\\nquery_string_null_handling null_literal';
comment on function fit(box_size) is 'HTTP';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL + OTHERS)


@pytest.mark.parametrize(
    ("number", "value", "received"),
    [(n, value, seen) for n, (_, value, seen) in enumerate(CONVERSIONS)],
    ids=[f"{type}={value}" for type, value, _ in CONVERSIONS],
)
def test_value_of_each_type(service: Service, number: int, value: str, received: str | None) -> None:
    response = service.get(f"/take/{number}?v={value}")
    if received is None:
        assert "v" in problem(response, 400)["detail"]
    else:
        assert answer(response) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("target", "received"),
    [
        ("arrays?v=1&v=&v=3", "{1,NULL,3}"),
        ("arrays?v=1", "{1}"),
        ("not-array?v=4", "4"),
        ("any-array?v=1&v=&v=x", "{1,NULL,x}"),
        ("texts?v=a,b&v={c}", '{"a,b","{c}"}'),
        ("texts?v=&v=null", '{"","null"}'),
        ("texts?v=q%22q&v=b%5Cb", '{"q\\"q","b\\\\b"}'),
        ("flags?v=true&v=FALSE", "{t,f}"),
        ("spread?v=1&v=2", "{1,2}"),
        ("literal-items?v=a&v=NULL&v=null", "{a,NULL,NULL}"),
        ("unnamed?$1=4&$2=x", "4x"),
        ("unnamed?%241=4&%242=x", "4x"),
        ("quoted?MyParam=1&from=2", "3"),
        ("fit?boxWidth=4", "(4,)"),
        ("fit?boxUnitCode=cm&boxWidth=4", "(4,cm)"),
        ("fit", "(,)"),
    ],
)
def test_keys_and_repeated_lists_are_bound(service: Service, target: str, received: str) -> None:
    assert answer(service.get(f"/api/{target}")) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("query", "received"),
    [
        ("a=1", "1|10|x, y"),
        ("a=1&b=2&c=z", "1|2|z"),
        ("a=1&c=z", "1|10|z"),
        ("a=&b=", "NULL|NULL|x, y"),
        ("a=1&c=", "1|10|"),
        ("a=1&c", "1|10|"),
        ("&a=1&&", "1|10|x, y"),
    ],
)
def test_defaults_are_used_for_missing_parameters(service: Service, query: str, received: str) -> None:
    assert answer(service.get(f"/api/defaults?{query}")) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("defaults", "a"),
        ("defaults?b=1", "a"),
        ("defaults?a=1&page=2", "page"),
        ("defaults?A=1", "a"),
        ("defaults?_a=1", "_a"),
        ("fit?box=1", "box"),
        ("quoted?myParam=1&from=2", "yParam"),
    ],
)
def test_missing_and_unknown_parameters_are_404_and_named(service: Service, target: str, named: str) -> None:
    assert named in problem(service.get(f"/api/{target}"), 404)["detail"]


@pytest.mark.parametrize(
    ("target", "place", "expected"),
    [
        ("defaults?a=x", "a", "is not an integer"),
        ("defaults?a=1&b=zz", "b", "is not an integer"),
        ("defaults?a=1&a=2", "a", "takes one value, and has 2"),
        ("arrays?v=1&v=x", "v[1]", "is not an integer"),
        ("fit?boxWidth=q", "boxWidth", "is not an integer"),
    ],
)
def test_invalid_values_are_refused_even_if_there_is_a_default(
    service: Service, target: str, place: str, expected: str
) -> None:
    [error] = problem(service.get(f"/api/{target}"), 400)["errors"]
    assert error["path"] == place
    assert expected in error["message"]


@pytest.mark.parametrize(
    ("target", "received"),
    [
        ("ignoring?v=", ""),
        ("ignoring?v=null", "null"),
        ("emptying?v=", "NULL"),
        ("emptying?v=null", "null"),
        ("literally?v=NuLL", "NULL1"),
        ("literally?v=&n=null", "NULL"),
        ("literally?v=", "1"),
    ],
)
def test_null_handling_of_the_annotation_applies(service: Service, target: str, received: str) -> None:
    assert answer(service.get(f"/api/{target}")) == (200, TEXT, received)


def test_null_handling_of_the_configuration(database: Database, service: Service, serve: Serve) -> None:
    """The fixture `service` loads the functions; annotations have precedence."""
    emptying = serve(database, settings={"Service:QueryStringNullHandling": "EmptyString"})
    assert answer(emptying.get("/api/defaults?a=1&c="))[2] == "1|10|NULL"
    assert answer(emptying.get("/api/ignoring?v="))[2] == ""


@pytest.mark.parametrize(("query", "status"), [("a=1&b=x", 200), ("a=&b=x", 204)])
def test_strict_function_with_a_null_is_not_called(service: Service, query: str, status: int) -> None:
    assert service.get(f"/api/strict-one?{query}").status_code == status


def test_invalid_text_for_types_without_local_validation_is_refused(service: Service) -> None:
    number = [type for type, _, _ in CONVERSIONS].index("mood")
    members = problem(service.get(f"/take/{number}?v=angry"), 400)
    message = "parameter 'v' (mood): invalid input value for enum mood: \"angry\""
    assert (members["detail"], members["errors"]) == (message, [{"parameter": "v", "path": "v", "message": message}])


def test_a_body_of_a_query_endpoint_is_ignored(service: Service) -> None:
    assert answer(service.request("GET", "/api/defaults?a=1", content=b"{]")) == (200, TEXT, "1|10|x, y")


def test_overlong_list_is_bound_whole(service: Service) -> None:
    query = "&".join(f"v={n}" for n in range(500))
    assert answer(service.get(f"/api/arrays?{query}")) == (200, TEXT, "{" + ",".join(map(str, range(500))) + "}")


HEADERS = """
create function probe(_a int default 1, _headers json default null) returns json language sql stable
  as 'select _headers';
comment on function probe(int, json) is 'HTTP';
"""


def test_parameter_called_headers_receives_the_request_headers(own_database: Database, serve_once: Serve) -> None:
    """`RequestHeadersMode` is `Parameter` by default (binding-23); a request cannot forge what it receives."""
    service = serve_once(own_database, HEADERS)
    response = service.get("/api/probe", headers={"x-probe": "one", "accept": "a/b"})
    received = {name.lower(): value for name, value in response.json().items()}
    assert (response.headers["content-type"], received["x-probe"], received["accept"]) == (JSON, "one", "a/b")
    forged = service.get("/api/probe?headers=%7B%7D", headers={"x-probe": "two"})
    assert {name.lower(): value for name, value in forged.json().items()}["x-probe"] == "two"


def test_unnamed_parameters_that_leave_a_gap_are_404_in_every_pool(own_database: Database, serve_once: Serve) -> None:
    sql = """create function sum(int default 1, int default 2) returns int language sql stable as 'select $1 + $2';
        comment on function sum(int, int) is 'HTTP GET';"""
    service = serve_once(own_database, sql)
    for _ in range(40):
        assert service.get("/api/sum?$1=3&$2=4").text == "7"
    for _ in range(5):
        problem(service.get("/api/sum?$2=4"), 404)
    assert service.get("/api/sum?$1=3").text == "5"


@pytest.mark.parametrize("written", ["{1,2}", "[1,2]", "1,2"])
def test_an_array_in_one_text_gets_an_error_with_the_expected_form(service: Service, written: str) -> None:
    detail = problem(service.get(f"/api/arrays?v={written}"), 400)["detail"]
    assert detail == (
        f"parameter 'v' (integer): '{written}' is not an integer; "
        "elements of an array are parameters of the same name, one for each"
    )
