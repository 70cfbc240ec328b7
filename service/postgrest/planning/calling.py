"""Calls of functions: `/rpc/…`.

Source: PostgREST's documentation, Functions as RPC.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.functions import choose_function
from rowcall.core.postgrest.negotiation import Negotiated, Shape, negotiate
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import Plan, read_plan
from rowcall.core.postgrest.request import ranges
from rowcall.core.postgrest.request.payload import Payload, PayloadKind, parse_payload
from rowcall.core.postgrest.request.query_string import is_operation, parse_query
from rowcall.core.postgrest.request.shapes import LONGEST, PAYLOAD_MARK, Template, marks, uses_each_mark
from rowcall.core.postgrest.request.tree import Query
from rowcall.core.postgrest.schema import Function, Schema
from rowcall.core.postgrest.sql.calls import call_statement, is_scalar
from rowcall.core.postgrest.sql.output import NO_BODY, Statement
from rowcall.ext.binding.query_shape import shape_of
from rowcall.service.postgrest.planning.plan_cache import PlanCache
from rowcall.service.postgrest.planning.reading import is_plain, with_top_range
from rowcall.service.postgrest.planning.work import Headers, Response, RunOptions, Work, explain_instead
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result
from rowcall.service.request_context.header_values import decode_header

ISOLATION = "default_transaction_isolation"
_FORM = PayloadKind.FORM
MOST_SHAPES = 1000
"""Maximum number of planned calls that a worker keeps."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A planned call, without its values and the text of its body."""

    function: Function
    plan: Plan
    negotiated: Negotiated
    template: Template
    options: RunOptions
    headers: Headers
    """Of the response, as far as they do not depend on its result."""


class CallPlanner:
    """Plans calls with one schema snapshot. Calls with the same names of arguments are planned once."""

    def __init__(self, schema: Schema, options: PostgRestOptions, responder: Responder) -> None:
        self._schema = schema
        self._options = options
        self._responder = responder
        self._calls: PlanCache[_Call] = PlanCache(MOST_SHAPES)

    def plan(self, request: ApiRequest, body: bytes) -> Work:
        """Return the work of a call. Raises `ApiError`."""
        raw = request.query
        if request.reads:
            return self._plan_read(request, raw)
        query = _known_query(raw) if len(raw) <= LONGEST else parse_query(raw)
        payload = parse_payload(
            body, decode_header(request.scope.headers, "content-type"), query.columns, function=True
        )
        known = None if payload.kind is _FORM or "%00" in raw else self._cached_call(request, raw, query, payload)
        if known is None:
            call = self._plan_call(request, query, payload)
            return self._work(request, call, call.template.statement)
        return self._work(request, known, known.template.fill(payload.texts or (), payload.text))

    def _plan_read(self, request: ApiRequest, raw: str) -> Work:
        """Return the work of a call by GET or HEAD, whose arguments are in the query string. Raises `ApiError`."""
        shape = shape_of(raw, is_operation)
        call = None if shape is None else self._call_of_shape(request, shape[0], len(shape[1]))
        if shape is None or call is None:
            query = with_top_range(parse_query(raw, function_arguments=True), request)
            call = self._plan_call(request, query, None)
            return self._work(request, call, call.template.statement)
        return self._work(request, call, call.template.fill(shape[1]))

    def _call_of_shape(self, request: ApiRequest, shape: str, count: int) -> _Call | None:
        """Return the call of a shape (a query string with marks in place of values); None if it has to be planned with
        its values. count: number of the values.
        """
        header = decode_header(request.scope.headers, "range") if request.method == "GET" else None
        key = (request.schema, request.name, request.method, request.profile, request.negotiation, header, shape)
        call = self._calls.get(key)
        if call is not None:
            return call
        try:
            query = with_top_range(parse_query(shape, function_arguments=True), request)
            call = self._plan_call(request, query, None)
        except ApiError:
            return None
        if not uses_each_mark(call.template.statement, count):
            return None
        self._calls.remember(request, key, call, call.template.statement)
        return call

    def _cached_call(self, request: ApiRequest, raw: str, query: Query, payload: Payload) -> _Call | None:
        """Return the call with a mark in the place of the body, planned once for equal query strings and keys of
        bodies; None if it has to be planned with its body, for example to report an error. raw: the query string, of
        which `query` was parsed.
        """
        texts = payload.texts
        form = (payload.kind, payload.keys, payload.is_array, payload.raw_type, texts is None)
        key = (request.schema, request.name, request.profile, request.negotiation, raw, form)
        call = self._calls.get(key)
        if call is not None:
            return call
        try:
            marked = payload._replace(text=PAYLOAD_MARK, texts=None if texts is None else marks(len(texts)))
            call = self._plan_call(request, query, marked)
        except ApiError:
            return None
        self._calls.remember(request, key, call, call.template.statement, payload.keys)
        return call

    def _plan_call(self, request: ApiRequest, query: Query, payload: Payload | None) -> _Call:
        """Plan a call with the values of this query and payload (None: a call by GET or HEAD). Raises `ApiError`."""
        schema, options = self._schema, self._options
        names = [name for name, _ in query.arguments] if payload is None else payload.keys
        function = choose_function(schema, (request.schema, request.name), names, payload)
        plan = _plan(schema, options, function, query)
        negotiated = negotiate(
            request.accept, schema, _shape(function), plans=options.plans, plain_select=is_plain(query)
        )
        request.preferences.check()
        check = _check(request, function, negotiated)
        statement = call_statement(
            schema,
            function,
            plan,
            query.arguments,
            payload,
            output=NO_BODY if request.method == "HEAD" or function.returns_void else negotiated.output,
            count=request.preferences.count in ("exact", "estimated"),
        )
        settings = tuple(item for item in function.settings if item[0] in options.hoisted_settings)
        run_options = RunOptions(
            read_only=request.reads or function.volatility != "v",
            check=check,
            hoisted=settings,
            isolation=next((value for name, value in settings if name == ISOLATION), None),
            repeatable=function.volatility != "v",
        )
        headers = self._responder.planned_headers(
            request,
            None if function.returns_void else negotiated,
            renamed=() if function.returns_void else plan.renamed,
        )
        return _Call(function, plan, negotiated, Template(statement), run_options, headers)

    def _work(self, request: ApiRequest, call: _Call, statement: Statement) -> Work:
        """Return the work of a call. statement: that of the call, with the values of this request."""
        work = Work(statement, partial(_respond, call, self._responder), call.options)
        return work if call.negotiated.plan is None else explain_instead(work, call.negotiated, request.profile_headers)


