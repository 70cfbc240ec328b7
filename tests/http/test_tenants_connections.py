"""`tenant … as connection`: each tenant has a database of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database, create_database, drop_database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.http.conftest import Serve

OBJECTS = """
create type colour as enum ('red', 'green', 'blue');
create type part as (name text, colours colour[]);
create table item (id int primary key, colour colour not null default 'green', at text default current_database());
create function where_am_i() returns text language sql stable as 'select current_database()::text';
create function cached_place() returns text language sql stable as 'select current_database()::text';
create function place_of_claim() returns text language sql stable as 'select current_database()::text';
create function place_of_host() returns text language sql stable as 'select current_database()::text';
create function place_of_open() returns text language sql stable as 'select current_database()::text';
create function no_place() returns text language sql stable as 'select current_database()::text';
create function parts() returns table (p part, all_parts part[]) language sql stable as
$$ select ('a', '{red,blue}')::part, array[('b', '{}')::part] $$;
create function add_item(_id int, _colour colour) returns item language sql as
$$ insert into item (id, colour) values (_id, _colour) returning * $$;
create procedure add_and_commit(_id int) language plpgsql as
$$ begin insert into item (id) values (_id); commit; end $$;
create function later() returns int language sql as 'select 1';
create function once() returns int language sql as 'select 1';
create function published() returns int language sql as 'select 1';
create function say(_text text) returns void language plpgsql as
$$ begin raise info '% in %', _text, current_database(); end $$;
create function enter(_name text, _org text default null) returns table (status int, user_id text, org text)
language sql as $$ select 200, _name, _org $$;
"""
TENANT = "tenant from header X-Tenant as connection shop_{0}"
COMMENTS = f"""
comment on function where_am_i() is 'HTTP GET /where
{TENANT}';
comment on function cached_place() is 'HTTP GET /cached
cached
{TENANT}';
comment on function place_of_claim() is 'HTTP GET /of-claim
authorize
tenant from claim org as connection shop_{{0}}';
comment on function place_of_host() is 'HTTP GET /of-host
tenant from host *.shop.example as connection shop_{{0}}';
comment on function place_of_open() is 'HTTP GET /of-open
tenant from header X-Tenant as connection';
comment on function no_place() is 'HTTP GET /no-place
tenant from header X-Tenant as connection store_{{0}}';
comment on function parts() is 'HTTP GET /parts
nested
{TENANT}';
comment on function add_item(int, colour) is 'HTTP POST /items
{TENANT}';
comment on procedure add_and_commit(int) is 'HTTP POST /commits
{TENANT}';
comment on table item is 'HTTP
{TENANT}
disabled
enabled select
for select
HTTP GET /items
for select';
comment on function later() is 'HTTP POST /later
{TENANT}
job';
comment on function once() is 'HTTP POST /once
{TENANT}
idempotent';
comment on function published() is 'HTTP POST /published
{TENANT}
publishes a.b';
comment on function say(text) is 'HTTP POST /say
{TENANT}
sse news';
comment on function enter(text, text) is 'HTTP POST /enter
login';
"""


@pytest.fixture(scope="module")
def shops(postgres: PostgresServer) -> Iterator[dict[str, Database]]:
    """Databases of two tenants. Their types have other oids than those of the main database."""
    made = {name: create_database(postgres) for name in ("red", "blue")}
    for number, database in enumerate(made.values(), 1):
        database.execute("".join(f"create type filler_{n} as (a int);" for n in range(number)))
        database.execute(OBJECTS)
    yield made
    for database in made.values():
        drop_database(database)


def connections(shops: dict[str, Database]) -> dict[str, str | None]:
    return {
        "ConnectionStrings:Shop_red": shops["red"].conninfo,
        "ConnectionStrings:SHOP_blue": shops["blue"].conninfo,
        "Service:RequiresAuthorization": "false",
        "Jobs:Enabled": "true",
    }


@pytest.fixture(scope="module")
def service(database: Database, shops: dict[str, Database], serve: Serve) -> Service:
    database.execute(install_sql())
    settings = {
        **connections(shops),
        "Service:UseMultipleConnections": "true",
        "Service:CrudSource:Enabled": "true",
        "CacheOptions:Enabled": "true",
        "Batch:Enabled": "true",
        "Auth:BearerTokenAuth": "true",
    }
    return serve(database, OBJECTS + COMMENTS, settings, workers=2)


def of(service: Service, path: str, tenant: str) -> httpx.Response:
    return service.get(path, headers={"x-tenant": tenant})


def test_a_request_runs_in_the_database_of_its_tenant(service: Service, shops: dict[str, Database]) -> None:
    for name, shop in shops.items():
        assert of(service, "/where", name).text == shop.name
        assert of(service, "/of-open", {"red": "Shop_red", "blue": "SHOP_blue"}[name]).text == shop.name
        token = service.post("/enter", json={"name": "ann", "org": name}).json()["accessToken"]
        claim = service.get("/of-claim", headers={"authorization": f"Bearer {token}"})
        assert (claim.status_code, claim.text) == (200, shop.name)
        assert service.get("/of-host", headers={"host": f"{name}.shop.example"}).text == shop.name


def test_tenants_of_similar_spelling_share_no_connection(
    service: Service, database: Database, shops: dict[str, Database], serve_once: Serve
) -> None:
    """By the rules of Unicode, `straße` equals `STRASSE` regardless of case, and the Kelvin sign equals `k`."""
    settings: dict[str, str | None] = {
        "ConnectionStrings:Shop_strasse": shops["red"].conninfo,
        "ConnectionStrings:Shop_Kiosk": shops["blue"].conninfo,
        "Service:UseMultipleConnections": "true",
    }
    other = serve_once(database, settings={**connections(shops), "Auth:BearerTokenAuth": "true", **settings})
    expected = {"strasse": True, "straße": False, "Strasse": False, "Kiosk": True, "kiosk": False, "\u212aiosk": False}
    for tenant, exists in expected.items():
        # The headers of a request are ASCII, so that others are none of a tenant (400).
        assert other.get("/where", headers={"x-tenant": tenant.encode()}).is_success == exists, tenant
        token = other.post("/enter", json={"name": "ann", "org": tenant}).json()["accessToken"]
        claim = other.get("/of-claim", headers={"authorization": f"Bearer {token}"})
        assert claim.status_code == (200 if exists else 404), tenant
    hosts = {"strasse": True, "STRASSE": True, "kiosk": True, "straße": False, "\u212aiosk": False}
    for host, exists in hosts.items():
        response = other.get("/of-host", headers={"host": f"{host}.shop.example".encode()})
        assert response.is_success == exists, host


@pytest.mark.parametrize("tenant", ["green", "RED", "default", "_default", "", "red,blue", "{0}", "x" * 300])
def test_a_tenant_without_a_connection_is_404(service: Service, tenant: str) -> None:
    assert problem(of(service, "/where", tenant), 400 if tenant in ("", "x" * 300) else 404)
    # The main connection is none of a tenant.
    assert problem(of(service, "/of-open", tenant), 400 if tenant in ("", "x" * 300) else 404)


@pytest.mark.slow
def test_two_tenants_under_interleaved_requests(service: Service, shops: dict[str, Database]) -> None:
    chance = random.Random(3)
    drawn = [chance.choice(["red", "blue"]) for _ in range(400)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda name: of(service, chance.choice(["/where", "/cached"]), name).text, drawn))
    assert found == [shops[name].name for name in drawn]


def test_values_of_types_of_the_tenants_database(service: Service, shops: dict[str, Database]) -> None:
    for number, name in enumerate(shops):
        headers = {"x-tenant": name}
        parts: list[dict[str, Any]] = [
            {"p": {"name": "a", "colours": ["red", "blue"]}, "allParts": [{"name": "b", "colours": []}]}
        ]
        assert of(service, "/parts", name).json() == parts
        made = service.post("/items", json={"id": number, "colour": "blue"}, headers=headers)
        assert made.json() == {"id": number, "colour": "blue", "at": shops[name].name}
        assert service.post("/commits", json={"id": number + 10}, headers=headers).status_code == 204
        assert [item["id"] for item in of(service, "/items", name).json()] == [number, number + 10]


def test_events_reach_streams_of_the_tenant(service: Service, shops: dict[str, Database]) -> None:
    with (
        EventStream(service, "/say/news", {"x-tenant": "red"}) as red,
        EventStream(service, "/say/news", {"x-tenant": "blue"}) as blue,
    ):
        for name in ("red", "blue"):
            assert service.post("/say", json={"text": "x"}, headers={"x-tenant": name}).status_code == 204
        red.wait_for(f"x in {shops['red'].name}")
        blue.wait_for(f"x in {shops['blue'].name}")


def test_features_stored_in_the_main_database_are_refused(service: Service) -> None:
    for line in ("job", "idempotent", "publishes"):
        assert f"{line} needs the main connection, where it is stored; the endpoint is left out" in service.log
    for path in ("/later", "/once", "/published"):
        assert service.post(path, headers={"x-tenant": "red"}).status_code == 404
    item, tenant = {"path": "/where"}, {"X-Tenant": "red"}
    assert "each tenant has a connection" in problem(service.post("/batch", json=[item], headers=tenant), 400)["detail"]
    apart = service.post("/batch?transaction=false", json=[item], headers=tenant)
    assert [response["status"] for response in apart.json()] == [200]


def test_an_endpoint_without_connections_of_tenants_is_left_out(
    service: Service, database: Database, shops: dict[str, Database], serve_once: Serve
) -> None:
    text = "tenant as connection store_{0}: no connection has such a name; the endpoint is left out"
    assert text in service.log
    assert of(service, "/no-place", "red").status_code == 404
    alone = serve_once(database, settings=connections(shops))
    assert "tenant as connection shop_{0}: Service:UseMultipleConnections is false; the endpoint" in alone.log
    assert of(alone, "/where", "red").status_code == 404


@pytest.mark.slow
def test_a_sql_test_uses_one_connection_for_all_tenants(
    service: Service, database: Database, shops: dict[str, Database], tmp_path: Path
) -> None:
    """All tenants are in the database of the test, which is rolled back."""
    assert of(service, "/where", "red").status_code == 200
    text = "begin;\n/* GET /where\nX-Tenant: {}\n\nHTTP/1.1 {}\n*/\n"
    (tmp_path / "a.test.sql").write_text(text.format("red", 200) + text.format("green", 404), encoding="utf-8")
    settings = {
        **connections(shops),
        "ConnectionStrings:Default": database.conninfo,
        "Service:UseMultipleConnections": "true",
        "TestRunner:FilePattern": "*.test.sql",
    }
    done = rowcall(tmp_path, "--test", *(f"--{key}={value}" for key, value in settings.items()))
    assert done.returncode == 0, done.stdout + done.stderr
