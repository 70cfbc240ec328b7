"""Generated TypeScript and JavaScript: as text, checked by `tsc --strict`, and calling the service
(docs/internals/behaviour/clients.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rowcall.core.codegen.files import client_files
from rowcall.service.options.auth import auth_options
from rowcall.service.options.capabilities.client_code import client_code_options
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.database import Database
from tests.harness.node import compile_strictly, run
from tests.harness.service import Service
from tests.harness.snapshots import read_snapshot, settings_of
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema yard;
create type geo as (lat numeric, lon numeric);
create type stop as (label text, at geo);
create type crate as (width int, height int);
create domain score as int;
create table depot (id int primary key, name text not null, opened date default now());

create function ping_depot() returns void language sql as '';
comment on function ping_depot() is 'HTTP';
create function get_count() returns int language sql as 'select 3';
comment on function get_count() is 'HTTP';
create function null_count() returns int language sql as 'select null::int';
comment on function null_count() is 'HTTP';
create function null_settings() returns jsonb language sql as 'select null::jsonb';
comment on function null_settings() is 'HTTP';
create function no_depot() returns setof depot language sql stable as 'select * from depot where false';
comment on function no_depot() is E'HTTP\\nsingle';
create function is_gate_open() returns boolean language sql as 'select true';
comment on function is_gate_open() is 'HTTP';
create function get_opened() returns timestamptz language sql as $$ select '2026-02-28 10:00+00'::timestamptz $$;
comment on function get_opened() is 'HTTP';
create function get_settings() returns jsonb language sql as $$ select '{"a": [1]}'::jsonb $$;
comment on function get_settings() is 'HTTP';
create function get_numbers() returns int[] language sql as 'select array[1,2]';
comment on function get_numbers() is 'HTTP
tsclient_hooks = false';
create function get_days() returns date[] language sql as $$ select array['2026-01-01'::date] $$;
comment on function get_days() is 'HTTP';
create function check_in() returns int language sql as 'select 1';
comment on function check_in() is 'HTTP /api/2fa/check';
create function check_out(_at date) returns table (at date) language sql stable as 'select _at';
comment on function check_out(date) is 'HTTP GET /api/2fa/done';
create function put_settings(_id int, _settings jsonb default null) returns void language sql as '';
comment on function put_settings is 'HTTP PUT
body_parameter_name settings';
create function flat_routes() returns table (id int, depot geo) language sql stable as $$ select 1, row(1,2)::geo $$;
comment on function flat_routes() is 'HTTP GET';
create function night_routes() returns table (depot geo) language sql stable as $$ select row(1,2)::geo $$;
comment on function night_routes() is 'HTTP GET
nested
tsclient_module = night_shift';
create function import_manifest(_meta json default null) returns json language sql as 'select _meta';
comment on function import_manifest is 'HTTP
upload
param _meta is upload metadata';
create function import_note(_note int, _meta json default null) returns json language sql strict as 'select _meta';
comment on function import_note is 'HTTP
upload
param _meta is upload metadata';
create function reindex(_depot text) returns int language sql as 'select 1';
comment on function reindex is 'HTTP
sse';
create function watch_gate(_gate int default 1) returns void language sql as '';
comment on function watch_gate is 'HTTP POST /gates/{_gate?}
sse';
create function change_depot(_id int, _changes jsonb) returns jsonb language sql as 'select _changes';
comment on function change_depot is 'HTTP
param _changes is merge patch';
create function by_filter(_filter jsonb, _filters jsonb[] default null) returns jsonb language sql stable as
    $$ select jsonb_build_array(_filter, to_jsonb(_filters)) $$;
comment on function by_filter is 'HTTP GET';
create function get_names() returns setof text language sql as $$ values ('a'), ('b') $$;
comment on function get_names() is 'HTTP';
create function get_score() returns table (score score) language sql as 'select 5';
comment on function get_score() is 'HTTP';
create function find_parcels(_depot text, _tags text[] default null)
    returns table (parcel_id bigint, flags jsonb, packed_at timestamptz) language sql stable as
    $$ select 1, to_jsonb(_tags), '2026-01-01 00:00+00'::timestamptz where _depot = 'north' $$;
comment on function find_parcels is 'HTTP GET
@tsclient_status_code = true
It''s */ odd';
create function find_parcel(_depot text, _parcel_id bigint, _verbose boolean default false) returns text
    language sql stable as $$ select concat_ws('|', _depot, _parcel_id, _verbose) $$;
comment on function find_parcel is 'HTTP GET /api/depots/{_depot}/parcels/{_parcel_id}';
create function append_note(_parcel_id bigint, _note text) returns text language sql as
    $$ select _parcel_id || _note $$;
comment on function append_note is 'HTTP POST
body_parameter_name note';
create function add_box(_box crate, _label text default 'x') returns int language sql as 'select (_box).width';
comment on function add_box is 'HTTP';
create function list_routes() returns table (route_id int, depot geo, stops stop[]) language sql stable as
    $$ select 1, row(1,2)::geo, array[row('a', row(3,4)::geo)::stop] $$;
comment on function list_routes is 'HTTP GET
nested';
create function yard.open_gate(_gate int) returns int language sql as 'select _gate';
comment on function yard.open_gate(int) is 'HTTP';
create function remove() returns int language sql as 'select 1';
comment on function remove() is 'HTTP DELETE /api/delete';
create function failing() returns int language sql as 'select 1/0';
comment on function failing() is 'HTTP GET
tsclient_status_code = true';
create function hidden() returns int language sql as 'select 1';
comment on function hidden() is 'HTTP
tsclient = false';
create function export_parcels(_day date default now()) returns text language sql stable as $$ select 'x' $$;
comment on function export_parcels is 'HTTP GET
tsclient_url_only';
create function sign_in(_name text) returns table (user_id int) language sql as 'select 7';
comment on function sign_in is 'HTTP
login';
create function moved() returns int language sql as 'select 1';
comment on function moved() is 'HTTP
tsclient_module = night_shift';
create function report() returns table (a int, b text) language sql stable as $$ select 1, 'x' $$;
comment on function report() is 'HTTP GET
raw
separator ,';
create function odd_columns() returns table ("Odd Name" int, "b""c" text) language sql stable as $$ select 1, 'x' $$;
comment on function odd_columns() is 'HTTP GET';
comment on table depot is 'HTTP';
create domain crates as crate[];
create type rated as (score score, held crates);
create function get_rated() returns table (one rated, many rated[]) language sql stable as
    $$ select row(1, array[row(2,3)::crate])::rated, array[row(1, null)::rated] $$;
comment on function get_rated() is 'HTTP
nested';
create function get_bytes() returns setof bytea language sql stable as $$ values ('\\x00ff'::bytea) $$;
comment on function get_bytes() is 'HTTP';
create function get_logo() returns bytea language sql stable as $$ select '\\x47ff00'::bytea $$;
comment on function get_logo() is 'HTTP GET';
create function as_sheet() returns table (a int) language sql stable as 'select 1';
comment on function as_sheet() is 'HTTP GET
table_format = excel';
create function as_table() returns table (a int) language sql stable as 'select 1';
comment on function as_table() is 'HTTP GET
table_format = html';
create function in_format(_format text default null) returns table (a int) language sql stable as 'select 1';
comment on function in_format is 'HTTP GET
table_format = {_format}';
create function get_pair(out a int, out b record) language sql stable as 'select 1, row(2, null)';
comment on function get_pair() is 'HTTP';
create function own_page(_user_id text default null, _page int default 1) returns int language sql stable as 'select 1';
comment on function own_page is 'HTTP GET /api/own/{_user_id}
user_parameters';
create function pass_on(_id int) returns void language sql as '';
comment on function pass_on is 'HTTP
upload
proxy http://127.0.0.1:1';
create function query() returns int language sql stable as 'select 1';
comment on function query() is 'HTTP GET';
create function find_parcels_url() returns int language sql stable as 'select 1';
comment on function find_parcels_url() is 'HTTP GET /api/find-parcels-url';
create function create_reindex_event_source() returns int language sql stable as 'select 1';
comment on function create_reindex_event_source() is 'HTTP GET';
create function "window"() returns int language sql stable as 'select 1';
comment on function "window"() is 'HTTP GET';
create function "crypto"() returns int language sql stable as 'select 1';
comment on function "crypto"() is 'HTTP GET';
create function fetch_once() returns int language sql stable as 'select 1';
comment on function fetch_once() is 'HTTP GET';
create function ticked(int, text default '') returns int language sql stable as 'select 1';
comment on function ticked is 'HTTP GET /api/`ticked`/{$1}';
"""
P = "Service:ClientCodeGen:"
PLAIN = {
    P + "Enabled": "true",
    P + "IncludeHost": "false",
    P + "IncludeSchemaInNames": "false",
    P + "CommentHeader": "None",
    P + "CreateSeparateTypeFile": "false",
    P + "IncludeStatusCode": "false",
    "Service:CrudSource:Enabled": "true",
    "Service:UploadOptions:Enabled": "true",
    "Service:ProxyOptions:Enabled": "true",
    "Service:TableFormatOptions:Enabled": "true",
}


