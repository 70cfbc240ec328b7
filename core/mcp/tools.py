"""Endpoints as MCP tools (documents-8, mcp-4): tool objects, the requests of tool calls, and their results. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.source import Transport
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.codegen.automatic import automatic_parameters, is_optional
from rowcall.core.documents.openapi import TypesOf
from rowcall.core.documents.options import Nulls
from rowcall.core.documents.schemas import (
    Schema,
    Types,
    cast_schema,
    column_schema,
    named_schema,
    nullable,
    parameter_schema,
    query_schema,
    travels_as_json,
    with_constraints,
)
from rowcall.core.endpoint.endpoint import (
    Endpoint,
    EndpointParameter,
    NullText,
    ResultColumn,
    ResultPath,
    ResultShape,
    ValueKind,
)
from rowcall.core.endpoint.result_shape import BYTES
from rowcall.core.errors.binding_error import type_word
from rowcall.core.errors.problems import CONTENT_TYPE, Problem
from rowcall.core.mcp.options import ToolOptions
from rowcall.core.queryable.description import query_parameters
from rowcall.core.text import exact_json

NO_CONTENT = 204
_BOOLEANS = {"t": True, "true": True, "f": False, "false": False}


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool, and the endpoint that its calls run."""

    endpoint: Endpoint
    described: Mapping[str, Any]
    """Entry of the tool in `tools/list`."""
    value: Schema | None
    """Schema of a result that is a single value; None: the result is rows or an object."""
    blank_is_text: bool = False
    """The single value has a text type, so that an empty body is the empty text and not NULL."""

    @property
    def name(self) -> str:
        return str(self.described["name"])


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The HTTP request of a tool call. target: encoded path and query string. body: None: there is none."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def select_tools(endpoints: Iterable[Endpoint]) -> tuple[dict[str, Endpoint], list[str]]:
    """Return tool name → endpoint for the endpoints that are tools, and warnings for the log.

    If several endpoints have the same tool name, it belongs to the one whose routine takes precedence, so that no
    object that is created later takes it over.
    """
    candidates: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        requested = endpoint.options.tool
        if requested is not None and requested.enabled and not endpoint.options.invalidates:
            candidates.setdefault(requested.name or endpoint.routine.name, []).append(endpoint)
    tools = {name: min(items, key=lambda item: item.routine.precedence) for name, items in candidates.items()}
    warnings: list[str] = []
    for name, items in candidates.items():
        holder = tools[name]
        warnings += (f"{holder.name}: {text}" for text in _warnings(holder))
        warnings += (
            f"{item.name} of {item.routine.identity} is no tool: the name {name} belongs to the tool "
            f"{holder.name} of {holder.routine.identity}; mcp_name gives it another"
            for item in items
            if item is not holder
        )
    return tools, warnings


def _warnings(endpoint: Endpoint) -> Iterator[str]:
    options = endpoint.options
    if not _text(endpoint):
        yield "the tool has no description; mcp <text> gives it one"
    for what, there in (
        ("login", options.login),
        ("logout", options.logout),
        ("basic_auth", options.basic_auth is not None or endpoint.access.basic is not None),
        ("upload", options.upload is not None),
        ("sse", options.events is not None),
    ):
        if there:
            yield f"{what} does not go together with a tool"
    if options.rate_limiter is not None:
        yield "rate_limiter does not count the calls of a tool; RateLimiterPolicy of McpOptions limits all of them"


def _text(endpoint: Endpoint) -> str:
    requested = endpoint.options.tool
    text = (requested.description or requested.text) if requested is not None else None
    return text or "\n".join(endpoint.prose).strip()


def tool_entries(endpoints: Iterable[Endpoint], types_of: TypesOf, options: ToolOptions) -> dict[str, ToolEntry]:
    return {
        name: _entry(name, endpoint, types_of(endpoint), options)
        for name, endpoint in select_tools(endpoints)[0].items()
    }


