"""Random values of random types, written as JSON and as query texts: the routine gets the value that was meant.

PostgreSQL's own `to_json` writes the JSON, and its own text output is what the routine has to see.

`ROWCALL_RANDOM_TYPES` and `ROWCALL_RANDOM_ROUNDS` make it longer; `ROWCALL_RANDOM_SEED` repeats a run that failed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import quote_plus

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.effort import seed
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.random_types import (
    SCALARS,
    Array,
    Composite,
    Domain,
    Kind,
    Scalar,
    Types,
    base_of,
    document,
    present,
)

TYPES = int(os.environ.get("ROWCALL_RANDOM_TYPES", "40"))
ROUNDS = int(os.environ.get("ROWCALL_RANDOM_ROUNDS", "8"))
pytestmark = pytest.mark.drawn

SEED = seed("ROWCALL_RANDOM_SEED")
FUNCTION = """
create function echo_{number}(_before int, _v {type}, _behind text) returns text language sql
as 'select concat(_before, _v::text, _behind)';
comment on function echo_{number} is 'HTTP POST /echo/{number}';
create function echo_query_{number}(_before int, _v {type}, _behind text) returns text language sql stable
as 'select concat(_before, _v::text, _behind)';
comment on function echo_query_{number} is 'HTTP GET /echo/{number}';
create function deep_{number}(_v {type}[]) returns text language sql as 'select _v::text';
comment on function deep_{number} is 'HTTP POST /deep/{number}';
"""


def _container(random: Random) -> str:
    """For a json parameter a JSON string is a text that holds JSON, so no document here is a string itself."""
    made = document(random)
    return f"[{made}]" if made[0] == '"' else made


ALL = tuple(replace(scalar, make=_container) if scalar.rule == "json" else scalar for scalar in SCALARS)


class _Types(Types):
    def _scalar(self) -> Kind:
        scalar = self.random.choice(ALL)
        return self._domain(scalar) if self.random.random() < 0.1 else scalar


@pytest.fixture(scope="module")
def kinds() -> list[Kind]:
    return []


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, kinds: list[Kind]) -> Service:
    types = _Types(Random(SEED))
    kinds += [*ALL, *(_elements(types) for _ in range(TYPES - len(ALL)))]
    functions = [FUNCTION.format(number=number, type=kind.sql) for number, kind in enumerate(kinds)]
    return serve(database, ";\n".join([*types.sql, *functions]))


def _elements(types: Types) -> Kind:
    """Something that can be in an array."""
    made = types.make(3)
    while isinstance(made, Array):
        made = types.make(3)
    return made


def _is_defined(kind: Kind, text: str) -> bool:
    """JSON says all about the value: `to_json` gives null for a JSON null, and no bounds of arrays."""
    return "null" not in text and "]=" not in text and not _loses(kind)


def _loses(kind: Kind) -> bool:
    """Arrays in arrays, with a domain between them, and json in arrays: the dimensions are ambiguous."""
    match kind:
        case Scalar():
            return False
        case Domain(base=base):
            return _loses(base)
        case Composite(fields=fields):
            return any(_loses(field) for _, field in fields)
        case Array(element=element):
            below = base_of(element)
            return isinstance(below, Array) or (isinstance(below, Scalar) and below.rule == "json") or _loses(element)


def _written(database: Database, kind: Kind, texts: list[str]) -> list[tuple[str, Any, str, Any]]:
    """Of each text: the value as PostgreSQL prints it and as JSON, and the same of an array that holds it and NULL."""
    item = f"t::{kind.sql}"
    # PostgreSQL knows no array of a domain over an array.
    array = "null::int[]" if isinstance(base_of(kind), Array) else f"array[{item}, null]"
    sql = f"select {item}::text, to_json({item})::text, {array}::text, to_json({array})::text from unnest(%s::text[]) t"
    with psycopg.connect(database.conninfo) as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.execute(sql, (texts,)).fetchall()


@pytest.mark.parametrize("number", range(TYPES))
def test_random_values_are_bound_exactly(service: Service, database: Database, kinds: list[Kind], number: int) -> None:
    kind = kinds[number]
    random = Random(f"{SEED} {number}")
    texts = [text for text in (present(random, kind) for _ in range(ROUNDS)) if _is_defined(kind, text)]
    for printed, as_json, array, array_as_json in _written(database, kind, texts):
        place = f"ROWCALL_RANDOM_SEED={SEED}, type {number} {kind}: {printed!r}"
        body = f'{{"before":1,"v":{as_json},"behind":"x"}}'.encode()
        response = service.post(f"/echo/{number}", content=body)
        assert response.text == f"1{printed}x", f"{place} in {body!r}"
        if array is not None:
            response = service.post(f"/deep/{number}", content=f'{{"v":{array_as_json}}}'.encode())
            assert response.text == array, f"{place} in an array {array_as_json}"
        if (printed and not isinstance(base_of(kind), Composite | Array)) or _is_inner_composite(kind):
            response = service.get(f"/echo/{number}?before=1&v={quote_plus(printed)}&behind=x")
            assert response.text == f"1{printed}x", f"{place} in a query"
        elif isinstance(kind, Composite):
            response = service.get(f"/echo/{number}?before=1&v={quote_plus(as_json)}&behind=x")
            assert response.text == f"1{printed}x", f"{place} as JSON in a query"


def _is_inner_composite(kind: Kind) -> bool:
    """One value: only a parameter whose own type is a composite is taken apart."""
    return isinstance(kind, Domain) and isinstance(base_of(kind), Composite)


@pytest.mark.parametrize("number", range(len(ALL)))
def test_null_the_empty_string_and_the_word_null_are_distinguished(
    service: Service, kinds: list[Kind], number: int
) -> None:
    """Missing and unknown are refused, and the other three are three different things."""
    kind = base_of(kinds[number])
    assert isinstance(kind, Scalar)

    def sent(member: str) -> tuple[int, str]:
        response = service.post(f"/echo/{number}", content=f'{{"before":1,{member}"behind":"x"}}'.encode())
        return response.status_code, response.text

    assert sent('"v":null,') == (200, "1x")
    assert sent("")[0] == 404
    assert sent('"v":null,"w":1,')[0] == 404
    if kind.sql in ("text", "varchar"):
        assert sent('"v":"",') == (200, "1x")
        assert sent('"v":"null",') == (200, "1nullx")
    elif kind.sql not in ("mood", '"char"', "varbit", "bytea", "json", "jsonb"):
        assert sent('"v":"",')[0] == 400
        assert sent('"v":"null",')[0] == 400
    assert json.loads(sent("")[1])["detail"].startswith("parameter 'v'")
