"""Every value of every type as the result of a tool: the official clients for Python and TypeScript validate structured
content against the output schema of its tool, and refuse a result without it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import node
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = {
    "smallint": ["-32768", "0"],
    "integer": ["2147483647"],
    "bigint": ["9223372036854775807"],
    "numeric": ["1.50", "NaN", "Infinity", "-Infinity"],
    "numeric(10,2)": ["1.5"],
    "real": ["1.5", "NaN", "-Infinity", "1e30"],
    "double precision": ["1.5", "NaN", "Infinity", "1e300"],
    "money": ["12.50"],
    "boolean": ["t", "f"],
    "text": ["", "kea", 'a"b', "NULL", "NaN"],
    "varchar(10)": ["kea"],
    "char(5)": ["kea"],
    '"char"': ["k"],
    "name": ["kea"],
    "bytea": ["\\\\xdeadbeef", "\\\\x"],
    "uuid": ["00000000-0000-0000-0000-00000000000a"],
    "timestamp": ["2026-01-02 03:04:05", "infinity", "-infinity", "0044-03-15 12:00:00 BC", "20000-01-01 00:00:00"],
    "timestamptz": ["2026-01-02 03:04:05+02", "infinity", "0044-03-15 12:00:00+00 BC"],
    "date": ["2026-01-02", "infinity", "0044-03-15 BC", "20000-01-01"],
    "time": ["03:04:05", "24:00:00"],
    "timetz": ["03:04:05+02"],
    "interval": ["1 day 02:03:04", "-1 mons"],
    "json": ['{"a": [1, null]}', "[1]", "5", '"text"', "null", "true"],
    "jsonb": ['{"a": 1}', "[]", "1.5", '"text"', "null"],
    "jsonpath": ["$.a"],
    "xml": ["<a/>"],
    "inet": ["127.0.0.1/8"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "bit(3)": ["101"],
    "varbit": ["1"],
    "point": ["(1,2)"],
    "box": ["(1,2),(0,0)"],
    "circle": ["<(0,0),1>"],
    "int4range": ["[1,5)", "empty"],
    "tstzrange": ["[2026-01-01,)"],
    "int4multirange": ["{[1,2)}"],
    "tsvector": ["a:1"],
    "tsquery": ["a & b"],
    "pg_lsn": ["0/1"],
    "oid": ["4294967295"],
    "regclass": ["pg_class"],
    "mood": ["good"],
    "depth": ["5"],
    "part": ['(1,"a b",infinity)', "(,,)"],
    "whole": ['("(1,a,2026-01-01)","{""(1,a,2026-01-01)""}",{1},"{""a"": 1}",NaN)', "(,,,,)"],
}
COMPOSITES = ("part", "whole")
SQL = """
create type mood as enum ('good', 'bad');
create domain depth as int;
create type part as (n int, t text, at timestamp);
create type whole as (one part, many part[], ns depth[], j jsonb, f float8);
"""


def functions() -> tuple[str, dict[str, int]]:
    """Return a scalar, a set, a row of columns and an array for each type; and how many values each tool has."""
    made, counts = [SQL], {}
    for number, (name, texts) in enumerate(TYPES.items()):
        count = len(texts) + 1
        chosen = (
            "case _n " + " ".join(f"when {at} then {_literal(text)}::{name}" for at, text in enumerate(texts)) + " end"
        )
        every = f"unnest(array[{', '.join(f'{_literal(text)}::{name}' for text in texts)}, null])"
        single_row = f"select {chosen}, array[{chosen}, null], array[array[{chosen}], array[null::{name}]]"
        for kind, returned, body in (
            ("scalar", name, f"select {chosen}"),
            ("array", f"{name}[]", f"select array[{chosen}, null]"),
            ("set", f"setof {name}", f"select * from (select {every} as v) s where _n is not null"),
            ("row", f"table (v {name}, vs {name}[], many {name}[])", single_row),
        ):
            if kind == "set" and name in COMPOSITES:
                body = f"select (v).* from (select {every} as v) s where _n is not null"
            tool = f"t{number}_{kind}"
            made.append(
                f"create function {tool}(_n int) returns {returned} language sql stable as $body$ {body} $body$;"
            )
            made.append(f"comment on function {tool}(int) is E'HTTP GET\\nmcp {name.replace(chr(34), '')} as {kind}';")
            counts[tool] = count if kind != "set" else 1
    made.append("""
