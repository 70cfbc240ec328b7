"""A request → work: the statement and how its result becomes the response."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.allowed_methods import ROOT_METHODS, function_methods, relation_methods
from rowcall.core.postgrest.cors import ANY_ORIGIN
from rowcall.core.postgrest.functions import choose_function
from rowcall.core.postgrest.openapi import document
from rowcall.core.postgrest.openapi.privileges import privileges_statement, read_privileges
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import find_relation
from rowcall.core.postgrest.request.media_types import ANY, JSON, OPENAPI
from rowcall.core.postgrest.response_headers import VARY
from rowcall.core.postgrest.schema import Schema
from rowcall.service.postgrest.planning.calling import plan_call
from rowcall.service.postgrest.planning.reading import ReadPlanner
from rowcall.service.postgrest.planning.work import Response, Work
from rowcall.service.postgrest.planning.writing import WritePlanner
from rowcall.service.postgrest.request import ApiRequest, Resource
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result

_TYPE = f"{OPENAPI}; charset=utf-8"


class Planner:
    """Plans requests with one schema snapshot."""

    def __init__(self, schema: Schema, options: PostgRestOptions, responder: Responder) -> None:
        self._schema = schema
        self._options = options
        self._responder = responder
        self._reads = ReadPlanner(schema, options, responder)
        self._writes = WritePlanner(schema, options, responder)

    def plan(self, request: ApiRequest, body: bytes) -> Work | Response:
        """Return the work of a request, or its response if it needs no database. Raises `ApiError`."""
        if request.method == "OPTIONS":
            return options_response(self._schema, request)
        match request.resource:
            case Resource.ROOT if self._options.root_function is not None:
                name = self._options.root_function.rpartition(".")[2]
                called = replace(request, resource=Resource.FUNCTION, name=name)
                return plan_call(self._schema, self._options, called, body, self._responder)
            case Resource.ROOT:
                return plan_root(self._schema, self._options, request, self._responder)
            case Resource.FUNCTION:
                return plan_call(self._schema, self._options, request, body, self._responder)
        if request.reads:
            return self._reads.plan(request)
        return self._writes.plan(request, body)


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


def plan_root(schema: Schema, options: PostgRestOptions, request: ApiRequest, responder: Responder) -> Work | Response:
    """Return the work that describes the schema. Raises `ApiError` (`PGRST107`, `126`)."""
    if options.openapi_mode == "disabled":
        raise errors.root_disabled()
    if not any(media.name in (OPENAPI, JSON, ANY) for media in request.accept):
        raise errors.no_media_type(media.shown for media in request.accept)
    statement = privileges_statement(request.schema, all_visible=options.openapi_mode == "ignore-privileges")
    return Work(statement, partial(_respond, schema, options, request), read_only=True, raw=True)


def _respond(schema: Schema, options: PostgRestOptions, request: ApiRequest, result: Result) -> Response:
    host = request.scope.headers.get("host") or "localhost"
    body = document(schema, request.schema, options, read_privileges(result.body), host)
    headers = [("Content-Type", _TYPE), VARY]
    if request.profile:
        headers.append(("Content-Profile", request.schema))
    return Response(200, headers, body)