@pytest.fixture(scope="module")
def database_with_routines(database: Database) -> Database:
    database.execute(SQL)
    return database


def generate(serve: Serve, database: Database, folder: Path, settings: Mapping[str, str] | None = None) -> Service:
    return serve(database, "", {**PLAIN, P + "FilePath": str(folder / "{0}Api.ts"), **(settings or {})})


@pytest.fixture(scope="module")
def folder(database_with_routines: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    generate(serve, database_with_routines, folder)
    return folder


@pytest.fixture(scope="module")
def public(folder: Path) -> str:
    return (folder / "publicApi.ts").read_text(encoding="utf-8")


def body(text: str, name: str) -> str:
    """Return a function, from its name to its end."""
    start = text.index(f"export async function {name}(")
    return text[start : text.index("\n}\n", start) + 3]


def test_one_file_is_generated_for_each_schema_and_module(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["night_shiftApi.ts", "publicApi.ts", "yardApi.ts"]


def test_void_routine_is_called_without_a_result(public: str) -> None:
    assert body(public, "pingDepot") == (
        'export async function pingDepot() : Promise<void> {\n    await fetch(baseUrl + "/api/ping-depot", {\n'
        '        method: "POST",\n    });\n}\n'
    )


@pytest.mark.parametrize(
    ("name", "declared", "expression"),
    [
        ("getCount", "number | null", 'await response.text().then(text => text === "" ? null : Number(text))'),
        ("isGateOpen", "boolean | null", 'await response.text().then(text => text === "" ? null : text === "t")'),
        ("getOpened", "Date | null", 'await response.text().then(text => text === "" ? null : new Date(text))'),
        ("getSettings", "any", 'await response.text().then(text => text === "" ? null : JSON.parse(text))'),
        ("getNumbers", "number[] | null", 'await response.text().then(text => text === "" ? null : JSON.parse(text))'),
        ("getDays", "string[] | null", 'await response.text().then(text => text === "" ? null : JSON.parse(text))'),
        ("_2faCheck", "number | null", 'await response.text().then(text => text === "" ? null : Number(text))'),
        ("getNames", "string[]", "await response.json() as string[]"),
        ("report", "string", "await response.text()"),
        ("signIn", "string", "await response.text()"),
        ("findParcel", "string", "await response.text()"),
        ("getBytes", "Response", "response"),
        ("getLogo", "Response", "response"),
        ("asSheet", "Response", "response"),
        ("asTable", "string", "await response.text()"),
        ("inFormat", "IInFormatResponse[]", "await response.json() as IInFormatResponse[]"),
    ],
)
def test_results_are_parsed_by_their_type(public: str, name: str, declared: str, expression: str) -> None:
    text = body(public, name) if name != "findParcel" else body(public, "depotsDepotParcelsParcelId")
    assert f") : Promise<{declared}> {{" in text
    assert f"return {expression};" in text


def test_content_type_header_is_sent_only_with_a_body(public: str) -> None:
    """On a GET it would only cause a CORS preflight; on other requests, without it, fetch labels JSON as
    `text/plain`."""
    message = '        headers: {\n            "Content-Type": "application/json"\n        },\n'
    assert message in body(public, "signIn")
    assert message in body(public, "addBox")
    for name in ("getNames", "getNumbers", "getSettings", "findParcels", "pingDepot", "appendNote"):
        assert "headers: {" not in body(public, name)


def test_interfaces_follow_parameters_and_columns(public: str) -> None:
    for text in (
        "interface IFindParcelsRequest {\n    depot: string | null;\n    tags?: string[] | null;\n}\n",
        "interface IFindParcelsResponse {\n    parcelId: number | null;\n    flags: string | null;\n"
        "    packedAt: string | null;\n}\n",
        "interface IChangeDepotRequest {\n    id: number | null;\n    changes: Record<string, unknown>;\n}\n",
        "interface IAddBoxRequest {\n    boxWidth?: number | null;\n    boxHeight?: number | null;\n"
        "    label?: string | null;\n}\n",
        "interface IDepot {\n    lat: number | null;\n    lon: number | null;\n}\n\n"
        "interface IStops {\n    label: string | null;\n    at: IDepot | null;\n}\n",
        "interface IListRoutesResponse {\n    routeId: number | null;\n    depot: IDepot | null;\n"
        "    stops: IStops[] | null;\n}\n",
        "interface IGetPairResponse {\n    a: number | null;\n    b: (string | null)[] | null;\n}\n",
        "interface IOne {\n    score: number | null;\n    held: IHeld[] | null;\n}\n",
        "interface IMany {\n    score: string | null;\n    held: IHeld[] | null;\n}\n",
        "interface IGetScoreResponse {\n    score: number | null;\n}\n",
        'interface IOddColumnsResponse {\n    "Odd Name": number | null;\n    "b\\"c": string | null;\n}\n',
    ):
        assert text in public


def test_status_wrapper_is_generated_if_configured(public: str) -> None:
    assert (
        "\ntype ApiError = {status: number; title: string; detail?: string | null; "
        "hint?: string | null; errors?: {parameter: string; path: string; message: string}[]};\n"
        "type ApiResult<T> = {status: number, response: T, error: ApiError | undefined};\n"
    ) in public
    assert (
        "    return {\n        status: response.status,\n"
        "        response: response.ok ? await response.json() as IFindParcelsResponse[] : undefined!,\n"
        '        error: !response.ok && response.headers.get("content-length") !== "0" ? '
        "await response.json() as ApiError : undefined\n    };\n"
    ) in body(public, "findParcels")


def test_reserved_words_get_a_suffix_as_function_names(public: str) -> None:
    assert "export async function delete_()" in public
    for name in ("window_", "crypto_", "fetchOnce_"):
        assert f"export async function {name}()" in public


def test_helper_names_do_not_collide_with_functions(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    """Functions keep their names. Another test compiles all of it."""
    write(tmp_path, {**VARIANTS["hooks"], P + "ExportUrls": "true"})
    text = (tmp_path / "publicApi.ts").read_text(encoding="utf-8")
    for name in ("findParcelsUrl", "createReindexEventSource"):
        assert f"export async function {name}()" in text
        assert f"export const {name}1 = " in text
    assert "export function useQuery1(" in (tmp_path / "hooks" / "publicHooks.ts").read_text(encoding="utf-8")


def test_names_starting_with_digits_are_prefixed_only_for_functions(public: str) -> None:
    assert "interface I2faDoneRequest {\n    at: string | null;\n}\n" in public
    assert "export async function _2faDone(\n    request: I2faDoneRequest\n) : Promise<I2faDoneResponse[]> {" in public


def test_event_source_of_a_path_leaves_optional_parameters_out(public: str) -> None:
    assert 'createGatesGateEventSource = (id: string = "") => new EventSource(baseUrl + "/gates/info?" + id);' in public


def test_upload_function_reports_progress_and_rejects_on_failure(public: str) -> None:
    text = body(public, "importManifest")
    assert "    progress?: (loaded: number, total: number) => void,\n): Promise<IImportManifestResponse[]> {" in text
    for event in ("error", "abort", "timeout"):
        assert f"        xhr.on{event} = () => reject({{xhr, status: xhr.status, " in text
    assert """            formData.append("file", file, file.name);\n""" in text
    # A STRICT routine with a NULL argument is not called, so the response is empty.
    assert 'resolve(xhr.responseText === "" ? null : JSON.parse' in body(public, "importNote")


def test_proxied_upload_returns_the_response(public: str) -> None:
    text = body(public, "passOn")
    assert "): Promise<Response> {" in text
    assert "resolve(new Response(xhr.response.size ? " in text


def test_query_helper_is_generated_if_optional_parameters_are_omitted(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    skipped = {f"{P}SkipPaths:{number}": f"/api/{name}" for number, name in enumerate(("find-parcels", "append-note"))}
    settings = {P + "OmitAutomaticParameters": "true", P + "SkipSchemas:0": "yard", **skipped}
    write(tmp_path, settings)
    text = (tmp_path / "publicApi.ts").read_text(encoding="utf-8")
    assert "const parseQuery = " in text
    assert "export async function importManifest(\n    files: FileList | null,\n    progress?" in text
    assert 'xhr.open("POST", baseUrl + "/api/import-manifest");' in text
    # Parts of a path are required.
    assert "fetch(`${baseUrl}/api/own/${encodeURIComponent(String(request.userId))}` + " in text


def test_json_body_parameter_is_serialized(write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path) -> None:
    write(tmp_path, {P + "DefaultJsonType": "any"})
    text = (tmp_path / "publicApi.ts").read_text(encoding="utf-8")
    assert "        body: JSON.stringify(request.settings)\n" in body(text, "putSettings")


def test_url_only_annotation_generates_only_the_url_function(public: str) -> None:
    assert (
        'export const exportParcelsUrl = (request: IExportParcelsRequest) => baseUrl + "/api/export-parcels" '
        "+ parseQuery(request);\n"
    ) in public
    assert "function exportParcels" not in public
    assert "hidden" not in public


def test_body_parameter_is_sent_as_the_request_body(public: str) -> None:
    text = body(public, "appendNote")
    assert 'parseQuery((({ ["note"]: _1, ...rest }) => rest)(request))' in text
    assert "        body: request.note\n" in text


def test_tables_have_a_function_for_each_operation(public: str) -> None:
    for name in ("depotGet", "depotPost", "depotPut", "depotDelete", "depotReturningPut"):
        assert f"export async function {name}(" in public
    assert "    id: number | null;\n    name: string | null;\n    opened?: string | null;" in public


VARIANTS: dict[str, dict[str, str]] = {
    "plain": {},
    "everything": {
        P + "IncludeStatusCode": "true",
        P + "IncludeParseUrlParam": "true",
        P + "IncludeParseRequestParam": "true",
        P + "ExportUrls": "true",
        P + "CommentHeader": "Full",
        P + "IncludeSchemaInNames": "true",
        P + "UniqueModels": "true",
        P + "OmitAutomaticParameters": "true",
        P + "XsrfTokenHeaderName": "X-Xsrf",
        P + "DefaultJsonType": "unknown",
        P + "CustomHeaders:X-Version": '"1.4"',
        P + "CustomImports:0": "// imports",
    },
    "types apart": {P + "CreateSeparateTypeFile": "true", P + "IncludeStatusCode": "true"},
    "types exported": {P + "CreateSeparateTypeFile": "true", P + "ExportTypes": "true", P + "CommentHeader": "Simple"},
    "hooks": {
        P + "ReactQuery:Enabled": "true",
        P + "ReactQuery:FilePath": "hooks/{0}Hooks.ts",
        P + "ReactQuery:QueryKeyPrefix": "depot",
    },
}


UPLOADED = """
import { importManifest } from "./hooks/publicApi";
type Entry = Awaited<ReturnType<typeof importManifest>>[number];
const common = { fileName: "a", contentType: "text/csv", size: 1, success: true, status: "Ok" };
export const entries: Entry[] = [
    { ...common, type: "large_object", success: false, status: "InvalidMimeType", oid: null },
    { ...common, type: "file_system", filePath: "/srv/a" },
    { ...common, type: "csv", claims: { user_id: "41", user_roles: ["boss"] }, lastResult: [1, null] },
    { ...common, type: "excel", sheet: "First", rows: 2, lastResult: null, result: null },
];
export const id = (entry: Entry): number | null => typeof entry["oid"] === "number" ? entry["oid"] : null;
"""
"""Metadata in the forms of all upload handlers."""


@pytest.fixture(scope="module")
def snapshot(database_with_routines: Database) -> SchemaSnapshot:
    return read_snapshot(database_with_routines, PLAIN)


@pytest.fixture
def write(snapshot: SchemaSnapshot, database_with_routines: Database) -> Callable[[Path, Mapping[str, str]], None]:
    """Write the files that a start with these settings writes."""

    def write(folder: Path, settings: Mapping[str, str]) -> None:
        chosen = {**PLAIN, P + "FilePath": "{0}Api.ts", **settings}
        options = client_code_options(settings_of(database_with_routines, chosen), ["http://127.0.0.1:8080"])
        assert options is not None
        for item in client_files(snapshot.endpoints, snapshot.types_of, {}, options, now="now"):
            path = folder / item.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(item.text or "", encoding="utf-8")

    return write


@pytest.mark.slow
def test_generated_typescript_compiles_strictly(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    """Types in separate files that are not exported are global, so they are compiled separately."""
    for variant, settings in VARIANTS.items():
        write(tmp_path / ("apart" if variant == "types apart" else f"modules/{variant}"), settings)
    (tmp_path / "modules" / "uploaded.ts").write_text(UPLOADED, encoding="utf-8")
    assert compile_strictly(tmp_path / "modules") == ""
    assert compile_strictly(tmp_path / "apart") == ""


def test_hooks_are_generated_except_for_excluded_endpoints(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    write(tmp_path, VARIANTS["hooks"])
    text = (tmp_path / "hooks" / "publicHooks.ts").read_text(encoding="utf-8")
    assert (
        """export const findParcelsKeys = {
    all: ["depot", "findParcels"] as const,
    byRequest: (request: FindParcelsRequest) =>
        ["depot", "findParcels", request] as const,
};
"""
        in text
    )
    assert "export function useAddBoxMutation(" in text
    assert "export function useGetCount(" in text
    for name in ("GetNumbers", "exportParcels", "importManifest", "reindex"):
        assert name not in text


def test_global_types_have_unique_names_across_files(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    write(tmp_path, VARIANTS["types apart"])
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*Types.d.ts")]
    names = [name for text in texts for name in re.findall(r"^interface (\w+)", text, re.M)]
    assert len(texts) == 3
    assert "IDepot1" in names
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("urls", "url", "logged"),
    [
        (["http://[::]:80"], "http://[::]:80", "on all addresses"),
        (["http://127.0.0.1"], "http://127.0.0.1", ""),
        (["http://unix:/run/rowcall.sock"], "http://localhost:5000", "only on a Unix socket"),
        (["http://unix:/run/rowcall.sock", "http://127.0.0.1"], "http://127.0.0.1", ""),
    ],
)
def test_base_url_that_clients_cannot_reach_is_logged(
    database_with_routines: Database, caplog: pytest.LogCaptureFixture, urls: list[str], url: str, logged: str
) -> None:
    settings = settings_of(database_with_routines, {**PLAIN, P + "IncludeHost": "true", P + "FilePath": "{0}.ts"})
    options = client_code_options(settings, urls)
    assert options is not None
    assert options.base_url == url
    assert (f"{P}CustomHost: the service listens {logged}," in caplog.text) == bool(logged)


def test_documents_name_no_unix_socket(database_with_routines: Database) -> None:
    settings = settings_of(
        database_with_routines,
        {
            "Service:OpenApiOptions:Enabled": "true",
            "Service:OpenApiOptions:AddCurrentServer": "true",
            "Service:HttpFileOptions:Enabled": "true",
        },
    )
    urls = ["http://unix:/run/rowcall.sock", "http://127.0.0.1:8080"]
    described = descriptions(settings, "", auth_options(settings), urls)
    assert described.openapi is not None
    assert [url for url, _ in described.openapi.options.servers] == [urls[1]]
    assert described.http_files is not None
    assert described.http_files.host == urls[1]


def test_one_file_contains_all_schemas_if_configured(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    write(tmp_path, {P + "BySchema": "false", P + "FilePath": "api.ts"})
    text = (tmp_path / "api.ts").read_text(encoding="utf-8")
    assert all(f"function {name}(" in text for name in ("yardOpenGate", "moved", "pingDepot"))
    assert [path.name for path in tmp_path.iterdir()] == ["api.ts"]


def test_generated_comment_shows_the_routine_signature(
    database_with_routines: Database, serve_once: Serve, tmp_path: Path
) -> None:
    generate(serve_once, database_with_routines, tmp_path, {P + "CommentHeader": "Simple"})
    text = (tmp_path / "publicApi.ts").read_text(encoding="utf-8")
    expected = """
/**
* function public.find_parcels(
*     _depot text,
*     _tags text[] DEFAULT NULL::text[]
* )
* returns table(
*     parcel_id bigint,
*     flags jsonb,
*     packed_at timestamp with time zone
* )
*~
* @remarks
* It's *\\/ odd
*~
* @param request - request parameters
* @returns {ApiResult<IFindParcelsResponse[]>}
*~
* @see FUNCTION public.find_parcels
*/
export async function findParcels(
"""
    for head in (
        "* select public.depot\n* \n* @param",
        "* insert into public.depot on conflict do nothing returning\n",
        "* delete from public.depot\n",
        "* returns table(\n*     id integer,\n*     depot numeric,\n*     depot numeric\n* )\n",
        "* function public.ticked(\n*     $1 integer,\n*     $2 text DEFAULT ''::text\n* )\n",
    ):
        assert head.replace("* \n* @param", "") in text
    assert expected.replace("~", " ") in text


def test_file_path_without_placeholder_writes_no_files(
    database_with_routines: Database, serve_once: Serve, tmp_path: Path
) -> None:
    service = generate(serve_once, database_with_routines, tmp_path, {P + "FilePath": str(tmp_path / "api.ts")})
    service.wait_for_log("has no {0}")
    assert list(tmp_path.iterdir()) == []


def test_unchanged_files_are_not_rewritten(database_with_routines: Database, serve_once: Serve, tmp_path: Path) -> None:
    generate(serve_once, database_with_routines, tmp_path).stop()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    service = generate(serve_once, database_with_routines, tmp_path)
    service.wait_for_log("0 files written, 3 unchanged")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_existing_files_are_preserved_without_file_overwrite(
    database_with_routines: Database, serve_once: Serve, tmp_path: Path
) -> None:
    (tmp_path / "publicApi.ts").write_text("mine", encoding="utf-8")
    stored = {P + "FileOverwrite": "false", P + "CreateSeparateTypeFile": "true"}
    service = generate(serve_once, database_with_routines, tmp_path, stored)
    service.wait_for_log("unchanged, 1 left alone as FileOverwrite is false")
    assert (tmp_path / "publicApi.ts").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "publicApiTypes.d.ts").exists()
    assert (tmp_path / "yardApi.ts").exists()


NEW = "create function {0}() returns int language sql as 'select 1'; comment on function {0}() is 'HTTP'"


def test_reload_writes_new_endpoints(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    own_database.execute(NEW.format("one"))
    generate(serve_once, own_database, tmp_path)
    path = tmp_path / "publicApi.ts"
    own_database.execute(NEW.format("two"))
    own_database.execute("notify rowcall, 'reload'")
    wait_until(lambda: "function two(" in path.read_text(encoding="utf-8"), "the new function is there", 30)


@pytest.mark.parametrize("overwrite", [True, False])
def test_files_of_a_dropped_schema_are_removed(
    own_database: Database, serve_once: Serve, tmp_path: Path, *, overwrite: bool
) -> None:
    own_database.execute(NEW.format("one") + "; create schema spare; " + NEW.format("spare.two"))
    (tmp_path / "mineApi.ts").write_text("// by hand", encoding="utf-8")
    chosen = {
        P + "CreateSeparateTypeFile": "true",
        "Service:PythonClientCodeGen:Enabled": "true",
        "Service:PythonClientCodeGen:FilePath": str(tmp_path / "{0}_api.py"),
        **{f"Service:{client}:FileOverwrite": str(overwrite) for client in ("ClientCodeGen", "PythonClientCodeGen")},
    }
    service = generate(serve_once, own_database, tmp_path, chosen)
    spare = {"spareApi.ts", "spareApiTypes.d.ts", "spare_api.py"}
    stays = {path.name for path in tmp_path.iterdir()} - spare
    assert stays >= {"mineApi.ts", "publicApi.ts", "public_api.py"}
    assert all((tmp_path / name).exists() for name in spare)
    own_database.execute("drop schema spare cascade; notify rowcall, 'reload'")
    wait_until(lambda: service.log.count("client code in Python: ") == 2, "the clients are written again", 30)
    expected = stays if overwrite else stays | spare
    wait_until(lambda: {path.name for path in tmp_path.iterdir()} == expected, "the files of the schema are removed")


ANSWERS = """({
    ping: await api.pingDepot(),
    count: await api.getCount(),
    nullCount: await api.nullCount(),
    nullSettings: await api.nullSettings(),
    noDepot: await api.noDepot(),
    open: await api.isGateOpen(),
    opened: (await api.getOpened()).toISOString(),
    settings: await api.getSettings(),
    names: await api.getNames(),
    parcels: await api.findParcels({depot: "north", tags: ["a b", "ж&"]}),
    nothing: await api.findParcels({depot: "south"}),
    parcel: await api.depotsDepotParcelsParcelId({depot: "a b&c", parcelId: 7, verbose: true}),
    note: await api.appendNote({parcelId: 1, note: "text & more"}),
    box: await api.addBox({boxWidth: 4, boxHeight: 2}),
    routes: await api.listRoutes(),
    rated: await api.getRated(),
    pair: await api.getPair(),
    changes: await api.changeDepot({id: 1, changes: {name: null}}),
    sheet: (await (await api.asSheet()).text()).slice(0, 2),
    table: (await api.asTable()).slice(0, 7),
    logo: Array.from(new Uint8Array(await (await api.getLogo()).arrayBuffer())),
    failing: await api.failing(),
    put: await api.depotPut({id: 1, name: "north", opened: "2026-01-02"}),
    rows: await api.depotGet({id: 1}),
    url: api.exportParcelsUrl({day: "2026-01-01"}),
})"""
"""The responses that a program gets with the client as `api`."""
ENCODED_ANSWERS = f"JSON.stringify({ANSWERS}, (key, value) => value === undefined ? 'undefined' : value)"
"""The same as JSON text."""
CALLS = f"""
import * as api from "./publicApi.js";
console.log({ENCODED_ANSWERS});
"""
JSON_CALLS = """
import * as api from "./publicApi.js";
console.log(JSON.stringify([
    await api.byFilter({filter: [1, 2], filters: [[3], {a: "4"}, "[5]", 6]}),
    await api.byFilter({filter: "[7]"}),
    await api.byFilter({filter: {a: []}}),
]));
"""


@pytest.mark.slow
def test_generated_client_receives_values_of_the_database(
    database_with_routines: Database, serve_once: Serve, tmp_path: Path
) -> None:
    database_with_routines.execute("delete from depot")
    settings = {P + "SkipTypes": "true", P + "IncludeHost": "true", "Auth:CookieAuth": "true"}
    settings[P + "DefaultJsonType"] = "any"
    service = generate(serve_once, database_with_routines, tmp_path, settings)
    assert "interface" not in (tmp_path / "publicApi.js").read_text(encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    script = tmp_path / "calls.js"
    script.write_text(CALLS, encoding="utf-8")
    check_answers(json.loads(run(script)), service.url)
    script.write_text(JSON_CALLS, encoding="utf-8")
    assert json.loads(run(script)) == [[[1, 2], [[3], {"a": "4"}, [5], 6]], [[7], None], [{"a": []}, None]]
    # Not a browser: only the content type shows that the request is not from a page of another site. A refusal has a
    # body.
    script.write_text('import * as api from "./publicApi.js";\nconsole.log(await api.signIn({name: "kiri"}));')
    assert run(script) == "\n"


def check_answers(answers: dict[str, Any], base: str) -> None:
    """Check the responses. base: of the URLs of the client."""
    parcel = {"parcelId": 1, "flags": ["a b", "ж&"], "packedAt": "2026-01-01T00:00:00+00:00"}
    assert answers["parcels"] == {"status": 200, "response": [parcel], "error": "undefined"}
    assert answers["nothing"]["response"] == []
    assert answers["failing"]["status"] == 500
    assert answers["failing"]["error"]["title"]
    del answers["parcels"], answers["nothing"], answers["failing"]
    assert answers == {
        "ping": "undefined",
        "count": 3,
        "nullCount": None,
        "nullSettings": None,
        "noDepot": None,
        "open": True,
        "opened": "2026-02-28T10:00:00.000Z",
        "settings": {"a": [1]},
        "names": ["a", "b"],
        "parcel": "a b&c|7|t",
        "note": "1text & more",
        "box": 4,
        "routes": [
            {"routeId": 1, "depot": {"lat": 1, "lon": 2}, "stops": [{"label": "a", "at": {"lat": 3, "lon": 4}}]}
        ],
        "rated": [
            {"one": {"score": 1, "held": [{"width": 2, "height": 3}]}, "many": [{"score": "1", "held": None}]},
        ],
        "pair": {"a": 1, "b": ["2", None]},
        "changes": {"name": None},
        "sheet": "PK",
        "table": "<style>",
        "logo": [0x47, 0xFF, 0],
        "put": "undefined",
        "rows": [{"id": 1, "name": "north", "opened": "2026-01-02"}],
        "url": f"{base}/api/export-parcels?day=2026-01-01",
    }


def test_configured_header_lines_are_written_including_empty_ones(
    write: Callable[[Path, Mapping[str, str]], None], tmp_path: Path
) -> None:
    """Empty lines too (clients-2)."""
    value = {P + "HeaderLines:0": "// {{one}}", P + "HeaderLines:1": "", P + "HeaderLines:2": "// at {0}"}
    write(tmp_path, {**value, P + "CreateSeparateTypeFile": "true"})
    for name in ("publicApi.ts", "publicApiTypes.d.ts"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("// {one}\n\n// at now\n")


def test_default_header_contains_the_time_of_generation(folder: Path) -> None:
    first, second, third = (folder / "publicApi.ts").read_text(encoding="utf-8").splitlines()[:3]
    assert (second, third) == ("", 'const baseUrl = "";')
    assert re.fullmatch(r"// autogenerated at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}[+-]\d\d:\d\d", first)
