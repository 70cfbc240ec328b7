"""Messages about caching at the start: unusable profiles and rules, unknown names (caching-36 to caching-38)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function level(_sku text, _site int default 1) returns bigint language sql as 'select 1';
comment on function level(text, int) is 'HTTP GET
cached _sku, _shelf
cache_profile hot';
create function other_level(_sku text) returns bigint language sql as 'select 1';
comment on function other_level(text) is 'HTTP GET
cached
cache_expires soon';
create function ended() returns bigint language sql as 'select 1';
comment on function ended() is 'HTTP GET
cached
cache_expires 0';
create function third_level() returns bigint language sql as 'select 1';
comment on function third_level() is 'HTTP GET
cache_profile one two';
create function elsewhere(_sku text) returns bigint language sql as 'select 1';
comment on function elsewhere(text) is 'HTTP GET
cache_profile tenants';
create function only_tagged() returns bigint language sql as 'select 1';
comment on function only_tagged() is 'HTTP GET
cache_expires 5 minutes
cached = false
cache_expires = 1 hour
cache_tags one, of:{_missing}';
create function nothing() returns void language sql as '';
comment on function nothing() is 'HTTP POST
cached';
create function chosen() returns text language sql as $$ select set_config('response.status', '404', true) $$;
comment on function chosen() is 'HTTP GET
mcp The level that is chosen
cached';
"""


def profile(**fields: Any) -> dict[str, Any]:
    return {"Enabled": True, "Type": "Memory", **fields}


PROFILES = {
    "hot": profile(
        When=[
            {"Value": 1, "Then": "skip"},
            {"Parameter": "sku"},
            {"Parameter": "sku", "Value": "x", "Then": "often"},
            {"Parameter": "shelf", "Then": "skip"},
            {"Parameter": "_sku", "Then": "1s"},
            {"Parameter": "site", "Then": "skip"},
            {"Parameter": "sku", "Valeu": "x", "Then": "skip"},
            {"Parameter": "sku", "Value": {"is": "x"}, "Then": "skip"},
        ]
    ),
    "cold": profile(Expiration="5 minutes"),
    "on disk": profile(Type="Disk"),
    "nowhere": {"Enabled": True},
    "endless": profile(Expiration="later"),
    "tenants": profile(Parameters=["tenant"]),
    "off": profile(Enabled=False),
    " ": profile(),
}
MESSAGES = """
INF] cache profile 'hot': Memory
INF] cache profile 'cold' is used by no endpoint
WRN] CacheOptions:Profiles:on disk is skipped: its Type
WRN] CacheOptions:Profiles:nowhere is skipped: its Type
WRN] CacheOptions:Profiles:endless is skipped: its Expiration 'later'
INF] cache profile 'off' is skipped
WRN] CacheOptions:Profiles: a profile without a name
WRN] CacheOptions:Profiles:hot:When:0 is dropped: it names no Parameter
WRN] CacheOptions:Profiles:hot:When:1 is dropped: it has no Then
WRN] CacheOptions:Profiles:hot:When:2 is dropped: its Then 'often'
WRN] CacheOptions:Profiles:hot:When:6:Valeu is ignored: a rule has Parameter, Value and Then
WRN] CacheOptions:Profiles:hot:When:7 is dropped: its Value is neither one value nor a list of them
GET /api/only-tagged: cache_expires has no effect, as nothing is cached; add cached
GET /api/ended: cached responses expire at once, as their lifetime is 0
GET /api/only-tagged: cache_tags has no effect, as nothing is cached; add cached
GET /api/level: the rule on shelf of cache profile 'hot' is dropped: the routine has no parameter
GET /api/level: the rule on site of cache profile 'hot' is dropped: it is not among the parameters of the cache key
cached = … is a custom parameter and no annotation; take the line away
{_missing} names no parameter and is left unchanged (comment line: cache_tags of:{_missing})
the routine has no parameter _shelf; it is no part of the cache key
'soon' is not an interval such as '5 minutes'
exactly one profile name is expected
GET /api/elsewhere: it has none of the Parameters of cache profile 'tenants'; all requests share one response
POST /api/nothing: results of this kind are never cached
GET /api/chosen: cached responses have the default status and headers
"""


def test_unusable_cache_settings_are_logged_and_other_endpoints_served(
    own_database: Database, serve_once: Serve
) -> None:
    cache = {"Enabled": True, "Profiles": PROFILES, "InvalidateCacheSuffix": "purge"}
    settings = dict(_flat({"CacheOptions": cache, "Service": {"McpOptions": {"Enabled": True}}}))
    service = serve_once(own_database, SQL, settings)
    missing = [message for message in MESSAGES.strip().splitlines() if message not in service.log]
    assert not missing, service.log
    assert "effect yet" not in service.log
    assert "there is a tool" not in service.log, "an invalidation path is no tool beside its endpoint"
    assert service.get("/api/level?sku=x").text == "1"


def _flat(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}:{name}" if key else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{key}:{index}")
    else:
        yield key, str(value)


@pytest.mark.parametrize("profiles", [{}, {"cold": profile(), "hot": profile(Type="Disk")}])
def test_an_unknown_profile_stops_the_start(
    own_database: Database, serve_once: Serve, profiles: dict[str, Any]
) -> None:
    settings = dict(_flat({"CacheOptions": {"Enabled": True, "Profiles": profiles}}))
    with pytest.raises(AssertionError, match=r"(?s)GET /api/level.*cache_profile 'hot' is none of"):
        serve_once(own_database, SQL, settings)


def test_profiles_are_ignored_if_caching_is_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"CacheOptions:Enabled": "false"})
    assert service.get("/api/level?sku=x").text == "1"
    assert service.post("/api/level/purge?sku=x").status_code == 404


def test_changed_definition_invalidates_cached_responses(own_database: Database, serve_once: Serve) -> None:
    """Changes of the routine, its comment or its columns remove its responses; other endpoints keep theirs."""
    own_database.execute("""
create sequence made;
create function text_of() returns text language sql as $$ select 'first' $$;
comment on function text_of() is 'HTTP GET
cached';
create function reported() returns table (a int, b int) language sql as $$ values (1, 2) $$;
comment on function reported() is 'HTTP GET
cached';
create table kept (id int);
comment on table kept is 'HTTP GET
cached';
create function other() returns bigint language sql as $$ select nextval('made') $$;
comment on function other() is 'HTTP GET
cached';""")
    settings = {"CacheOptions:Enabled": "true", "Service:CrudSource:Enabled": "true"}
    service = serve_once(own_database, settings=settings, workers=2)

    def answers(path: str) -> set[str]:
        result = set()
        for _ in range(4):
            with service.new_client() as client:
                result.add(client.get(path).text)
        return result

    assert [answers(f"/api/{name}") for name in ("text-of", "reported", "kept")] == [
        {"first"},
        {'[{"a":1,"b":2}]'},
        {"[]"},
    ]
    other = answers("/api/other")
    own_database.execute("""
create or replace function text_of() returns text language sql as $$ select 'second' $$;
comment on function reported() is 'HTTP GET
cached
single';
alter table kept add column more int;
insert into kept values (1, 2);
notify rowcall, 'reload'""")
    new = {"/api/text-of": "second", "/api/reported": '{"a":1,"b":2}', "/api/kept": '[{"id":1,"more":2}]'}
    # The workers apply the change one after the other.
    wait_until(lambda: all(answers(path) == {text} for path, text in new.items()), "the new responses are served")
    assert answers("/api/other") == other
