"""Binding of JSON bodies to parameters, and bodies that are not parameters (binding-3 to binding-20)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

CONVERSIONS = [
    ("smallint", "-7", "-7"),
    ("int", "2147483647", "2147483647"),
    ("int", '" 12 "', "12"),
    ("int", "null", "NULL"),
    ("bigint", "9007199254740993", "9007199254740993"),
    ("numeric", "1.50", "1.50"),
    ("numeric", "12345678901234567.123456789", "12345678901234567.123456789"),
    ("float8", "1e3", "1000"),
    ("boolean", "true", "true"),
    ("boolean", '"False"', "false"),
    ("uuid", '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("timestamp", '"2026-03-01T10:00:00+02:00"', "2026-03-01 08:00:00"),
    ("timestamptz", '"2026-03-01T10:00:00"', "2026-03-01 10:00:00+00"),
    ("date", '"2026-03-01"', "2026-03-01"),
    ("time", '"10:30"', "10:30:00"),
    ("text", '"a \\"b\\" \\u0436 \\ud83d\\ude00 \\n"', 'a "b" ж 😀 \n'),
    ("text", '""', ""),
    ("text", "null", "NULL"),
    ("text", "12.50", "12.50"),
    ("text", "true", "true"),
    ("jsonb", '{"k" : [1, {"x":null}]}', '{"k": [1, {"x": null}]}'),
    ("jsonb", '"{\\"k\\":1}"', '{"k": 1}'),
    ("jsonb", "[1, 2]", "[1, 2]"),
    ("jsonb", "3", "3"),
    ("jsonb", "false", "false"),
    ("jsonb", "null", "NULL"),
    ("json", '{"a":1}', '{"a":1}'),
    ("int[]", "[1, null, 3]", "{1,NULL,3}"),
    ("int[]", "[]", "{}"),
    ("int[]", "null", "NULL"),
    ("text[]", '["a", "", null, "b,c", "q\\"q"]', '{a,"",NULL,"b,c","q\\"q"}'),
    ("boolean[]", "[true, false]", "{t,f}"),
    ("jsonb[]", '[{"a":1}, null]', '{"{\\"a\\": 1}",NULL}'),
    ("timestamp[]", '["2026-03-01T10:00:00"]', '{"2026-03-01 10:00:00"}'),
    ("interval", '"2 hours"', "02:00:00"),
    ("mood", '"calm"', "calm"),
    ("percentage", "50", "50"),
    ("bytea", '"\\\\x00ff"', "\\x00ff"),
]
"""Type, JSON of member `v`, and the text that PostgreSQL receives."""

SQL = """
create type mood as enum ('calm', 'amber');
create domain percentage as int check (value between 0 and 100);
""" + "\n".join(
    f"create function take_{n}(_v {type}) returns text language sql as $$select coalesce(_v::text, 'NULL')$$;"
    f" comment on function take_{n}({type}) is 'HTTP POST /take/{n}';"
    for n, (type, _, _) in enumerate(CONVERSIONS)
)

OTHERS = """
create function defaults(_a int, _b int default 10, _c text default 'x') returns text language sql
  as $$select format('%s|%s|%s', coalesce(_a::text, 'NULL'), coalesce(_b::text, 'NULL'), coalesce(_c, 'NULL'))$$;
create function without() returns text language sql as $$select 'called'$$;
create function strict_one(_a int) returns text language sql strict as $$select 'ran'$$;
create function put_note(_parcel int, _body text) returns text language sql
  as $$select coalesce(_parcel::text, 'NULL') || ':' || coalesce(_body, 'NULL')$$;
create function memo(_body text) returns text language sql as $$select 'memo ' || _body$$;
create function memo(_body text, _kind text) returns text language sql as $$select _kind || ' ' || _body$$;
comment on function memo(text) is E'HTTP POST\\nbody_parameter_name _body';
comment on function memo(text, text) is E'HTTP POST\\nbody_parameter_name _body';
create procedure record_it(_a int) language sql as 'select _a';
comment on function defaults(int, int, text) is 'HTTP';
comment on function without() is 'HTTP';
comment on function strict_one(int) is 'HTTP';
comment on function put_note(int, text) is E'HTTP POST\\nbody_parameter_name _body';
comment on procedure record_it(int) is 'HTTP';
create function read_body(_a int) returns text language sql stable as $$select 'read ' || _a$$;
comment on function read_body(int) is E'HTTP GET\\nrequest_param_type body';
create function searched(_a int, _texts text[] default null) returns text language sql stable
  as $$select _a || coalesce(_texts::text, '')$$;
