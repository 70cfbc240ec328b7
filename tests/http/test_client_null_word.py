"""NULL in requests and results of generated clients: as a word (`query_string_null_handling null_literal`,
`text_response_null_handling null_literal`), and calls that STRICT routines skip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.dart import mistakes_in_dart
from tests.harness.database import Database
from tests.harness.node import compile_strictly, run
from tests.harness.python_client import load_client, type_errors
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function by_word(_text text, _count int, _tags text[], _other text default 'x') returns json
    language sql stable as $$ select json_build_array(_text, _count, _tags, _other) $$;
comment on function by_word is 'HTTP GET
query_string_null_handling null_literal';
create function by_default(_text text default 'x') returns json language sql stable as 'select json_build_array(_text)';
comment on function by_default is 'HTTP GET
query_string_null_handling null_literal';
create function by_path(_text text, _tags text[]) returns json
    language sql stable as $$ select json_build_array(_text, _tags) $$;
comment on function by_path is 'HTTP GET /api/by-path/{_text}
query_string_null_handling null_literal';
create function by_empty_value(_text text, _count int) returns json
    language sql stable as $$ select json_build_array(_text, _count) $$;
comment on function by_empty_value is 'HTTP GET';
create function strict_rows(_a int) returns table (id int, label text) language sql strict stable as
    $$ select _a, 'x' $$;
comment on function strict_rows is 'HTTP GET';
create function strict_row(_a text, out id text, out label text) language sql strict stable as $$ select _a, 'x' $$;
comment on function strict_row is 'HTTP POST';
""" + "".join(
    f"""create function {name}() returns {kind} language sql stable as 'select {value}::{kind}';
comment on function {name} is 'HTTP GET
text_response_null_handling null_literal';
"""
    for name, kind, value in (
        *(("no_number", "int", "null"), ("no_flag", "bool", "null"), ("no_day", "date", "null")),
        *(("no_list", "int[]", "null"), ("no_json", "jsonb", "null"), ("no_text", "text", "null")),
        ("three", "int", "3"),
    )
)
ANSWERS = [[None, None, ["a", None], None], [None, [None]], ["", None]]
STRICT_ANSWERS = [[{"id": 1, "label": "x"}], None, {"id": "1", "label": "x"}, None]
SCRIPT = """
import { byWord, byDefault, byPathText, byEmptyValue } from "./api.js";
console.log(JSON.stringify([
    await byWord({text: null, count: null, tags: ["a", null], other: null}),
    await byPathText({text: null, tags: [null]}),
    await byEmptyValue({text: null, count: null}),
    await byDefault(),
    await byDefault({text: null}),
]));
"""
WORD_ANSWERS = [None, None, None, None, None, "NULL", 3]
WORD_SCRIPT = """
import { noNumber, noFlag, noDay, noList, noJson, noText, three } from "./api.js";
const calls = [noNumber, noFlag, noDay, noList, noJson, noText, three];
console.log(JSON.stringify(await Promise.all(calls.map(call => call()))));
"""
STRICT_SCRIPT = """
import { strictRows, strictRow } from "./api.js";
console.log(JSON.stringify([
    await strictRows({a: 1}), await strictRows({a: null}), await strictRow({a: "1"}), await strictRow({a: null}),
]));
"""
USES = """
import { strictRows, strictRow } from "./api.js";
export const label = async () => (await strictRow({a: "1"})).response?.label ?? "";
// @ts-expect-error the call may be skipped
export const count = async () => (await strictRows({a: null})).response.length;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nulls")


def settings(folder: Path, language: str, name: str) -> dict[str, str]:
    section = f"Service:{language}ClientCodeGen:"
    off = dict.fromkeys(("BySchema", "IncludeSchemaInNames"), "false")
    values = {"Enabled": "true", "FilePath": str(folder / name), **off}
    return {section + key: value for key, value in values.items()}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    typescript = {**settings(folder, "", "api.ts"), "Service:ClientCodeGen:IncludeStatusCode": "false"}
    script = {**typescript, "Service:ClientCodeGen:SkipTypes": "true"}
    others = {**settings(folder, "Dart", "api.dart"), **settings(folder, "Python", "api.py")}
    return serve(database, SQL, {**script, **others})


def test_javascript_client_sends_the_word_null(service: Service, folder: Path) -> None:
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "calls.js").write_text(SCRIPT, encoding="utf-8")
    assert json.loads(run(folder / "calls.js")) == [*ANSWERS, ["x"], [None]]


def test_javascript_client_reads_the_word_null(service: Service, folder: Path) -> None:
    assert service.get("/api/no-number").text == "NULL"
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "word.js").write_text(WORD_SCRIPT, encoding="utf-8")
    assert json.loads(run(folder / "word.js")) == WORD_ANSWERS


def test_python_client_reads_the_word_null(service: Service, folder: Path) -> None:
    with load_client(folder / "api.py").Client(service.url) as client:
        assert [client.no_number(), client.no_flag(), client.no_list(), client.no_json()] == [None] * 4
        # A date is a text in Python.
        assert [client.no_day(), client.no_text(), client.three()] == ["NULL", "NULL", 3]


def test_dart_client_reads_the_word_null(service: Service, folder: Path) -> None:
    dart = (folder / "api.dart").read_text(encoding="utf-8")
    body = "utf8.decode(response.bodyBytes)"
    assert f"['', 'NULL'].contains({body}) ? null : int.parse({body})" in dart
    assert f"['', 'NULL'].contains({body}) ? null : {body} == 't'" in dart


def test_javascript_client_returns_null_for_calls_that_are_skipped(service: Service, folder: Path) -> None:
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "strict.js").write_text(STRICT_SCRIPT, encoding="utf-8")
    assert json.loads(run(folder / "strict.js")) == STRICT_ANSWERS


def test_python_client_returns_none_for_calls_that_are_skipped(service: Service, folder: Path) -> None:
    with load_client(folder / "api.py").Client(service.url) as client:
        rows, row = client.strict_rows, client.strict_row
        assert [rows(a=1), rows(a=None), row(a="1"), row(a=None)] == STRICT_ANSWERS


def test_python_client_sends_the_word_null(service: Service, folder: Path) -> None:
    api = load_client(folder / "api.py")
    with api.Client(service.url) as client:
        assert [
            client.by_word(text=None, count=None, tags=["a", None], other=None),
            client.by_path_text(text=None, tags=[None]),
            client.by_empty_value(text=None, count=None),
        ] == ANSWERS
        assert client.by_word(text="a", count=1, tags=["b"]) == ["a", 1, ["b"], "x"]


def test_dart_client_sends_the_word_null(service: Service, folder: Path) -> None:
    dart = (folder / "api.dart").read_text(encoding="utf-8")
    assert mistakes_in_dart(folder / "api.dart") == []
    assert "/api/by-word${_query(request.toJson(), 'null')}" in dart
    assert "/api/by-path/${_segment(request.text, 'null')}${_query(request.toJson()..remove('text'), 'null')}" in dart
    assert "/api/by-empty-value${_query(request.toJson())}" in dart


def test_dart_client_returns_null_for_calls_that_are_skipped(service: Service, folder: Path) -> None:
    dart = (folder / "api.dart").read_text(encoding="utf-8")
    assert "ApiResult<List<StrictRowsResponse>?>" in dart
    assert "utf8.decode(response.bodyBytes).isEmpty ? null : (jsonDecode(utf8.decode(response.bodyBytes)) as L" in dart
    assert "ApiResult<StrictRowResponse?>" in dart


@pytest.mark.slow
def test_generated_code_is_valid(database: Database, serve_once: Serve, service: Service, tmp_path: Path) -> None:
    serve_once(database, "", {**settings(tmp_path, "", "api.ts"), **settings(tmp_path, "Python", "api.py")})
    (tmp_path / "uses.ts").write_text(USES, encoding="utf-8")
    assert compile_strictly(tmp_path) == ""
    assert type_errors(tmp_path, "api.py") == ""