def _entry(name: str, endpoint: Endpoint, types: Types, options: ToolOptions) -> ToolEntry:
    text = _text(endpoint) or endpoint.routine.name
    hints: dict[str, bool] = {"readOnlyHint": endpoint.method in ("GET", "QUERY")}
    if endpoint.method == "DELETE":
        hints["destructiveHint"] = True
    described: dict[str, Any] = {
        "name": name,
        "description": f"{text} {options.suffix}" if options.suffix else text,
        "inputSchema": _input(endpoint, options),
        "annotations": hints,
    }
    output = _output(endpoint, types, options)
    if output is not None:
        described["outputSchema"] = output
    return ToolEntry(endpoint, described, _value_type(endpoint, types, options), _has_empty_text(endpoint, types))


def _input(endpoint: Endpoint, options: ToolOptions) -> Schema:
    listed = {item.api_name: item for item in _caller_parameters(endpoint, options)}
    schema: Schema = {
        "type": "object",
        "properties": {name: _argument(endpoint, item) for name, item in listed.items()},
    }
    if required := [name for name, item in listed.items() if not is_optional(item)]:
        schema["required"] = required
    return schema


def _argument(endpoint: Endpoint, parameter: EndpointParameter) -> Schema:
    """Return the schema of an argument.

    An argument for a parameter of type json may have any value if it is sent in a body or as one JSON text in the query
    string; otherwise it is a string.
    """
    if parameter.of_query:
        return {**query_schema(parameter), "description": parameter.constraints.text}
    if parameter.path or parameter is endpoint.raw_body:
        return query_schema(parameter)
    in_body = endpoint.transport is Transport.BODY
    return parameter_schema(parameter) if in_body or travels_as_json(parameter) else query_schema(parameter)


def _caller_parameters(endpoint: Endpoint, options: ToolOptions) -> Iterator[EndpointParameter]:
    """Yield the parameters that the caller of the tool supplies, including those that query a result. Parameters that
    the service injects and virtual ones are left out."""
    automatic = automatic_parameters(endpoint, options.claims)
    for index, item in enumerate(endpoint.parameters):
        if index not in automatic and not item.virtual:
            yield item
    yield from query_parameters(endpoint)


def _envelope(endpoint: Endpoint) -> str | None:
    """Return the member of the structured content that contains the result: `items` or `value`.

    Empty: the result itself is the object. None: the tool has no structured content.
    """
    options, shape = endpoint.options, endpoint.shape
    if options.void or options.raw or options.login or options.logout or shape.path is ResultPath.VOID:
        return None
    if options.table_format is not None or options.upload is not None or endpoint.passes_through:
        return None
    if options.proxy_out is not None or options.invalidates or options.job is not None:
        return None
    if shape.path is ResultPath.ROWS and shape.content_type == BYTES:
        # Rows of bytes are concatenated without separators.
        return None
    if shape.path is ResultPath.SCALAR:
        return "value"
    if shape.path is ResultPath.ROWS and shape.is_set and not options.single:
        return "items"
    return "" if shape.path is ResultPath.OBJECT or shape.named else "value"


def _output(endpoint: Endpoint, types: Types, options: ToolOptions) -> Schema | None:
    member = _envelope(endpoint)
    shape = endpoint.shape
    if member is None or shape.path is ResultPath.OBJECT:
        return None
    if not member:
        return _row(shape, types, options)
    item = _row(shape, types, options) if shape.named else _leaf(_bare(endpoint, types, options), _facts(shape))
    value = {"type": "array", "items": item} if member == "items" else item
    return {"type": "object", "properties": {member: value}, "required": [member]}


def _row(shape: ResultShape, types: Types, options: ToolOptions) -> Schema:
    columns = shape.columns
    return {
        "type": "object",
        "properties": {
            item.key.decode(): _leaf(_column(item, shape, types, options), item.column.constraints) for item in columns
        },
    }


def _leaf(schema: Schema, constraints: ValueConstraints = NO_CONSTRAINTS) -> Schema:
    """Return the schema of a value in structured content, widened so that each value that PostgreSQL may return is
    valid. It allows null unless the constraints exclude it."""
    result = with_constraints(_every_value(schema), constraints)
    return result if constraints.never_null else nullable(result, Nulls.TYPE)


