"""`Service:OpenApiOptions:PostgRest`: PostgREST's interface in the OpenAPI document of the service."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, create_roles
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create schema depot;
create type api.mood as enum ('calm', 'brisk');
create type api.position as (x numeric, y numeric);
create table api.vessel (
  vessel_id int generated always as identity primary key, name varchar(20) not null, mood api.mood, "limit" int,
  place api.position, tags text[] not null default '{}', details jsonb, built date, "a {b}/c" int);
comment on table api.vessel is 'Ships.
And boats.';
comment on column api.vessel.name is 'As painted.';
create view api.moods as select mood, count(*) as vessels from api.vessel group by mood;
create table depot.vessel (id int primary key);
create table depot.crate (crate_id int primary key);
create table api."odd {name}/x" (id int);
create function api.add(a int, b int default 2) returns int immutable language sql as 'select a + b';
create function api.find(id int) returns setof api.vessel stable language sql as 'select * from api.vessel where vessel_id = id';
create function api.find(name text) returns setof api.vessel stable language sql as
  'select * from api.vessel v where v.name = find.name';
create function api.totals() returns table (mood api.mood, vessels bigint) stable language sql as
  'select mood, count(*) from api.vessel group by mood';
create function api.echo(json) returns json language sql as 'select $1';
create function api.store(bytea) returns void language sql as '';
create function api.touch() returns void language sql as '';
create function public.crews() returns int stable language sql as 'select 1';
comment on function public.crews() is 'HTTP GET /rest/moods
allow_anonymous';
insert into api.vessel (name, mood, place, details) values ('Skua', 'calm', '(1,2)', '{"a": [1]}'), ('Tern', null, null, null);
"""  # noqa: E501 (each line is one object)
O = "Service:OpenApiOptions:"  # noqa: E741 (a prefix)


@pytest.fixture(scope="module")
def anonymous(database: Database) -> str:
    database.execute(SQL)
    (role,) = create_roles(database, "anon")
    database.execute(
        f"grant usage on schema api to {role}; grant select on all tables in schema api to {role};"
        f"grant insert on api.vessel to {role}"
    )
    return role


def settings(role: str, **others: str) -> dict[str, str]:
    return {
        **PLAIN,
        "Service:RoutineOptions:Enabled": "true",
        "PostgRest:Schemas": "api, depot",
        "PostgRest:Path": "/rest",
        "PostgRest:AnonymousRole": role,
        O + "Enabled": "true",
        O + "FileName": "",
        O + "PostgRest": "true",
        **{O + name: value for name, value in others.items()},
    }


@pytest.fixture(scope="module", params=["3.0", "3.1"])
def service(request: pytest.FixtureRequest, serve: Serve, database: Database, anonymous: str) -> Service:
    return serve(database, settings=settings(anonymous, SpecVersion=request.param))


def described(service: Service) -> dict[str, Any]:
    result: dict[str, Any] = service.get("/openapi.json").json()
    return result


@pytest.mark.slow
def test_the_document_is_valid(service: Service) -> None:
    # Here: each process of a run collects all files, and the validators take a third of a second to import.
    from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

    document = described(service)
    validator: Any = OpenAPIV30SpecValidator if document["openapi"].startswith("3.0") else OpenAPIV31SpecValidator
    assert [error.message for error in validator(document).iter_errors()] == []


def test_paths_are_those_of_the_mount(service: Service) -> None:
    document = described(service)
    assert {path: sorted(item) for path, item in document["paths"].items()} == {
        "/rest/vessel": ["delete", "get", "patch", "post"],
        "/rest/moods": ["get"],
        "/rest/crate": ["delete", "get", "patch", "post"],
        "/rest/odd%20%7Bname%7D%2Fx": ["delete", "get", "patch", "post"],
        "/rest/rpc/add": ["get", "post"],
        "/rest/rpc/find": ["get", "post"],
        "/rest/rpc/totals": ["get", "post"],
        "/rest/rpc/echo": ["post"],
        "/rest/rpc/store": ["post"],
        "/rest/rpc/touch": ["post"],
    }
    # An endpoint wins at its method and path.
    assert document["paths"]["/rest/moods"]["get"]["operationId"] == "public_crews_get"
    assert document["paths"]["/rest/vessel"]["get"]["summary"] == "Ships."
    assert document["paths"]["/rest/vessel"]["get"]["security"] == [{}, {"postgrestToken": []}]


