"""Breaking and other changes of a contract (docs/contract.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowcall.core.documents.contract import ContractError, contract_from, contract_text
from rowcall.core.documents.contract_changes import changes

INT = {"type": "integer", "format": "int32"}
BIGINT = {"type": "integer", "format": "int64"}
TEXT = {"type": "string"}
GIVEN = {"in": "query", "required": True, "schema": INT}


def endpoint(**changed: Any) -> dict[str, Any]:
    response = {"type": "application/json", "schema": {"type": "array", "items": row(id=INT, name=TEXT)}}
    return {"routine": "public.f(int)", "access": "anyone", "request": {"id": GIVEN}, "response": response} | changed


def row(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def rows(**properties: Any) -> dict[str, Any]:
    return {"type": "application/json", "schema": {"type": "array", "items": row(**properties)}}


def contract(*variants: dict[str, Any], name: str = "GET /f") -> dict[str, Any]:
    return {"rowcall_contract": 1, "endpoints": {name: list(variants)} if variants else {}}


def closed(who: Any) -> dict[str, Any]:
    return contract(endpoint(access=who))


def with_parameter(**parameter: Any) -> dict[str, Any]:
    return contract(endpoint(request={"id": GIVEN | parameter}))


def with_response(**properties: Any) -> dict[str, Any]:
    return contract(endpoint(response=rows(**properties)))


def colours(*names: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


OLD = contract(endpoint())
LATER = endpoint(routine="public.f(text)", request={"id": GIVEN | {"schema": TEXT}})
"""An overload with the same parameter names."""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (OLD, OLD, []),
        (OLD, contract(), ["breaking: GET /f: removed"]),
        (OLD, contract(endpoint(), name="GET /g"), ["breaking: GET /f: moved to GET /g", "compatible: GET /g: added"]),
        (OLD, closed("signed in"), ["breaking: GET /f: authorization: anyone before, signed in now"]),
        (closed("signed in"), OLD, ["doubtful: GET /f: authorization: signed in before, anyone now"]),
        (closed(["a"]), closed(["a", "b"]), ["doubtful: GET /f: authorization: roles a before, roles a, b now"]),
        (closed(["a", "b"]), closed(["a"]), ["breaking: GET /f: authorization: roles a, b before, roles a now"]),
        (with_parameter(required=False), OLD, ["breaking: GET /f: parameter id is now required"]),
        (OLD, with_parameter(required=False), ["compatible: GET /f: parameter id is no longer required"]),
        (
            OLD,
            with_parameter(schema=BIGINT),
            ["compatible: GET /f: parameter id is integer (int64), was integer (int32)"],
        ),
        (
            with_parameter(schema=BIGINT),
            OLD,
            ["breaking: GET /f: parameter id is integer (int32), was integer (int64)"],
        ),
        (OLD, with_parameter(schema=TEXT), ["breaking: GET /f: parameter id is string, was integer (int32)"]),
        (OLD, with_parameter(**{"in": "body"}), ["breaking: GET /f: parameter id moves from the query to the body"]),
        (OLD, contract(endpoint(request={"no": GIVEN})), ["breaking: GET /f: parameter id is renamed to no"]),
        (OLD, contract(endpoint(request={})), ["breaking: GET /f: parameter id is removed"]),
        (contract(endpoint(request={})), OLD, ["breaking: GET /f: parameter id is added and required"]),
        (
            contract(endpoint(request={})),
            with_parameter(required=False),
            ["compatible: GET /f: parameter id is added"],
        ),
        (OLD, with_response(id=INT), ["breaking: GET /f: each of the response has no name any more"]),
        (with_response(id=INT), OLD, ["compatible: GET /f: each of the response has a new name"]),
        (
            with_response(id=INT),
            with_response(id=BIGINT),
            ["doubtful: GET /f: id of each of the response is integer (int64), was integer (int32)"],
        ),
        (
            with_response(id=INT),
            with_response(id=INT | {"type": ["integer", "null"]}),
            ["doubtful: GET /f: id of each of the response may now be null"],
        ),
        (OLD, contract(endpoint(response=None)), ["breaking: GET /f: it now answers with nothing"]),
        (
            OLD,
            contract(endpoint(response={"type": "text/plain", "schema": TEXT})),
            ["breaking: GET /f: the response is text/plain, no longer application/json"],
        ),
        (
            with_parameter(schema=colours("red", "blue")),
            with_parameter(schema=colours("red")),
            ["breaking: GET /f: parameter id takes fewer values: red only"],
        ),
        (
            with_response(id=colours("red")),
            with_response(id=colours("red", "blue")),
            ["doubtful: GET /f: id of each of the response may have more values: red, blue"],
        ),
        (
            OLD,
            contract(endpoint(), endpoint(request={})),
            ["compatible: GET /f: an overload with () is added"],
        ),
        (
            contract(endpoint(), endpoint(request={})),
            OLD,
            ["breaking: GET /f: the overload with () is removed"],
        ),
        (
            OLD,
            contract(endpoint(kind="job", response={"type": "application/json", "schema": row(id=TEXT)})),
            ["breaking: GET /f: the kind of the response is job, no longer result"],
        ),
        (
            contract(endpoint(kind="proxy", response=None)),
            contract(endpoint(kind="file", response=None)),
            ["breaking: GET /f: the kind of the response is file, no longer proxy"],
        ),
        (
            contract(endpoint(kind="tokens")),
            contract(endpoint(kind="tokens", response=rows(id=INT))),
            ["breaking: GET /f: each of the response has no name any more"],
        ),
        (
            contract(endpoint(response=rows(id=INT) | {"formats": ["text/html", "x/y"]})),
            contract(endpoint(response=rows(id=INT) | {"formats": ["text/html", "a/b"]})),
            [
                "breaking: GET /f: the response can no longer be x/y",
                "compatible: GET /f: the response can also be a/b",
            ],
        ),
        (contract(endpoint(), LATER), contract(endpoint(), LATER), []),
        (
            contract(endpoint(), LATER),
            contract(endpoint(routine="public.f(bigint)", request={"id": GIVEN | {"schema": BIGINT}}), LATER),
            ["compatible: GET /f: parameter id is integer (int64), was integer (int32)"],
        ),
        (contract(endpoint(), LATER), contract(LATER), ["breaking: GET /f: the overload with (id) is removed"]),
        (contract(LATER), contract(endpoint(), LATER), ["compatible: GET /f: an overload with (id) is added"]),
        (
            contract(endpoint(stream="/f/info")),
            OLD,
            ["breaking: GET /f: the stream of events at /f/info is removed"],
        ),
    ],
)
def test_each_change_is_named(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    assert [str(change) for change in changes(old, new)] == expected


def test_a_contract_survives_serialization() -> None:
    assert contract_from(contract_text(OLD)) == OLD


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "is no JSON"), ("[]", "is no contract"), ('{"rowcall_contract": 2, "endpoints": {}}', "is of version 2")],
)
def test_invalid_contracts_are_refused(text: str, why: str) -> None:
    with pytest.raises(ContractError, match=why):
        contract_from(text)


def deep(levels: int) -> dict[str, Any]:
    return {"items": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    "variants",
    [
        5,
        [5],
        [{}],
        [{name: value for name, value in endpoint().items() if name != "response"}],
        [endpoint(routine=None)],
        [endpoint(access=None)],
        [endpoint(access=["a", 1])],
        [endpoint(request=[])],
        [endpoint(request={"id": 5})],
        [endpoint(request={"id": {"in": "query", "schema": INT}})],
        [endpoint(request={"id": GIVEN | {"schema": 5}})],
        [endpoint(request={"id": GIVEN | {"schema": {"type": [1]}}})],
        [endpoint(request={"id": GIVEN | {"schema": {"type": "string", "enum": [["a"]]}}})],
        [endpoint(response="x")],
        [endpoint(response={"schema": {}})],
        [endpoint(response={"type": "x", "schema": None, "formats": 5})],
        [endpoint(response=rows(id=5))],
        [endpoint(response={"type": "x", "schema": {"properties": []}})],
        [endpoint(response={"type": "x", "schema": deep(500)})],
        [endpoint(functions=["f"])],
    ],
)
def test_contracts_with_other_members_are_refused(variants: Any) -> None:
    with pytest.raises(ContractError, match="is no contract: GET /f has other members"):
        contract_from(json.dumps({"rowcall_contract": 1, "endpoints": {"GET /f": variants}}))
