"""The root document of PostgREST's interface is valid Swagger 2.0 for objects of every kind.

Source: PostgREST's documentation, OpenAPI.
"""

from __future__ import annotations

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV2SpecValidator

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, create_roles
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create schema api; comment on schema api is E'Title\\n\\nText of\\nthe interface';
create type api.mood as enum ('calm', 'rough'); create type api.place as (lat float8, lon float8);
create domain api.code as varchar(5) not null default 'none';
create table api.harbour (id int generated always as identity primary key, title varchar(20) not null default 'x',
                          at timestamptz default now(), open boolean default true, mood api.mood default 'calm',
                          rate numeric(5, 2) default 1.5, tags text[] default '{}', matrix int[][], doc json, docb jsonb,
                          place api.place, code api.code, span int4range, raw bytea, twice numeric generated always as (2) stored);
comment on table api.harbour is E'Harbours\\nwith text'; comment on column api.harbour.title is 'Its title';
create table api.berth (harbour_id int references api.harbour, no int, primary key (harbour_id, no));
create table api."A b/c~d%e" ("f g" int primary key, "h""i" text); create table api.bare ();
create table api.parted (id int, at date) partition by range (at);
create view api.shown as select id, title from api.harbour;
create view api.fixed as select 1 as one; create materialized view api.stored as select id, mood from api.harbour;
create extension postgres_fdw; create server nowhere foreign data wrapper postgres_fdw;
create foreign table api.far (id int) server nowhere;
create foreign data wrapper broken; create server lost foreign data wrapper broken;
create foreign table api.farther (id int) server lost;
create function api.plain(a int, b text default 'x', c json default null, d int[] default '{}') returns int stable
  language sql as 'select a'; comment on function api.plain is E'Summary\\nDescription';