def _every_value(schema: Schema) -> Schema:
    """Return a copy of the schema that allows all values of the type, at any depth.

    NaN and infinities are strings among numbers, `infinity` and years BC are not dates of RFC 3339, and the type of an
    array does not fix its number of dimensions.
    """
    result = dict(schema)
    kind = result.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "number" in kinds:
        result["type"] = ["number", "string", *(item for item in kinds if item != "number")]
    if result.get("format") in ("date", "date-time"):
        del result["format"]
    if "items" in result:
        result["items"] = {"anyOf": [_every_value(result["items"]), {"type": "array"}]}
    if "properties" in result:
        result["properties"] = {name: _every_value(item) for name, item in result["properties"].items()}
    return result


def _facts(shape: ResultShape) -> ValueConstraints:
    return shape.columns[0].column.constraints if shape.columns and shape.is_set else NO_CONSTRAINTS


def _column(column: ResultColumn, shape: ResultShape, types: Types, options: ToolOptions) -> Schema:
    item, taken_out = column.column, column.position is not None
    return column_schema(
        item.type_oid,
        item.type_name,
        types,
        camel=options.camel,
        nulls=Nulls.TYPE,
        within=taken_out,
        spread=shape.blank_is_null,
    )


def _bare(endpoint: Endpoint, types: Types, options: ToolOptions) -> Schema:
    if endpoint.shape.columns:
        return _column(endpoint.shape.columns[0], endpoint.shape, types, options)
    if endpoint.shape.cast:
        return cast_schema(endpoint.shape, Nulls.TYPE)
    routine = endpoint.routine
    return column_schema(
        routine.return_type_oid, routine.return_type_name, types, camel=options.camel, nulls=Nulls.TYPE
    )


def _value_type(endpoint: Endpoint, types: Types, options: ToolOptions) -> Schema | None:
    if _envelope(endpoint) != "value":
        return None
    return named_schema("text") if endpoint.shape.named else _bare(endpoint, types, options)


_TEXTS = frozenset({"text", "character varying", "character", "bpchar", "name", "citext", "xml"})


def _has_empty_text(endpoint: Endpoint, types: Types) -> bool:
    routine, columns = endpoint.routine, endpoint.shape.columns
    oid = columns[0].column.type_oid if columns else routine.return_type_oid
    name = columns[0].column.type_name if columns else routine.return_type_name
    info = base_of(oid, types)
    shown = name if info is None else info.display
    return shown.partition("(")[0].strip() in _TEXTS


# --- a call ------------------------------------------------------------------------------------------------------


def tool_request(endpoint: Endpoint, arguments: Mapping[str, Any]) -> ToolRequest:
    """Return the HTTP request of a tool call (mcp-7).

    arguments: values by name of the parameter in requests, as `exact_json` parses them. Those of path parameters are
    put into the path; that of a raw body is the body; the others are put into a JSON body or into the query string,
    those of a query over the result always into the latter. Raises `Problem` 404 if a required path parameter is
    missing or empty, and 400 for an empty array in a query string.
    """
    left = dict(arguments)
    path = endpoint.path
    for item in endpoint.parameters:
        if item.path and item.segment is not None:
            text = quote(_plain(left.pop(item.api_name, None)), safe="")
            if not text and f"{{{item.segment}}}" in path:
                raise Problem(404, f"parameter '{item.api_name}' ({type_word(item.type_text)}) is required")
            path = path.replace(f"{{{item.segment}}}", text).replace(f"{{{item.segment}?}}", text)
    raw = endpoint.raw_body
    if endpoint.transport is Transport.BODY:
        names = [item.api_name for item in query_parameters(endpoint) if item.api_name in left]
        query = "&".join(f"{quote(name, safe='')}={quote(_plain(left.pop(name)), safe='')}" for name in names)
        target = f"{path}?{query}" if query else path
        return ToolRequest(endpoint.method, target, (("content-type", "application/json"),), orjson.dumps(left))
    body = _plain(left.pop(raw.api_name)).encode() if raw is not None and raw.api_name in left else None
    arrays = {item.api_name: item for item in endpoint.parameters if item.array and not travels_as_json(item)}
    kinds = {item.api_name: item.kind for item in endpoint.parameters}
    pairs = [
        f"{quote(name, safe='')}={quote(_plain(part), safe='')}"
        for name, value in left.items()
        for part in (_elements(arrays[name], value) if name in arrays else (_query_value(kinds.get(name), value),))
    ]
    headers = () if body is None else (("content-type", "application/json"),)
    return ToolRequest(endpoint.method, f"{path}?{'&'.join(pairs)}" if pairs else path, headers, body)


