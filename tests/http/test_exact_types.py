"""`Service:ExactTypes`: what the database proves about values, as in clients, documents, tools and contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.command import rowcall
from tests.harness.dart import mistakes_in_dart
from tests.harness.database import Database
from tests.harness.node import compile_strictly
from tests.harness.python_client import type_errors
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type mood as enum ('good', 'it''s bad');
create domain score as int not null check (value > 0);
create domain colour as text check (value in ('red', 'green'));
create table depot (
    id int primary key, name text not null, note text, kind varchar not null check (kind in ('a', 'b'))
);
create table parcel (
    id int primary key, depot_id int references depot, size int not null check (size in (1, 2, 3)),
    moods mood[] not null, paint colour
);
comment on column parcel.size is 'How large: */ 1 to 3';
insert into depot values (1, 'north', null, 'a');
insert into parcel values (1, 1, 2, '{good}', 'red'), (2, null, 3, '{}', null);
create view parcels as select p.id, d.name, p.size, p.id + 1 as next from parcel p join depot d on d.id = p.depot_id;
create view above as select id, name, next from parcels where id > 0;
create view maybe as select p.id, d.name, d.kind from parcel p left join depot d on d.id = p.depot_id;
create table loose (n int);
alter table loose add constraint listed check (n in (1, 2)) not valid;
comment on table parcel is 'HTTP
for select';
comment on table depot is 'HTTP
for insert';
comment on table loose is 'HTTP
for select';
create table voyage (id int primary key, sails date not null);
comment on table voyage is 'HTTP
for select';
comment on view above is 'HTTP
for select';
comment on view maybe is 'HTTP
for select';
create function all_parcels() returns setof parcel language sql stable as 'select * from parcel order by id';
comment on function all_parcels is 'HTTP GET';
create function no_parcel() returns parcel language sql stable as 'select * from parcel where false';
comment on function no_parcel is 'HTTP GET';
create function moods(_of mood, _in colour default 'red') returns table (m mood, c colour, s score) language sql stable
    as $$ select _of, _in, 1 $$;
comment on function moods is 'HTTP GET';
create function all_moods() returns setof mood language sql stable as $$ select 'good'::mood $$;
comment on function all_moods is 'HTTP GET';
create function double(_n int, _m mood) returns int language sql stable strict as 'select _n * 2';
comment on function double is 'HTTP GET
mcp doubles';
create function counts(_sizes int[]) returns table (n int[], parts parcel[], any_of json[]) language sql stable
    as 'select array[1, null], array[null::parcel], array[null::json]';
comment on function counts is 'HTTP GET';
create function sizes() returns int[] language sql stable as 'select array[1, null]';
comment on function sizes is 'HTTP GET';
create domain code as char(3) check (value in ('a', 'bc'));
create domain short_code as code;
create table box (kind char(3) check (kind in ('a', 'bcd')), code short_code, codes code[], initial "char");
insert into box values ('a', 'bc', '{a}', 'x');
comment on table box is 'HTTP
for select';
create table crate (label text check (label in ('x', 'y')));
create table sack (label text);
create function packed() returns table (in_crate crate, in_sack sack) language sql stable
    as 'select null::crate, null::sack';
comment on function packed is 'HTTP GET
nested';
"""
FILES = {
    "joined": "select p.id, d.kind, p.id * 2 as twice from parcel p join depot d on d.id = p.depot_id;",
    "outer": "select p.id, d.kind from parcel p left join depot d on d.id = p.depot_id order by p.id;",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exact")
    (folder / "sql").mkdir()
    for name, sql in FILES.items():
        (folder / "sql" / f"{name}.sql").write_text(f"-- HTTP GET\n{sql}\n", encoding="utf-8")
    return folder


def settings(folder: Path) -> dict[str, str]:
    clients: dict[str, str] = {}
    for language, path in (("", "api.ts"), ("Dart", "api.dart"), ("Python", "api.py")):
        section = f"Service:{language}ClientCodeGen:"
        clients |= {section + "Enabled": "true", section + "FilePath": str(folder / path)}
        clients |= {section + "BySchema": "false", section + "IncludeSchemaInNames": "false"}
    return {
        **clients,
        "Service:ExactTypes": "true",
        "Service:ClientCodeGen:CreateSeparateTypeFile": "false",
        "Service:CrudSource:Enabled": "true",
        "Service:SqlFileSource:Enabled": "true",
        "Service:SqlFileSource:FilePattern": str(folder / "sql" / "*.sql"),
        "Service:OpenApiOptions:Enabled": "true",
        "Service:OpenApiOptions:FileName": "",
        "Service:OpenApiOptions:SpecVersion": "3.1",
        "Service:McpOptions:Enabled": "true",
    }


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, SQL, settings(folder))