comment on function searched(int, text[]) is 'HTTP QUERY /searched/{_a?}';
create function searched_query(_a int) returns text language sql stable as $$select 'q' || _a$$;
comment on function searched_query(int) is E'HTTP QUERY /searched-query\\nparam_type query';
create function paged(_size int, _page int default 1) returns text language sql as $$select _size || '/' || _page$$;
comment on function paged(int, int) is 'HTTP POST /paged/{_page?}';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL + OTHERS)


@pytest.mark.parametrize(
    ("number", "value", "received"),
    [(n, value, seen) for n, (_, value, seen) in enumerate(CONVERSIONS)],
    ids=[f"{type}={value}" for type, value, _ in CONVERSIONS],
)
def test_json_value_is_converted_to_each_type(service: Service, number: int, value: str, received: str) -> None:
    response = service.post(f"/take/{number}", content=f'{{"v":{value}}}'.encode())
    assert answer(response) == (200, TEXT, received)


def test_json_object_for_a_text_parameter_is_passed_as_json_text(service: Service) -> None:
    number = [type for type, _, _ in CONVERSIONS].index("text")
    response = service.post(f"/take/{number}", content=b'{"v":{"a":1}}')
    assert response.text.replace(" ", "") == '{"a":1}'


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("int", "1.5"),
        ("int", "1.0"),
        ("int", "2147483648"),
        ("int", "true"),
        ("int", '"x"'),
        ("int", "{}"),
        ("boolean", "1"),
        ("boolean", '"yes"'),
        ("timestamp", "true"),
        ("uuid", "7"),
        ("int[]", '["x"]'),
        ("int[]", '{"a":1}'),
    ],
)
def test_value_of_the_wrong_type_gets_400_with_its_path(service: Service, type: str, value: str) -> None:
    number = [known for known, _, _ in CONVERSIONS].index(type)
    members = problem(service.post(f"/take/{number}", content=f'{{"v":{value}}}'.encode()), 400)
    assert "v" in members["detail"]
    [error] = members["errors"]
    assert (error["parameter"], error["path"]) == ("v", "v[0]" if value == '["x"]' else "v")


@pytest.mark.parametrize(
    ("body", "received"),
    [
        (b'{"a":1}', "1|10|x"),
        (b'{"c":null,"b":null,"a":null}', "NULL|NULL|NULL"),
        (b' \n{ "a" : 1 , "b" : 2 }\t', "1|2|x"),
        (b'{"\\u0061":1}', "1|10|x"),
        (b'\xef\xbb\xbf{"a":1}', "1|10|x"),
    ],
)
def test_missing_members_take_parameter_defaults(service: Service, body: bytes, received: str) -> None:
    assert answer(service.post("/api/defaults", content=body)) == (200, TEXT, received)


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "nonsense"])
def test_body_is_parsed_as_json_with_any_content_type(service: Service, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    assert answer(service.post("/api/defaults", content=b'{"a":1}', headers=headers)) == (200, TEXT, "1|10|x")


@pytest.mark.parametrize("body", [b"", b"  \r\n", b"{}", b"\xef\xbb\xbf"])
def test_empty_body_is_an_empty_object(service: Service, body: bytes) -> None:
    assert answer(service.post("/api/without", content=body)) == (200, TEXT, "called")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b"null",
        b"1",
        b'"text"',
        b'{"a":1,}',
        b'{"a":1} // comment',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":01}',
        b'{"a":1}{"b":2}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\\ud83d"}',
        b'\xef\xbb\xbf{"a":1',
        b'{"a":1,"a":2}',
    ],
)
def test_body_other_than_a_json_object_gets_400(service: Service, body: bytes) -> None:
    problem(service.post("/api/defaults", content=body), 400)


