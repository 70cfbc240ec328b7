"""`Service:JsonNumbers` set to `Safe`: no digit of a large number is lost in a client that only has doubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.python_client import load_client
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create domain big as bigint;
create type pair as (small int, wide bigint);
create function numbers(_id bigint, _sums numeric[] default null)
    returns table (id bigint, price numeric, small int, half float8, ids bigint[], one pair, many pair[], own big)
    language sql stable as $$ select _id, coalesce(_sums[1], 1.10), 2, 0.5::float8, array[_id, null], row(1, _id)::pair,
        array[row(1, _id)::pair], _id::big $$;
comment on function numbers is 'HTTP GET
nested
mcp Numbers.';
create function twice(_id bigint) returns bigint language sql as 'select _id * 2';
comment on function twice is 'HTTP POST';
create type parcel as (pair pair, prices numeric[]);
create function weigh(_parcels parcel[]) returns text language sql as 'select (_parcels[1].pair).wide::text';
comment on function weigh is 'HTTP POST';
create function each_one() returns setof bigint language sql stable as 'select 9007199254740993';
comment on function each_one is 'HTTP GET';
"""
WIDE = "9007199254740993"
ROW = (
    f'{{"id":"{WIDE}","price":"1.10","small":2,"half":0.5,"ids":["{WIDE}",null],"one":{{"small":1,"wide":"{WIDE}"}},'
    f'"many":[{{"small":1,"wide":"{WIDE}"}}],"own":"{WIDE}"}}'
)
TEXT = {"type": "string"}
P = "Service:ClientCodeGen:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        "Service:JsonNumbers": "Safe",
        "Service:OpenApiOptions:Enabled": "true",
        "Service:McpOptions:Enabled": "true",
        P + "Enabled": "true",
        P + "FilePath": str(folder / "{0}.ts"),
        P + "IncludeSchemaInNames": "false",
        P + "IncludeStatusCode": "false",
    }
    for language, name in (("Python", "{0}_api.py"), ("Dart", "{0}_api.dart")):
        section = f"Service:{language}ClientCodeGen:"
        settings |= {section + "Enabled": "true", section + "FilePath": str(folder / name)}
    file = folder / "sql" / "both.sql"
    file.parent.mkdir()
    file.write_text(f"-- HTTP GET\nselect {WIDE} as id, 1 as n;\nselect {WIDE}::bigint;\n", encoding="utf-8")
    settings |= {"Service:SqlFileSource:Enabled": "true", "Service:SqlFileSource:FilePattern": str(file)}
    return serve(database, SQL, settings)


def test_large_numbers_are_strings_at_every_depth(service: Service) -> None:
    assert service.get(f"/api/numbers?id={WIDE}").text == f"[{ROW}]"
    assert service.get("/api/each-one").text == f'["{WIDE}"]'
    assert service.get("/api/both").text == f'{{"result1":[{{"id":"{WIDE}","n":1}}],"result2":["{WIDE}"]}}'


def test_number_strings_are_accepted_in_requests(service: Service) -> None:
    assert service.post("/api/twice", json={"id": WIDE}).text == "18014398509481986"
    assert service.post("/api/twice", json={"id": 21}).text == "42"
    assert service.post("/api/weigh", json={"parcels": [{"pair": {"wide": WIDE}}]}).text == WIDE
    assert service.get(f"/api/numbers?id={WIDE}&sums=7.50").json()[0]["price"] == "7.50"


def test_generated_typescript_declares_strings(service: Service, folder: Path) -> None:
    """`service` writes the files."""
    types = (folder / "publicTypes.d.ts").read_text(encoding="utf-8")
    for text in (
        "interface INumbersRequest {\n    id: string | null;\n    sums?: string[] | null;\n}\n",
        "    id: string | null;\n    price: string | null;\n    small: number | null;\n    half: number | null;\n"
        "    ids: string[] | null;\n    one: IOne | null;\n    many: IOne[] | null;\n    own: string | null;\n",
        "interface IOne {\n    small: number | null;\n    wide: string | null;\n}\n",
    ):
        assert text in types
    functions = (folder / "public.ts").read_text(encoding="utf-8")
    assert ") : Promise<string[]> {" in functions
    assert ") : Promise<string> {" in functions


def test_openapi_declares_strings(service: Service) -> None:
    document = service.get("/openapi.json").json()
    row = document["paths"]["/api/numbers"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["items"]
    kinds = {name: schema["type"] for name, schema in row["properties"].items()}
    assert kinds == {
        "id": "string", "price": "string", "small": "integer", "half": "number", "ids": "array", "one": "object",
        "many": "array", "own": "string",
    }  # fmt: skip
    assert row["properties"]["one"]["properties"]["wide"] == {"type": "string", "nullable": True}
    body = document["paths"]["/api/weigh"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["parcels"]["items"]["properties"] == {
        "pair": {"type": "object", "properties": {"small": {"type": "integer", "format": "int32"}, "wide": TEXT}},
        "prices": {"type": "array", "items": TEXT},
    }


def test_mcp_tools_declare_and_return_strings(service: Service) -> None:
    def ask(method: str, **params: object) -> object:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return service.post("/mcp", json=message).json()["result"]

    (tool,) = ask("tools/list")["tools"]  # type: ignore[index]
    assert tool["outputSchema"]["properties"]["items"]["items"]["properties"]["id"] == {"type": ["string", "null"]}
    result = ask("tools/call", name="numbers", arguments={"id": WIDE})
    assert result["structuredContent"]["items"][0]["id"] == WIDE  # type: ignore[index]


def test_python_clients_preserve_all_digits(service: Service, folder: Path) -> None:
    api = load_client(folder / "public_api.py")
    with api.Client(service.url) as client:
        row = client.numbers(id=WIDE, sums=["0.10"])[0]
        assert (row["id"], row["price"], row["ids"], row["small"]) == (WIDE, "0.10", [WIDE, None], 2)
        assert client.each_one() == [WIDE]
        assert client.twice(id="4503599627370497") == "9007199254740994"


def test_dart_clients_declare_strings(service: Service, folder: Path) -> None:
    text = (folder / "public_api.dart").read_text(encoding="utf-8")
    assert "  final String? id;\n  final String? price;\n  final int? small;\n  final double? half;\n" in text
    assert "  final List<String?>? ids;\n" in text
    assert "class PublicNumbersRequest {\n  final String? id;\n  final List<String?>? sums;\n" in text


def test_contract_check_reports_the_changed_type(database: Database, service: Service, tmp_path: Path) -> None:
    value = [f"--ConnectionStrings:Default={database.conninfo}", "--contract", "contract.json"]
    assert rowcall(tmp_path, *value).returncode == 0
    done = rowcall(tmp_path, *value, "--check", "--Service:JsonNumbers=Safe")
    assert done.returncode == 4
    assert "breaking: GET /api/numbers: id of each of the response is string, was integer (int64)" in done.stdout
