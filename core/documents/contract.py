"""The contract: everything of the endpoints that clients depend on, as one canonical JSON value for version control.

The contract has no order of discovery, no time and no descriptions, so that two services that are equal for clients
have equal contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from rowcall.core.catalogue.source import Transport
from rowcall.core.codegen.automatic import is_optional
from rowcall.core.codegen.client_parameters import accepts_uploads
from rowcall.core.codegen.selection import TypesOf
from rowcall.core.documents.openapi import ENQUEUED, FILE, ResponseKind, answer_of, response_kind
from rowcall.core.documents.options import Nulls
from rowcall.core.documents.schemas import Types, body_member_schema
from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.events.stream_path import stream_path
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import NO_FORMATS, TableFormats, has_fixed_format, media_types

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
    tables: TableFormats = NO_FORMATS,
    exports: ExportOptions | None = None,
    exact: bool = False,
    functions: Functions,
) -> Contract:
    """Return the contract: for each method and path, its endpoints, sorted by parameter names and routine. Internal
    endpoints are left out.

    types_of: returns the types of an endpoint's database by oid. camel: fields of composites are in camelCase. level:
    notice level of event streams whose endpoints set none. tables: formats that `table_format` may name. exports:
    options of exports; None: exports are disabled. exact: schemas say which values may be NULL. functions: `id` of an
    endpoint → language of a generated client → name of the endpoint's function there; endpoints without a function may
    be missing.
    """
    rows: dict[str, list[Any]] = {}
    for endpoint in endpoints:
        if not endpoint.options.internal:
            nulls = Nulls.TYPE if exact else Nulls.OMITTED
            names = functions.get(id(endpoint), {})
            others = media_types(endpoint, tables) or (exports.media_types(endpoint) if exports is not None else ())
            result = _endpoint(endpoint, types_of(endpoint), names, camel, level, others, nulls)
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
    for name, variants in body["endpoints"].items():
        if not _is_list_of(variants, _is_endpoint):
            raise ContractError(f"is no contract: {name} has other members than --contract writes; write it again")
    return body


_LEVELS = 100
"""Levels of a schema that are read. Those that `contract_of` writes have fewer."""


def _is_endpoint(value: Any) -> bool:
    """Return whether a value of a contract has the members of an endpoint that a comparison reads."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("routine"), str)
        and (isinstance(value.get("access"), str) or _is_texts(value.get("access")))
        and _is_object_of(value.get("request"), _is_parameter)
        and "response" in value
        and (value["response"] is None or _is_response(value["response"]))
        and _is_object_of(value.get("functions", {}), lambda name: isinstance(name, str))
    )


def _is_parameter(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("in"), str)
        and isinstance(value.get("required"), bool)
        and _is_schema(value.get("schema"))
    )


def _is_response(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and (value.get("schema") is None or _is_schema(value["schema"]))
        and _is_texts(value.get("formats", []))
    )


def _is_schema(value: Any, levels: int = _LEVELS) -> bool:
    return (
        isinstance(value, dict)
        and levels > 0
        and (isinstance(value.get("type", ""), str) or _is_texts(value["type"]))
        and isinstance(value.get("format", ""), str)
        and (value.get("enum") is None or _is_list_of(value["enum"], lambda item: not isinstance(item, list | dict)))
        and ("items" not in value or _is_schema(value["items"], levels - 1))
        and _is_object_of(value.get("properties", {}), lambda item: _is_schema(item, levels - 1))
    )


def _is_texts(value: Any) -> bool:
    return _is_list_of(value, lambda item: isinstance(item, str))


def _is_list_of(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_object_of(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


def _endpoint(
    endpoint: Endpoint,
    types: Types,
    names: Mapping[str, str],
    camel: bool,
    level: NoticeLevel,
    formats: tuple[str, ...],
    nulls: Nulls,
) -> dict[str, Any]:
    kind = response_kind(endpoint)
    result: dict[str, Any] = {
        "routine": endpoint.routine.identity,
        "access": _access(endpoint),
        "request": {},
        "response": _response(endpoint, kind, types, camel, formats, nulls),
    }
    if kind is not ResponseKind.RESULT:
        result["kind"] = kind.value
    declared = endpoint.options.success_status
    if kind in _WITH_RESULT and declared not in (None, 204 if result["response"] is None else 200):
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
    if accepts_uploads(endpoint):
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
    return "query" if endpoint.transport is Transport.QUERY or accepts_uploads(endpoint) else "body"


_WITH_RESULT = (ResponseKind.RESULT, ResponseKind.TOKENS)
"""Responses that have the result of the routine; the service sets the status of the others."""


def _response(
    endpoint: Endpoint, kind: ResponseKind, types: Types, camel: bool, formats: tuple[str, ...], nulls: Nulls
) -> dict[str, Any] | None:
    """Return content type and schema of a successful response, and the media types that a request may choose instead.
    None: the response has no body, or its content is not described, as that of a proxy or a sign-in."""
    if kind is ResponseKind.JOB:
        return {"type": "application/json", "schema": _without_texts(ENQUEUED)}
    if kind is ResponseKind.FILE:
        return {"type": "*/*", "schema": FILE}
    answer = answer_of(endpoint, types, camel=camel, nulls=nulls) if kind in _WITH_RESULT else None
    if answer is None:
        return None
    result: dict[str, Any] = {"type": answer[0], "schema": _without_texts(answer[1])}
    if not formats or kind is not ResponseKind.RESULT:
        return result
    if endpoint.options.table_format is not None and has_fixed_format(endpoint):
        return {"type": formats[0], "schema": {"type": "string"}}
    return {**result, "formats": sorted(formats)}


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
