"""A request → work: the statement and how its result becomes the response."""

from __future__ import annotations

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Schema
from rowcall.service.postgrest.planning.calling import CallPlanner
from rowcall.service.postgrest.planning.describing import options_response, plan_root
from rowcall.service.postgrest.planning.documents import Documents
from rowcall.service.postgrest.planning.reading import ReadPlanner
from rowcall.service.postgrest.planning.work import Response, Work
from rowcall.service.postgrest.planning.writing import WritePlanner
from rowcall.service.postgrest.request import ApiRequest, Resource
from rowcall.service.postgrest.responding import Responder


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
            return options_response(self._schema, request)
        match request.resource:
            case Resource.ROOT if self._options.root_function is not None:
                name = self._options.root_function.rpartition(".")[2]
                called = request._replace(resource=Resource.FUNCTION, name=name)
                return self._calls.plan(called, body)
            case Resource.ROOT:
                return plan_root(self._documents, self._options, request)
            case Resource.FUNCTION:
                return self._calls.plan(request, body)
        if request.reads:
            return self._reads.plan(request)
        return self._writes.plan(request, body)