@lru_cache(maxsize=512)
def _known_query(raw: str) -> Query:
    """Parse the query string of a call by POST, and remember the result. Raises `ApiError` (`PGRST100`, `103`)."""
    return parse_query(raw)


def _plan(schema: Schema, options: PostgRestOptions, function: Function, query: Query) -> Plan:
    return read_plan(
        schema,
        function.result,
        query,
        aggregates=options.aggregates,
        legacy_names=options.legacy_target_names,
        max_rows=options.max_rows,
    )


def _shape(function: Function) -> Shape:
    """Return the shape of the function's result, by which its media type is chosen."""
    return Shape(
        function.result,
        scalar=is_scalar(function),
        single=not function.returns_set,
        media_type=function.media_type,
        binary=function.binary,
    )


def _check(request: ApiRequest, function: Function, negotiated: Negotiated) -> partial[None] | None:
    """Return the check of a result, which raises `ApiError` if the transaction has to be rolled back; None: it always
    commits. Raises `ApiError` (`PGRST128`) if `max-affected` is requested for a function that returns no set."""
    most = request.preferences.max_affected if request.preferences.strict else None
    if most is not None and not function.returns_set:
        raise errors.max_affected_single()
    singular = negotiated.singular and function.returns_set
    return partial(check_rows, singular, most) if singular or most is not None else None


def check_rows(singular: bool, most: int | None, result: Result) -> None:
    """Raise `ApiError` if a result has more than `most` rows (None: no limit), or, if `singular`, not exactly one."""
    if singular and result.rows != 1:
        raise errors.not_singular(result.rows)
    if most is not None and result.rows > most:
        raise errors.too_many_affected(result.rows)


def _respond(call: _Call, responder: Responder, result: Result) -> Response:
    """Return the response of a call from its result. Raises `ApiError` (`PGRST111`, `112`)."""
    offset = call.plan.root.range.offset
    status = ranges.status(offset, result.rows, result.total)
    headers = [("content-range", ranges.content_range(offset, result.rows, result.total)), *call.headers]
    if status == 416:
        return responder.beyond_range(offset, headers, result, call.negotiated)
    if call.function.returns_void:
        return responder.success(204, headers, result, None)
    return responder.success(status, headers, result, call.negotiated)
