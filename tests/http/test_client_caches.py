"""Response headers for clients and shared caches: `ETag` with 304, `Cache-Control`, `Vary` (RFC 9110, RFC 9111)."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

SQL = """
create table shelf (id int primary key, title text);
insert into shelf select i, repeat('x', 20) from generate_series(1, 1000) i;
comment on table shelf is 'HTTP GET
allow_anonymous
etag
cache_control public, max-age=60
vary Accept-Language';
create function kept(_a text default 'x') returns text language sql stable as $$ select repeat(_a, 100) $$;
comment on function kept(text) is 'HTTP GET
allow_anonymous
cached
etag
cache_control public, s-maxage=60, max-age=10
vary Accept-Language, X-Till';
create function uncached(_a text default 'x') returns text language sql stable as $$ select repeat(_a, 100) $$;
comment on function uncached(text) is 'HTTP GET
allow_anonymous
etag
cache_control public, max-age=60';
create function failing(_a int) returns int language sql as 'select 1 / _a';
comment on function failing(int) is 'HTTP GET
allow_anonymous
etag
cache_control public, max-age=60
X-Own: here';
create function streamed() returns setof text language sql as
    $$ select repeat('x', 1000) from generate_series(1, 3000) $$;
comment on function streamed() is 'HTTP GET
allow_anonymous
etag
cache_control no-cache';
create function shut() returns text language sql as $$ select 'in' $$;
comment on function shut() is 'HTTP GET
authorize
etag
cache_control public, s-maxage=600, max-age=60';
create function shut_line() returns text language sql as $$ select 'in' $$;
comment on function shut_line() is 'HTTP GET
authorize
Cache-Control: max-age=60, public';
create function shut_well() returns text language sql as $$ select 'in' $$;
comment on function shut_well() is 'HTTP GET
authorize
cache_control no-store';
create function personal(_user_id text default null) returns text language sql as
    $$ select coalesce(_user_id, 'anonymous') $$;
comment on function personal(text) is 'HTTP GET
allow_anonymous
user_parameters
cache_control max-age=60';
create function misspelt() returns text language sql as $$ select 'in' $$;
comment on function misspelt() is 'HTTP GET
allow_anonymous
cache_control max-age=often, public';
create function said(_a text default '') returns text language sql as $$ select 'said' $$;
comment on function said(text) is 'HTTP GET
allow_anonymous
Vary: Accept-Language';
create function printed() returns text language sql stable as $$ select 'printed' $$;
comment on function printed() is 'HTTP GET
allow_anonymous
etag
ETag: "3rd"';
create table volume (id int primary key, version int not null default 1);
insert into volume values (1);
comment on table volume is 'HTTP
allow_anonymous
disabled
enabled select
for select
HTTP GET /volumes/{id}
single
etag
version_column version';
"""

FILES = {"one.sql": "-- HTTP GET\n-- allow_anonymous\n-- etag\n-- cache_control public, max-age=60\nselect 1 as a;"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder: Path = write_files(tmp_path_factory.mktemp("files"), FILES)
    options = {
        "Service:CrudSource:Enabled": "true",
        "CacheOptions:Enabled": "true",
        "ResponseCompression:Enabled": "true",
        "ConnectionSettings:Pool:StreamAfterBytes": "100000",
    }
    return serve(database, member_sql() + SQL, {**EVERY_SCHEME, **options, **file_settings(folder)})


def ask(service: Service, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> httpx.Response:
    return service.request_once(method, f"/api/{path}", headers={"accept-encoding": "identity", **(headers or {})})


@pytest.mark.parametrize("path", ["shelf", "kept", "uncached", "one"])
def test_a_client_with_the_response_gets_304(service: Service, path: str) -> None:
    response = ask(service, path)
    mark = response.headers["etag"]
    assert mark.startswith('W/"')
    opaque = mark.removeprefix("W/")
    for expected in (mark, opaque, f'"other", {mark}', "*"):
        for method in ("GET", "HEAD"):
            again = ask(service, path, {"if-none-match": expected}, method)
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", mark)
            assert again.headers["cache-control"] == response.headers["cache-control"]
            assert again.headers.get("vary") == response.headers.get("vary")
            assert not {"content-type", "content-length"} & set(again.headers)
    assert ask(service, path, {"if-none-match": 'W/"other"'}).content == response.content
    head = ask(service, path, method="HEAD")
    assert (head.status_code, head.headers["etag"], head.content) == (200, mark, b"")


def test_compressed_response_has_the_same_etag(service: Service) -> None:
    plain = ask(service, "shelf")
    packed = ask(service, "shelf", {"accept-encoding": "gzip"})
    assert (packed.headers["content-encoding"], packed.json()) == ("gzip", plain.json())
    assert packed.headers["etag"] == plain.headers["etag"]
    again = ask(service, "shelf", {"accept-encoding": "gzip", "if-none-match": packed.headers["etag"]})
    assert (again.status_code, again.content, "content-encoding" in again.headers) == (304, b"", False)
    assert again.headers.get_list("vary") == packed.headers.get_list("vary") == ["Accept-Language", "Accept-Encoding"]


@pytest.mark.parametrize(("path", "mark"), [("/api/printed", '"3rd"'), ("/volumes/1", '"1"')])
def test_etag_of_the_routine_replaces_the_generated_one(service: Service, path: str, mark: str) -> None:
    plain = {"accept-encoding": "identity"}
    assert service.request_once("GET", path, headers=plain).headers.get_list("etag") == [mark]
    again = service.request_once("GET", path, headers={**plain, "if-none-match": mark})
    assert (again.status_code, again.content, again.headers.get_list("etag")) == (304, b"", [mark])
    assert service.request_once("GET", path, headers={**plain, "if-none-match": '"other"'}).status_code == 200


def test_streamed_response_has_no_etag(service: Service) -> None:
    response = ask(service, "streamed", {"if-none-match": "*"})
    assert (response.status_code, "etag" in response.headers) == (200, False)
    assert response.headers["cache-control"] == "no-cache"


def test_comment_sets_cache_control_and_vary(service: Service) -> None:
    response = ask(service, "kept")
    assert response.headers["cache-control"] == "public, s-maxage=60, max-age=10"
    assert response.headers.get_list("vary")[0] == "Accept-Language, X-Till"
    assert ask(service, "said").headers.get_list("vary")[0] == "Accept-Language", "a header line is one still"


def test_error_responses_have_no_caching_headers(service: Service) -> None:
    failed = ask(service, "failing?a=0")
    assert failed.status_code >= 400
    assert not {"cache-control", "etag"} & set(failed.headers)
    assert failed.headers["x-own"] == "here"
    assert ask(service, "failing?a=1").headers["cache-control"] == "public, max-age=60"


def test_responses_for_some_callers_are_private(service: Service) -> None:
    kiri = bearer(tokens(service, "BearerToken")["accessToken"])
    headers = [
        ask(service, path, kiri).headers["cache-control"] for path in ("shut", "shut-line", "shut-well", "personal")
    ]
    assert headers == ["private, max-age=60", "private, max-age=60", "no-store", "private, max-age=60"]
    assert ask(service, "shut", {"if-none-match": "*"}).status_code == 401, "a caller without access learns nothing"
    for name in ("shut", "shut_line", "personal"):
        assert f"{name} is personal" in service.log.replace("-", "_")
    assert "shut_well is personal" not in service.log.replace("-", "_")


def test_invalid_cache_control_directive_is_logged(service: Service) -> None:
    assert "'max-age=often' is no directive of Cache-Control" in service.log
    assert "cache-control" not in ask(service, "misspelt").headers