def _elements(array: EndpointParameter, value: object) -> Iterable[object]:
    """Return the elements of an array argument, each of which becomes one pair of the query string.

    None has no elements: the array is left out, because a pair without a value would be an element. Raises `Problem`
    400 for an empty array, which a query string cannot express.
    """
    if value is None:
        return ()
    if value == []:
        message = f"parameter '{array.api_name}' ({type_word(array.type_text)}): an empty array has no form in a query"
        raise Problem(400, f"{message}; leave it out")
    return value if isinstance(value, list) else (value,)


def _query_value(kind: ValueKind | None, value: object) -> object:
    """Return a value for the query string. A string for a parameter of type json becomes a JSON string, as it is in a
    body; other values are unchanged. kind: of the routine's parameter; None: the routine has no such parameter."""
    return orjson.dumps(value).decode() if kind is ValueKind.JSON and isinstance(value, str) else value


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def tool_result(entry: ToolEntry, status: int, content_type: str, body: bytes) -> dict[str, Any]:
    """Return the `result` of a `tools/call` from the endpoint's response. A status other than 2xx gives an error.

    If the tool has an output schema, structured content has to fit it; otherwise the result is an error, too (MCP
    2025-11-25, Structured Content).
    """
    if not 200 <= status < 300:
        return content(body.decode(errors="replace"), failed=True)
    structured = _structured_content(entry, content_type, body) if body else _empty_content(entry, status)
    if structured is None:
        if "outputSchema" in entry.described:
            return content(f"the response of {entry.name} does not match its output schema", failed=True)
        return content(body.decode(errors="replace"), failed=False)
    return {**content(orjson.dumps(structured).decode(), failed=False), "structuredContent": structured}


def content(text: str, *, failed: bool) -> dict[str, Any]:
    """Return a `result` of `tools/call` with a text. failed: the text is an error."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _structured_content(entry: ToolEntry, content_type: str, body: bytes) -> dict[str, Any] | None:
    """Return the structured content of a response with a body. A single row that is null becomes an empty object.

    None: the tool has no structured content, the response is a problem (RFC 9457), or the body does not have the form
    that `_envelope` requires.
    """
    member = _envelope(entry.endpoint)
    if member is None or content_type.startswith(CONTENT_TYPE):
        return None
    try:
        if member == "value":
            return {"value": _value(entry, content_type, body)}
        result = exact_json.parse(body)
    except ValueError:
        return None
    if member:
        return {member: result} if isinstance(result, list) else None
    if result is None:
        # `single` without a row: an object without members, as structured content is always an object.
        return {}
    return result if isinstance(result, dict) else None


def _empty_content(entry: ToolEntry, status: int) -> dict[str, Any] | None:
    """Return the structured content of a response without a body; None: the tool has no output schema.

    It is an empty text for text types, null for other values, no items for a set, and an object without members for a
    missing row. status: of the response; 204 gives null for text types, too.
    """
    if "outputSchema" not in entry.described:
        return None
    match _envelope(entry.endpoint):
        case "value":
            return {"value": "" if entry.blank_is_text and status != NO_CONTENT else None}
        case "items":
            return {"items": []}
    return {}


def _value(entry: ToolEntry, content_type: str, body: bytes) -> Any:
    endpoint, kind = entry.endpoint, (entry.value or {}).get("type")
    if endpoint.shape.content_type == BYTES:
        # The output format of bytea in a column.
        return f"\\x{body.hex()}"
    if body == b"NULL" and endpoint.options.null_text is NullText.NULL_LITERAL and not entry.blank_is_text:
        return None
    if kind == "boolean":
        text = body.decode()
        return _BOOLEANS[text] if text in _BOOLEANS else exact_json.parse(body)
    if kind == "string" and not content_type.startswith("application/json"):
        return body.decode()
    try:
        return exact_json.parse(body)
    except ValueError:
        if kind != "number":
            raise
        # NaN and infinities are no JSON numbers.
        return body.decode()
