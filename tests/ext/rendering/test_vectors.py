"""The vectors (`tests.harness.vectors`): the result of a real server for each statement, rendered."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.ext.rendering.values import render_value
from tests.ext import catalogue
from tests.ext.conftest import Connection
from tests.ext.results import address_of
from tests.harness.vectors import vectors

VECTORS = vectors()
# For example `xmlparse` of a server without libxml, or an extension that is not installed.
NOT_ON_THIS_SERVER = (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile)


@pytest.fixture(scope="module")
def missing(connection: Connection) -> set[str]:
    """Create the types of all vectors once; return the statements that this server cannot run."""
    failed = set()
    for statement in dict.fromkeys(statement for vector in VECTORS for statement in vector.get("setup", [])):
        try:
            connection.execute(statement)
        except NOT_ON_THIS_SERVER:
            failed.add(statement)
    return failed


@pytest.fixture(scope="module")
def codecs(connection: Connection, missing: set[str]) -> dict[bool, Codecs]:
    return {nested: catalogue.load(connection, resolve_nested=nested) for nested in (True, False)}


def meaning(text: str) -> Any:
    """Parse JSON with numbers and keys as texts, so that lost digits and repeated keys are detected."""
    return json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=lambda pairs: pairs)


def readable(vector: dict[str, Any], expected: str) -> str:
    """Return the expected JSON by the present rule: one vector is older than the `T` of timestamps at every depth
    (rendering-26)."""
    if vector["context"] != "composite_array":
        return expected
    return re.sub(r'"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)', r'"\1T\2', expected)


def name_of(vector: dict[str, Any]) -> str:
    return f"{vector['context']}-{vector['pg_type']}-{vector['note'] or 'plain'}"


@pytest.mark.parametrize("vector", VECTORS, ids=[name_of(vector) for vector in VECTORS])
def test_each_vector_is_rendered_as_expected(
    vector: dict[str, Any], connection: Connection, missing: set[str], codecs: dict[bool, Codecs]
) -> None:
    expected = readable(vector, vector.get("recommended", vector["json"]))
    registry = codecs[vector.get("resolve_nested", True)]
    text = vector["pg_text"]
    try:
        if missing.intersection(vector.get("setup", [])):
            raise psycopg.errors.FeatureNotSupported
        cursor = connection.execute(vector["sql"])
    except NOT_ON_THIS_SERVER:
        # If the server cannot create the value, its type has no rule of its own.
        oid = {"xml[]": 143}.get(vector["pg_type"], 0)
        rendered = render_value(registry, oid, text.encode())
    else:
        assert cursor.pgresult is not None
        value = cursor.pgresult.get_value(0, 0)
        assert (None if value is None else value.decode()) == text
        renderer = Renderer(registry, "rows", is_set=False, named=False, keys=[])
        rendered = renderer.render_result(address_of(cursor))
    assert meaning(rendered.decode()) == meaning(expected)
