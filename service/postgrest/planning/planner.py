"""A request → work: the statement and how its result becomes the response."""

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
from rowcall.service.postgrest.planning.calling import CallPlanner
from rowcall.service.postgrest.planning.documents import Documents
from rowcall.service.postgrest.planning.reading import ReadPlanner
from rowcall.service.postgrest.planning.work import Response, RunOptions, Work
from rowcall.service.postgrest.planning.writing import WritePlanner
from rowcall.service.postgrest.request import FUNCTION, RELATION, ApiRequest
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result


class Planner:
    """Plans requests with one schema snapshot."""

    def __init__(self, schema: Schema, options: PostgRestOptions, responder: Responder) -> None:
        self._schema = schema
        self._options = options
        self._responder = responder
        self._reads = ReadPlanner(schema, options, responder)
        self._documents = Documents(schema, options)
        self._calls = CallPlanner(schema, options, responder)
        self._writes = WritePlanner(schema, options, responder)

    def plan(self, request: ApiRequest, body: bytes) -> Work | Response:
        """Return the work of a request, or its response if it needs no database. Raises `ApiError`."""
        if request.method == "OPTIONS":
            return _options_response(self._schema, request)
        resource = request.resource
        if resource is RELATION:
            return self._reads.plan(request) if request.reads else self._writes.plan(request, body)
        if resource is FUNCTION:
            return self._calls.plan(request, body)
        return _plan_root(self._documents, self._options, request)


_TYPE = f"{OPENAPI}; charset=utf-8"


def _options_response(schema: Schema, request: ApiRequest) -> Response:
    """Return the response to OPTIONS. Raises `ApiError` for an unknown relation or function."""
    if request.resource is RELATION:
        methods = relation_methods(find_relation(schema, (request.schema, request.name)))
    elif request.resource is FUNCTION:
        methods = function_methods(choose_function(schema, (request.schema, request.name), (), None))
    else:
        methods = ROOT_METHODS
    return Response(200, [("allow", methods), ANY_ORIGIN, VARY], b"")


def _plan_root(documents: Documents, options: PostgRestOptions, request: ApiRequest) -> Work | Response:
    """Return the work that describes the schema. Raises `ApiError` (`PGRST107`) if the client accepts neither OpenAPI
    nor JSON.
    """
    if not any(media.name in (OPENAPI, JSON, ANY) for media in request.accept):
        raise errors.no_media_type(media.shown for media in request.accept)
    statement = privileges_statement(request.schema, all_visible=options.openapi_mode == "ignore-privileges")
    return Work(statement, partial(_respond, documents, request), RunOptions(read_only=True, raw=True))


async def _respond(documents: Documents, request: ApiRequest, result: Result) -> Response:
    """Return the response with the description of the schema. result: the privileges of the role."""
    host = request.scope.headers.get("host") or "localhost"
    body = await documents.document(request.schema, host, result.body)
    return Response(200, [("content-type", _TYPE), *request.profile_headers, VARY], body)
