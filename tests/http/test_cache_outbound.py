"""Cached responses of other services, limits of a hybrid cache, keys of encrypted values (caching-8 to caching-32)."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.http.conftest import Serve

NOTHING = "returns void language plpgsql as $$ begin raise exception 'the routine ran'; end $$;"


def schema(url: str) -> str:
    def proxy(name: str, comment: str, parameters: str = "") -> str:
        return f"create function {name}({parameters}) {NOTHING}\ncomment on function {name} is $c${comment}$c$;\n"

    return (
        proxy("passed", f"HTTP GET /passed\nproxy {url}\ncached")
        + proxy("passed_by_a", f"HTTP GET /passed-by-a\nproxy {url}\ncached _a", "_a text")
        + proxy("passed_post", f"HTTP POST /passed-post\nproxy {url}\ncached")
        + proxy("broken", f"HTTP GET /broken\nproxy {url}\ncached")
        + proxy("unreachable", "HTTP GET /unreachable\nproxy http://127.0.0.1:1\ncached")
        + proxy("chunked", f"HTTP GET /chunked\nproxy {url}\ncached")
        + proxy("created", f"HTTP GET /created\nproxy {url}\ncached")
        + f"""
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create function reported(_a int, _proxy_body text default null) returns text language sql as
    $$ select ran() || _proxy_body $$;
comment on function reported(int, text) is 'HTTP GET /reported
proxy {url}
cached';
create function secret(_a text) returns bigint language sql as 'select ran()';
comment on function secret(text) is 'HTTP POST
encrypt _a
cached';
create function skipped(_a text, _how text) returns bigint language sql as 'select ran()';
comment on function skipped(text, text) is 'HTTP POST
encrypt _a
cache_profile skipping';
create function skipped_word(_word text, _how text) returns bigint language sql as 'select ran()';
comment on function skipped_word(text, text) is 'HTTP POST
param _word is hash of _word
cache_profile skipping
cache_tags words';
create function skipped_stale(_a text, _how text) returns bigint language sql as 'select ran()';
comment on function skipped_stale(text, text) is 'HTTP POST
encrypt _a
cache_profile skipping
cache_stale while_revalidate 1 minute';
create function skipped_sealed(_how text) returns bigint language sql as 'select ran()';
comment on function skipped_sealed(text) is 'HTTP POST
encrypt
cache_profile skipping';
create function hybrid(_a text, _size int default 10) returns text language sql as
    $$ select ran() || repeat('x', _size) $$;
comment on function hybrid(text, int) is 'HTTP GET
cache_profile both';
create function hybrid_rows(_n int) returns table (n int, run bigint) language sql as
    'select i, r from (select ran() r) r, generate_series(1, _n) i';
