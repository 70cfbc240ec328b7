"""Cached responses: which, their keys, their lifetime, and their invalidation (caching-1 to caching-38).

Every routine here counts its runs in a sequence and returns the count, so a cached response is a repeated one.
"""

from __future__ import annotations

import re

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create table note (id int primary key, text text not null);
insert into note values (1, 'one'), (2, 'two');

create function one(_a int default 0, _b text default null) returns bigint language sql as 'select ran()';
comment on function one(int, text) is 'HTTP GET
cached';
create function by_a(_a int, _b text default null) returns bigint language sql as 'select ran()';
comment on function by_a(int, text) is 'HTTP GET
cached _a';
create function by_nothing_known(_a int) returns bigint language sql as 'select ran()';
comment on function by_nothing_known(int) is 'HTTP GET
cached _nothing';
create function short(_a int) returns bigint language sql as 'select ran()';
comment on function short(int) is 'HTTP GET
cached
cache_expires 300 ms';
create function long(_a int) returns bigint language sql as 'select ran()';
comment on function long(int) is 'HTTP GET
cached
cache_expires_in 5 minutes';
create function only_expires(_a int) returns bigint language sql as 'select ran()';
comment on function only_expires(int) is 'HTTP GET
cache_expires 5 minutes';
create function rows(_n int) returns table (n int, run bigint) language sql
    as 'select i, r from (select ran() r) r, generate_series(1, _n) i';
comment on function rows(int) is 'HTTP GET
cached';
create function record(_a int) returns table (a int, run bigint) language sql as 'select _a, ran()';
comment on function record(int) is 'HTTP GET
single
cached';
create function no_record(_a int) returns table (a int, run bigint) language sql as
    'select _a, ran() where ran() is null';
comment on function no_record(int) is 'HTTP GET
single
cached';
create function nothing(_a int) returns text language sql as $$ select nullif(ran(), ran() - 1)::text where false $$;
create function null_text(_a int) returns text language sql as $$ select nullif(ran() * 0, 0)::text $$;
comment on function null_text(int) is 'HTTP GET
cached
text_response_null_handling null_literal';
create function failing(_a int) returns int language plpgsql as
    $$ begin raise exception 'run %', ran(); end $$;
comment on function failing(int) is 'HTTP GET
cached';
create function done(_a int) returns void language sql as 'select ran()';
comment on function done(int) is 'HTTP POST
cached';
create function as_raw(_a int) returns table (a int, run bigint) language sql as 'select _a, ran()';
comment on function as_raw(int) is 'HTTP GET
raw
cached';
create function as_bytes(_a int) returns bytea language sql as $$ select convert_to(ran()::text || E'\\x01', 'utf8') $$;
comment on function as_bytes(int) is 'HTTP GET
cached';
create function as_json(_a int) returns json language sql as $$ select json_build_object('run', ran()) $$;
comment on function as_json(int) is 'HTTP GET
cached';
create function as_array(_a int) returns bigint[] language sql as $$ select array[ran(), _a] $$;
comment on function as_array(int) is 'HTTP GET
cached';
create function tags(_tags text[] default null) returns bigint language sql as 'select ran()';
comment on function tags(text[]) is 'HTTP GET
cached';
create function posted(_a int, _b jsonb default null) returns bigint language sql as 'select ran()';
comment on function posted(int, jsonb) is 'HTTP POST
cached';
create function over(_a int) returns bigint language sql as 'select ran()';
create function over(_a text, _b text) returns bigint language sql as 'select ran()';
comment on function over(int) is 'HTTP GET
cached';
comment on function over(text, text) is 'HTTP GET
cached';
create function at_path(_id int, _x int default 0) returns bigint language sql as 'select ran()';
comment on function at_path(int, int) is 'HTTP GET /api/at/{_id}
cached';
create function headed(_a text) returns bigint language sql as 'select ran()';
comment on function headed(text) is 'HTTP GET
cached _none
X-Value: {_a}';
create function resolved(_a text, _token text default null) returns bigint language sql as 'select ran()';
comment on function resolved(text, text) is 'HTTP GET
cached
_token = select current_setting(''server_version'') || {_a}';
create function strict_one(_a int) returns bigint strict language sql as 'select ran()';
comment on function strict_one(int) is 'HTTP GET
cached';
comment on table note is 'HTTP
cached';
create function hot(_a int, _to text default null) returns bigint language sql as 'select ran()';
comment on function hot(int, text) is 'HTTP GET
cache_profile hot';
create function timed(_t timestamp default null, _at timestamptz default null, _shops text[] default null)
    returns bigint language sql as 'select ran()';