create function api.many(variadic parts text[]) returns setof text immutable language sql as 'select unnest(parts)';
create function api.writes(id int) returns void language sql as ''; create function api.body(json) returns json language sql as 'select $1';
create function api."odd name/x"("p q" int) returns int language sql as 'select 1';
create function api.over(a int) returns int language sql as 'select 1';
create function api.over(b text) returns int language sql as 'select 2';
create function api.rows_of() returns table (x int, y api.mood) stable language sql as $$ select 1, 'calm'::api.mood $$;
create procedure api.proc() language sql as '';
create function api.several(a int) returns int stable language sql as 'select 1';
create function api.several(a int, b api.mood, c api.mood[] default null) returns int stable language sql as 'select 2';
create function api.several(a int, b int, c int, d int) returns int stable language sql as 'select 3';
revoke all on function api.several(int, int, int, int) from public;
create schema elsewhere; create table elsewhere.port (id int primary key);
create table api.trip (id int primary key, port_id int references elsewhere.port, harbour_id int references api.harbour);
"""  # noqa: E501 (each line is one object)


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database) -> Service:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {anonymous}; grant all on all tables in schema api to {anonymous}")
    return serve(
        database,
        settings={**PLAIN, "PostgRest:AnonymousRole": anonymous, "PostgRest:OpenApiSecurityActive": "true"},
    )


@pytest.fixture(scope="module")
def document(service: Service) -> Any:
    return service.get("/").json()


def test_the_document_is_valid(document: Any) -> None:
    OpenAPIV2SpecValidator(document).validate()


def test_it_has_every_object_that_is_served(service: Service, document: Any) -> None:
    assert service.get("/bare").json() == []
    relations = {
        "harbour",
        "berth",
        "A b/c~d%e",
        "bare",
        "parted",
        "shown",
        "fixed",
        "stored",
        "far",
        "farther",
        "trip",
    }
    functions = {"plain", "many", "writes", "body", "odd name/x", "over", "rows_of", "several"}
    assert document["definitions"].keys() == relations
    assert document["paths"].keys() == {
        "/",
        *(f"/{name}" for name in relations),
        *(f"/rpc/{name}" for name in functions),
    }
    assert document["info"]["title"] == "Title"
    assert document["info"]["description"] == "Text of\nthe interface"
    assert document["securityDefinitions"]["JWT"]["in"] == "header"


def test_methods_of_each_kind(document: Any) -> None:
    paths = document["paths"]
    assert [*paths["/harbour"]] == ["get", "post", "delete", "patch"]
    assert [*paths["/fixed"]] == [*paths["/stored"]] == ["get"]
    assert [*paths["/rpc/writes"]] == ["post"]
    assert [*paths["/rpc/plain"]] == ["post", "get"]
    assert (paths["/rpc/plain"]["get"]["summary"], paths["/rpc/plain"]["get"]["description"]) == (
        "Summary",
        "Description",
    )
    (parts,) = paths["/rpc/many"]["get"]["parameters"]
    assert parts == {
        "name": "parts",
        "required": True,
        "in": "query",
        "type": "array",
        "items": {"format": "text", "type": "string"},
        "collectionFormat": "multi",
    }


def test_properties_of_columns(document: Any) -> None:
    properties = document["definitions"]["harbour"]["properties"]
    assert properties["title"] == {
        "format": "character varying",
        "type": "string",
        "default": "x",
        "maxLength": 20,
        "description": "Its title",
    }
    assert properties["rate"] == {"format": "numeric", "type": "number", "default": 1.5}
    assert properties["code"] == {"format": "character varying", "type": "string", "default": "none", "maxLength": 5}
    assert properties["doc"] == {"format": "json"}
    assert properties["tags"]["items"] == {"type": "string"}
    assert properties["mood"]["enum"] == ["calm", "rough"]
    assert properties["open"] == {"format": "boolean", "type": "boolean", "default": True}
    assert document["definitions"]["harbour"]["required"] == ["id", "title", "code"]
    assert properties["id"]["description"] == "Note:\nThis is a Primary Key.<pk/>"
    assert document["definitions"]["berth"]["properties"]["harbour_id"]["description"] == (
        "Note:\nThis is a Primary Key.<pk/>\nThis is a Foreign Key to `harbour.id`.<fk table='harbour' column='id'/>"
    )


def test_parts_of_the_document(document: Any, service: Service) -> None:
    assert document["swagger"] == "2.0"
    assert (document["host"], document["basePath"], document["schemes"]) == (f"127.0.0.1:{service.port}", "/", ["http"])
    assert document["info"].keys() == {"title", "description", "version"}
    assert document["externalDocs"].keys() == {"description", "url"}
    singular = "application/vnd.pgrst.object+json"
    types = ["application/json", f"{singular};nulls=stripped", singular, "text/csv"]
    assert sorted(document["produces"]) == sorted(document["consumes"]) == sorted(types)
    shared = "preferParams preferReturn preferCount preferPost select on_conflict order range rangeUnit offset limit"
    assert {*shared.split(), "body.berth", "rowFilter.berth.no"} <= document["parameters"].keys()


def test_operations_of_a_relation(document: Any) -> None:
    item = document["paths"]["/harbour"]
    statuses = {method: {*operation["responses"]} for method, operation in item.items()}
    assert statuses == {"get": {"200", "206"}, "post": {"201"}, "patch": {"204"}, "delete": {"204"}}
    assert [operation["tags"] for operation in item.values()] == [["harbour"]] * 4
    assert (item["get"]["summary"], item["get"]["description"]) == ("Harbours", "with text")


def test_operations_of_a_function(document: Any) -> None:
    item = document["paths"]["/rpc/plain"]
    assert [operation["tags"] for operation in item.values()] == [["(rpc) plain"]] * 2
    assert item["post"]["parameters"][0]["name"] == "args"
    assert [parameter["name"] for parameter in item["get"]["parameters"]] == ["a", "b", "c", "d"]


def test_the_described_overload(document: Any) -> None:
    """It is the one with most parameters that the role may call. Its types are as in its search path."""
    parameters = document["paths"]["/rpc/several"]["get"]["parameters"]
    assert [(item["name"], item["format"]) for item in parameters] == [("a", "int32"), ("b", "mood"), ("c", "mood[]")]
    assert document["paths"]["/rpc/over"]["post"]["parameters"][0]["schema"]["required"] == ["b"]


def test_types_of_results_of_functions(document: Any) -> None:
    singular = "application/vnd.pgrst.object+json"
    produced = ["application/json", f"{singular};nulls=stripped", singular]
    assert document["paths"]["/rpc/plain"]["get"]["produces"] == produced


def test_notes_of_foreign_keys_name_tables_of_the_schema(document: Any) -> None:
    properties = document["definitions"]["trip"]["properties"]
    assert "description" not in properties["port_id"]
    assert "Foreign Key to `harbour.id`" in properties["harbour_id"]["description"]


def test_types_of_columns(document: Any) -> None:
    properties = document["definitions"]["harbour"]["properties"]
    assert (properties["id"]["format"], properties["id"]["type"]) == ("int32", "integer")
    assert "type" not in properties["docb"]
    assert (properties["matrix"]["type"], properties["matrix"]["items"]["type"]) == ("array", "integer")
    assert properties["span"]["type"] == properties["place"]["type"] == "string"


def test_methods_of_a_foreign_table(service: Service) -> None:
    assert service.request("OPTIONS", "/far").headers["allow"] == "OPTIONS,GET,HEAD,POST,PATCH,DELETE"
    assert service.request("OPTIONS", "/shown").headers["allow"] == "OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE"


@pytest.mark.slow
def test_the_title_without_a_comment(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api")
    (anonymous,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {anonymous}")
    document = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous}).get("/").json()
    assert document["info"]["title"] == "PostgREST API"
    assert "securityDefinitions" not in document
