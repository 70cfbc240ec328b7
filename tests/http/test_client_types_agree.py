"""Declared types of generated clients and documents agree with what is returned, where it is easily mistaken: NULL in
results of files with several statements, and elements of arrays of a domain.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer
from tests.harness.node import compile_strictly
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

P = "Service:ClientCodeGen:"
SCHEMA = """
create domain posint as int check (value > 0);
create table bed (id int primary key, name text, counts posint[]);
insert into bed values (3, null, '{1,2}');
create function counts() returns posint[] language sql stable as $$ select counts from bed $$;
create function beds() returns setof bed language sql stable as $$ select * from bed $$;
comment on function counts() is 'HTTP GET';
comment on function beds() is 'HTTP GET';
"""
FILES = {
    "report.sql": """-- HTTP GET
-- @result beds
select id, name from bed;
-- @result first
-- @single
select id, name from bed;
-- @result missing
-- @single
select id, name from bed where false;
-- @result names
select name from bed;
""",
}
REPORT = '{"beds":[{"id":3,"name":null}],"first":{"id":3,"name":null},"missing":null,"names":[null]}'
NULLS_EXPECTED = """
import { report } from "./client.js";
const { beds, first, missing, names } = await report();
export const read: (string | number | null)[] = [
    beds[0]?.name ?? null, beds[0]?.id ?? null, first?.name ?? null, missing === null ? null : missing.id, ...names,
];
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"), FILES)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        **file_settings(folder),
        **{P + key: "true" for key in ("Enabled", "ExportTypes")},
        **{
            P + key: "false"
            for key in ("BySchema", "IncludeSchemaInNames", "CreateSeparateTypeFile", "IncludeStatusCode")
        },
        P + "FilePath": str(folder / "client.ts"),
        "Service:OpenApiOptions:Enabled": "true",
    }
    return serve(database, SCHEMA, settings)


@pytest.mark.slow
def test_results_of_several_statements_are_nullable(service: Service, folder: Path, tmp_path: Path) -> None:
    assert answer(service.get("/api/report")) == (200, JSON, REPORT)
    client = (folder / "client.ts").read_text(encoding="utf-8")
    write_files(tmp_path, {"client.ts": client, "program.ts": NULLS_EXPECTED})
    assert compile_strictly(tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["beds[0]!.name.length", "first!.name.length", "missing.id", "names.map(name => name.length)", "first!.id + 1"],
)
def test_compiler_refuses_unchecked_use_of_nullable_results(
    service: Service, folder: Path, tmp_path: Path, expression: str
) -> None:
    program = (
        'import { report } from "./client.js";\n'
        "const { beds, first, missing, names } = await report();\n"
        f"export const used = [beds, first, missing, names, {expression}];\n"
    )
    client = (folder / "client.ts").read_text(encoding="utf-8")
    write_files(tmp_path, {"client.ts": client, "program.ts": program})
    assert "possibly 'null'" in compile_strictly(tmp_path)


def test_domain_array_elements_are_strings_in_responses_and_clients(service: Service, folder: Path) -> None:
    assert answer(service.get("/api/counts")) == (200, JSON, '["1","2"]')
    assert answer(service.get("/api/beds")) == (200, JSON, '[{"id":3,"name":null,"counts":["1","2"]}]')
    client = (folder / "client.ts").read_text(encoding="utf-8")
    assert "counts: string[] | null;" in client
    paths = service.get("/openapi.json").json()["paths"]
    schema = paths["/api/beds"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["items"]["properties"]["counts"]["items"]["type"] == "string"
