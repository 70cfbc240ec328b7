"""The OpenAPI document and files of example requests (documents-1 to documents-8)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create type size as (width int, label text);
create table note (id int, note text);
create function bed_notes(_bed_id int, _q text default null) returns table (id int, at timestamptz, sizes size[])
    language sql stable as $$ select 1, now(), null::size[] $$;
comment on function bed_notes is 'HTTP GET
Lists notes
of one bed
authorize';
create function add_note(_bed_id int, _note text, _tags text[] default null) returns bigint language sql as
    $$ insert into note values (_bed_id, _note) returning 1::bigint $$;
comment on function add_note is 'HTTP POST /beds/{_bed_id}/notes
openapi tag Green, Garden';
create function find_beds(_near text, _sizes int[], _wide boolean) returns int language sql stable as 'select 1';
create function weigh(_total numeric, _parts numeric[], _rest numeric default 0, _note jsonb default null) returns int
    language sql as 'select 1';
comment on function weigh is 'HTTP POST
param _rest default 123456789012345678901234567890
openapi example total = 0.1000000000000000000001
openapi example parts = [18446744073709551616, 1.50]
openapi example note = {"half": "\\ud800"}';
comment on function find_beds is 'HTTP GET
param _near default pond
openapi example near = the old oak & more
openapi example _sizes = [3, 4]
openapi example wide = maybe
openapi example depth = 3';
create function plant(_bed_id int, _plan jsonb, _on date, _count numeric) returns int language sql as 'select 1';
comment on function plant is 'HTTP POST /beds/{_bed_id}/plants
openapi example bedId = 12
openapi example plan = {"rows": [1, "two"]}
openapi example on = 2026-03-01
openapi example count = 2.50';
create function seal(_mark bytea) returns int language sql stable as 'select length(_mark)';
comment on function seal is 'HTTP GET
openapi hide';
create function stamp(_mark bytea, _marks bytea[]) returns int language sql as 'select length(_mark)';
comment on function stamp is 'HTTP POST
openapi hide';
create function clear() returns void language sql as '';
comment on function clear is 'HTTP DELETE /notes';
create function secret() returns int language sql stable as 'select 1';
comment on function secret is 'HTTP GET
openapi hide';
create function inner_one() returns int language sql stable as 'select 1';
comment on function inner_one is 'HTTP GET
internal';
"""
KEPT_SQL = """
create domain depth as int;
create type bed as (depth depth);
create function beds() returns table (one bed, many bed[]) language sql stable as 'select null::bed, null::bed[]';
comment on function beds() is E'HTTP GET /beds\\nnested';
create function kept() returns int language sql stable as 'select 1';
comment on function kept is E'HTTP GET /kept\\ncached';
create function sent() returns void language sql as '';
comment on function sent is E'HTTP GET /sent\\ncached\\nproxy';
create function passed(_a int) returns int language sql as 'select 1';
comment on function passed is E'HTTP POST /passed\\nproxy_out http://127.0.0.1:1';
create function entered(_name text) returns table (user_id int) language sql as 'select 1';
comment on function entered is E'HTTP POST /entered\\nlogin';
create function dug(_bed int) returns int language sql as 'select 1';
comment on function dug(int) is 'HTTP POST /dug';
create function dug(_bed int, _deep text, _on date default null) returns table (at date) language sql as 'select _on';
comment on function dug(int, text, date) is 'HTTP POST /dug';
create function seen(_bed int) returns int language sql stable as 'select 1';
comment on function seen(int) is 'HTTP GET /seen/{_bed}';
create function seen(_bed int, _deep int) returns int language sql stable as 'select 1';
comment on function seen(int, int) is 'HTTP GET /seen/{_bed}';
"""
GUARDED_SQL = """
create function locked() returns text language sql stable as 'select 1::text';
comment on function locked() is E'HTTP GET /locked\\n@basic_auth Joe swordfish
basic_auth = Jim swordfish\\nSays one';
create function signed() returns text language sql stable as 'select 1::text';
comment on function signed() is E'HTTP GET /signed\\nauthorize';
create function misspelt() returns text language sql stable as 'select 1::text';
comment on function misspelt() is E'HTTP GET /misspelt\\nbasicauth Joe swordfish\\nbasic_auth: Joe swordfish';
create function guarded(_token text default null) returns text language sql stable as 'select _token';
comment on function guarded(text) is E'HTTP GET /guarded
basic_auth
basic_auth_command select $2 = ''swordfish''
X-Answer: swordfish
_token = select ''swordfish''
proxi http://kim:swordfish@127.0.0.1:9
note = swordfish
mcp
Says a word.';
create function forwarded() returns text language sql stable as 'select 1::text';
comment on function forwarded() is E'HTTP GET /forwarded\nproxy http://kim:swordfish@127.0.0.1:9\nmcp\nForwards.';
create function filed(_meta json default null) returns text language sql as 'select 1::text';
comment on function filed(json) is E'HTTP POST /filed
upload for file_system\npath = /srv/swordfish\nStores a file.';
create table bed (id int primary key);
comment on table bed is E'HTTP GET\nLists beds.\nfor insert\nX-Key: swordfish\nproxy http://kim:swordfish@127.0.0.1:9';
create function sheet() returns setof pg_am language sql stable as 'select * from pg_am';
comment on function sheet() is E'HTTP GET /sheet\\ntable_format = excel';
create function page(fmt text) returns setof pg_am language sql stable as 'select * from pg_am';
comment on function page(text) is E'HTTP GET /page\\ntable_format = {fmt}';
"""
FILLED_SQL = """
create function claimed(_user_id text, _user_claims text, _ip_address text, _wanted int) returns text
    language sql stable as $$ select concat_ws('|', _user_id, _user_claims is not null, _ip_address, _wanted) $$;
comment on function claimed is 'HTTP GET /filled/claimed
user_params
mcp Claims and address.';
create function resolved(_token text, _wanted int) returns text language sql stable as $$ select _token || _wanted $$;
comment on function resolved is 'HTTP POST /filled/resolved
_token = select 41::text
mcp Resolves.';
create function hashed(_password text, _password_hash text, _wanted int) returns text
    language sql stable as $$ select (_password_hash <> _password)::text || _wanted $$;
comment on function hashed is 'HTTP POST /filled/hashed
param _password_hash is hash of _password
mcp Hashes.';
create function seen(_wanted int, _all_headers json default null) returns text
    language sql stable as $$ select (_all_headers is not null)::text || _wanted $$;
comment on function seen is 'HTTP POST /filled/seen
request_headers parameter
request_headers_parameter_name _all_headers
mcp Sees headers.';
create function stored(_wanted int, _meta json) returns text
    language sql as $$ select (_meta is not null)::text || _wanted $$;
comment on function stored is 'HTTP POST /filled/stored
upload for large_object
param _meta is upload metadata';
"""
P = "Service:OpenApiOptions:"
H = "Service:HttpFileOptions:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    beds = folder / "sql" / "night-shift" / "beds.sql"
    beds.parent.mkdir(parents=True)
    beds.write_text(
        "-- HTTP GET\n-- @param $1 bed_id int\n-- Beds of a night.\nselect id from note where id = $1;\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(
        database,
        SQL,
        {
            P + "Enabled": "true",
            P + "FileName": str(folder / "openapi.json"),
            P + "DocumentTitle": "garden",
            H + "Enabled": "true",
            H + "Option": "Both",
            H + "Name": "garden",
            "Service:SqlFileSource:Enabled": "true",
            "Service:SqlFileSource:FilePattern": str(folder / "sql" / "**" / "*.sql"),
            P + "ExcludeSchemas:0": "other",
            P + "NameNotSimilarTo": "beds",
        },
        workers=2,
    )