create function no_row() returns table (a int, b text) language sql stable as 'select 1, null where false';
comment on function no_row() is E'HTTP GET\\nsingle\\nmcp No row.';
create function nested() returns table (one whole, many whole[]) language sql stable as
    $$ select w, array[w] from (select null::whole as w union all
       select row(row(1, 'a', 'infinity')::part, array[row(1, 'a', null)::part], '{1}', '1', 'NaN')::whole) s $$;
comment on function nested() is E'HTTP GET\\nnested\\nmcp Nested.';
create function strict_one(_n int) returns int language sql stable strict as 'select _n';
comment on function strict_one(int) is E'HTTP GET\\nmcp Strict.';
create function strict_many(_n int) returns setof int language sql stable strict as 'select _n';
comment on function strict_many(int) is E'HTTP GET\\nmcp Strict.';
create function nothing() returns numeric language sql stable as 'select null::numeric';
comment on function nothing() is E'HTTP GET\\nresponse_null null_literal\\nmcp Null.';
""")
    for name in ("boolean", "uuid", "date", "jsonb", "int[]", "mood", "text"):
        tool = f"no_{name.rstrip('[]')}"
        made.append(f"create function {tool}() returns {name} language sql stable as 'select null::{name}';")
        made.append(f"comment on function {tool}() is E'HTTP GET\\nresponse_null null_literal\\nmcp Null.';")
        counts[tool] = 0
    made.append("""
create function taken(_a jsonb, _b part[], _c part[] default null) returns jsonb language sql stable as
    $$ select jsonb_build_object('a', _a, 'b', _b, 'c', _c) $$;
comment on function taken is E'HTTP POST\\nmcp Takes.';
create function asked(_a jsonb, _b part[]) returns jsonb language sql stable as
    $$ select jsonb_build_object('a', _a, 'b', _b) $$;
comment on function asked is E'HTTP GET\\nmcp Asks.';
""")
    counts |= {"no_row": 0, "nested": 0, "strict_one": 2, "strict_many": 2, "nothing": 0}
    return "\n".join(made), counts


def _literal(text: str) -> str:
    return f"$v${text}$v$" if "\\" not in text else f"E'{text}'"


SCRIPT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const counts = COUNTS;
const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL("URL/mcp")));
const listed = (await client.listTools()).tools;
const failed = [];
let called = 0;
for (const [name, count] of Object.entries(counts)) {
    const structured = listed.find((one) => one.name === name).outputSchema !== undefined;
    for (let n = 0; n < Math.max(count, 1); n++) {
        const given = count === 0 ? {} : n === count - 1 && count > 1 ? { n: null } : { n };
        try {
            const result = await client.callTool({ name, arguments: given });
            called++;
            if (result.isError || (structured && result.structuredContent === undefined)) {
                failed.push([name, n, result]);
            }
        } catch (error) {
            failed.push([name, n, String(error)]);
        }
    }
}
await client.close();
console.log(JSON.stringify({ called, failed }));
"""


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return functions()[1]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, functions()[0], {"Service:McpOptions:Enabled": "true"})


def arguments(count: int) -> list[dict[str, Any]]:
    """Return the arguments for each value, and for NULL."""
    if count <= 1:
        return [{}] if count == 0 else [{"n": 0}]
    return [*({"n": n} for n in range(count - 1)), {"n": None}]


