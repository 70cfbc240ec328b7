"""Security schemes that the OpenAPI document derives from `Auth`, and parameters with `content` in a query.

Each request is built from what the document says, and must be accepted.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type spot as (x int, label text);
create function find_key(_digest text) returns table (user_id int) language sql stable as
    $$select 41 where _digest = encode(sha256('right'), 'hex')$$;
create function secret() returns text language sql stable as $$select 'secret'$$;
comment on function secret() is 'HTTP GET /secret
authorize';
create function open() returns text language sql stable as $$select 'open'$$;
comment on function open() is 'HTTP GET /open
allow_anonymous';
create function filtered(_filter jsonb, _many json[] default null) returns text
    language sql stable as $$select concat_ws('|', _filter ->> 'a', _many[1] ->> 'b')$$;
comment on function filtered is 'HTTP GET /filtered
allow_anonymous';
create table place (id int primary key, at spot);
insert into place values (1, (7, 'here')), (2, (8, 'there'));
comment on table place is 'HTTP GET /place
allow_anonymous';
"""
SETTINGS = {
    "Service:OpenApiOptions:Enabled": "true",
    "Service:CrudSource:Enabled": "true",
    "Auth:CookieAuth": "true",
    "Auth:CookieName": "till",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Header": "X-Till-Key",
    "Auth:ApiKey:Command": "select * from find_key($1)",
}
VERSIONS = ["3.0", "3.1"]


@pytest.fixture(scope="module")
def services(database: Database, serve: Serve) -> dict[str, Service]:
    database.execute(SQL)
    return {
        version: serve(database, settings={**SETTINGS, "Service:OpenApiOptions:SpecVersion": version})
        for version in VERSIONS
    }


def document(service: Service) -> dict[str, Any]:
    result: dict[str, Any] = service.get("/openapi.json").json()
    return result


@pytest.mark.parametrize("version", VERSIONS)
def test_schemes_in_use_are_described(services: dict[str, Service], version: str) -> None:
    described = document(services[version])
    assert described["openapi"].startswith(version)
    assert described["components"]["securitySchemes"] == {
        "cookieAuth": {"type": "apiKey", "in": "cookie", "name": "till"},
        "apiKeyAuth": {"type": "apiKey", "in": "header", "name": "x-till-key"},
    }
    assert described["paths"]["/secret"]["get"]["security"] == [{"cookieAuth": []}, {"apiKeyAuth": []}]
    assert described["paths"]["/open"]["get"]["security"] == []


@pytest.mark.parametrize(("key", "status"), [("right", 200), ("wrong", 401), (None, 401)])
def test_a_key_is_accepted_in_the_described_header(services: dict[str, Service], key: str | None, status: int) -> None:
    scheme = document(services["3.1"])["components"]["securitySchemes"]["apiKeyAuth"]
    headers = {} if key is None else {scheme["name"]: key}
    assert services["3.1"].get("/secret", headers=headers).status_code == status


def test_configured_schemes_replace_those_in_use(
    database: Database, services: dict[str, Service], serve: Serve
) -> None:
    key = "Service:OpenApiOptions:SecuritySchemes:0:"
    configured = {
        key + "Name": "till",
        key + "Type": "ApiKey",
        key + "In": "X-Till-Key",
        key + "ApiKeyLocation": "Header",
    }
    described = document(serve(database, settings={**SETTINGS, **configured}))
    assert described["components"]["securitySchemes"] == {
        "till": {"type": "apiKey", "in": "header", "name": "X-Till-Key"}
    }
    assert described["paths"]["/secret"]["get"]["security"] == [{"till": []}]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_in_a_query_is_described_by_its_content(services: dict[str, Service], version: str) -> None:
    """A query parameter whose text is JSON has `content`; an array of such texts has a `schema`."""
    service = services[version]
    parameters = query_parameters(service, "/filtered")
    assert {name: "content" in item for name, item in parameters.items()} == {"filter": True, "many": False}
    assert parameters["many"]["schema"] == {"type": "array", "items": {"type": "string"}}
    query = {"filter": as_described(parameters["filter"], {"a": "q&a"}), "many": ['{"b": 2}']}
    response = service.client.get("/filtered", params=query)
    assert (response.status_code, response.text) == (200, "q&a|2")


@pytest.mark.parametrize("version", VERSIONS)
def test_composite_in_a_query_is_described_by_its_content(services: dict[str, Service], version: str) -> None:
    service = services[version]
    parameters = query_parameters(service, "/place")
    schema = parameters["at"]["content"]["application/json"]["schema"]
    assert (schema["type"], set(schema["properties"])) == ("object", {"x", "label"})
    query = {"at": as_described(parameters["at"], {"x": 7, "label": "here"})}
    assert [row["id"] for row in service.client.get("/place", params=query).json()] == [1]


def query_parameters(service: Service, path: str) -> dict[str, Any]:
    return {item["name"]: item for item in document(service)["paths"][path]["get"]["parameters"]}


def as_described(parameter: dict[str, Any], value: object) -> str:
    """Return the text that stands for a value in a query, for a parameter described by its content."""
    assert "schema" not in parameter
    assert list(parameter["content"]) == ["application/json"]
    assert "allowEmptyValue" not in parameter
    return json.dumps(value)