def test_openapi_document_is_written_and_served(service: Service, folder: Path) -> None:
    response = service.get("/openapi.json")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert json.loads((folder / "openapi.json").read_text(encoding="utf-8")) == response.json()
    document = response.json()
    assert list(document) == ["openapi", "info", "servers", "paths", "components"]
    assert document["openapi"] == "3.0.3"
    assert document["info"] == {"title": "garden", "version": "1.0.0"}
    assert document["servers"] == [{"url": service.url}]
    assert sorted(document["paths"]) == [
        *("/api/bed-notes", "/api/find-beds", "/api/weigh", "/beds/{bedId}/notes", "/beds/{bedId}/plants", "/notes")
    ]


def test_operation_has_summary_parameters_and_responses(service: Service) -> None:
    document = service.get("/openapi.json").json()
    read = document["paths"]["/api/bed-notes"]["get"]
    assert (read["summary"], read["description"]) == ("Lists notes", "of one bed")
    assert (read["tags"], read["operationId"]) == (["public"], "public_bed_notes_get")
    empty = {"allowEmptyValue": True}
    assert read["parameters"] == [
        {"name": "bedId", "in": "query", "required": True, **empty, "schema": {"type": "integer", "format": "int32"}},
        {"name": "q", "in": "query", "required": False, **empty, "schema": {"type": "string"}},
    ]
    number, text = {"type": "integer", "format": "int32", "nullable": True}, {"type": "string", "nullable": True}
    size = {"type": "object", "properties": {"width": number, "label": text}, "nullable": True}
    row = {
        "type": "object",
        "properties": {
            "id": number,
            "at": {"type": "string", "format": "date-time", "nullable": True},
            "sizes": {"type": "array", "items": size, "nullable": True},
        },
        "required": ["id", "at", "sizes"],
    }
    assert read["responses"]["200"]["content"] == {"application/json": {"schema": {"type": "array", "items": row}}}
    assert read["security"] == [{"bearerAuth": []}]
    write = document["paths"]["/beds/{bedId}/notes"]["post"]
    assert write["tags"] == ["Green", "Garden"]
    assert [item["in"] for item in write["parameters"]] == ["path"]
    assert write["requestBody"]["content"]["application/json"]["schema"] == {
        "type": "object",
        "properties": {"note": text, "tags": {"type": "array", "items": {"type": "string"}, "nullable": True}},
        "required": ["note"],
    }
    assert "204" in document["paths"]["/notes"]["delete"]["responses"]