@pytest.mark.parametrize(
    "expected",
    [
        "IParcelGetResponse {\n    id: number;\n    depotId: number | null;\n    /** How large: *\\/ 1 to 3 */\n"
        '    size: 1 | 2 | 3;\n    moods: ("good" | "it\'s bad" | null)[];\n    paint: "red" | "green" | null;\n}',
        'IDepotPutRequest {\n    id: number;\n    name: string;\n    note?: string | null;\n    kind: "a" | "b";\n}',
        "IAboveGetResponse {\n    id: number;\n    name: string;\n    next: number | null;\n}",
        'IMaybeGetResponse {\n    id: number | null;\n    name: string | null;\n    kind: "a" | "b" | null;\n}',
        "ILooseGetResponse {\n    n: number | null;\n}",
        "INoParcelResponse {\n    id: number | null;\n    depotId: number | null;\n",
        'IMoodsRequest {\n    of: "good" | "it\'s bad" | null;\n    in?: "red" | "green" | null;\n}',
        'IMoodsResponse {\n    m: "good" | "it\'s bad" | null;\n    c: "red" | "green" | null;\n    s: number;\n}',
        "ICountsRequest {\n    sizes: (number | null)[] | null;\n}",
        "ICountsResponse {\n    n: (number | null)[] | null;\n    parts: (IParts | null)[] | null;\n"
        "    anyOf: (string | null)[] | null;\n}",
        'IBoxGetResponse {\n    kind: "a  " | "bcd" | null;\n    code: "a  " | "bc " | null;\n'
        '    codes: ("a  " | "bc " | null)[] | null;\n    initial: string | null;\n}',
        'IDoubleRequest {\n    n: number;\n    m: "good" | "it\'s bad";\n}',
        'IInCrate {\n    label: "x" | "y" | null;\n}',
        "IInSack {\n    label: string | null;\n}",
        "IPackedResponse {\n    inCrate: IInCrate | null;\n    inSack: IInSack | null;\n}",
        'IJoinedResponse {\n    id: number;\n    kind: "a" | "b";\n    twice: number | null;\n}',
        'IOuterResponse {\n    id: number | null;\n    kind: "a" | "b" | null;\n}',
    ],
)
def test_typescript_types_state_only_proven_constraints(service: Service, folder: Path, expected: str) -> None:
    assert f"interface {expected}" in (folder / "api.ts").read_text(encoding="utf-8")


def test_char_values_are_padded_like_their_choices(service: Service) -> None:
    assert service.get("/api/box").json() == [{"kind": "a  ", "code": "bc ", "codes": ["a  "], "initial": "x"}]


@pytest.mark.slow
def test_generated_clients_are_valid_in_their_languages(service: Service, folder: Path) -> None:
    assert 'Promise<ApiResult<("good" | "it\'s bad" | null)[]>>' in (folder / "api.ts").read_text(encoding="utf-8")
    assert "Promise<ApiResult<(number | null)[] | null>>" in (folder / "api.ts").read_text(encoding="utf-8")
    assert compile_strictly(folder) == ""
    assert mistakes_in_dart(folder / "api.dart") == []
    dart = (folder / "api.dart").read_text(encoding="utf-8")
    assert "  final int id;\n  final int? depotId;\n  final int size;\n  final List<String?> moods;\n" in dart
    assert "    required this.id,\n    this.depotId,\n" in dart
    # Not every date of PostgreSQL has a `DateTime`.
    assert "  final int id;\n  final DateTime? sails;\n" in dart
    python = (folder / "api.py").read_text(encoding="utf-8")
    assert "    size: Literal[1, 2, 3]\n    moods: list[Literal['good', \"it's bad\"] | None]\n" in python
    assert type_errors(folder, "api.py") == ""


def rows(document: dict[str, Any], path: str) -> dict[str, Any]:
    schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    response: dict[str, Any] = schema.get("items", schema)
    return response


def test_openapi_states_nullability(service: Service) -> None:
    document = service.get("/openapi.json").json()
    assert rows(document, "/api/all-parcels") == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "format": "int32"},
            "depotId": {"type": ["integer", "null"], "format": "int32"},
            "size": {
                "type": "integer",
                "format": "int32",
                "enum": [1, 2, 3],
                "description": "How large: */ 1 to 3",
            },
            "moods": {"type": "array", "items": {"type": ["string", "null"], "enum": ["good", "it's bad", None]}},
            "paint": {"type": ["string", "null"], "enum": ["red", "green", None]},
        },
        "required": ["id", "depotId", "size", "moods", "paint"],
    }
    assert rows(document, "/api/no-parcel")["properties"]["id"]["type"] == ["integer", "null"]
    taken = document["paths"]["/api/moods"]["get"]["parameters"]
    assert [item["schema"]["enum"] for item in taken] == [["good", "it's bad"], ["red", "green"]]


def test_mcp_tool_schemas_state_allowed_values(service: Service) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tool = service.post("/mcp", json=call).json()["result"]["tools"][0]
    assert tool["inputSchema"]["properties"]["m"] == {"type": "string", "enum": ["good", "it's bad"]}


@pytest.mark.slow
def test_contract_check_reports_a_narrower_column(database: Database, service: Service, folder: Path) -> None:
    values = {"ConnectionStrings:Default": database.conninfo, **settings(folder)}
    switches = [f"--{key}={value}" for key, value in values.items()]
    assert rowcall(folder, *switches, "--contract", "contract.json").returncode == 0
    body = json.loads((folder / "contract.json").read_text(encoding="utf-8"))["endpoints"]["GET /api/all-parcels"]
    assert "required" not in body[0]["response"]["schema"]["items"]
    database.execute("alter table depot alter name drop not null; alter type mood add value 'mixed'")
    done = rowcall(folder, *switches, "--contract", "contract.json", "--check")
    assert done.returncode == 3
    assert "doubtful: GET /api/above: name of each of the response may now be null" in done.stdout
    assert "may have more values: good, it's bad, mixed" in done.stdout