@pytest.mark.parametrize(
    ("body", "named"), [(b"{}", "a"), (b'{"a":1,"x":2}', "x"), (b'{"A":1}', "a"), (b'{"_a":1}', "_a")]
)
def test_missing_and_unknown_members_get_404_with_their_names(service: Service, body: bytes, named: str) -> None:
    assert named in problem(service.post("/api/defaults", content=body), 404)["detail"]


def test_query_string_of_a_body_endpoint_is_ignored(service: Service) -> None:
    assert answer(service.post("/api/defaults?a=9&zz=1", content=b'{"a":1}')) == (200, TEXT, "1|10|x")


def test_strict_function_with_a_null_is_not_called(service: Service) -> None:
    assert answer(service.post("/api/strict-one", content=b'{"a":null}')) == (204, None, "")


def test_procedure_is_called_with_body_arguments(service: Service) -> None:
    assert answer(service.post("/api/record-it", content=b'{"a":1}')) == (204, None, "")


@pytest.mark.parametrize(
    ("query", "body", "received"),
    [("parcel=7", b"hello {x}", "7:hello {x}"), ("parcel=7", b"", "7:"), ("parcel=", b"b", "NULL:b")],
)
def test_raw_body_parameter_takes_the_whole_body(service: Service, query: str, body: bytes, received: str) -> None:
    assert answer(service.post(f"/api/put-note?{query}", content=body)) == (200, TEXT, received)


def test_raw_body_endpoint_refuses_unknown_query_keys(service: Service) -> None:
    problem(service.post("/api/put-note?parcel=7&note=1", content=b"b"), 404)


def test_overloads_that_get_the_whole_body_are_selected_by_their_other_parameters(service: Service) -> None:
    assert answer(service.post("/api/memo", content=b"x")) == (200, TEXT, "memo x")
    assert answer(service.post("/api/memo?kind=red", content=b"x")) == (200, TEXT, "red x")
    assert "'colour'" in problem(service.post("/api/memo?colour=red", content=b"x"), 404)["detail"]


def test_chunked_body_is_accepted(service: Service) -> None:
    pieces = iter([b'{"a"', b":", b"1}"])
    assert answer(service.post("/api/defaults", content=pieces)) == (200, TEXT, "1|10|x")


def test_get_and_head_can_read_a_body(service: Service) -> None:
    assert answer(service.request("GET", "/api/read-body", content=b'{"a":7}')) == (200, TEXT, "read 7")
    head = service.request("HEAD", "/api/read-body", content=b'{"a":7}')
    assert (head.status_code, head.headers["content-length"]) == (200, "6")
    head = service.request("HEAD", "/api/read-body", content=iter([b'{"a"', b":7}"]))
    assert (head.status_code, head.headers["content-length"]) == (200, "6")


@pytest.mark.parametrize(
    ("path", "body", "received"),
    [
        ("/searched/7", b"{}", "7"),
        ("/searched/7", b'{"texts":["a",null]}', "7{a,NULL}"),
        ("/searched", b'{"a":8}', "8"),
        ("/searched-query?a=9", b"ignored", "q9"),
    ],
)
def test_query_method_reads_its_body(service: Service, path: str, body: bytes, received: str) -> None:
    assert answer(service.request("QUERY", path, content=body)) == (200, TEXT, received)


def test_get_on_a_query_route_gets_405(service: Service) -> None:
    response = service.get("/searched/7")
    problem(response, 405)
    assert response.headers["allow"] == "OPTIONS, QUERY"


@pytest.mark.parametrize(
    ("path", "body", "received"),
    [
        ("/paged/3", b'{"size":10}', "10/3"),
        ("/paged", b'{"size":10}', "10/1"),
        ("/paged/", b'{"size":10,"page":4}', "10/4"),
        ("/paged/3", b'{"size":10,"page":4}', "10/3"),
    ],
)
def test_optional_path_segment_combines_with_body_members(
    service: Service, path: str, body: bytes, received: str
) -> None:
    assert answer(service.post(path, content=body)) == (200, TEXT, received)
