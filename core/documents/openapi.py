"""The OpenAPI document (documents-4 to documents-8): endpoints in, one JSON object out."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.catalogue.source import Transport
from rowcall.core.codegen.automatic import is_optional, supplied_parameters
from rowcall.core.documents.options import Nulls, OpenApiOptions, similar_to
from rowcall.core.documents.postgrest.openapi import (
    ERROR,
    ERROR_SCHEMA,
    SECURITY,
    SECURITY_SCHEME,
    exposed_names,
    interface_paths,
)
from rowcall.core.documents.samples import example_text, value_of, with_default
from rowcall.core.documents.schemas import (
    Schema,
    Types,
    body_member_schema,
    parameter_schema,
    query_schema,
    result_schema,
    travels_as_json,
)
from rowcall.core.endpoint.capabilities import Document
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath
from rowcall.core.events.stream_path import stream_path
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import EXCEL, PARQUET, has_fixed_format, media_types
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.queryable.description import query_parameters
from rowcall.core.tables.versions import is_insert

_SEGMENT = re.compile(r"\{([^{}?]+)\??\}")
_BEARER = {"bearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
_BASIC = {"basicAuth": {"type": "http", "scheme": "basic"}}
_BASIC_ALONE: dict[str, list[str]] = {"basicAuth": []}
_TEXT = {"type": "string"}
FILE = {"type": "string", "format": "binary"}
_DEFAULTS = Document()


TypesOf = Callable[[Endpoint], Types]
"""Function that returns the types of an endpoint's database, by oid."""


def document(
    endpoints: Iterable[Endpoint],
    types_of: TypesOf,
    options: OpenApiOptions,
    catalogue: PostgRestCatalogue | None = None,
) -> dict[str, Any]:
    """Return the OpenAPI document of the endpoints for which `is_shown` is true, as a JSON object. Endpoints with equal
    method and path become one operation. Paths that differ only in the names of their parameters are one path, with the
    names of the first endpoint, as such paths are identical in OpenAPI (Path Templating).

    catalogue: of PostgREST's interface, whose paths the document has too if `options.interface` is set; None: there is
    no such interface.
    """
    paths: dict[str, dict[str, Any]] = {}
    taken: set[str] = set()
    templates: dict[str, str] = {}
    for endpoint in endpoints:
        if is_shown(endpoint, options):
            operation = _operation(endpoint, types_of(endpoint), taken, options)
            path = _path(endpoint)
            template = templates.setdefault(_SEGMENT.sub("{}", path), path)
            _rename_path_parameters(operation, path, template)
            methods, method = paths.setdefault(template, {}), endpoint.method.lower()
            methods[method] = _either(methods[method], operation) if method in methods else operation
    info = {"title": options.title, "version": options.version}
    if options.description:
        info["description"] = options.description
    servers = [{"url": url, **({"description": text} if text else {})} for url, text in options.servers]
    schemes = {name: dict(members) for name, members in options.schemes} or _BEARER
    if any(_BASIC_ALONE in operation.get("security", ()) for path in paths.values() for operation in path.values()):
        schemes = {**schemes, **_BASIC}
    components: dict[str, dict[str, Any]] = {"schemas": {"Problem": PROBLEM}, "securitySchemes": schemes}
    if options.interface and catalogue is not None:
        _add_interface(paths, components, catalogue, options)
    return {
        "openapi": options.spec,
        "info": info,
        **({"servers": servers} if servers else {}),
        "paths": paths,
        "components": components,
    }


def _add_interface(
    paths: dict[str, dict[str, Any]],
    components: dict[str, dict[str, Any]],
    catalogue: PostgRestCatalogue,
    options: OpenApiOptions,
) -> None:
    """Add the paths of PostgREST's interface to `paths`, as far as the filters of the options allow their relations and
    functions, and add their schemas and security scheme to `components`.

    At the same method and path, an endpoint has precedence, as in routing. Nothing is added if `openapi_mode` of the
    interface is `disabled`, or if `closed_only` is set and anonymous callers may use the interface.
    """
    if catalogue.options.openapi_mode == "disabled":
        return
    if options.closed_only and catalogue.options.anonymous_role is not None:
        return
    shown = (name for name in exposed_names(catalogue) if _is_selected(*name, options))
    interface = interface_paths(catalogue, options.nulls, shown)
    for path, operations in interface.paths.items():
        paths[path] = {**operations, **paths.get(path, {})}
    components["schemas"] = {**components["schemas"], ERROR: ERROR_SCHEMA, **interface.schemas}
    components["securitySchemes"] = {**components["securitySchemes"], SECURITY: SECURITY_SCHEME}


PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["title", "status"],
}


def is_shown(endpoint: Endpoint, options: OpenApiOptions) -> bool:
    """Return whether the document contains the endpoint: it is published, and its method is not QUERY, which OpenAPI
    does not have."""
    return endpoint.method != "QUERY" and is_published(endpoint, options)


def is_published(endpoint: Endpoint, options: OpenApiOptions) -> bool:
    """Return whether the endpoint may be described to clients: it is neither internal nor hidden, and the filters of
    the options allow it."""
    routine, requested = endpoint.routine, endpoint.options
    if requested.internal or (requested.document or _DEFAULTS).hidden:
        return False
    if options.closed_only and endpoint.access.anonymous:
        return False
    return _is_selected(routine.schema, routine.name, options)


def _is_selected(schema: str, name: str, options: OpenApiOptions) -> bool:
    """Return whether the filters of schemas and names allow a routine or relation."""
    if (options.include and schema not in options.include) or schema in options.exclude:
        return False
    if options.similar is not None and not similar_to(options.similar).fullmatch(name):
        return False
    return options.not_similar is None or not similar_to(options.not_similar).fullmatch(name)


INVALIDATED: Schema = {
    "type": "object",
    "properties": {"invalidated": {"type": "boolean"}},
    "required": ["invalidated"],
}
"""Response of an endpoint that invalidates cached responses (caching-40)."""


ENQUEUED: Schema = {
    "type": "object",
    "properties": {"id": {"type": "string", "format": "uuid"}, "state": {"type": "string"}},
    "required": ["id", "state"],
}
"""Response of an endpoint whose call is a job."""


def _operation(endpoint: Endpoint, types: Types, taken: set[str], options: OpenApiOptions) -> dict[str, Any]:
    summary, description = _texts(endpoint)
    claims = options.claims if options.omit_automatic else None
    parameters = [*supplied_parameters(endpoint, claims), *query_parameters(endpoint)]
    requested = endpoint.options.document or _DEFAULTS
    body = _request_body(endpoint, parameters, options)
    operation: dict[str, Any] = {"summary": summary}
    if description:
        operation["description"] = description
    operation["tags"] = list(requested.tags) or [endpoint.routine.schema]
    operation["operationId"] = _operation_id(endpoint, taken)
    if listed := [
        *_path_parameters(endpoint),
        *_query_parameters(endpoint, parameters),
        *_export_parameter(endpoint, options.exports),
        *_header_parameters(endpoint),
    ]:
        operation["parameters"] = listed
    if body is not None:
        operation["requestBody"] = body
    operation["responses"] = _responses(endpoint, types, options)
    operation["security"] = _security(endpoint, options)
    if (stream := stream_path(endpoint, options.level)) is not None:
        operation["x-event-stream"] = stream
    return operation


