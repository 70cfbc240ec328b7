"""Endpoints as function-calling tools, and llms.txt (documents-9, documents-10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rowcall.core.mcp.tool_schemas import ToolNameError, plain_names
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function bed_notes(_bed_id int, _q text default null) returns setof text language sql stable as 'select _q';
comment on function bed_notes is 'HTTP GET
mcp List notes of one bed.';
create function add_note(_bed_id int, _note jsonb) returns bigint language sql as 'select 1';
comment on function add_note is 'HTTP POST /beds/{_bed_id}/notes
mcp
mcp_name notes.add
Adds a note.
To one bed.';
create function only_tool() returns text language sql stable as $$ select 'x' $$;
comment on function only_tool is 'mcp Says it.';
create function undescribed() returns int language sql stable as 'select 1';
comment on function undescribed is 'HTTP GET';
"""
P = "Service:McpOptions:"
T = P + "ToolSchemas:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        T + "Enabled": "true",
        T + "OpenAiFileName": str(folder / "openai.json"),
        T + "AnthropicFileName": "",
        T + "LlmsTxtFileName": str(folder / "llms.txt"),
        P + "ServerName": "garden",
        "Service:OpenApiOptions:Enabled": "true",
    }
    return serve(database, SQL, settings)


INPUT = {
    "type": "object",
    "properties": {"bedId": {"type": "integer", "format": "int32"}, "q": {"type": "string"}},
    "required": ["bedId"],
}


def test_tools_in_the_form_of_openai(service: Service, folder: Path) -> None:
    response = service.get("/tools/openai.json")
    assert response.headers["content-type"] == "application/json"
    assert response.text == (folder / "openai.json").read_text(encoding="utf-8")
    assert response.text.startswith('[\n  {\n    "type": "function",\n')
    tools = response.json()
    assert [tool["function"]["name"] for tool in tools] == ["bed_notes", "notes_add", "only_tool"]
    assert tools[0] == {
        "type": "function",
        "function": {"name": "bed_notes", "description": "List notes of one bed.", "parameters": INPUT},
    }


def test_tools_in_the_form_of_anthropic(service: Service) -> None:
    tools = service.get("/tools/anthropic.json").json()
    assert json.dumps(tools[0]) == json.dumps(
        {"name": "bed_notes", "description": "List notes of one bed.", "input_schema": INPUT}
    )
    assert [tool["name"] for tool in tools] == ["bed_notes", "notes_add", "only_tool"]


def test_llms_txt(service: Service, folder: Path) -> None:
    response = service.get("/llms.txt")
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text == (folder / "llms.txt").read_text(encoding="utf-8")
    assert (
        response.text
        == """# garden

> HTTP API over a PostgreSQL database with 3 endpoints.

## Endpoints

### bed_notes
- Method: GET /api/bed-notes
- Description: List notes of one bed.
- Parameters:
  - `bedId` (integer, required)
  - `q` (string, default available)

### notes.add
- Method: POST /beds/{_bed_id}/notes
- Description: Adds a note. To one bed.
- Parameters:
  - `bedId` (integer, required)
  - `note` (any JSON value, required)

### only_tool
- Method: GET /api/only-tool
- Description: Says it.
- Parameters: none

## Machine-readable
- OpenAPI: /openapi.json
- OpenAI tools: /tools/openai.json
- Anthropic tools: /tools/anthropic.json
"""
    )


def test_tool_schemas_do_not_enable_the_mcp_server(service: Service) -> None:
    assert service.post("/mcp", content=b"{}").status_code == 404
    assert service.get("/api/only-tool").status_code == 404
    assert "the tool notes.add is called notes_add where only letters, digits, _ and - are allowed" in service.log
    assert "mcp has no effect" not in service.log


def test_long_names_are_cut_and_equal_ones_refused() -> None:
    assert plain_names(["a" * 70, "ä.b"]) == {"a" * 70: "a" * 64, "ä.b": "__b"}
    with pytest.raises(ToolNameError, match=r"a\.b and a/b would both be called a_b"):
        plain_names(["a.b", "a/b"])


def test_files_are_written_without_serving(database: Database, service: Service, tmp_path: Path) -> None:
    """The fixture `service` creates the routines."""
    values = {
        "ConnectionStrings:Default": database.conninfo,
        "Service:ClientCodeGen:Enabled": "true",
        "Service:ClientCodeGen:FilePath": "{0}.ts",
        T + "Enabled": "true",
        T + "FileOverwrit": "true",
    }
    switches = ["--generate", *(f"--{key}={value}" for key, value in values.items())]
    done = rowcall(tmp_path, *switches)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "client code in TypeScript: 2 files written, 0 unchanged" in done.stdout
    assert f"Unknown configuration key: {T}FileOverwrit at command line" in done.stdout
    written = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert sorted(written) == [
        "llms.txt", "public.ts", "publicTypes.d.ts", "rowcall_tools_anthropic.json", "rowcall_tools_openai.json",
    ]  # fmt: skip
    assert "client code in TypeScript: 0 files written, 2 unchanged" in rowcall(tmp_path, *switches).stdout
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


def test_generate_without_configured_outputs_is_an_error(database: Database, tmp_path: Path) -> None:
    done = rowcall(tmp_path, "--generate", f"--ConnectionStrings:Default={database.conninfo}")
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "there is nothing to write" in done.stderr