def test_examples_and_defaults_come_from_comments(service: Service) -> None:
    paths = service.get("/openapi.json").json()["paths"]
    near, sizes, wide = paths["/api/find-beds"]["get"]["parameters"]
    assert (near["example"], near["schema"]) == ("the old oak & more", {"type": "string", "default": "pond"})
    assert (sizes["example"], wide["example"]) == ([3, 4], "maybe")
    write = paths["/beds/{bedId}/plants"]["post"]
    assert write["parameters"][0]["example"] == 12
    members = write["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert members == {
        "plan": {"example": {"rows": [1, "two"]}},
        "on": {"type": "string", "format": "date", "nullable": True, "example": "2026-03-01"},
        "count": {"type": "number", "nullable": True, "example": 2.5},
    }
    text = service.get("/garden_public.http").text
    assert "GET {{host}}/api/find-beds?near=the%20old%20oak%20%26%20more&sizes=3&sizes=4&wide=maybe\n" in text
    assert '{\n    "plan": {"rows": [1, "two"]},\n    "on": "2026-03-01",\n    "count": 2.50\n}' in text


def test_numbers_in_comments_preserve_all_digits(service: Service) -> None:
    document = service.get("/openapi.json").text
    assert '"default":123456789012345678901234567890' in document
    assert '"example":0.1000000000000000000001' in document
    assert '"example":[18446744073709551616,1.50]' in document
    example = r'{"half": "\ud800"}'
    body = service.get("/openapi.json").json()["paths"]["/api/weigh"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["properties"]["note"]["example"] == example
    service.wait_for_log(f"openapi example: {example} is no value of note as JSON has it; it is shown as a text")
    text = service.get("/garden_public.http").text
    assert '    "total": 0.1000000000000000000001,\n    "parts": [18446744073709551616, 1.50],\n' in text
    assert json.dumps(example) in text


def test_invalid_examples_are_logged(service: Service) -> None:
    service.wait_for_log("openapi example: depth is no parameter; nothing is shown")
    service.wait_for_log("openapi example: maybe is no value of wide as JSON has it; it is shown as a text")


def test_example_requests_are_served(service: Service) -> None:
    response = service.get("/garden_public.http")
    assert response.headers["content-type"] == "text/plain"
    text = response.text
    assert text.startswith(f"@host={service.url}\n\n")
    assert "GET {{host}}/api/bed-notes?bedId=1&q=XYZ\n\n###\n" in text
    assert 'POST {{host}}/beds/{_bed_id}/notes\ncontent-type: application/json\n\n{\n    "note": "XYZ",\n' in text
    assert "secret" in text
    assert "inner-one" not in text


def test_an_example_of_bytea_has_the_same_bytes_in_a_query_and_in_a_body(service: Service) -> None:
    text = service.get("/garden_public.http").text
    (query,) = re.findall(r"GET {{host}}(/api/seal\?.*)\n", text)
    assert service.get(query).text == "4"
    assert json.loads(text.partition("/api/stamp\ncontent-type: application/json\n\n")[2].partition("\n\n###")[0]) == {
        "mark": "\\xDEADBEEF",
        "marks": ["\\xDEADBEEF"] * 3,
    }


def test_example_requests_of_files_are_grouped_by_folder(service: Service, folder: Path) -> None:
    path = folder / "sql" / "night-shift" / "beds.sql"
    assert service.get("/garden_night-shift.http").text == (
        f"@host={service.url}\n\n// SQL file: {path}\n//\n// Beds of a night.\n"
        "GET {{host}}/api/beds?bed_id=1\n\n###\n\n"
    )


def test_requests_show_defaults(service: Service) -> None:
    text = (service.folder / "garden_public.http").read_text(encoding="utf-8")
    assert "// function public.bed_notes(\n//     _bed_id integer,\n//     _q text DEFAULT NULL::text\n// )\n" in text
    assert service.get("/garden_public.http").text == text


def test_served_requests_show_sources_and_are_updated_with_them(own_database: Database, serve_once: Serve) -> None:
    create = "create or replace function one() returns int language sql as $$ select {} $$;"
    own_database.execute(create.format("1") + " comment on function one() is 'HTTP'")
    chosen = {H + "Enabled": "true", H + "Option": "Endpoint", H + "CommentHeader": "Full", H + "Name": "garden"}
    service = serve_once(own_database, "", chosen)
    assert "// AS $function$ select 1 $function$\n" in service.get("/garden_public.http").text
    assert not (service.folder / "garden_public.http").exists()
    own_database.execute(create.format("2"))
    own_database.execute("notify rowcall, 'reload'")
    wait_until(lambda: "select 2" in service.get("/garden_public.http").text, "the new source is shown", 60)


def test_example_requests_of_a_dropped_schema_are_removed(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(
        "create schema spare; create function spare.one() returns int language sql as $$ select 1 $$;"
        "comment on function spare.one() is 'HTTP';"
        "create function two() returns int language sql as $$ select 2 $$; comment on function two() is 'HTTP'"
    )
    service = serve_once(own_database, "", {H + "Enabled": "true", H + "Name": "garden"})
    folder = service.folder
    (folder / "garden_mine.http").write_text("GET http://localhost/")
    assert sorted(path.name for path in folder.glob("*.http")) == [
        *("garden_mine.http", "garden_public.http", "garden_spare.http")
    ]
    own_database.execute("drop schema spare cascade; notify rowcall, 'reload'")
    wait_until(lambda: not (folder / "garden_spare.http").exists(), "the file of the schema is removed", 30)
    assert sorted(path.name for path in folder.glob("*.http")) == ["garden_mine.http", "garden_public.http"]


@pytest.mark.parametrize(("key", "value"), [("SpecVersion", "2.0"), ("NameNotSimilarTo", "(bed|%")])
def test_invalid_document_settings_stop_the_start(own_database: Database, tmp_path: Path, key: str, value: str) -> None:
    from tests.harness.command import rowcall

    values = {"ConnectionStrings:Default": own_database.conninfo, P + "Enabled": "true", P + key: value}
    values["Urls"] = "http://127.0.0.1:0"
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert f"rowcall: {P}{key}: {value!r} is no" in done.stderr


def test_proxied_cached_and_invalidation_responses_are_described(own_database: Database, serve_once: Serve) -> None:
    names = ("CacheOptions:Enabled", "Service:ProxyOptions:Enabled", f"{P}Enabled")
    settings = {**dict.fromkeys(names, "true"), "CacheOptions:InvalidateCacheSuffix": "forget"}
    service = serve_once(own_database, KEPT_SQL, settings)
    paths = service.get("/openapi.json").json()["paths"]
    for path in ("/kept/forget", "/sent/forget"):
        (schema,) = (item["schema"] for item in paths[path]["post"]["responses"]["200"]["content"].values())
        assert list(paths[path]) == ["post"]
        assert schema["properties"] == {"invalidated": {"type": "boolean"}}
        assert service.post(path).json() == {"invalidated": False}
    assert list(paths["/sent"]["get"]["responses"]) == ["200", "default"]
    assert list(paths["/kept"]["get"]["responses"]["200"]["content"]) == ["text/plain"]
    for path in ("/passed", "/entered"):
        assert list(paths[path]["post"]["responses"]["200"]) == ["description"]
    row = paths["/beds"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["items"]["properties"]
    assert row["one"]["properties"] == {"depth": {"type": "integer", "format": "int32", "nullable": True}}
    # A domain within an array is documented as a text.
    assert row["many"]["items"]["properties"] == {"depth": {"type": "string", "nullable": True}}
    # Overloads: a document can contain one operation for a path and method.
    dug = paths["/dug"]["post"]
    assert dug["operationId"] == "public_dug_post"
    body = dug["requestBody"]["content"]["application/json"]["schema"]
    assert (list(body["properties"]), body["required"]) == (["bed", "deep", "on"], ["bed"])
    assert list(dug["responses"]["200"]["content"]) == ["text/plain", "application/json"]
    received = [(item["name"], item["in"], item["required"]) for item in paths["/seen/{bed}"]["get"]["parameters"]]
    assert received == [("bed", "path", True), ("deep", "query", False)]


def test_injected_parameters_are_omitted_from_all_documents(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """Requests without them are complete, whether or not the routine has defaults for them."""
    clients = {"ClientCodeGen": ".ts", "DartClientCodeGen": ".dart", "PythonClientCodeGen": ".py"}
    kinds = (*clients, "OpenApiOptions", "HttpFileOptions", "UploadOptions", "McpOptions")
    settings = {
        **{f"Service:{kind}:Enabled": "true" for kind in kinds},
        **{f"Service:{kind}:FilePath": str(tmp_path / f"client{suffix}") for kind, suffix in clients.items()},
        **{f"Service:{kind}:BySchema": "false" for kind in clients},
        **{f"Service:{kind}:CommentHeader": "None" for kind in (*clients, "HttpFileOptions")},
        H + "Name": "all",
    }
    service = serve_once(own_database, FILLED_SQL, settings)
    document = service.get("/openapi.json").json()
    assert len(document["paths"]) == 5
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = service.post("/mcp", json=message).json()["result"]["tools"]
    assert len(tools) == 4
    for tool in tools:
        assert [*tool["inputSchema"]["properties"]] in (["wanted"], ["password", "wanted"])
    written = [*tmp_path.glob("client*"), service.folder / "all_public.http"]
    assert {item.suffix for item in written} == {".ts", ".dart", ".py", ".http"}
    texts = [json.dumps(document), *(item.read_text() for item in written)]
    for text in texts:
        for name in ("userId", "userClaims", "ipAddress", "token", "passwordHash", "allHeaders", "meta"):
            for member in (f'"{name}"', f"{name}:", f"{name}?:", f"{name}="):
                assert member not in text, (name, text)
    assert service.get("/filled/claimed?wanted=1").text == "f|127.0.0.1|1"
    assert service.post("/filled/resolved", json={"wanted": 1}).text == "411"
    assert service.post("/filled/hashed", json={"wanted": 1, "password": "kea"}).text == "true1"
    assert service.post("/filled/seen", json={"wanted": 1}).text == "true1"
    assert service.post("/filled/stored?wanted=1", files={"file": ("a.txt", b"a")}).text == "true1"


def test_passwords_in_comments_are_omitted_from_all_documents(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """The document also states who may call, and the role of a table."""
    clients = ("ClientCodeGen", "DartClientCodeGen", "PythonClientCodeGen")
    kinds = (
        *clients,
        *("TableFormatOptions", "OpenApiOptions", "HttpFileOptions", "ProxyOptions", "UploadOptions", "CrudSource"),
        *("McpOptions", "McpOptions:ToolSchemas"),
    )
    settings = {
        **{f"Service:{kind}:Enabled": "true" for kind in kinds},
        "Service:McpOptions:Resources": "true",
        "Service:McpOptions:ToolSchemas:LlmsTxtFileName": str(tmp_path / "llms.txt"),
        "Service:PythonClientCodeGen:FilePath": str(tmp_path / "client.py"),
        "Service:PythonClientCodeGen:BySchema": "false",
        "Service:SqlFileSource:Enabled": "true",
        "Service:SqlFileSource:FilePattern": str(tmp_path / "sql" / "*.sql"),
        "Service:ClientCodeGen:FilePath": str(tmp_path / "client.ts"),
        "Service:ClientCodeGen:BySchema": "false",
        "Service:DartClientCodeGen:FilePath": str(tmp_path / "client.dart"),
        "Service:DartClientCodeGen:BySchema": "false",
        P + "FileName": str(tmp_path / "openapi.json"),
        "Log:MinimalLevels:rowcall": "Verbose",
        "Log:ConsoleMinimumLevel": "Verbose",
    }
    file = tmp_path / "sql" / "read.sql"
    file.parent.mkdir()
    file.write_text("-- HTTP GET /read\n-- @X-Key: swordfish\n-- @parm swordfish\n-- Reads one.\nselect 1;\n")
    service = serve_once(own_database, GUARDED_SQL, settings)
    assert service.get("/misspelt").status_code == 404
    requests = wait_until(lambda: list(service.folder.glob("*.http")), "the requests are written")
    written = [item for item in (*tmp_path.iterdir(), *requests) if item.is_file()]
    assert len(written) >= 6
    served = [service.get(path).text for path in ("/openapi.json", "/tools/openai.json", "/llms.txt")]
    for method, params in (
        ("tools/list", {}),
        *(("resources/read", {"uri": f"rowcall://catalogue/{name}"}) for name in ("endpoints", "openapi")),
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        served.append(service.post("/mcp", json=message).text)
    for text in (*(item.read_text() for item in written), *served):
        assert "swordfish" not in text
    for suffix in (".dart", ".http", ".py", ".ts"):
        result = "".join(item.read_text() for item in written if item.suffix == suffix)
        for prose in ("Says a word.", "Forwards.", "Stores a file.", "Lists beds.", "Reads one."):
            assert prose in result, suffix
    assert "basic_auth ***" in service.log
    assert "Joe swordfish" not in service.log
    document = service.get("/openapi.json").json()
    paths = {path: item["get"] for path, item in document["paths"].items() if "get" in item}
    assert {path: paths[path].get("security") for path in ("/locked", "/signed", "/sheet", "/page")} == {
        "/locked": [{"basicAuth": []}],
        "/signed": [{"bearerAuth": []}],
        "/sheet": [],
        "/page": [],
    }
    assert document["components"]["securitySchemes"]["basicAuth"] == {"type": "http", "scheme": "basic"}
    excel = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert list(paths["/sheet"]["responses"]["200"]["content"]) == [excel]
    assert list(paths["/page"]["responses"]["200"]["content"]) == [
        "application/json",
        excel,
        "text/html; charset=utf-8",
    ]
