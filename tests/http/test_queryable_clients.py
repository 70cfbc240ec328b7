"""Queries as generated clients, documents and tools have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rowcall.core.codegen.files import client_files
from rowcall.core.documents.openapi import document
from rowcall.core.documents.options import VERSIONS, OpenApiOptions
from rowcall.core.mcp.options import ToolOptions
from rowcall.core.mcp.tools import tool_entries, tool_request
from rowcall.service.options.capabilities.client_code import client_code_options
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.database import Database
from tests.harness.node import compile_strictly, run
from tests.harness.python_client import load_client, type_errors
from tests.harness.service import Service
from tests.harness.snapshots import read_snapshot, settings_of
from tests.http.conftest import Serve

SQL = """
create table ship (id int primary key, ship_name text not null, home text);
insert into ship select n, 'ship ' || n, case when n % 2 = 0 then 'Kiel, "Ost"' end from generate_series(1, 12) n;
comment on table ship is 'HTTP GET /ships
queryable select filter order page 5
mcp Ships.';
create function crew(_least int, _home text default null) returns table (id int, home text) language sql stable as
$$ select id, home from ship where id >= _least and (_home is null or home = _home) $$;
comment on function crew(int, text) is 'HTTP GET /crew
queryable filter order
mcp Crew.';
create schema port;
create function port.piers() returns table (pier_id int) language sql stable as 'select 1';
comment on function port.piers() is 'HTTP GET /piers
queryable filter';
create function strict_crew(_least int) returns table (id int) language sql strict stable as
$$ select id from ship where id >= _least $$;
comment on function strict_crew(int) is 'HTTP GET /strict-crew
queryable page 2 by id';
create function by_body(_least int) returns table (id int) language sql stable as
$$ select id from ship where id >= _least $$;
comment on function by_body(int) is 'HTTP POST /by-body
param_type body_json
queryable filter page by id
mcp By body.';
"""
P = "Service:ClientCodeGen:"
SETTINGS = {
    P + "Enabled": "true",
    P + "IncludeSchemaInNames": "false",
    P + "CommentHeader": "None",
    "Service:CrudSource:Enabled": "true",
    "Service:McpOptions:Enabled": "true",
    "Service:RequiresAuthorization": "false",
}
VARIANTS = {
    "types apart": {},
    "modules/exported": {P + "ExportTypes": "true"},
    "modules/inline": {P + "CreateSeparateTypeFile": "false"},
    "modules/urls": {P + "CreateSeparateTypeFile": "false", P + "ExportUrls": "true", P + "IncludeStatusCode": "false"},
    "modules/headers": {P + "CreateSeparateTypeFile": "false", P + "CustomHeaders:X-Version": '"1.4"'},
}
USES = """
import * as api from "./publicApi.js";
import { piers, where } from "./portApi.js";
export const ofOtherSchema = () => piers({pierId: ["gt.5", where.not(where.eq(1))]});
// @ts-expect-error a value without operator
export const plainOfOtherSchema = () => piers({pierId: "5"});
export const right = () =>
    api.shipsGet({id: "gt.5", shipName: ["like.a*", api.where.not(api.where.eq("x"))], limit: 2});
