"""Generated Dart: as text, and checked by a grammar of Dart (clients-28, clients-29)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rowcall.core.codegen.comments import Definition, Definitions
from rowcall.core.codegen.dart.files import dart_files
from rowcall.core.codegen.options import DartOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.dart import mistakes_in_dart
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot
from tests.http.conftest import Serve

SQL = """
create schema "yardOps";
create type geo as (lat numeric, lon numeric);
create type stop as (label text, at geo);
create type crate as (width int, height int);
create domain score as int;
create table depot (id int primary key, name text not null, opened date default now());

create function ping_depot() returns void language sql as '';
comment on function ping_depot() is 'HTTP';
create function get_count() returns int language sql as 'select 3';
comment on function get_count() is 'HTTP';
create function parcel_weight(_parcel_id int) returns float8 language sql as 'select 1.5::float8';
comment on function parcel_weight is 'HTTP
dartclient_status_code = false';
create function is_gate_open() returns boolean language sql as 'select true';
comment on function is_gate_open() is 'HTTP';
create function get_opened() returns timestamptz language sql as $$ select '2026-02-28 10:00+00'::timestamptz $$;
comment on function get_opened() is 'HTTP';
create function get_settings() returns jsonb language sql as $$ select '{"a": [1]}'::jsonb $$;
comment on function get_settings() is 'HTTP';
create function get_logo() returns bytea language sql stable as $$ select '\\x47ff00'::bytea $$;
comment on function get_logo() is 'HTTP GET';
create function by_filter(_filter jsonb, _filters jsonb[], _id int) returns int language sql stable as 'select 1';
comment on function by_filter is 'HTTP GET';
create function get_numbers() returns int[] language sql as 'select array[1,2]';
comment on function get_numbers() is 'HTTP';
create function get_names() returns setof text language sql as $$ values ('a'), ('b') $$;
comment on function get_names() is 'HTTP';
create function get_days(_from timestamptz, _day date, _days date[] default null) returns date[] language sql as
    $$ select array['2026-01-01'::date] $$;
comment on function get_days is 'HTTP';
create function find_parcels(_depot text, _tags text[] default null)
    returns table (parcel_id bigint, flags jsonb, packed_at timestamptz, weight real, double text, "hash_code" int)
    language sql stable as $$ select 1, to_jsonb(_tags), now(), 1.5::real, 'x', 1 $$;
comment on function find_parcels is 'HTTP GET
It''s one';
create function find_parcel(_depot text, _parcel_id bigint, _verbose boolean default false) returns text
    language sql stable as $$ select 'x' $$;
comment on function find_parcel is 'HTTP GET /api/depots/{_depot}/parcels/{_parcel_id}';
create function append_note(_parcel_id bigint, _note text) returns text language sql as 'select _note';
comment on function append_note is 'HTTP POST
body_parameter_name note';
create function append_count(_count int) returns void language sql as '';
comment on function append_count is 'HTTP POST
body_parameter_name count';
create function add_box(_box crate, _label text default 'x') returns int language sql as 'select (_box).width';
comment on function add_box is 'HTTP';
create function list_routes() returns table (route_id int, depot geo, stops stop[]) language sql stable as
    $$ select 1, row(1,2)::geo, array[row('a', row(3,4)::geo)::stop] $$;
