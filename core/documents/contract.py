"""The contract: everything of the endpoints that clients depend on, as one canonical JSON value for version control.

The contract has no order of discovery, no time and no descriptions, so that two services that are equal for clients
have equal contracts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from rowcall.core.catalogue.source import Transport
from rowcall.core.codegen.automatic import is_optional
from rowcall.core.codegen.selection import TypesOf
from rowcall.core.codegen.sending import uploads
from rowcall.core.documents.openapi import answer_of
from rowcall.core.documents.schemas import Nulls, Types, body_member_schema
from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.events.stream_path import stream_path

VERSION = 1
Contract = dict[str, Any]
Functions = dict[int, dict[str, str]]
"""`id(endpoint)` → language → name of the endpoint's function in the generated client."""


class ContractError(ValueError):
    """A file is not a contract, or is a contract of another version. The message is a predicate such as `is no
    contract`, in front of which the caller writes the name of the file."""


def contract_of(
    endpoints: Iterable[Endpoint],
    types_of: TypesOf,
    *,
    camel: bool,
    level: NoticeLevel,
    exact: bool = False,
    functions: Functions,
) -> Contract:
    """Return the contract: for each method and path, its endpoints, sorted by parameter names and routine. Internal
    endpoints are left out.

    types_of: returns the types of an endpoint's database by oid. camel: fields of composites are in camelCase. level:
    notice level of event streams whose endpoints set none. exact: schemas say which values may be NULL. functions:
    names in generated clients; endpoints may be missing.
    """
    rows: dict[str, list[Any]] = {}
    for endpoint in endpoints:
        if not endpoint.options.internal:
            nulls = Nulls.TYPE if exact else Nulls.OMITTED
            names = functions.get(id(endpoint), {})
            result = _endpoint(endpoint, types_of(endpoint), names, camel, level, nulls)
            rows.setdefault(f"{endpoint.method} {endpoint.path}", []).append(result)
    for variants in rows.values():
        variants.sort(key=lambda item: (sorted(item["request"]), item["routine"]))
    return {"rowcall_contract": VERSION, "endpoints": rows}


def contract_text(contract: Contract) -> str:
    """Return the contract as indented JSON with sorted keys and a newline at its end."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(contract, option=options).decode()


def contract_from(text: str) -> Contract:
    """Parse the text of a contract. Raises `ContractError` if the text is not a contract, or one of another version."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ContractError(f"is no JSON: {error}") from None
    if not isinstance(body, dict) or not isinstance(body.get("endpoints"), dict):
        raise ContractError("is no contract")
    if body.get("rowcall_contract") != VERSION:
        raise ContractError(f"is of version {body.get('rowcall_contract')}, not of {VERSION}; write it again")
    return body


def _endpoint(
    endpoint: Endpoint, types: Types, names: Mapping[str, str], camel: bool, level: NoticeLevel, nulls: Nulls
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "routine": endpoint.routine.identity,
        "access": _access(endpoint),
        "request": {},
        "response": _response(endpoint, types, camel, nulls),
    }
    declared = endpoint.options.success_status
    if declared not in (None, 204 if result["response"] is None else 200):
        result["status"] = declared
    for parameter in endpoint.parameters:
        result["request"].setdefault(
            parameter.api_name,
            {
                "in": _place(endpoint, parameter),
                "required": not is_optional(parameter),
                "schema": _without_texts(body_member_schema(parameter, nulls)),
            },
        )
    if uploads(endpoint):
        result["upload"] = True
    if (stream := stream_path(endpoint, level)) is not None:
        result["stream"] = stream
    if names:
        result["functions"] = dict(names)
    return result


def _access(endpoint: Endpoint) -> str | list[str]:
    if endpoint.access.anonymous:
        return "anyone"
    return sorted(endpoint.access.required) or "signed in"


def _place(endpoint: Endpoint, parameter: EndpointParameter) -> str:
    if parameter.path:
        return "path"
    if parameter is endpoint.raw_body:
        return "whole body"
    return "query" if endpoint.transport is Transport.QUERY or uploads(endpoint) else "body"


def _response(endpoint: Endpoint, types: Types, camel: bool, nulls: Nulls) -> dict[str, Any] | None:
    answer = answer_of(endpoint, types, camel=camel, nulls=nulls)
    return None if answer is None else {"type": answer[0], "schema": _without_texts(answer[1])}


def _without_texts(schema: Any) -> Any:
    """Return a copy of the schema without `description` and `required` at any depth; None stays None.

    Clients do not depend on descriptions, and all members of a response are always sent.
    """
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in ("description", "required")}
    if "items" in result:
        result["items"] = _without_texts(result["items"])
    if "properties" in result:
        result["properties"] = {key: _without_texts(value) for key, value in result["properties"].items()}
    return result