def _either(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge the operations of two overloads, as OpenAPI has one operation for a method and path.

    The result has the parameters, members of the body, and responses of both, and the event stream of the first one
    that has a stream; all else, as texts and security requirements, is that of `first`. A parameter or member is
    required if both operations require it; parameters of the path always are.
    """
    result = {**{name: other[name] for name in ("x-event-stream",) if name in other}, **first}
    listed = [[(each["in"], each["name"]) for each in taken.get("parameters", ())] for taken in (first, other)]
    parameters = {
        key: {**each, "required": key[0] == "path" or (each["required"] and all(key in names for names in listed))}
        for taken, names in ((other, listed[1]), (first, listed[0]))
        for key, each in zip(names, taken.get("parameters", ()), strict=True)
    }
    if parameters:
        result["parameters"] = [parameters[key] for key in dict.fromkeys(listed[0] + listed[1])]
    bodies = [taken["requestBody"] for taken in (first, other) if "requestBody" in taken]
    if bodies:
        required = len(bodies) == 2 and all(each["required"] for each in bodies)
        result["requestBody"] = {"required": required, "content": _contents(*(each["content"] for each in bodies))}
    result["responses"] = {**other["responses"], **first["responses"]}
    for status, response in first["responses"].items():
        contents = [taken["responses"].get(status, {}).get("content") for taken in (first, other)]
        if all(contents):
            result["responses"][status] = {**response, "content": _contents(*contents)}
    return result


def _contents(*contents: dict[str, Any]) -> dict[str, Any]:
    """Merge `content` objects by media type.

    Two schemas of objects become one with the properties of both; other schemas that differ become `anyOf`.
    """
    result: dict[str, Any] = {}
    for media_type, described in (pair for each in contents for pair in each.items()):
        known = result.setdefault(media_type, described)
        item, other = known["schema"], described["schema"]
        if item == other:
            continue
        if "properties" in item and "properties" in other:
            both = [name for name in item.get("required", ()) if name in other.get("required", ())]
            merged = {**item, "properties": {**other["properties"], **item["properties"]}}
            merged.pop("required", None)
            merged |= {"required": both} if both else {}
        else:
            merged = {"anyOf": [*item.get("anyOf", (item,)), other]}
        result[media_type] = {**known, "schema": merged}
    return result


def _security(endpoint: Endpoint, options: OpenApiOptions) -> list[dict[str, list[str]]]:
    """Return the alternative security requirements of an endpoint, of which one suffices; empty: anonymous callers have
    access.

    If the endpoint has HTTP Basic, it is the only requirement: its user is the caller, even if the request has another
    identity (access-11).
    """
    if endpoint.access.basic is not None:
        named = [name for name, members in options.schemes if ("scheme", "basic") in members]
        return [{name: []} for name in named] or [_BASIC_ALONE]
    if endpoint.access.anonymous:
        return []
    return [{name: []} for name, _ in options.schemes] or [{"bearerAuth": []}]


def _texts(endpoint: Endpoint) -> tuple[str, str]:
    """Return summary and description: the first line of the comment's prose, and the further lines. Without prose,
    the summary is the kind and the name of the routine."""
    routine, lines = endpoint.routine, endpoint.prose
    if not lines:
        kind = "SqlFile" if routine.kind is RoutineKind.FILE else routine.kind.value.capitalize()
        return f"{kind} {routine.schema}.{routine.name}", ""
    return lines[0], "\n".join(lines[1:])


def _operation_id(endpoint: Endpoint, taken: set[str]) -> str:
    routine = endpoint.routine
    name = f"{routine.schema}_{routine.name}_{endpoint.method.lower()}"
    result, number = name, 1
    while result in taken:
        number += 1
        result = f"{name}_{number}"
    taken.add(result)
    return result


def _path(endpoint: Endpoint) -> str:
    names = _path_names(endpoint)
    return _SEGMENT.sub(lambda match: f"{{{names.get(match[1], match[1])}}}", endpoint.path)


def _rename_path_parameters(operation: dict[str, Any], path: str, template: str) -> None:
    """Give the path parameters of an operation the names in `template`, which differs from `path` only in names. A
    parameter that occurs in several places there becomes several parameters."""
    if path == template:
        return
    pairs = dict.fromkeys(zip(_SEGMENT.findall(path), _SEGMENT.findall(template), strict=True))
    described = {each["name"]: each for each in operation["parameters"] if each["in"] == "path"}
    renamed = {name: {**described[own], "name": name} for own, name in pairs}
    operation["parameters"] = [*renamed.values(), *(each for each in operation["parameters"] if each["in"] != "path")]


def _path_names(endpoint: Endpoint) -> dict[str, str]:
    """Return name of a placeholder in the path → name of its parameter in requests."""
    return {item.segment: item.api_name for item in endpoint.parameters if item.path and item.segment is not None}


def _path_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    known = {item.segment: item for item in endpoint.parameters if item.path}
    # A placeholder that occurs twice in the path is one parameter.
    for segment in dict.fromkeys(_SEGMENT.findall(endpoint.path)):
        response = known.get(segment)
        yield {
            "name": segment if response is None else response.api_name,
            "in": "path",
            "required": True,
            "schema": {"type": "string"} if response is None else query_schema(response),
            **({} if response is None else _example(endpoint, response)),
        }


def _example(endpoint: Endpoint, parameter: EndpointParameter) -> dict[str, Any]:
    text = example_text(endpoint, parameter)
    return {} if text is None else {"example": value_of(parameter, text)}


def _member(endpoint: Endpoint, parameter: EndpointParameter, options: OpenApiOptions) -> Schema:
    """Return the schema of a member of a JSON body. OpenAPI 3.0 has `example`; 3.1, like JSON Schema, has a list
    `examples`."""
    schema = with_default(body_member_schema(parameter, options.nulls), parameter)
    shown = _example(endpoint, parameter)
    if shown and not options.spec.startswith("3.0"):
        shown = {"examples": [shown["example"]]}
    return {**schema, **shown}


def _travels_in_query(endpoint: Endpoint) -> bool:
    upload = endpoint.options.upload
    return endpoint.transport is Transport.QUERY or (upload is not None and upload.enabled)


def _query_parameters(endpoint: Endpoint, parameters: Sequence[EndpointParameter]) -> Iterator[dict[str, Any]]:
    travel = _travels_in_query(endpoint)
    raw = endpoint.raw_body
    for item in parameters:
        if item.of_query or (travel and not item.path and item is not raw):
            text = item.constraints.text if item.of_query else None
            yield {
                "name": item.api_name,
                "in": "query",
                **({} if text is None else {"description": text}),
                "required": not is_optional(item),
                **_in_query(endpoint, item),
            }


def _export_parameter(endpoint: Endpoint, exports: ExportOptions | None) -> Iterator[dict[str, Any]]:
    """Yield the parameter that chooses the format of an export, unless only the header Accept does."""
    formats = exports.formats_of(endpoint) if exports is not None else ()
    if exports is not None and formats and exports.by_parameter(endpoint):
        yield {
            "name": exports.parameter,
            "in": "query",
            "description": "Format of the response, instead of JSON; it has precedence over the header Accept",
            "required": False,
            "schema": {"type": "string", "enum": [*formats, "json"]},
        }


def _header_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.version_index is not None and is_insert(endpoint):
        yield {
            "name": "If-None-Match",
            "in": "header",
            "description": "With `*`, an existing row is 412 and stays unchanged",
            "required": False,
            "schema": {"type": "string", "enum": ["*"]},
        }
    elif endpoint.version_index is not None:
        yield {
            "name": "If-Match",
            "in": "header",
            "description": "The ETag of the row as it was read; another version is 412",
            "required": True,
            "schema": {"type": "string"},
        }
    idempotency = endpoint.options.idempotency
    if idempotency is not None:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A new text, such as a UUID, for each request; a repetition with the same one gets the "
            "stored response",
            "required": idempotency.required,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }


def _in_query(endpoint: Endpoint, parameter: EndpointParameter) -> dict[str, Any]:
    """Return the members of a query parameter that describe its value: `schema` or `content`, and `example`.

    An empty value is no JSON text, so that parameters with `content` do not have `allowEmptyValue` (in OpenAPI 3.1 it
    depends on `style`, which such parameters do not have).
    """
    shown = _example(endpoint, parameter)
    if travels_as_json(parameter):
        return {
            "content": {"application/json": {"schema": with_default(parameter_schema(parameter), parameter), **shown}}
        }
    return {"allowEmptyValue": True, "schema": with_default(query_schema(parameter), parameter), **shown}


def _request_body(
    endpoint: Endpoint, parameters: Sequence[EndpointParameter], options: OpenApiOptions
) -> dict[str, Any] | None:
    raw = endpoint.raw_body
    if raw is not None:
        text = {"schema": {"type": "string"}, **_example(endpoint, raw)}
        return {"required": not is_optional(raw), "content": {"text/plain": text}}
    upload = endpoint.options.upload
    if upload is not None and upload.enabled:
        file = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
        return {"required": True, "content": {"multipart/form-data": {"schema": file}}}
    if _travels_in_query(endpoint):
        return None
    patch = endpoint.options.patch_parameter
    members = [item for item in parameters if not item.path and not item.of_query and item.db_name != patch]
    if patch is None and not members:
        return None
    schema: Schema = {
        "type": "object",
        "properties": {item.api_name: _member(endpoint, item, options) for item in members},
    }
    required = [item.api_name for item in members if not is_optional(item)]
    if required:
        schema["required"] = required
    if patch is not None:
        schema["additionalProperties"] = True
    types = ("application/json",) if patch is None else ("application/merge-patch+json", "application/json")
    # If no member is required, a request without a body counts as an empty object.
    return {"required": bool(required), "content": {name: {"schema": schema} for name in types}}


class ResponseKind(enum.Enum):
    """The kind of content of a successful response: the result of the routine, the response of a proxied service, a
    file, and others. The value is the word for it in contracts."""

    RESULT = "result"
    """The result of the routine, or that cached responses are invalidated."""
    PROXY = "proxy"
    """The response of another service."""
    SIGN_IN = "sign-in"
    SIGN_OUT = "sign-out"
    FILE = "file"
    MAIL = "mail"
    """Nothing: the result is sent as mail."""
    TOKENS = "tokens"
    """The rows of the result, each with a one-time token."""
    JOB = "job"
    """The id of a job, which calls the routine later."""


def response_kind(endpoint: Endpoint) -> ResponseKind:
    """Return what a successful response of the endpoint contains."""
    requested = endpoint.options
    if requested.invalidates:
        return ResponseKind.RESULT
    kinds = (
        (endpoint.passes_through or requested.proxy_out is not None, ResponseKind.PROXY),
        (requested.login, ResponseKind.SIGN_IN),
        (requested.logout, ResponseKind.SIGN_OUT),
        (requested.download is not None, ResponseKind.FILE),
        (requested.mail is not None, ResponseKind.MAIL),
        (requested.issued_token is not None, ResponseKind.TOKENS),
        (requested.job is not None, ResponseKind.JOB),
    )
    return next((kind for applies, kind in kinds if applies), ResponseKind.RESULT)


def answer_of(
    endpoint: Endpoint, types: Types, *, camel: bool, nulls: Nulls = Nulls.OMITTED
) -> tuple[str, Schema | None] | None:
    """Return content type and schema of the body in which the result of an endpoint's routine is sent; for an endpoint
    that invalidates cached responses, of the body that reports the invalidation. None: there is no body.

    The `response_kind` of the endpoint is ignored. camel: keys of composites are in camel case. nulls: how null is
    described.
    """
    requested = endpoint.options
    if requested.invalidates:
        return "application/json", INVALIDATED
    if requested.void or requested.logout or endpoint.shape.path is ResultPath.VOID:
        return None
    content_type = requested.content_type or endpoint.shape.content_type
    if not content_type.startswith("application/json") or requested.raw:
        return content_type, {"type": "string"}
    return content_type, result_schema(endpoint, types, camel=camel, nulls=nulls)


def _empty_description(status: int) -> str:
    return "No content" if status == 204 else "Successful response without a body"


def _responses(endpoint: Endpoint, types: Types, options: OpenApiOptions) -> dict[str, Any]:
    problem = {
        "description": "Problem",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    match response_kind(endpoint):
        case ResponseKind.PROXY:
            return {"200": {"description": "What the other service answers"}, "default": problem}
        case (ResponseKind.SIGN_IN | ResponseKind.SIGN_OUT) as kind:
            # The body depends on the authentication scheme: a text of the routine, or tokens.
            text = "Signed in" if kind is ResponseKind.SIGN_IN else "Signed out"
            return {"200": {"description": text}, "default": problem}
        case ResponseKind.FILE:
            file = {"*/*": {"schema": FILE}}
            return {
                "200": {"description": "The file", "content": file},
                "206": {"description": "A part of the file, if the request has a Range", "content": file},
                "304": {"description": "The file has not changed"},
                "default": problem,
            }
        case ResponseKind.MAIL:
            return {"202": {"description": "Accepted; mail is sent if there is any"}, "default": problem}
        case ResponseKind.TOKENS:
            rows = {"description": "The rows, each with a token", "content": {"application/json": {"schema": {}}}}
            return {str(endpoint.success_status): rows, "default": problem}
        case ResponseKind.JOB:
            enqueued = {
                "description": "Enqueued",
                "headers": {"Location": {"description": "Address of the job", "schema": _TEXT}},
                "content": {"application/json": {"schema": ENQUEUED}},
            }
            return {"202": enqueued, "default": problem}
    answer = answer_of(endpoint, types, camel=options.camel, nulls=options.nulls)
    if answer is None:
        status = endpoint.success_status
        return {str(status): {"description": _empty_description(status)}, "default": problem}
    tables = media_types(endpoint, options.tables)
    content = {} if tables and has_fixed_format(endpoint) else {answer[0]: {"schema": answer[1]}}
    exports = options.exports.media_types(endpoint) if options.exports is not None else ()
    binary = (EXCEL, PARQUET)
    content |= {name: {"schema": FILE if name in binary else _TEXT} for name in (*tables, *exports)}
    ok = {"description": "Successful response", "content": content}
    # Not `success_status`: there may be a body although the routine returns nothing (proxies, invalidation).
    responses: dict[str, Any] = {str(endpoint.options.success_status or 200): ok}
    if endpoint.skips_null_calls:
        responses["204"] = {"description": "No content"}
    return {**responses, "default": problem}
