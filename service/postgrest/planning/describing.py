"""Answers without rows of a relation: OPTIONS and the root path."""

from __future__ import annotations

from functools import partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.allowed_methods import ROOT_METHODS, function_methods, relation_methods
from rowcall.core.postgrest.cors import ANY_ORIGIN
from rowcall.core.postgrest.functions import choose_function
from rowcall.core.postgrest.openapi.privileges import privileges_statement
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import find_relation
from rowcall.core.postgrest.request.media_types import ANY, JSON, OPENAPI
from rowcall.core.postgrest.response_headers import VARY
from rowcall.core.postgrest.schema import Schema
from rowcall.service.postgrest.planning.documents import Documents
from rowcall.service.postgrest.planning.work import Response, Work
from rowcall.service.postgrest.request import ApiRequest, Resource
from rowcall.service.postgrest.result import Result

_TYPE = f"{OPENAPI}; charset=utf-8"


def options_response(schema: Schema, request: ApiRequest) -> Response:
    """Return the response to OPTIONS. Raises `ApiError` for an unknown relation or function."""
    match request.resource:
        case Resource.ROOT:
            methods = ROOT_METHODS
        case Resource.RELATION:
            methods = relation_methods(find_relation(schema, (request.schema, request.name)))
        case Resource.FUNCTION:
            methods = function_methods(choose_function(schema, (request.schema, request.name), (), None))
    return Response(200, [("Allow", methods), ANY_ORIGIN, VARY], b"")


def plan_root(documents: Documents, options: PostgRestOptions, request: ApiRequest) -> Work | Response:
    """Return the work that describes the schema. Raises `ApiError` (`PGRST107`)."""
    if not any(media.name in (OPENAPI, JSON, ANY) for media in request.accept):
        raise errors.no_media_type(media.shown for media in request.accept)
    statement = privileges_statement(request.schema, all_visible=options.openapi_mode == "ignore-privileges")
    return Work(statement, partial(_respond, documents, request), read_only=True, raw=True)


async def _respond(documents: Documents, request: ApiRequest, result: Result) -> Response:
    host = request.scope.headers.get("host") or "localhost"
    body = await documents.document(request.schema, host, result.body)
    return Response(200, [("Content-Type", _TYPE), *request.profile_headers, VARY], body)
