"""OpenAPI documents as a validator of the specification sees them: of the demo, and of routines of every shape."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import rowcall.service.embedded
from rowcall.core.documents.http_files import example_request
from rowcall.core.documents.openapi import document
from rowcall.core.documents.options import VERSIONS, HttpFileOptions, OpenApiOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot
from tests.http import test_client_code

DEMO = Path(rowcall.service.embedded.__path__[0])
SHOWN = """
create function shown_in_query(_a int[], _b text) returns int language sql stable as 'select 1';
comment on function shown_in_query is 'HTTP GET
openapi example a = [1]
param b default x';
create function shown_in_body(_a jsonb, _b int) returns int language sql as 'select 1';
create function shown_twice(_a int) returns int language sql stable as 'select 1';
comment on function shown_twice is 'HTTP GET /api/{_a}/twice/{_a}';
create function shown_patch(_id int, _n int, _note text default null, _changes jsonb default null) returns int
  language sql as 'select 1';
comment on function shown_patch is 'HTTP PATCH /api/shown-patch/{_id}
param _changes is merge patch';
create function shown_by_id(_id int) returns int language sql stable as 'select 1';
comment on function shown_by_id is 'HTTP GET /api/shown/{_id}/parts/{_part}
unknown_query_parameters ignore';
create function shown_change(_shown_id bigint, _part_id text, _n int) returns int language sql as 'select 1';
comment on function shown_change is 'HTTP PATCH /api/shown/{_shown_id}/parts/{_part_id}';
comment on function shown_in_body is 'HTTP
openapi example a = {}
openapi example b = 3';
"""
EVERYTHING = {"Service:CrudSource:Enabled": "true", "Service:UploadOptions:Enabled": "true"}


@pytest.fixture(scope="module")
def snapshot(database: Database) -> SchemaSnapshot:
    database.execute((DEMO / "demo" / "schema.sql").read_text(encoding="utf-8"))
    database.execute(test_client_code.SQL)
    database.execute(SHOWN)
    files = {
        "Service:SqlFileSource:Enabled": "true",
        "Service:SqlFileSource:FilePattern": f"{DEMO}/demo/files/**/*.sql",
    }
    return read_snapshot(database, {**EVERYTHING, **files})


def test_example_requests_have_examples_and_defaults_of_the_comment(snapshot: SchemaSnapshot) -> None:
    (shown,) = (item for item in snapshot.endpoints if item.path == "/api/shown-in-query")
    assert example_request(shown, HttpFileOptions("")) == "GET {{host}}/api/shown-in-query?a=1&b=x"


def test_members_beside_a_merge_patch_are_required_as_in_other_bodies(snapshot: SchemaSnapshot) -> None:
    made = document(snapshot.endpoints, snapshot.types_of, OpenApiOptions())
    body = made["paths"]["/api/shown-patch/{id}"]["patch"]["requestBody"]
    schema = body["content"]["application/merge-patch+json"]["schema"]
    assert (body["required"], schema["required"], list(schema["properties"])) == (True, ["n"], ["n", "note"])
    assert schema["additionalProperties"] is True


def test_paths_that_differ_only_in_names_are_one(snapshot: SchemaSnapshot) -> None:
    made = document(snapshot.endpoints, snapshot.types_of, OpenApiOptions())
    shapes = [re.sub(r"\{[^{}]*\}", "{}", path) for path in made["paths"]]
    assert len(shapes) == len(set(shapes))
    ((path, methods),) = ((path, item) for path, item in made["paths"].items() if path.startswith("/api/shown/"))
    names = re.findall(r"\{([^{}]*)\}", path)
    assert [[each["name"] for each in item["parameters"]] for item in methods.values()] == [names, names]
    formats = {name: item["parameters"][0]["schema"]["format"] for name, item in methods.items()}
    assert formats == {"get": "int32", "patch": "int64"}


@pytest.mark.slow
@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_the_document_is_valid(snapshot: SchemaSnapshot, version: str) -> None:
    options = OpenApiOptions(
        title="x",
        description="y",
        spec=VERSIONS[version],
        servers=(("http://localhost:8080", "here"),),
        schemes=(("key", (("type", "apiKey"), ("name", "X-Key"), ("in", "header"))),),
    )
    made = document(snapshot.endpoints, snapshot.types_of, options)
    assert len(made["paths"]) > 40
    # Here: each process of a run collects all files, and the validators take a third of a second to import.
    from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

    validators: dict[str, Any] = {"3.0": OpenAPIV30SpecValidator, "3.1": OpenAPIV31SpecValidator}
    assert [error.message for error in validators[version](made).iter_errors()] == []