comment on function list_routes is 'HTTP GET
nested';
create function "yardOps".open_gate(_gate int) returns int language sql as 'select _gate';
comment on function "yardOps".open_gate(int) is 'HTTP';
create function remove() returns int language sql as 'select 1';
comment on function remove() is 'HTTP DELETE /api/switch';
create function hidden() returns int language sql as 'select 1';
comment on function hidden() is 'HTTP
dartclient = false';
create function export_parcels(_day date default now()) returns text language sql stable as $$ select 'x' $$;
comment on function export_parcels is 'HTTP GET
dartclient_url_only = true';
create function sign_in(_name text) returns table (user_id int) language sql as 'select 7';
comment on function sign_in is 'HTTP
login';
create function sign_out() returns setof text language sql as $$ select 'x' $$;
comment on function sign_out is 'HTTP
logout';
create function moved() returns int language sql as 'select 1';
comment on function moved() is 'HTTP
tsclient_module = night_shift';
create function moved_too() returns int language sql as 'select 1';
comment on function moved_too() is 'HTTP
tsclient_module = night_shift
dartclient_module = day_shift';
create function import_manifest(_note text, _meta json default null) returns json language sql as 'select _meta';
comment on function import_manifest is 'HTTP
upload
param _meta is upload metadata';
create function reindex(_depot text) returns int language sql as 'select 1';
comment on function reindex is 'HTTP
sse';
create function watch_gate(_gate int default 1) returns void language sql as '';
comment on function watch_gate is 'HTTP POST /gates/{_gate?}
sse';
comment on table depot is 'HTTP';
create function code() returns table ("2fa" int) language sql stable as 'select 1';
comment on function code() is 'HTTP GET /api/2fa';
create function export_parcels_url() returns int language sql stable as 'select 1';
comment on function export_parcels_url() is 'HTTP GET';
"""
PLAIN = DartOptions(
    path="{0}_api.dart", header=(), schema_names=False, comment="None", status_code=False, json_type="dynamic"
)
LISTED = "(jsonDecode(BODY) as List<dynamic>)"
Generate = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def snapshot(database: Database) -> SchemaSnapshot:
    database.execute(SQL)
    return read_snapshot(database, {"Service:CrudSource:Enabled": "true", "Service:UploadOptions:Enabled": "true"})


@pytest.fixture
def generate(snapshot: SchemaSnapshot, tmp_path: Path) -> Generate:
    """Return the texts by file name; all of them are valid Dart."""

    def generate_checked(**changes: Any) -> dict[str, str]:
        options = replace(PLAIN, **changes)
        files = {
            item.path: item.text or ""
            for item in dart_files(snapshot.endpoints, snapshot.types_of, {}, options, now="now")
            if item.text is not None
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert mistakes_in_dart(*(tmp_path / name for name in files)) == []
        return files

    return generate_checked


def body(text: str, name: str) -> str:
    """Return a function with its comment, or a class."""
    (result,) = (block for block in text.split("\n\n") if re.search(rf"^(Future.*> |class ){name}[( ]", block, re.M))
    return result


def class_text(text: str, name: str) -> str:
    """Return a class, from its name to its end."""
    start = text.index(f"\nclass {name} {{") + 1
    return text[start : text.index("\n}\n", start) + 2]


@pytest.fixture(scope="module")
def plain(snapshot: SchemaSnapshot) -> dict[str, str]:
    result = dart_files(snapshot.endpoints, snapshot.types_of, {}, PLAIN, now="now")
    return {item.path: item.text or "" for item in result}


@pytest.fixture(scope="module")
def public(plain: dict[str, str]) -> str:
    return plain["public_api.dart"]


def test_one_file_is_generated_for_each_schema_and_module(plain: dict[str, str]) -> None:
    assert sorted(plain) == ["day_shift_api.dart", "night_shift_api.dart", "public_api.dart", "yard_ops_api.dart"]


def test_file_contains_only_the_helpers_it_uses(plain: dict[str, str]) -> None:
    assert plain["day_shift_api.dart"].startswith(
        "import 'dart:convert';\n\nimport 'package:http/http.dart' as http;\n\nString baseUrl = '';\n\n"
        "/// Sends all requests if it is set, for example by a test. It is never closed.\nhttp.Client? httpClient;\n\n"
        "Future<http.Response> _send("
    )
    for word in ("_query", "_segment", "_upload", "SseSubscription", "ApiResult", "dart:async", "dart:math"):
        assert word not in plain["day_shift_api.dart"]
    assert plain["day_shift_api.dart"].endswith("}\n")


def test_generated_function_matches_the_specified_example(public: str) -> None:
    expected = """Future<double?> parcelWeight(ParcelWeightRequest request) async {
  final uri = Uri.parse('$baseUrl/api/parcel-weight');
  final response = await _send(
    'POST',
    uri,
    headers: {
      'Content-Type': 'application/json',
    },
    body: jsonEncode(request.toJson()),
  );
  return utf8.decode(response.bodyBytes).isEmpty ? null : double.parse(utf8.decode(response.bodyBytes));
}"""
    assert expected in public


def test_model_has_fields_constructor_and_json_conversions(public: str) -> None:
    assert (
        class_text(public, "FindParcelsRequest")
        == """class FindParcelsRequest {
  final String? depot;
  final List<String?>? tags;

  const FindParcelsRequest({
    this.depot,
    this.tags,
  });

  factory FindParcelsRequest.fromJson(Map<String, dynamic> json) {
    return FindParcelsRequest(
      depot: json['depot'] as String?,
      tags: (json['tags'] as List<dynamic>?)?.map((item) => item as String?).toList(),
    );
  }

  Map<String, dynamic> toJson() {
    return {
      'depot': depot,
      if (tags != null) 'tags': tags,
    };
  }
}"""
    )


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (
            "FindParcelsResponse",
            "int? parcelId|dynamic flags|DateTime? packedAt|double? weight|String? double_|int? hashCode_",
        ),
        ("Depot", "double? lat|double? lon"),
        ("Stops", "String? label|Depot? at"),
        ("ListRoutesResponse", "int? routeId|Depot? depot|List<Stops?>? stops"),
        ("GetDaysRequest", "DateTime? from|DateTime? day|List<DateTime?>? days"),
        ("AddBoxRequest", "int? boxWidth|int? boxHeight|String? label"),
        (
            "ImportManifestResponse",
            "String? type|String? fileName|String? contentType|int? size|bool? success|String? status|"
            "Map<String, dynamic> raw",
        ),
    ],
)
def test_fields_follow_parameters_and_columns(public: str, name: str, fields: str) -> None:
    assert "|".join(re.findall(r"^  final (.*);$", class_text(public, name), re.M)) == fields


def test_values_without_a_number_or_date_in_json_are_read(public: str) -> None:
    """NaN, infinities and dates BC are texts."""
    text = class_text(public, "FindParcelsResponse")
    assert "weight: json['weight'] == null ? null : double.parse(json['weight'].toString())," in text
    assert "packedAt: json['packedAt'] == null ? null : DateTime.tryParse(json['packedAt'] as String)," in text


@pytest.mark.parametrize(
    ("name", "declared", "expression"),
    [
        ("getCount", "int?", "BODY.isEmpty ? null : int.parse(BODY)"),
        ("isGateOpen", "bool?", "BODY.isEmpty ? null : BODY == 't'"),
        ("getOpened", "DateTime?", "BODY.isEmpty ? null : DateTime.tryParse(BODY)"),
        ("getSettings", "dynamic", "BODY.isEmpty ? null : jsonDecode(BODY)"),
        (
            "getNumbers",
            "List<int?>?",
            "BODY.isEmpty ? null : (jsonDecode(BODY) as List<dynamic>?)?"
            ".map((item) => (item as num?)?.toInt()).toList()",
        ),
        ("getNames", "List<String?>", "(jsonDecode(BODY) as List<dynamic>).map((item) => item as String?).toList()"),
        ("signIn", "String", "BODY"),
        ("getLogo", "http.Response", "response"),
        ("depotsDepotParcelsParcelId", "String", "BODY"),
        ("switch_", "int?", "BODY.isEmpty ? null : int.parse(BODY)"),
    ],
)
def test_results_are_parsed_by_their_type(public: str, name: str, declared: str, expression: str) -> None:
    text = body(public, name)
    assert f"Future<{declared}> {name}(" in text
    assert f"  return {expression.replace('BODY', 'utf8.decode(response.bodyBytes)')};\n" in text


def test_void_routine_is_called_without_a_result(public: str) -> None:
    assert body(public, "pingDepot").endswith(
        "Future<void> pingDepot() async {\n  final uri = Uri.parse('$baseUrl/api/ping-depot');\n"
        "  await _send('POST', uri);\n}"
    )
    assert "Future<void> signOut() async {" in public


def test_parameters_are_sent_in_path_query_or_body(public: str) -> None:
    assert (
        "Uri.parse('$baseUrl/api/depots/${_segment(request.depot)}/parcels/${_segment(request.parcelId)}"
        "${_query(request.toJson()..remove('depot')..remove('parcelId'))}');"
    ) in body(public, "depotsDepotParcelsParcelId")
    assert "/api/by-filter${_query(request.toJson(), '', {'filter'})}" in public
    assert "    body: request.note,\n" in body(public, "appendNote")
    assert "    body: request.count?.toString(),\n" in body(public, "appendCount")
    assert "'from': from?.toUtc().toIso8601String()," in public
    assert "'day': day?.toIso8601String().substring(0, 10)," in public
    assert "Future<List<DepotGetResponse>> depotGet(DepotGetRequest request) async {" in public


def test_names_are_valid_public_and_unique(public: str) -> None:
    """Names that begin with `_` are private."""
    assert "Future<List<Call2faResponse>> call2fa() async {" in public
    assert "class Call2faResponse {\n  final int? field2fa;\n" in public
    assert "Future<int?> exportParcelsUrl() async {" in public
    assert "String exportParcelsUrl1(ExportParcelsRequest request) =>" in public


def test_content_type_header_is_sent_only_with_a_json_body(public: str) -> None:
    assert "'Content-Type': 'application/json'" in body(public, "signIn")
    assert "Content-Type" not in body(public, "findParcels")
    assert "Content-Type" not in body(public, "importManifest")


def test_api_error_has_hint_and_errors_per_parameter(snapshot: SchemaSnapshot) -> None:
    options = replace(PLAIN, status_code=True)
    result = dart_files(snapshot.endpoints, snapshot.types_of, {}, options, now="now")
    text = next(item.text for item in result if item.path == "public_api.dart") or ""
    error = text[text.index("class ApiError {") : text.index("class ApiResult<T>")]
    assert "  final String? hint;\n" in error
    assert "  final List<Map<String, dynamic>> errors;\n" in error
    assert "      hint: json['hint'] as String?,\n" in error
    assert "      errors: (json['errors'] as List<dynamic>? ?? const [])\n" in error


def test_event_sources_and_uploads_are_generated(public: str) -> None:
    assert "SseSubscription createReindexEventSource(\n  void Function(String message) onMessage, {" in public
    assert (
        "  ReindexRequest request, {\n  void Function(String message)? onMessage,\n  String? id,\n"
        "  int closeAfterMs = 1000,\n  int? awaitConnectionMs = 0,\n  void Function(Object error)? onError,\n}) async {"
    ) in body(public, "reindex")
    assert "      'X-NpgsqlRest-ID': executionId," in body(public, "reindex")
    assert "(onMessage, id: executionId, onError: onError);" in body(public, "reindex")
    # An optional parameter of the path is left out.
    assert "'$baseUrl/gates/info?$id'" in public
    text = body(public, "importManifest")
    assert "importManifest(\n  List<http.MultipartFile> files,\n  ImportManifestRequest request, {\n" in text
    assert "throw http.ClientException(" in text


def test_url_only_annotation_generates_only_the_url_function(public: str) -> None:
    assert (
        "String exportParcelsUrl1(ExportParcelsRequest request) =>\n"
        "    '$baseUrl/api/export-parcels${_query(request.toJson())}';"
    ) in public
    assert "exportParcels(" not in public
    assert "hidden" not in public


@pytest.mark.slow
def test_all_options_together_generate_valid_dart(generate: Generate) -> None:
    generate(comment="Simple")
    files = generate(
        status_code=True,
        models_file=True,
        export_urls=True,
        parse_url=True,
        parse_request=True,
        xsrf_header="X-Xsrf",
        export_sources=False,
        unique_models=True,
        omit_automatic=True,
        schema_names=True,
        comment="Full",
        model_prefix="My",
        model_suffix="Model",
        error_name="Oops",
        result_name="Outcome",
        dates=False,
        base_url_from="base.dart",
        imports=("import 'mine.dart';",),
        headers={"X-Version": "'1.4'", '"X-Other"': "other()"},
    )
    public = files["public_api.dart"]
    assert (
        "import 'mine.dart';\nimport 'base.dart';\nimport 'public_api_models.dart';\n\nexport 'public_api_models.dart';"
    ) in public
    assert "String baseUrl" not in public
    assert "Future<Outcome<List<MyPublicFindParcelsResponseModel>>> publicFindParcels(" in public
    assert "Future<Outcome<void>> publicPingDepot(" in public
    assert "_createPublicReindexEventSource(" in public
    assert "      'X-Version': '1.4',\n      \"X-Other\": other(),\n" in public
    # Event streams are requested with the same headers.
    assert "/info?$id', onMessage, onError, {'X-Version': '1.4', \"X-Other\": other()});" in public
    assert "if (xsrfToken != null) 'X-Xsrf': xsrfToken," in public
    models = files["public_api_models.dart"]
    assert "class Outcome<T> {" in models
    assert "final List<String?>? days;" in models


def test_multi_line_defaults_stay_within_the_comment(snapshot: SchemaSnapshot) -> None:
    (oid,) = (item.routine.oid for item in snapshot.endpoints if item.routine.name == "append_note")
    definitions: Definitions = {(None, oid): Definition("", (None, "'a\nb'::text"))}
    options = replace(PLAIN, comment="Simple")
    files = {
        item.path: item.text for item in dart_files(snapshot.endpoints, snapshot.types_of, definitions, options, "")
    }
    assert "///     _note text DEFAULT 'a\n/// b'::text\n/// )\n" in str(files["public_api.dart"])


@pytest.mark.slow
def test_generated_comment_shows_the_routine_signature(generate: Generate) -> None:
    assert body(generate(comment="Simple")["public_api.dart"], "findParcels").startswith(
        """/// function public.find_parcels(
///     _depot text,
///     _tags text[]
/// )
/// returns table(
///     parcel_id bigint,
///     flags jsonb,
///     packed_at timestamp with time zone,
///     weight real,
///     double text,
///     hash_code integer
/// )
///
/// It's one
///
/// [request] - the values of the request
///
/// Returns `List<FindParcelsResponse>`.
///
/// See FUNCTION public.find_parcels
Future<List<FindParcelsResponse>> findParcels("""
    )


def test_start_of_the_service_writes_the_files(
    snapshot: SchemaSnapshot, database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """The parameter `snapshot` is requested because its fixture creates the routines."""
    section = "Service:DartClientCodeGen:"
    settings = {section + "Enabled": "true", section + "FilePath": str(tmp_path / "{0}.dart")}
    service = serve_once(database, "", settings)
    service.wait_for_log("client code in Dart: 4 files written, 0 unchanged")
    text = (tmp_path / "yard_ops.dart").read_text(encoding="utf-8")
    assert re.match(r"// autogenerated at .*\n\nimport 'dart:convert';\n", text)
    assert f"String baseUrl = '{service.url}';" in text
    assert "Future<ApiResult<int?>> " in text