def test_locations_are_below_the_mount(service: Service) -> None:
    created = service.post("/rest/vessel", json={"name": "Gull"}, headers={"prefer": "return=headers-only"})
    location = created.headers["location"]
    assert location.startswith("/rest/vessel?vessel_id=eq.")
    response = service.get(location)
    assert [row["name"] for row in response.json()] == ["Gull"]
    assert response.headers["content-location"] == location


def test_relations_of_other_schemas_need_their_profile(service: Service) -> None:
    crate = described(service)["paths"]["/rest/crate"]
    for method, name in (("get", "Accept-Profile"), ("post", "Content-Profile"), ("delete", "Content-Profile")):
        profile = crate[method]["parameters"][0]
        assert (profile["name"], profile["required"], profile["schema"]["enum"]) == (name, True, ["depot"])


def test_bodies_have_what_a_row_needs(service: Service) -> None:
    document = described(service)
    schemas = document["components"]["schemas"]
    row = schemas["api.vessel.insert"]
    assert row["required"] == ["name"]
    assert row["properties"]["name"] == {"type": "string", "maxLength": 20, "description": "As painted."}
    assert "vessel_id" not in row["properties"]
    assert row["properties"]["place"] == {}
    if document["openapi"].startswith("3.0"):
        assert row["properties"]["mood"] == {"type": "string", "enum": ["calm", "brisk", None], "nullable": True}
    else:
        assert row["properties"]["mood"] == {"type": ["string", "null"], "enum": ["calm", "brisk", None]}
    call = document["paths"]["/rest/rpc/find"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert [item["required"] for item in call["anyOf"]] == [["id"], ["name"]]
    assert list(document["paths"]["/rest/rpc/store"]["post"]["requestBody"]["content"]) == ["application/octet-stream"]


def test_responses_validate_against_the_document(service: Service) -> None:
    from jsonschema import Draft202012Validator

    document = described(service)
    if document["openapi"].startswith("3.0"):
        pytest.skip("schemas of OpenAPI 3.0 are no JSON Schema")
    for path, key in (
        ("/rest/vessel", "/rest/vessel"),
        ("/rest/vessel?select=name,mood&limit=1", "/rest/vessel"),
        ("/rest/rpc/add?a=1", "/rest/rpc/add"),
        ("/rest/rpc/find?id=1", "/rest/rpc/find"),
        ("/rest/rpc/totals", "/rest/rpc/totals"),
        ("/rest/nothing", "/rest/vessel"),
    ):
        response = service.get(path)
        responses = document["paths"][key]["get"]["responses"]
        described_as = responses.get(str(response.status_code), responses["default"])
        schema = {**described_as["content"]["application/json"]["schema"], "components": document["components"]}
        assert [error.message for error in Draft202012Validator(schema).iter_errors(response.json())] == [], path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "paths"),
    [
        ({"PostgRest": "false"}, ["/rest/moods"]),
        ({"RequiresAuthorizationOnly": "true"}, []),
        ({"IncludeSchemas:0": "depot"}, ["/rest/crate", "/rest/vessel"]),
        ({"NameSimilarTo": "(add|crate)"}, ["/rest/crate", "/rest/rpc/add"]),
    ],
)
def test_the_filters_of_the_document_apply(
    serve_once: Serve, database: Database, anonymous: str, others: dict[str, str], paths: list[str]
) -> None:
    assert sorted(described(serve_once(database, settings=settings(anonymous, **others)))["paths"]) == paths


@pytest.mark.slow
def test_the_document_follows_the_schema(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api; create schema depot; create table api.item (id int)")
    (role,) = create_roles(own_database, "anon")
    service = serve_once(own_database, settings=settings(role))
    assert list(described(service)["paths"]) == ["/rest/item"]
    own_database.execute("create table api.other (id int); notify pgrst")
    wait_until(lambda: "/rest/other" in described(service)["paths"], "the path of the new table")
