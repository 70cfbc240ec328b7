"""Random routines that return their arguments, called with random values by generated clients: JavaScript under Node,
one process for all calls, in a page of a browser, and Python. Each value returns unchanged.

`ROWCALL_RANDOM_SEED` repeats a run that failed, `ROWCALL_RANDOM_TYPES` makes it longer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rowcall.core.text.naming import api_name
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.database import Database
from tests.harness.effort import seed
from tests.harness.node import run
from tests.harness.python_client import load_client
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.random_types import text

pytestmark = pytest.mark.drawn

SEED = seed("ROWCALL_RANDOM_SEED")
ROUTINES = int(os.environ.get("ROWCALL_RANDOM_TYPES", "24"))
CALLS = 3
"""Calls for each routine."""
SETTINGS = {
    "Service:ClientCodeGen:Enabled": "true",
    "Service:ClientCodeGen:SkipTypes": "true",
    "Service:ClientCodeGen:IncludeSchemaInNames": "false",
    "Service:ClientCodeGen:IncludeStatusCode": "false",
    "Service:PythonClientCodeGen:Enabled": "true",
}

Make = Callable[[Random], Any]
MAKERS: dict[str, Make] = {
    "int": lambda random: random.randint(-(2**31), 2**31 - 1),
    "bigint": lambda random: random.randint(-(2**53) + 1, 2**53 - 1),
    "smallint": lambda random: random.randint(-(2**15), 2**15 - 1),
    "numeric": lambda random: random.randint(-(10**6), 10**6) / 64,
    "float8": lambda random: random.uniform(-1e9, 1e9),
    "boolean": lambda random: random.random() < 0.5,
    "text": lambda random: text(random).replace("\0", ""),
    "uuid": lambda random: f"{random.getrandbits(128):032x}"[:8] + "-0000-4000-8000-0123456789ab",
    "date": lambda random: f"{random.randint(1, 9999):04}-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
    "jsonb": lambda random: {"a": [random.randint(-9, 9), None, True], "ж": text(random).replace("\0", "")},
    "mood": lambda random: random.choice(["good", "it's bad"]),
}
NAMES = ("id", "_unit_code", "class", "_from", "limit", "_with", "Größe", "kind of", "_a1", "request", "self")


@dataclass(frozen=True)
class Member:
    name: str
    type: str
    array: bool
    default: bool

    @property
    def wire(self) -> str:
        return api_name(self.name, True)

    @property
    def sql(self) -> str:
        return f"{self.type}{'[]' if self.array else ''}"


@dataclass(frozen=True)
class Echo:
    number: int
    reads: bool
    members: tuple[Member, ...]

    def statement(self) -> str:
        taken = ", ".join(
            f'"in_{item.name}" {item.sql}{" default null" if item.default else ""}'
            for item in sorted(self.members, key=lambda item: item.default)
        )
        value = ", ".join(f'"{item.name}" {item.sql}' for item in self.members)
        values = ", ".join(f'"in_{item.name}"' for item in self.members)
        name = f"echo_{self.number}"
        return (
            f"create function {name}({taken}) returns table ({value}) language sql stable as 'select {values}';\n"
            f"comment on function {name} is 'HTTP {'GET' if self.reads else 'POST'}';\n"
        )


def routines(random: Random) -> list[Echo]:
    result = []
    for number in range(ROUTINES):
        names = random.sample(NAMES, random.randint(1, 6))
        members = tuple(
            Member(name, random.choice(list(MAKERS)), random.random() < 0.3, random.random() < 0.3) for name in names
        )
        result.append(Echo(number, number % 2 == 0, members))
    return result


def random_value(random: Random, one: Member, *, reads: bool) -> Any:
    """Return a value; a query string has no NULL and no empty array."""
    if not reads and random.random() < 0.2:
        return None
    if not one.array:
        return MAKERS[one.type](random)
    return [MAKERS[one.type](random) for _ in range(random.randint(1 if reads else 0, 3))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("echo")


@pytest.fixture(scope="module")
def echoes() -> list[Echo]:
    return routines(Random(SEED))


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path, echoes: list[Echo]) -> Service:
    paths = {"Service:ClientCodeGen:FilePath": str(folder / "{0}Api.ts")}
    paths["Service:PythonClientCodeGen:FilePath"] = str(folder / "{0}_api.py")
    pages = {"StaticFiles:Enabled": "true", "StaticFiles:RootPath": str(folder)}
    schema = "create type mood as enum ('good', 'it''s bad');\n" + "".join(item.statement() for item in echoes)
    return serve(database, schema, {**SETTINGS, **paths, **pages})


@pytest.fixture(scope="module")
def calls(echoes: list[Echo]) -> list[tuple[Echo, dict[str, Any]]]:
    random = Random(SEED + 1)
    result = []
    for echo in echoes:
        for _ in range(CALLS):
            left_out = {item.name for item in echo.members if item.default and random.random() < 0.5}
            values = {
                item.name: random_value(random, item, reads=echo.reads)
                for item in echo.members
                if item.name not in left_out
            }
            result.append((echo, values))
    return result


def expected(echo: Echo, values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{item.wire: values.get(item.name) for item in echo.members}]


SCRIPT = """
import { readFileSync } from "node:fs";
import * as api from "./publicApi.js";
const answers = [];
for (const [name, request] of JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"))) {
    answers.push(await api[name](request));
}
console.log(JSON.stringify(answers));
"""


@pytest.mark.slow
def test_values_round_trip_through_javascript_client(
    service: Service, folder: Path, calls: list[tuple[Echo, dict[str, Any]]]
) -> None:
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "calls.js").write_text(SCRIPT, encoding="utf-8")
    (folder / "calls.json").write_text(json.dumps(_call_arguments(calls)), encoding="utf-8")
    _check(calls, json.loads(run(folder / "calls.js")))


IN_A_PAGE = """async calls => {
    const api = await import("/publicApi.js");
    const answers = [];
    for (const [name, request] of calls) {
        answers.push(await api[name](request));
    }
    return answers;
}"""


@pytest.mark.slow
@needs_browser
def test_values_round_trip_through_javascript_client_in_a_page(
    service: Service, folder: Path, calls: list[tuple[Echo, dict[str, Any]]]
) -> None:
    (folder / "index.html").write_text("<!doctype html>", encoding="utf-8")
    with browser() as opened:
        page = opened.new_page()
        page.goto(service.url, timeout=TIMEOUT)
        _check(calls, page.evaluate(IN_A_PAGE, _call_arguments(calls)))


def _call_arguments(calls: list[tuple[Echo, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"echo{echo.number}", _request(echo, values)) for echo, values in calls]


def _check(calls: list[tuple[Echo, dict[str, Any]]], answers: list[Any]) -> None:
    for (echo, values), response in zip(calls, answers, strict=True):
        assert response == expected(echo, values), f"seed {SEED}: {echo}"


def _request(echo: Echo, values: dict[str, Any]) -> dict[str, Any]:
    """Return the request. The type of json in a query string is `string`: callers write the JSON text themselves."""
    types = {item.name: item for item in echo.members}
    result: dict[str, Any] = {}
    for name, value in values.items():
        written = echo.reads and types[name].type == "jsonb"
        texts = [json.dumps(item) for item in value] if written and types[name].array else value
        result[api_name(f"in_{name}", True)] = json.dumps(value) if written and not types[name].array else texts
    return result


def test_values_round_trip_through_python_client(
    service: Service, folder: Path, calls: list[tuple[Echo, dict[str, Any]]]
) -> None:
    api = load_client(folder / "public_api.py")
    names = {item: name for name, item in _arguments(api).items()}
    with api.Client(service.url) as client:
        for echo, values in calls:
            arguments = {names[api_name(f"in_{name}", True)]: value for name, value in values.items()}
            assert getattr(client, f"echo{echo.number}")(**arguments) == expected(echo, values), f"seed {SEED}: {echo}"


def _arguments(api: Any) -> dict[str, str]:
    """Return name in Python → name in requests."""
    from rowcall.core.codegen.python.names import snake_case

    return {snake_case(wire): wire for wire in (api_name(f"in_{name}", True) for name in NAMES)}