@pytest.mark.slow
def test_the_client_for_python_validates_every_result(service: Service, counts: dict[str, int]) -> None:
    from jsonschema import Draft202012Validator, FormatChecker
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> list[object]:
        failed: list[object] = []
        async with (
            httpx2.AsyncClient(timeout=60, trust_env=False) as http,
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for name, count in counts.items():
                schema = tools[name].output_schema
                for value in arguments(count):
                    try:
                        result = await client.call_tool(name, value)
                    except RuntimeError as error:
                        failed.append((name, value, str(error)[:300]))
                        continue
                    if result.is_error or (schema is not None and result.structured_content is None):
                        failed.append((name, value, result))
                    elif schema is not None:
                        validator = Draft202012Validator(schema, format_checker=FormatChecker())
                        errors = [item.message for item in validator.iter_errors(result.structured_content)]
                        failed += [(name, value, errors)] if errors else []
        return failed

    assert asyncio.run(run()) == []


@pytest.mark.slow
def test_the_client_for_typescript_validates_every_result(
    service: Service, counts: dict[str, int], tmp_path: Path
) -> None:
    script = tmp_path / "validate.mjs"
    script.write_text(SCRIPT.replace("COUNTS", json.dumps(counts)).replace("URL/mcp", f"{service.url}/mcp"))
    (tmp_path / "node_modules").symlink_to(node.packages(), target_is_directory=True)
    body = json.loads(node.run(script))
    assert body["failed"] == []
    assert body["called"] >= sum(counts.values())


def rpc(service: Service, method: str, params: dict[str, Any]) -> Any:
    response = service.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return response.json()["result"]


def call(service: Service, name: str, **given: Any) -> Any:
    return rpc(service, "tools/call", {"name": name, "arguments": given})


def test_values_are_those_of_rows(service: Service) -> None:
    names = list(TYPES)
    for name, n, value in (
        ("bytea", 0, "\\xdeadbeef"),
        ("numeric", 1, "NaN"),
        ("double precision", 1, "NaN"),
        ("timestamp", 1, "infinity"),
        ("json", 4, None),
        ("json", 3, "text"),
        ("text", 0, ""),
        ("text", 3, "NULL"),
        ("uuid", None, None),
        ("date", None, None),
        ("integer", None, None),
    ):
        number = names.index(name)
        assert call(service, f"t{number}_scalar", n=n)["structuredContent"] == {"value": value}, name
        row = call(service, f"t{number}_row", n=n)["structuredContent"]["items"][0]
        assert row["v"] == value, name
    assert call(service, "no_row")["structuredContent"] == {}
    assert call(service, "strict_many", n=None)["structuredContent"] == {"items": []}
    assert call(service, "nothing")["structuredContent"] == {"value": None}
    for name in ("boolean", "uuid", "date", "jsonb", "int", "mood"):
        assert call(service, f"no_{name}")["structuredContent"] == {"value": None}, name
    assert call(service, "no_text")["structuredContent"] == {"value": "NULL"}


def test_composites_and_json_are_described_and_accepted(service: Service) -> None:
    tools = {tool["name"]: tool for tool in rpc(service, "tools/list", {})["tools"]}
    part = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "format": "int32"},
            "t": {"type": "string"},
            "at": {"type": "string"},
        },
    }
    for name, values in (("taken", tools["taken"]), ("asked", tools["asked"])):
        members = values["inputSchema"]["properties"]
        assert members["a"] == {}, name
        assert members["b"] == {"type": "array", "items": part}, name
        for value in ({"x": [1]}, [1, 2], 5, True):
            parts = [{"n": 1, "t": "a,b"}, {"at": "2026-01-02T03:04:05"}]
            result = call(service, name, a=value, b=parts)
            assert not result["isError"], result
            report = result["structuredContent"]["value"]
            assert report["a"] == value
            assert report["b"] == [
                {"n": 1, "t": "a,b", "at": None},
                {"n": None, "t": None, "at": "2026-01-02T03:04:05"},
            ]
    output = tools["nested"]["outputSchema"]["properties"]["items"]["items"]["properties"]
    assert output["one"]["properties"]["one"]["properties"]["t"] == {"type": ["string", "null"]}
    assert output["one"]["properties"]["j"] == {}
