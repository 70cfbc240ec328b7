"""Effects of comments on requests: composites as parameters, `param`, rules, headers, expressions, errors."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, ask, cases, check
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = """
create schema shop;
create type box_size as (width int, unit_code text);
create type shop.label as (text text, at timestamp, tags text[], "Odd Name" boolean);
create type crate as (code text, size box_size);
create table item (item_id int, title text, price numeric(8,2));
create domain positive as int check (value > 0);
"""

AB = "select format('%s|%s', coalesce(_a::text, 'NULL'), coalesce(_b::text, 'NULL'))"
HEADERS = "select coalesce(_headers::json ->> 'x-one', _headers::json ->> 'X-One', 'none')"

ROUTINES = [
    # composite and table types
    ("get_box(_box box_size) returns text", "select coalesce(_box::text, 'NULL')", "HTTP"),
    ("post_box(_box box_size, _n int default 1) returns text", "select _box::text || _n", "HTTP"),
    ("post_two_boxes(_one box_size, _two box_size) returns text", "select _one::text || _two::text", "HTTP"),
    ("post_label(_l shop.label) returns text", "select _l::text", "HTTP"),
    ("post_item(_item item) returns setof item", "select (_item).*", "HTTP"),
    ("post_crate(_c crate) returns text", "select _c::text", "HTTP"),
    ("post_boxes(_boxes box_size[]) returns text", "select _boxes::text", "HTTP"),
    ("get_unnamed_box(box_size) returns text", "select $1::text", "HTTP"),
    ("get_box_default(_box box_size default row(1,'x')) returns text", "select _box::text", "HTTP"),
    ("box_header(_box box_size) returns text", "select 'x'", "HTTP GET\nX-Width: {width}/{boxWidth}/{_box_width}"),
    ("get_strict_box(_box box_size) returns text strict", "select _box::text", "HTTP"),
    ("path_box(_box box_size) returns text", "select _box::text", "HTTP GET /path-box/{boxWidth}"),
    # param
    ("get_renamed(_a int, _b text) returns text", AB, "HTTP\nparam _a is number"),
    ("get_renamed_short(_a int, _b text) returns text", AB, "HTTP\nparam a Some_Name\nparameter b other"),
    ("get_renamed_unnamed(int, text) returns text", "select $1 || $2", "HTTP\nparam $1 is id\nparam $2 label"),
    ("get_retyped(_a text, _b text default null) returns text", AB, "HTTP\nparam _a type is int"),
    ("get_renamed_retyped(_a text, _b text default null) returns text", AB, "HTTP\nparam _a is n integer"),
    ("get_defaulted(_a int, _b text) returns text", AB, "HTTP\nparam _a default 5\nparam _b default 'two words'"),
    ("get_defaulted_null(_a int, _b text) returns text", AB, "HTTP\nparam a = 7\nparam b default null"),
    ("get_defaulted_none(_a int, _b text) returns text", AB, "HTTP\nparam a default\nparam b default ''"),
    ("get_all_at_once(_a int, _b text) returns text", AB,
     "HTTP\nparam _a is page int default 1\nparam _b is q default all"),
    ("get_param_unknown(_a int, _b text) returns text", AB, "HTTP\nparam _z is y\nparam _a is 1bad"),
    ("post_defaulted(_a int, _b text) returns text", AB, "HTTP\nparam _a default 5"),
    ("get_strict_defaulted(_a int, _b text) returns text strict", AB, "HTTP\nparam _a default null"),
    ("renamed_path(_a int, _b text default 'd') returns text", AB, "HTTP GET /renamed-path/{id}\nparam _a is id"),
    ("renamed_header(_a int, _b text default 'd') returns text", AB, "HTTP GET\nparam _a is num\nX-Num: {num}"),
    # rules
    ("post_checked(_mail text, _name text default 'x') returns text", "select 'ok'",
     "HTTP\nvalidate _mail using required, email"),
    ("get_checked(_mail text default null) returns text", "select 'ok'",
     "HTTP\nvalidation mail using not_null,not_empty"),
    ("post_two_checks(_a text, _b text) returns text", "select 'ok'",
     "HTTP\nvalidate _a using required\nvalidate _b using not_empty"),
    ("post_not_null(_a int) returns text", "select 'ok'", "HTTP\nvalidate _a using not_null"),
    ("post_rule_strict(_a text) returns text strict", "select 'ok'", "HTTP\nvalidate _a using required"),
    # request headers
    ("get_headers(_headers json default null) returns text", HEADERS, "HTTP"),
    ("get_headers_text(_headers text default null) returns text", HEADERS, "HTTP"),
    ("get_headers_needed(_headers json) returns text", HEADERS, "HTTP"),
    ("get_headers_ignored(_headers json default null) returns text", HEADERS, "HTTP\nrequest_headers_mode ignore"),
    ("get_headers_named(_h json default null) returns text", "select coalesce(_h ->> 'x-one', _h ->> 'X-One', 'none')",
     "HTTP\nrequest_headers parameter\nrequest_headers_parameter_name _h"),
    ("get_headers_named_api(_my_h json default null) returns text",
     "select coalesce(_my_h ->> 'x-one', _my_h ->> 'X-One', 'none')", "HTTP\nrequest-headers-param-name _my_h"),
    ("get_headers_context() returns text",
     "select coalesce(current_setting('request.headers', true)::json ->> 'x-one', "
     "current_setting('request.headers', true)::json ->> 'X-One', 'none')", "HTTP\nrequest_headers_mode context"),
    ("get_headers_no_context() returns text",
     "select coalesce(nullif(current_setting('request.headers', true), ''), 'none')", "HTTP"),
    # expressions
    ("get_resolved(_a int, _b text default null) returns text", AB, "HTTP\n_b = select 'from ' || {_a}::text"),
    ("get_resolved_at(_a int, _b text default null) returns text", AB, "HTTP\n@_b = select 'at'"),
    ("get_resolved_none(_a int, _b text default 'd') returns text", AB, "HTTP\n_b = select 'x' where false"),
    ("get_resolved_null(_a int, _b text default 'd') returns text", AB, "HTTP\n_b = select null"),
    ("get_resolved_needed(_a int, _b text) returns text", AB, "HTTP\n_b = select upper('x') || {a}::text"),
    ("get_resolved_chain(_a text default null, _b text default null) returns text", AB,
     "HTTP\n_a = select 'first'\n_b = select {_a} || ' second'\nX-A: {_a}"),
    ("get_resolved_typed(_a int default null, _b date default null) returns text", AB,
     "HTTP\n_a = select 40 + 2\n_b = select date '2024-01-01'"),
    ("get_resolved_strict(_a int, _b text default null) returns text strict", AB, "HTTP\n_b = select 'x'"),
    ("get_resolved_quote(_a text, _b text default null) returns text", AB, "HTTP\n_b = select '[' || {_a} || ']'"),
    ("post_resolved(_a int, _b text default null) returns text", AB, "HTTP\n_b = select 'p' || {_a}::text"),
    ("get_resolved_unnamed(int, text) returns text", "select $1 || $2",
     "HTTP\nparam $1 id\nparam $2 found\nfound = select 'n' || {id}::text"),
    # response headers
    ("get_with_headers(_a int, _b text default null) returns text", AB,
     "HTTP\nX-A: {_a}\nX-B: [{b}]\nX-Both: {a}-{_B}\nX-Stray: {not here} {}\nX-Fallback: {!b:none}\nX-Plain: a: b"),
    ("get_twice(_a int default 1) returns text", "select 'x'", "HTTP\nX-One: a\nX-One: b\nCache-Control: no-store"),
    ("get_typed() returns text", "select '<b>'", "HTTP\nContent-Type: text/html; charset=utf-8"),
    ("get_typed_last() returns text", "select '<b>'", "HTTP\ncontent-type: text/a\nContent_Type: text/b"),
    ("get_typed_rows() returns setof int", "select 1", "HTTP\nContent-Type: application/vnd.x+json"),
    ("get_headers_204() returns void", "select null", "HTTP GET\nX-One: a"),
    ("get_headers_error(_a int) returns int", "select 1 / _a", "HTTP\nX-One: a\nContent-Type: text/csv"),
    # errors
    ("raise_plain() returns text language plpgsql", "begin raise exception 'Box full'; end", "HTTP GET"),
    ("raise_formatted(_a int) returns text language plpgsql",
     "begin raise exception 'Box % is \"full\"', _a using hint = 'try', detail = 'more'; end", "HTTP GET"),
    ("raise_code(_code text) returns text language plpgsql", "begin raise exception 'said' using errcode = _code; end",
     "HTTP GET"),
    ("raise_assert() returns text language plpgsql", "begin assert false, 'must hold'; return ''; end", "HTTP GET"),
    ("raise_set() returns setof int language plpgsql", "begin return next 1; raise exception 'late'; end", "HTTP GET"),
    ("raise_void() returns void language plpgsql", "begin raise exception 'void'; end", "HTTP GET"),
    ("procedure raise_proc() language plpgsql", "begin raise exception 'proc'; end", "HTTP GET"),
    ("divide(_a int) returns int", "select 1 / _a", "HTTP GET"),
    ("no_row(_a int) returns int", "select _a where false", "HTTP GET"),
    ("too_long(_a text) returns varchar(3)", "insert into item(title, price) values (_a, 1e9); select 'x'::varchar",
     "HTTP GET"),
    ("bad_domain(_a positive) returns int", "select _a::int", "HTTP GET"),
    ("not_allowed() returns text language plpgsql",
     "begin raise insufficient_privilege using message = 'hands off'; end", "HTTP GET"),
    ("slow() returns text", "select pg_sleep(5)::text", "HTTP GET\ntimeout 50ms"),
    ("slow_assigned() returns text", "select pg_sleep(5)::text", "HTTP GET\ncommand_timeout = 50 milliseconds"),
    ("quick() returns text", "select 'quick'", "HTTP GET\ntimeout 5 minutes"),
    ("timeout_wrong() returns text", "select 'quick'", "HTTP GET\ntimeout soon"),
    ("nowhere() returns text", "select 'x'", "HTTP GET\nconnection elsewhere"),
    ("notice() returns text language plpgsql", "begin raise notice 'n'; raise warning 'w'; return 'said'; end",
     "HTTP GET"),
]  # fmt: skip

CASES: list[RequestContext] = [
    ("GET /api/get-box?boxWidth=4&boxUnitCode=cm", "200T (4,cm)"),
    ("GET /api/get-box", "200T (,)"),
    ("GET /api/get-box?boxWidth=", "200T (,)"),
    ("GET /api/get-box?boxUnitCode=", '200T (,"")'),
    ("GET /api/get-box?boxWidth=q", "400 parameter '"),
    ("GET /api/get-box?box=1", "404 "),
    ("GET /api/get-box?width=1", "404 width"),
    ('POST /api/post-box {"boxWidth":4,"boxUnitCode":"a,b"}', '200T (4,"a,b")1'),
    ('POST /api/post-box {"boxWidth":null,"n":2}', "200T (,)2"),
    ("POST /api/post-box {}", "200T (,)1"),
    ('POST /api/post-box {"boxWidth":"x"}', "400 parameter '"),
    ('POST /api/post-box {"boxHeight":1}', "404 boxHeight"),
    ('POST /api/post-two-boxes {"oneWidth":1,"twoUnitCode":"x"}', "200T (1,)(,x)"),
    ('POST /api/post-label {"lText":"a b","lAt":"2024-01-15T10:30:00","lTags":["x",null],"lOdd Name":true}',
     '200T ("a b","2024-01-15 10:30:00","{x,NULL}",t)'),
    ('POST /api/post-item {"itemItemId":1,"itemTitle":"t","itemPrice":2.5}',
     '200 [{"itemId":1,"title":"t","price":2.50}]'),
    ('POST /api/post-item {"itemTitle":"t"}', '200 [{"itemId":null,"title":"t","price":null}]'),
    ('POST /api/post-crate {"cCode":"k","cSize":"(4,cm)"}', '200T (k,"(4,cm)")'),
    ('POST /api/post-boxes {"boxes":["(1,cm)","(2,)"]}', '200T {"(1,cm)","(2,)"}'),
    ("GET /api/get-unnamed-box?width=4", "200T (4,)"),
    ("GET /api/get-box-default?boxWidth=4", "200T (4,)"),
    ("GET /api/get-strict-box?boxWidth=4&boxUnitCode=m", "200T (4,m)"),
    ("GET /api/get-strict-box?boxWidth=4", "204"),
    ("GET /path-box/7", "200T (7,)"),
    ("GET /path-box/7?boxUnitCode=m", "200T (7,m)"),
    ("GET /api/get-renamed?number=4&b=x", "200T 4|x"),
    ("GET /api/get-renamed?a=4&b=x", "404 a"),
    ("GET /api/get-renamed-short?Some_Name=4&other=x", "200T 4|x"),
    ("GET /api/get-renamed-short?someName=4&other=x", "404 someName"),
    ("GET /api/get-renamed-unnamed?id=4&label=x", "200T 4x"),
    ("GET /api/get-retyped?a=4", "200T 4|NULL"),
    ("GET /api/get-retyped?a=x", "400 parameter '"),
    ("GET /api/get-renamed-retyped?n=4", "200T 4|NULL"),
    ("GET /api/get-renamed-retyped?n=x", "400 parameter '"),
    ("GET /api/get-defaulted", "200T 5|two words"),
    ("GET /api/get-defaulted?a=6", "200T 6|two words"),
    ("GET /api/get-defaulted?a=x", "400 parameter '"),
    ("GET /api/get-defaulted-null", "200T 7|NULL"),
    ("GET /api/get-defaulted-none", "200T NULL|"),
    ("GET /api/get-all-at-once", "200T 1|all"),
    ("GET /api/get-all-at-once?page=2&q=x", "200T 2|x"),
    ("GET /api/get-param-unknown?a=1&b=x", "200T 1|x"),
    ('POST /api/post-defaulted {"b":"x"}', "200T 5|x"),
    ('POST /api/post-defaulted {"a":null,"b":"x"}', "200T NULL|x"),
    ("GET /api/get-strict-defaulted?b=x", "204"),
    ("GET /renamed-path/4", "200T 4|d"),
    ('POST /api/post-checked {"mail":"a@b.c"}', "200T ok"),
    ('POST /api/post-checked {"mail":"x"}', "400 Parameter 'mail' must be a valid email address"),
    ('POST /api/post-checked {"mail":""}', "400 Parameter 'mail' is required"),
    ('POST /api/post-checked {"mail":null}', "400 Parameter 'mail' is required"),
    ("POST /api/post-checked {}", "404 mail"),
    ("GET /api/get-checked", "200T ok"),
    ("GET /api/get-checked?mail=", "400 Parameter 'mail' cannot be empty"),
    ('POST /api/post-two-checks {"a":"","b":""}', "400 Parameter 'a' is required"),
    ('POST /api/post-two-checks {"a":"x","b":""}', "400 Parameter 'b' cannot be empty"),
    ('POST /api/post-two-checks {"a":"x","b":null}', "200T ok"),
    ('POST /api/post-not-null {"a":null}', "400 Parameter 'a' cannot be null"),
    ('POST /api/post-not-null {"a":1}', "200T ok"),
    ('POST /api/post-rule-strict {"a":""}', "400 Parameter 'a' is required"),
    ("GET /api/get-headers-needed", "404 headers"),
    # A value of the same name cannot replace a parameter that the service fills from the request's headers.
    ('GET /api/get-headers?headers={"x-one":"mine"}', "200T none"),
    ("GET /api/get-headers-no-context", "200T none"),
    ("GET /api/get-resolved?a=1", "200T 1|from 1"),
    ("GET /api/get-resolved?a=1&b=mine", "200T 1|from 1"),
    ("GET /api/get-resolved?a=1&c=mine", "404 c"),
    ("GET /api/get-resolved-at?a=1", "200T 1|at"),
    ("GET /api/get-resolved-none?a=1", "200T 1|NULL"),
    ("GET /api/get-resolved-null?a=1", "200T 1|NULL"),
    ("GET /api/get-resolved-needed?a=1", "200T 1|X1"),
    ("GET /api/get-resolved-needed", "404 a"),
    ("GET /api/get-resolved-chain", "200T first|first second"),
    ("GET /api/get-resolved-typed", "200T 42|2024-01-01"),
    ("GET /api/get-resolved-strict?a=1", "200T 1|x"),
    ("GET /api/get-resolved-strict?a=", "204"),
    ("GET /api/get-resolved-quote?a=';drop%20table%20item;--", "200T ';drop table item;--|[';drop table item;--]"),
    ('POST /api/post-resolved {"a":3}', "200T 3|p3"),
    ('POST /api/post-resolved {"a":3,"b":"mine"}', "200T 3|p3"),
    ("GET /api/get-resolved-unnamed?id=4", "200T 4n4"),
    ("GET /api/get-typed", "200 <b>", {"content-type": "text/html; charset=utf-8"}),
    ("GET /api/get-typed-last", "200 <b>", {"content-type": "text/b"}),
    ("GET /api/get-typed-rows", "200 [1]", {"content-type": "application/vnd.x+json"}),
    ("GET /api/raise-plain", "400 Box full|P0001"),
    ("GET /api/raise-formatted?a=1", '400 Box 1 is "full"|more'),
    ("GET /api/raise-code?code=P0001", "400 said|P0001"),
    ("GET /api/raise-code?code=42501", "403 Insufficient Privilege|42501"),
    ("GET /api/raise-code?code=22012", "500 22012: said|22012"),
    ("GET /api/raise-code?code=23505", "409 said|23505"),
    ("GET /api/raise-code?code=P0002", "500 P0002: said|P0002"),
    ("GET /api/raise-code?code=45000", "500 45000: said|45000"),
    ("GET /api/raise-code?code=P0004", "400 said|P0004"),
    ("GET /api/raise-assert", "400 must hold|P0004"),
    ("GET /api/raise-set", "400 late|P0001"),
    ("GET /api/raise-void", "400 void|P0001"),
    ("GET /api/raise-proc", "400 proc|P0001"),
    ("GET /api/divide?a=0", "500 22012: division by zero|22012"),
    ("GET /api/divide?a=1", "200T 1"),
    ("GET /api/no-row?a=1", "200T"),
    ("GET /api/too-long?a=x", "400 numeric field overflow|22003"),
    ("GET /api/bad-domain?a=0", "400 parameter '"),
    ("GET /api/not-allowed", "403 Insufficient Privilege|42501"),
    ("GET /api/slow", "504 Command execution timed out"),
    ("GET /api/slow-assigned", "504 Command execution timed out"),
    ("GET /api/quick", "200T quick"),
    ("GET /api/timeout-wrong", "200T quick"),
    ("GET /api/nowhere", "500 Connection name elsewhere could not be found"),
    ("GET /api/notice", "200T said"),
    ("GET /api/get-headers-error?a=0", "500 22012"),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TYPES + routines(ROUTINES))


@pytest.mark.parametrize("context", cases(CASES))
def test_annotated_request_gets_the_expected_response(service: Service, context: RequestContext) -> None:
    check(service, context)


HEADS = [
    ("get-with-headers?a=1", {"x-a": "1", "x-b": "[]", "x-both": "1-", "x-stray": "{not here} {}",
                              "x-fallback": "none", "x-plain": "a: b"}),
    ("get-with-headers?a=1&b=y", {"x-b": "[y]", "x-both": "1-y", "x-fallback": "y"}),
    ("get-twice", {"x-one": "a, b", "cache-control": "no-store"}),
    ("get-headers-204", {"x-one": "a"}),
    ("get-headers-error?a=0", {"x-one": "a", "content-type": "application/problem+json"}),
    ("get-resolved-chain", {"x-a": "first"}),
    ("renamed-header?num=4", {"x-num": "4"}),
    ("box-header?boxWidth=3", {"x-width": "3/3/3"}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "expected"), HEADS, ids=[target for target, _ in HEADS])
def test_comment_sets_response_headers(service: Service, target: str, expected: dict[str, str]) -> None:
    headers = ask(service, f"GET /api/{target}").headers
    assert {name: headers.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("path", "received"),
    [
        ("get-headers", "one"),
        ("get-headers-text", "one"),
        ("get-headers-ignored", "none"),
        ("get-headers-named", "one"),
        ("get-headers-named-api", "one"),
        ("get-headers-context", "one"),
    ],
)
def test_routine_receives_request_headers(service: Service, path: str, received: str) -> None:
    assert ask(service, f"GET /api/{path}", headers={"X-One": "one"}).text == received