comment on function timed(timestamp, timestamptz, text[]) is 'HTTP GET
cache_profile timed';
create function hot_b(_a int, _b int default 0) returns bigint language sql as 'select ran()';
comment on function hot_b(int, int) is 'HTTP GET
cached
cache_profile one_key';
create function whole(_a int) returns bigint language sql as 'select ran()';
comment on function whole(int) is 'HTTP GET
cache_profile whole';
create function whole_but_listed(_a int, _b int default 0) returns bigint language sql as 'select ran()';
comment on function whole_but_listed(int, int) is 'HTTP GET
cached _a
cache_profile whole';
create function renamed(_sku text, _x int default 0) returns bigint language sql as 'select ran()';
comment on function renamed(text, int) is 'HTTP GET
cached _sku
param _sku code';
create function maybe(_id int default 0) returns bigint language sql as 'select ran()';
comment on function maybe(int) is 'HTTP GET /api/maybe/{_id?}
cached';
create function apart(_a int) returns bigint language sql as 'select ran()';
comment on function apart(int) is 'HTTP GET
cached';
"""

FILES = {
    "several.sql": "-- HTTP GET\n-- cached\n-- param $1 a int\nselect $1 as a;\nselect ran() as run;",
    "in-file.sql": "-- HTTP GET\n-- cached $1\n-- param $1 a int\n-- param $2 b text default null\n"
    "select ran() as run, $1 as a, $2 as b;",
}

SETTINGS = {
    "Service:CrudSource:Enabled": "true",
    "CacheOptions:Enabled": "true",
    "CacheOptions:InvalidateCacheSuffix": "purge",
    "CacheOptions:MaxCacheableRows": "10",
    "CacheOptions:Profiles:hot:Enabled": "true",
    "CacheOptions:Profiles:hot:Type": "memory",
    "CacheOptions:Profiles:hot:Expiration": "1 hour",
    "CacheOptions:Profiles:hot:When:0:Parameter": "to",
    "CacheOptions:Profiles:hot:When:0:Value": "Now",
    "CacheOptions:Profiles:hot:When:0:Then": "SKIP",
    "CacheOptions:Profiles:hot:When:1:Parameter": "_to",
    "CacheOptions:Profiles:hot:When:1:Value:0": "soon",
    "CacheOptions:Profiles:hot:When:1:Value:1": "later",
    "CacheOptions:Profiles:hot:When:1:Then": "200ms",
    "CacheOptions:Profiles:timed:Enabled": "true",
    "CacheOptions:Profiles:timed:Type": "Memory",
    "CacheOptions:Profiles:timed:When:0:Parameter": "t",
    "CacheOptions:Profiles:timed:When:0:Value": "2026-01-02T03:04:05",
    "CacheOptions:Profiles:timed:When:0:Then": "skip",
    "CacheOptions:Profiles:timed:When:1:Parameter": "at",
    "CacheOptions:Profiles:timed:When:1:Value": "2026-01-02T03:04:05Z",
    "CacheOptions:Profiles:timed:When:1:Then": "skip",
    "CacheOptions:Profiles:timed:When:2:Parameter": "shops",
    "CacheOptions:Profiles:timed:When:2:Value:0": "East",
    "CacheOptions:Profiles:timed:When:2:Value:1": '["a, b","c"]',
    "CacheOptions:Profiles:timed:When:2:Value:2": "x,y",
    "CacheOptions:Profiles:timed:When:2:Value:3": '["no JSON',
    "CacheOptions:Profiles:timed:When:2:Then": "skip",
    "CacheOptions:Profiles:one_key:Enabled": "true",
    "CacheOptions:Profiles:one_key:Type": "Memory",
    "CacheOptions:Profiles:one_key:Parameters:0": "a",
    "CacheOptions:Profiles:whole:Enabled": "true",
    "CacheOptions:Profiles:whole:Type": "Memory",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    # Two workers, so that either may have the response.
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(database, SQL, {**SETTINGS, **file_settings(folder)}, workers=2)


def ask(service: Service, path: str, method: str = "GET", **options: object) -> httpx.Response:
    """Send a request over a new connection, so that any worker may receive it."""
    with service.new_client() as client:
        return client.request(method, path, **options)  # type: ignore[arg-type]


def have_equal_responses(service: Service, *paths: str, method: str = "GET", **options: object) -> bool:
    """Return whether these requests get the same response from all workers."""
    responses = {ask(service, path, method, **options).text for path in paths for _ in range(4)}
    return len(responses) == 1


@pytest.mark.parametrize(
    "path",
    [
        "one?a=1", "one", "one?a=", "one?b=x", "by-a?a=1&b=x", "long?a=1", "rows?n=3", "rows?n=10", "rows?n=0",
        "record?a=1", "null-text?a=1", "as-bytes?a=1", "as-json?a=1", "as-array?a=1", "tags?tags=x&tags=y",
        "over?a=1", "over?a=1&b=2", "at/7", "at/7?x=1", "resolved?a=x", "strict-one?a=1", "note?id=1", "hot?a=1",
        "hot?a=1&to=soonest", "timed?t=2026-01-02T03:04:06", "timed?shops=x", "whole?a=1", "headed?a=1",
        "by-nothing-known?a=1",
    ],
)  # fmt: skip
def test_cached_response_is_returned_again(service: Service, path: str) -> None:
    first = ask(service, f"/api/{path}")
    assert first.status_code == 200
    for _ in range(4):
        again = ask(service, f"/api/{path}")
        assert (again.status_code, again.content, again.headers["content-type"]) == (
            200, first.content, first.headers["content-type"],
        )  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "only-expires?a=1", "rows?n=11", "rows?n=5000", "as-raw?a=1", "hot?a=1&to=now", "hot?a=1&to=NOW",
        # Keys use the values as sent, whatever text the database receives for them.
        "timed?t=2026-01-02T03:04:05", "timed?t=2026-01-02%2003:04:05", "timed?at=2026-01-02T03:04:05Z",
        "timed?shops=east", "timed?shops=x&shops=y", "timed?shops=a,%20b&shops=c",
    ],
)  # fmt: skip
def test_uncacheable_responses_are_not_stored(service: Service, path: str) -> None:
    assert ask(service, f"/api/{path}").text != ask(service, f"/api/{path}").text


def test_null_empty_and_failed_responses_are_not_cached(service: Service, database: Database) -> None:
    before = database.value("select last_value from runs")
    for _ in range(2):
        assert ask(service, "/api/no-record?a=1").text == "null"
        assert ask(service, "/api/done", "POST", json={"a": 1}).status_code == 204
        assert "run" in ask(service, "/api/failing?a=1").json()["title"]
    assert database.value("select last_value from runs") >= before + 6
    assert ask(service, "/api/failing?a=1").text != ask(service, "/api/failing?a=1").text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("one?a=5", "one?b=5"),
        ("one?a=1", "one?a=2"),
        ("one", "one?a=0"),
        ("one?b=", "one"),
        ("one?a=1&b=", "one?a=1"),
        ("one?a=1&b=x", "one?a=1&b=X"),
        ("one?b=1%1f2", "one?a=1&b=2"),
        ("one?b=NULL", "one?b="),
        ("tags?tags=x,y", "tags?tags=x&tags=y"),
        ("tags?tags=x&tags=y", "tags?tags=y&tags=x"),
        ("over?a=1", "over?a=1&b=1"),
        ("over?a=1", "apart?a=1"),
        ("at/1", "at/2"),
        ("by-a?a=1", "by-a?a=2"),
        ("by-nothing-known?a=1", "by-nothing-known?a=2"),
        ("resolved?a=x", "resolved?a=y"),
        ("rows?n=1", "rows?n=2"),
        ("hot-b?a=1", "hot-b?a=2"),
        ("whole-but-listed?a=1", "whole-but-listed?a=2"),
        ("note?id=1", "note?id=2"),
        ("renamed?code=1", "renamed?code=2"),
        ("in-file?a=1", "in-file?a=2"),
        ("maybe/1", "maybe"),
    ],
)
def test_different_arguments_have_different_cached_responses(service: Service, one: str, other: str) -> None:
    assert not have_equal_responses(service, f"/api/{one}", f"/api/{other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("by-a?a=1&b=x", "by-a?a=1&b=y"),
        ("by-a?a=1&b=x", "by-a?a=1"),
        ("one?a=9&b=x", "one?b=x&a=9"),
        ("hot-b?a=1&b=1", "hot-b?a=1&b=2"),
        ("whole-but-listed?a=1&b=1", "whole-but-listed?a=1&b=2"),
        ("renamed?code=1", "renamed?code=1&x=1"),
        ("in-file?a=1&b=x", "in-file?a=1&b=y"),
    ],
)
def test_parameters_outside_the_key_share_a_cached_response(service: Service, one: str, other: str) -> None:
    assert have_equal_responses(service, f"/api/{one}", f"/api/{other}")


def test_json_bodies_are_compared_by_values(service: Service) -> None:
    def posted(**body: object) -> str:
        return ask(service, "/api/posted", "POST", json=body).text

    assert posted(a=1) == posted(a=1)
    assert posted(a=1, b={"x": 1}) == posted(b={"x": 1}, a=1)
    assert len({posted(a=1), posted(a=2), posted(a=1, b=None), posted(a=1, b="x"), posted(a=1, b={"x": 2})}) == 5


def test_response_header_placeholders_are_filled_for_each_request(service: Service) -> None:
    first, second = ask(service, "/api/headed?a=one"), ask(service, "/api/headed?a=two")
    assert (first.headers["x-value"], second.headers["x-value"]) == ("one", "two")


def test_head_is_served_from_the_cached_response(service: Service, database: Database) -> None:
    body = ask(service, "/api/one?a=77").content
    before = database.value("select last_value from runs")
    head = ask(service, "/api/one?a=77", "HEAD")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(body)), b"")
    assert database.value("select last_value from runs") == before


def test_cached_response_expires(service: Service) -> None:
    first = ask(service, "/api/short?a=1").text
    wait_until(lambda: ask(service, "/api/short?a=1").text != first, "the response has expired")


def test_profile_rule_sets_the_lifetime(service: Service) -> None:
    first = ask(service, "/api/hot?a=5&to=LATER").text
    lasting = ask(service, "/api/hot?a=5").text
    wait_until(lambda: ask(service, "/api/hot?a=5&to=LATER").text != first, "the response has expired")
    assert ask(service, "/api/hot?a=5").text == lasting


@pytest.mark.parametrize(
    ("path", "purge"),
    [
        ("one?a=100&b=x", "one/purge?a=100&b=x"),
        ("at/100?x=1", "at/100/purge?x=1"),
        ("rows?n=7", "rows/purge?n=7"),
        ("resolved?a=100", "resolved/purge?a=100"),
        ("hot?a=100", "hot/purge?a=100"),
        ("note?id=1", "note/purge?id=1"),
        ("by-a?a=100&b=x", "by-a/purge?a=100&b=y"),
        ("over?a=100&b=1", "over/purge?a=100&b=1"),
        ("maybe/100", "maybe/100/purge"),
        ("maybe", "maybe/purge"),
        ("in-file?a=100&b=x", "in-file/purge?a=100"),
    ],
)
def test_invalidation_path_removes_the_cached_response(service: Service, path: str, purge: str) -> None:
    first = ask(service, f"/api/{path}").text
    gone = ask(service, f"/api/{purge}", "POST")
    assert (gone.status_code, gone.headers["content-type"], gone.text) == (
        200, "application/json", '{"invalidated":true}',
    )  # fmt: skip
    assert ask(service, f"/api/{purge}", "POST").text == '{"invalidated":false}'
    # The table returns its content, cached or not.
    assert path.startswith("note") or ask(service, f"/api/{path}").text != first


def test_invalidation_requires_the_parameters_of_the_endpoint(service: Service) -> None:
    assert ask(service, "/api/by-a/purge", "POST").status_code == 404
    assert ask(service, "/api/by-a/purge?a=1&other=1", "POST").status_code == 404
    assert ask(service, "/api/by-a/purge", "POST", json={"a": 1}).status_code == 404
    assert ask(service, "/api/posted/purge", "POST", json={"a": 1000}).json() == {"invalidated": False}
    assert ask(service, "/api/only-expires/purge?a=1", "POST").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "done", {"a": 1}), ("GET", "as-raw", None), ("GET", "several", None)],
)
def test_invalidation_of_uncacheable_endpoints_reports_false(
    service: Service, method: str, path: str, body: dict[str, int] | None
) -> None:
    query = "" if body else "?a=1"
    assert ask(service, f"/api/{path}{query}", method, json=body).status_code in (200, 204)
    gone = ask(service, f"/api/{path}/purge{query}", "POST", json=body)
    assert (gone.status_code, gone.headers["content-type"], gone.text) == (
        200, "application/json", '{"invalidated":false}',
    )  # fmt: skip
    assert ask(service, f"/api/{path}/purge", "POST", json=body and {}).status_code == 404


def test_invalidation_removes_only_the_response_of_its_arguments(service: Service) -> None:
    others = [ask(service, f"/api/one?a={a}").text for a in (201, 202)]
    ask(service, "/api/one?a=200")
    ask(service, "/api/one/purge?a=200", "POST")
    assert [ask(service, f"/api/one?a={a}").text for a in (201, 202)] == others


def test_cache_hits_and_invalidations_are_logged(service: Service, own_database: Database, serve_once: Serve) -> None:
    logged = serve_once(
        own_database,
        SQL,
        {**SETTINGS, "Service:LogCommands": "true", "Log:ConsoleMinimumLevel": "Debug",
         "Log:MinimalLevels:Default": "Debug",
         "Log:MinimalLevels:rowcall": "Debug"},
    )  # fmt: skip
    for method, path in (("GET", "one?a=1"), ("POST", "one/purge?a=1")):
        for _ in range(2):
            ask(logged, f"/api/{path}", method)
    logged.wait_for_log("/* cache invalidation: not found */")
    assert logged.log.count("/* from cache */") == 1
    # The log has a key without values if values are not logged.
    removals = re.findall(r"/purge\?a=1\n/\* cache invalidation: (.+) \*/ ([0-9A-F]{64}) ", logged.log)
    assert [word for word, _key in removals] == ["removed", "not found"]
    assert len({key for _word, key in removals}) == 1
    assert "GET /api/hot: cache profile 'hot'" in logged.log
