"""Random values of random types: what the service answers is PostgreSQL's own `to_json` of them, but for the
differences that docs/internals/behaviour/rendering.md documents. Each difference has a name in `Undo`, which takes it
back.

`ROWCALL_RANDOM_TYPES` and `ROWCALL_RANDOM_ROUNDS` make it longer; `ROWCALL_RANDOM_SEED` repeats a run that failed.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

import pytest

from rowcall.core.text.naming import nested_name
from tests.ext.twins import types as twin
from tests.ext.twins.values import render_value
from tests.harness.database import Database
from tests.harness.effort import seed
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.random_types import Array, Composite, Domain, Kind, Scalar, Types, base_of, is_number, value

TYPES = int(os.environ.get("ROWCALL_RANDOM_TYPES", "40"))
ROUNDS = int(os.environ.get("ROWCALL_RANDOM_ROUNDS", "8"))
pytestmark = pytest.mark.drawn

SEED = seed("ROWCALL_RANDOM_SEED")
VALUES = 10
"""For each request."""
FUNCTION = """
create function value_{number}(_texts text[]) returns table (n int, v {type}, as_postgres json) language sql stable
as 'select n::int, t::{type}, to_json(t::{type}) from unnest(_texts) with ordinality u(t, n)';
comment on function value_{number}(text[]) is e'HTTP POST /values/{number}\\nnested'
"""


def meaning(text: str) -> Any:
    """JSON with its digits to the letter, numbers distinguished from strings, and every key of an object in order."""
    return json.loads(text, parse_int=_digits, parse_float=_digits, object_pairs_hook=_members)


def _digits(text: str) -> tuple[str, str]:
    return "number", text


def _members(pairs: list[tuple[str, Any]]) -> tuple[str, Any]:
    return "object", pairs


class Undo:
    """The service's answer in the terms of `to_json`: every documented difference taken back, and nothing else."""

    def value(self, kind: Kind, ours: Any, place: str) -> Any:
        """place: column, element (of an array) or field (of a composite)."""
        if ours is None:
            return None
        if isinstance(kind, Domain) and isinstance(base_of(kind), Scalar) and place != "column":
            return self.domain_is_text(base_of(kind), ours)
        match base_of(kind):
            case Scalar():
                return ours
            case Array(element):
                return [self.element(element, item) for item in ours]
            case Composite() as composite:
                return self.keys_are_converted(composite, ours, "column" if place == "column" else "field")

    def element(self, kind: Kind, ours: Any) -> Any:
        if isinstance(ours, list) and not isinstance(base_of(kind), Array):
            return [self.composites_in_more_dimensions_are_text(kind, item) for item in ours]
        return self.value(kind, ours, "element")

    def composites_in_more_dimensions_are_text(self, kind: Kind, ours: Any) -> Any:
        if ours is None or not isinstance(base_of(kind), Composite):
            return self.value(kind, ours, "element")
        assert isinstance(ours, str)
        return self.value(kind, meaning(render_value(as_twin(kind), ours, "element")), "element")

    def keys_are_converted(self, kind: Composite, ours: Any, place: str) -> Any:
        """place: of the fields. Fields of a nested column are rendered like columns (rendering-19)."""
        mark, members = ours
        assert (mark, [key for key, _ in members]) == ("object", [nested_name(name) for name, _ in kind.fields])
        return mark, [
            (name, self.value(field, member, self.inner(field, place)))
            for (name, field), (_, member) in zip(kind.fields, members, strict=True)
        ]

    def inner(self, kind: Kind, place: str) -> str:
        """Only the first level of a nested column is rendered like columns; composites in it are not."""
        return "field" if isinstance(base_of(kind), Composite) else place

    def domain_is_text(self, base: Kind, ours: str) -> Any:
        assert isinstance(base, Scalar)
        assert isinstance(ours, str)
        if base.rule == "number" and is_number(ours):
            return "number", ours
        if base.rule == "boolean":
            return {"t": True, "f": False}[ours]
        if base.rule == "json":
            return meaning(ours)
        return ours


def as_twin(kind: Kind) -> twin.Type:
    match kind:
        case Scalar(rule=rule):
            return twin.Scalar(rule)
        case Domain(base=base):
            return twin.Domain(as_twin(base))
        case Array(element=element):
            return twin.Array(as_twin(element), kind.delimiter)
        case Composite(fields=fields):
            return twin.Composite(tuple((nested_name(name), as_twin(field)) for name, field in fields))


def all_null_is_null(kind: Kind, ours: Any, theirs: Any) -> bool:
    """A composite column whose fields are all NULL (rendering-19)."""
    if ours is not None or theirs is None or not isinstance(base_of(kind), Composite):
        return False
    return all(member is None for _, member in theirs[1])


@pytest.fixture(scope="module")
def kinds() -> list[Kind]:
    return []


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, kinds: list[Kind]) -> Service:
    types = Types(Random(SEED))
    kinds += [types.make() if number % 2 else types.composite(4) for number in range(TYPES)]
    functions = [FUNCTION.format(number=number, type=kind.sql) for number, kind in enumerate(kinds)]
    return serve(database, ";\n".join([*types.sql, *functions]))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(TYPES))
def test_random_values_are_rendered_as_by_to_json(service: Service, kinds: list[Kind], number: int) -> None:
    kind = kinds[number]
    random = Random(f"{SEED} {number}")
    for _ in range(ROUNDS):
        texts = [value(random, kind) for _ in range(VALUES)]
        response = service.post(f"/values/{number}", json={"texts": texts})
        assert response.status_code == 200, f"{response.text}, ROWCALL_RANDOM_SEED={SEED}: {kind}: {texts}"
        rows = [dict(members) for _, members in meaning(response.text)]
        assert len(rows) == len(texts)
        for text, row in zip(texts, rows, strict=True):
            ours, theirs = row["v"], row["asPostgres"]
            place = f"ROWCALL_RANDOM_SEED={SEED}, type {number}: {text!r} as {kind} is {ours!r}"
            assert all_null_is_null(kind, ours, theirs) or Undo().value(kind, ours, "column") == theirs, place