export const some = () => api.crew({least: 3, id: api.where.in([1, 2])});
export async function all() { for await (const page of api.shipsGetPages({order: "id.desc"})) { page[0]?.shipName; } }
export async function crews() { for await (const page of api.strictCrewPages({least: 1})) { page[0]?.id; } }
// @ts-expect-error a column that does not exist
export const column = () => api.shipsGet({colour: "eq.red"});
// @ts-expect-error an operator that does not exist
export const operator = () => api.shipsGet({id: "equals.5"});
// @ts-expect-error a value without operator
export const plain = () => api.shipsGet({id: "5"});
// @ts-expect-error pages are not among the abilities of this endpoint
export const pages = () => api.crew({least: 1, limit: 5});
"""
CALLS = """
import * as api from "./publicApi.js";
const real = globalThis.fetch;
const sent = [];
globalThis.fetch = (url, init) => {
    const headers = new Headers(init.headers);
    sent.push([headers.get("X-Version"), headers.get("X-Other")]);
    return real(url, init);
};
for await (const page of api.shipsGetPages({limit: 8}, {headers: {"X-Other": "a"}})) { page.length; }
const pages = [];
for await (const page of api.shipsGetPages({select: "id", limit: 5})) { pages.push(page.map(row => row.id)); }
const kiel = [];
for await (const page of api.shipsGetPages({home: api.where.eq('Kiel, "Ost"'), order: "id.desc", limit: 4}, {})) {
    kiel.push(page.map(row => row.id));
}
let failure = "";
try {
    for await (const page of api.shipsGetPages({id: "eq.x"})) { pages.push(page); }
} catch (error) { failure = error.message; }
const crews = [];
for (const least of [10, null]) {
    for await (const page of api.strictCrewPages({least})) { crews.push(page.map(row => row.id)); }
}
console.log(JSON.stringify({
    sent: sent.slice(0, 3), pages, kiel, failure, crews,
    some: await api.shipsGet({
        home: api.where.in(['Kiel, "Ost"', "a\\\\b"]), id: ["gt.3", api.where.lt(9)], select: "id",
    }),
    none: (await api.shipsGet({home: api.where.isNull, id: api.where.not("in.(1,3,5)"), select: "id"})).length,
    crew: await api.crew({least: 11, home: 'Kiel, "Ost"', id: api.where.gte(11)}),
}));
"""


@pytest.fixture(scope="module")
def loaded_database(database: Database) -> Database:
    database.execute(SQL)
    return database


@pytest.fixture(scope="module")
def snapshot(loaded_database: Database) -> SchemaSnapshot:
    return read_snapshot(loaded_database, SETTINGS)


@pytest.fixture(scope="module")
def service(loaded_database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("client")
    settings = {
        **SETTINGS,
        P + "FilePath": str(folder / "{0}Api.ts"),
        P + "SkipTypes": "true",
        P + "CustomHeaders:X-Version": '"1.4"',
        P + "IncludeStatusCode": "false",
        "Service:PythonClientCodeGen:Enabled": "true",
        "Service:PythonClientCodeGen:FilePath": str(folder / "{0}_api.py"),
        "Service:PythonClientCodeGen:IncludeStatusCode": "false",
    }
    service = serve(loaded_database, settings=settings)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "calls.js").write_text(CALLS, encoding="utf-8")
    service.folder = folder
    return service


@pytest.mark.slow
def test_the_client_filters_and_iterates_over_pages(service: Service) -> None:
    folder: Path = service.folder
    responses = json.loads(run(folder / "calls.js"))
    assert responses["sent"] == [["1.4", "a"], ["1.4", "a"], ["1.4", None]]
    assert responses["pages"] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]
    assert responses["kiel"] == [[12, 10, 8, 6], [4, 2]]
    assert "invalid input syntax for type integer" in responses["failure"]
    assert responses["some"] == [{"id": 4}, {"id": 6}, {"id": 8}]
    assert responses["none"] == 3
    # With NULL, the STRICT function is not called, and there are no pages.
    assert responses["crews"] == [[10, 11], [12]]
    assert responses["crew"] == [{"id": 12, "home": 'Kiel, "Ost"'}]


@pytest.mark.slow
def test_generated_types_restrict_columns_and_operators(
    snapshot: SchemaSnapshot, loaded_database: Database, tmp_path: Path
) -> None:
    for variant, settings in VARIANTS.items():
        chosen = {**SETTINGS, P + "FilePath": "{0}Api.ts", **settings}
        options = client_code_options(settings_of(loaded_database, chosen), ["http://127.0.0.1:8080"])
        assert options is not None
        folder = tmp_path / variant
        folder.mkdir(parents=True)
        for item in client_files(snapshot.endpoints, snapshot.types_of, {}, options, now="now"):
            (folder / item.path).write_text(item.text or "", encoding="utf-8")
        (folder / "uses.ts").write_text(USES, encoding="utf-8")
    assert compile_strictly(tmp_path / "modules") == ""
    # Otherwise, types in `.d.ts` files are not checked.
    assert compile_strictly(tmp_path / "types apart", "--skipLibCheck", "false") == ""


@pytest.mark.slow
def test_the_python_client_accepts_the_query_parameters(service: Service) -> None:
    assert type_errors(service.folder, "public_api.py") == ""
    with load_client(service.folder / "public_api.py").Client(service.url) as client:
        rows = client.ships_get(id="gt.9", order="id.desc", limit=2)
        assert [row["id"] for row in rows] == [12, 11]


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_the_openapi_document_has_the_query_parameters(snapshot: SchemaSnapshot, version: str) -> None:
    made = document(snapshot.endpoints, snapshot.types_of, OpenApiOptions(title="x", spec=VERSIONS[version]))
    from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

    validators: dict[str, Any] = {"3.0": OpenAPIV30SpecValidator, "3.1": OpenAPIV31SpecValidator}
    assert [error.message for error in validators[version](made).iter_errors()] == []
    listed = {item["name"]: item for item in made["paths"]["/ships"]["get"]["parameters"]}
    assert list(listed) == [
        *("id", "shipName", "home", "and", "or", "select", "order", "limit", "offset", "after", "before")
    ]
    assert all(item["in"] == "query" and not item["required"] and item["description"] for item in listed.values())
    assert listed["id"]["schema"]["type"] == "string"
    assert listed["limit"]["schema"]["type"] == "integer"
    assert "5 if it is missing, at most 1000" in listed["limit"]["description"]
    crew = [item["name"] for item in made["paths"]["/crew"]["get"]["parameters"]]
    assert crew == ["least", "home", "id", "and", "or", "order"]
    by_body = made["paths"]["/by-body"]["post"]
    assert [item["name"] for item in by_body["parameters"]] == [
        *("id", "and", "or", "limit", "offset", "after", "before")
    ]
    assert list(by_body["requestBody"]["content"]["application/json"]["schema"]["properties"]) == ["least"]


def test_tools_accept_the_query_parameters(snapshot: SchemaSnapshot, service: Service) -> None:
    entries = tool_entries(snapshot.endpoints, snapshot.types_of, ToolOptions())
    properties = entries["ship"].described["inputSchema"]["properties"]
    assert properties["id"]["description"].startswith("Filter: an operator and a value")
    request = tool_request(entries["by_body"].endpoint, {"least": 3, "id": "lt.6", "limit": 2})
    assert (request.target, request.body) == ("/by-body?id=lt.6&limit=2", b'{"least":3}')
    arguments = {"id": "gt.3", "order": "id.desc", "limit": 2, "select": "id"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ship", "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    response = service.post("/mcp", json=message, headers=headers)
    assert response.status_code == 200, response.text
    assert response.json()["result"]["structuredContent"] == {"items": [{"id": 12}, {"id": 11}]}
