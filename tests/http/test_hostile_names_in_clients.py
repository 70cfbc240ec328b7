"""Names, paths and comments of the database are texts in generated clients, and never code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from rowcall.core.codegen.comments import Definition, Definitions
from rowcall.core.codegen.dart.files import dart_files
from rowcall.core.codegen.files import client_files
from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, PythonOptions
from rowcall.core.codegen.python.files import python_files
from rowcall.core.documents.http_files import http_files
from rowcall.core.documents.options import HttpFileOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from tests.harness.dart import mistakes_in_dart
from tests.harness.database import Database
from tests.harness.node import node, run
from tests.harness.snapshots import read_snapshot

SQL = r"""
create function in_template(_id int) returns int language sql as 'select 1';
comment on function in_template is 'HTTP GET /api/a/$`+(pwned=1)+`/{_id}';
create function in_quotes() returns int language sql as 'select 1';
comment on function in_quotes is 'HTTP GET /api/c/"+(pwned=1)+"';
create function end_of_docstring() returns int language sql as 'select 1';
comment on function end_of_docstring is 'HTTP GET /api/d"';
create function in_docstring() returns int language sql as 'select 1';
comment on function in_docstring is
    E'HTTP GET /api/e\nQQQ\nQQQ"\npwned() QQQ"" pwned() \\QQQ\n*/ pwned() /*\n*\\/ pwned()\n';
create function in_stream() returns int language sql as 'select 1';
comment on function in_stream is E'HTTP GET /api/f\nsse QQQ+pwned()+QQQ';
create function "broken
globalThis.pwned=1; pwned();//"("_n
globalThis.pwned=1; pwned();//" int) returns table ("col
""pwned()//" int, "x'+pwned()+'" int) language sql as 'select 1, 2';
comment on function "broken
globalThis.pwned=1; pwned();//" is 'HTTP';
create function "return
pwned();//"(n int) returns int language sql as 'select 1';
comment on function "return
pwned();//" is E'HTTP POST /api/g\nA line.\rpwned();\u2028pwned();\x0bpwned()';
create type "pair
pwned();//" as ("a""b" int, "c'+pwned()+'" text);
create function composite() returns setof "pair
pwned();//" language sql as $$ select 1, 'x' $$;
comment on function composite is 'HTTP GET /api/h';
""".replace("QQQ", '"' * 3)
COMMENTS = ("None", "Simple", "Full")
CALL_ALL = """
globalThis.pwned = 0;
globalThis.fetch = async () => new Response("1");
globalThis.EventSource = class { close() {} };
for (const file of process.argv.slice(2)) {
  const module = await import(file);
  for (const exported of Object.values(module)) {
    try { await exported({}, () => {}, "id", 1, 1); } catch {}
  }
}
console.log(globalThis.pwned === 0 ? "untouched" : "code of a name has run");
process.exit(0);
"""


@pytest.fixture(scope="module")
def snapshot(database: Database) -> SchemaSnapshot:
    database.execute(SQL)
    result = read_snapshot(database)
    assert len(result.endpoints) == 8
    paths = {item.path for item in result.endpoints}
    assert {"/api/a/$`+(pwned=1)+`/{_id}", '/api/c/"+(pwned=1)+"'} <= paths
    return result


@pytest.fixture(scope="module")
def definitions(snapshot: SchemaSnapshot) -> Definitions:
    text = 'create function f() returns int\r"""pwned()\r*/ pwned() /*'
    return {(None, item.routine.oid): Definition(text, ('"""\rpwned()\r*/',)) for item in snapshot.endpoints}


@pytest.mark.parametrize("comment", COMMENTS)
def test_hostile_names_stay_texts_in_javascript(
    snapshot: SchemaSnapshot, definitions: Definitions, comment: str, tmp_path: Path
) -> None:
    node()
    options = ClientCodeOptions(
        "{0}.ts", types=False, comment=comment, export_urls=True, custom_host="", header=(), parse_url=False
    )
    files: list[str] = []
    for item in client_files(snapshot.endpoints, snapshot.types_of, definitions, options, now="now"):
        (tmp_path / f"{item.path}.mjs").write_text(item.text or "", encoding="utf-8")
        files.append(str(tmp_path / f"{item.path}.mjs"))
    (tmp_path / "call_all.mjs").write_text(CALL_ALL, encoding="utf-8")
    assert files
    assert run(tmp_path / "call_all.mjs", *files).strip() == "untouched"


@pytest.mark.parametrize("comment", COMMENTS)
def test_hostile_names_stay_texts_in_python(snapshot: SchemaSnapshot, definitions: Definitions, comment: str) -> None:
    options = PythonOptions("{0}.py", comment=comment)
    outputs = python_files(snapshot.endpoints, snapshot.types_of, definitions, options, now="now")
    text = next(item.text for item in outputs if item.path == "public.py") or ""
    assert "pwned" not in {part.id for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("comment", COMMENTS)
def test_hostile_names_stay_texts_in_dart(
    snapshot: SchemaSnapshot, definitions: Definitions, comment: str, tmp_path: Path
) -> None:
    options = DartOptions("{0}.dart", comment=comment, custom_host="")
    for item in dart_files(snapshot.endpoints, snapshot.types_of, definitions, options, now="now"):
        path = tmp_path / item.path
        path.write_text(item.text or "", encoding="utf-8")
        assert mistakes_in_dart(path) == []
        code = re.sub(r"'(?:[^'\\\n]|\\.)*'|//[^\n\r]*", "''", item.text or "")
        assert "pwned()" in (item.text or "") or comment == "None"
        assert [line for line in code.splitlines() if re.search(r"\bpwned\b", line)] == []


@pytest.mark.parametrize("comment", COMMENTS)
def test_hostile_names_stay_within_lines_of_http_files(
    snapshot: SchemaSnapshot, definitions: Definitions, comment: str
) -> None:
    options = HttpFileOptions("http://host", name="db", comment=comment)
    for _, text in http_files(snapshot.endpoints, definitions, options):
        lines = text.splitlines()
        assert not [line for line in lines if re.match(r'(?:globalThis\.)?"*pwned', line)]
