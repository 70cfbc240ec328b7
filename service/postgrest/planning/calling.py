"""Calls of functions: `/rpc/…`.

Source: PostgREST's documentation, Functions as RPC.
"""

from __future__ import annotations

from functools import partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.functions import choose_function
from rowcall.core.postgrest.negotiation import Negotiated, Shape, negotiate
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import Plan, read_plan
from rowcall.core.postgrest.request import ranges
from rowcall.core.postgrest.request.payload import Payload, parse_payload
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.request.tree import Query
from rowcall.core.postgrest.schema import Function, Schema
from rowcall.core.postgrest.sql.calls import call_statement, is_scalar
from rowcall.core.postgrest.sql.output import NO_BODY
from rowcall.service.postgrest.planning.reading import is_plain, with_top_range
from rowcall.service.postgrest.planning.work import Response, Work, explained
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result

ISOLATION = "default_transaction_isolation"


def plan_call(
    schema: Schema, options: PostgRestOptions, request: ApiRequest, body: bytes, responder: Responder
) -> Work:
    """Return the work of a call. Raises `ApiError`."""
    query = with_top_range(parse_query(request.query, function_arguments=request.reads), request)
    payload = None if request.reads else _payload(request, query, body)
    names = [name for name, _ in query.arguments] if payload is None else payload.keys
    function = choose_function(schema, (request.schema, request.name), names, payload)
    plan = _plan(schema, options, function, query)
    negotiated = negotiate(request.accept, schema, _shape(function), plans=options.plans, plain_select=is_plain(query))
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
    work = Work(
        statement,
        partial(_respond, request, function, plan, negotiated, responder),
        read_only=request.reads or function.volatility != "v",
        check=check,
        hoisted=settings,
        isolation=next((value for name, value in settings if name == ISOLATION), None),
        repeatable=function.volatility != "v",
    )
    return explained(work, negotiated)


def _payload(request: ApiRequest, query: Query, body: bytes) -> Payload:
    return parse_payload(body, request.scope.headers.get("content-type"), query.columns, function=True)


def _plan(schema: Schema, options: PostgRestOptions, function: Function, query: Query) -> Plan:
    return read_plan(
        schema,
        function.relation or (function.schema, function.name),
        query,
        aggregates=options.aggregates,
        legacy_names=options.legacy_target_names,
        max_rows=options.max_rows,
        name=function.name,
    )


def _shape(function: Function) -> Shape:
    return Shape(
        function.relation or (function.schema, function.name),
        scalar=is_scalar(function),
        single=not function.returns_set,
        media_type=function.media_type,
        binary=function.binary,
    )


def _check(request: ApiRequest, function: Function, negotiated: Negotiated) -> partial[None] | None:
    """Return the check that decides whether the transaction commits. Raises `ApiError` (`PGRST128`)."""
    most = request.preferences.max_affected if request.preferences.strict else None
    if most is not None and not function.returns_set:
        raise errors.max_affected_single()
    singular = negotiated.singular and function.returns_set
    return partial(check_rows, singular, most) if singular or most is not None else None


def check_rows(singular: bool, most: int | None, result: Result) -> None:
    """Raise `ApiError` if a result has not exactly one row, or more rows than `most`."""
    if singular and result.rows != 1:
        raise errors.not_singular(result.rows)
    if most is not None and result.rows > most:
        raise errors.too_many_affected(result.rows)


def _respond(
    request: ApiRequest, function: Function, plan: Plan, negotiated: Negotiated, responder: Responder, result: Result
) -> Response:
    offset = plan.root.range.offset
    status = ranges.status(offset, result.rows, result.total)
    headers = [("Content-Range", ranges.content_range(offset, result.rows, result.total))]
    if status == 416:
        return responder.error_with_headers(errors.offset_beyond(offset, result.total or 0), headers)
    if function.returns_void:
        return responder.success(request, 204, headers, result)
    return responder.success(request, status, headers, result, negotiated=negotiated, renamed=plan.renamed)