comment on function hybrid_rows(int) is 'HTTP GET
cache_profile both';
"""
    )


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    count = itertools.count(1)

    def counted(request: Seen, _connection: socket.socket) -> bytes:
        body = {"run": next(count), "target": request.target, "body": request.body.decode()}
        return answer(body, headers=[("X-Upstream", "yes"), ("Set-Cookie", "a=b")])

    def chunked(_seen: Seen, _connection: socket.socket) -> bytes:
        text = f"run {next(count)} ".encode() + b"x" * 200_000
        pieces = (text[start : start + 50_000] for start in range(0, len(text), 50_000))
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
        )

    for path in ("/passed", "/passed-by-a", "/passed-post", "/reported"):
        server.on(path, counted)
    server.on("/broken", lambda _seen, _connection: answer({"run": next(count)}, 500))
    server.on(
        "/created", lambda _seen, _connection: answer({"run": next(count)}, 201, content_type="application/x-own")
    )
    server.on("/chunked", chunked)
    yield server
    server.close()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    path, skipping = "CacheOptions:Profiles:both:", "CacheOptions:Profiles:skipping:"
    return serve(
        database,
        schema(upstream.url),
        {
            "Service:ProxyOptions:Enabled": "true",
            "CacheOptions:Enabled": "true",
            "CacheOptions:InvalidateCacheSuffix": "forget",
            "CacheOptions:HybridCacheMaximumKeyLength": "200",
            "CacheOptions:HybridCacheMaximumPayloadBytes": "1000",
            path + "Enabled": "true",
            path + "Type": "Hybrid",
            skipping + "Enabled": "true",
            skipping + "Type": "Memory",
            skipping + "When:0:Parameter": "how",
            skipping + "When:0:Value": "anew",
            skipping + "When:0:Then": "skip",
            "Service:LogCommands": "true",
            "Service:LogCommandParameters": "true",
            "Log:ConsoleMinimumLevel": "Debug",
            "Log:MinimalLevels:rowcall": "Debug",
        },
        workers=2,
    )


def ask(service: Service, path: str, method: str = "GET", **options: object) -> httpx.Response:
    with service.new_client() as client:
        return client.request(method, path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/passed", "/passed?x=1", "/chunked", "/created", "/passed-by-a?a=1&other=2"])
def test_proxied_response_is_cached(service: Service, path: str) -> None:
    first = ask(service, path)
    assert first.status_code in (200, 201)
    for _ in range(4):
        again = ask(service, path)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        for name in ("content-type", "x-upstream"):
            assert again.headers.get(name) == first.headers.get(name)
        assert "set-cookie" not in again.headers


def test_cache_key_includes_all_forwarded_request_parts(service: Service) -> None:
    who = {"authorization": "Bearer one"}
    responses = [ask(service, "/passed?y=1"), ask(service, "/passed?y=2"), ask(service, "/passed?y=1", headers=who)]
    assert len({response.json()["run"] for response in responses}) == 3
    posts = [ask(service, "/passed-post", "POST", json={"a": a}) for a in (1, 2, 1)]
    runs = [post.json()["run"] for post in posts]
    assert runs[0] == runs[2] != runs[1]
    assert json.loads(posts[1].json()["body"]) == {"a": 2}


def test_parameter_list_is_the_complete_cache_key(service: Service) -> None:
    runs = {ask(service, f"/passed-by-a?a=7&other={other}").json()["run"] for other in (1, 2)}
    assert len(runs) == 1
    assert ask(service, "/passed-by-a?a=8").json()["run"] not in runs


def test_upstream_errors_are_cached_and_connection_failures_are_not(service: Service, upstream: Upstream) -> None:
    """An error is a response too (caching-18)."""
    assert [ask(service, "/broken").status_code for _ in range(3)] == [500] * 3
    assert len(upstream.to("/broken")) == 1
    assert [ask(service, "/unreachable").status_code for _ in range(3)] == [502] * 3


def test_proxy_response_from_cache_is_logged(service: Service) -> None:
    for _ in range(2):
        ask(service, "/passed?logged")
    service.wait_for_log("/* proxy response from cache */")


def test_cached_proxy_response_is_invalidated(service: Service) -> None:
    first = ask(service, "/passed-by-a?a=9").json()["run"]
    # It is stored after it was sent, so the first request can be answered before: this one waits for it.
    assert ask(service, "/passed-by-a?a=9").json()["run"] == first
    assert ask(service, "/passed-by-a/forget?a=9", "POST").json() == {"invalidated": True}
    assert ask(service, "/passed-by-a/forget?a=9", "POST").json() == {"invalidated": False}
    assert ask(service, "/passed-by-a?a=9").json()["run"] != first


def test_routine_after_a_proxy_call_is_cached_by_its_own_parameters(service: Service, upstream: Upstream) -> None:
    first = ask(service, "/reported?a=1").text
    before = len(upstream.to("/reported"))
    assert ask(service, "/reported?a=1").text == first
    assert len(upstream.to("/reported")) == before + 1, "the other service is asked each time (caching-20)"
    assert ask(service, "/reported/forget?a=1", "POST").json() == {"invalidated": True}
    assert len(upstream.to("/reported")) == before + 1


def test_invalidation_log_contains_no_credentials(service: Service) -> None:
    """They are part of the key, as a hash."""
    for credentials in ({"authorization": "Bearer open-sesame"}, {"cookie": "session=open-sesame"}):
        # It is stored after it was sent: the second request waits for it.
        for _ in range(2):
            ask(service, "/passed-by-a?a=10", headers=credentials)
        body = ask(service, "/passed-by-a/forget?a=10", "POST", headers=credentials).json()
        assert body == {"invalidated": True}
        assert ask(service, "/passed-by-a/forget?a=10", "POST").json() == {"invalidated": False}
    service.wait_for_log("cache invalidation: not found")
    assert "open-sesame" not in service.log


def test_cache_key_uses_the_plaintext_of_encrypted_values(service: Service) -> None:
    def run(text: str) -> str:
        return ask(service, "/api/secret", "POST", json={"a": text}).text

    assert run("one") == run("one") != run("two")
    assert ask(service, "/api/secret/forget", "POST", json={"a": "one"}).json() == {"invalidated": True}


@pytest.mark.parametrize("path", ["skipped", "skipped-word", "skipped-stale", "skipped-sealed"])
def test_cache_rules_compare_values_before_encryption_or_hashing(service: Service, path: str) -> None:
    name = "word" if "word" in path else "a"

    def run(how: str) -> str:
        values = {"how": how} if path == "skipped-sealed" else {name: "one", "how": how}
        response = ask(service, f"/api/{path}", "POST", json=values)
        assert response.status_code == 200, response.text
        return response.text

    assert run("as kept") == run("as kept")
    assert run("anew") != run("anew")


@pytest.mark.parametrize(
    ("path", "is_cached"),
    [
        ("hybrid?a=x", True),
        ("hybrid?a=" + "k" * 150, True),
        ("hybrid?a=" + "k" * 201, False),
        ("hybrid?a=y&size=900", True),
        ("hybrid?a=y&size=1001", False),
        ("hybrid-rows?n=10", True),
        ("hybrid-rows?n=100", False),
    ],
)
def test_hybrid_cache_limits_key_and_response_sizes(service: Service, path: str, is_cached: bool) -> None:
    first = ask(service, f"/api/{path}")
    assert first.status_code == 200
    assert (ask(service, f"/api/{path}").text == first.text) is is_cached
