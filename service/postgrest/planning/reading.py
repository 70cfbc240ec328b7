"""Reads of relations: GET and HEAD (reference 09)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.negotiation import Negotiated, Shape, negotiate
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import Plan, find_relation, read_plan
from rowcall.core.postgrest.request import ranges
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.request.tree import Field, Query, SelectColumn
from rowcall.core.postgrest.schema import Schema
from rowcall.core.postgrest.sql.output import NO_BODY
from rowcall.core.postgrest.sql.reads import estimate_statement, read_statement
from rowcall.service.postgrest.planning.work import Response, Work, explained
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.responding import Responder, content_location
from rowcall.service.postgrest.result import Result


def plan_read(schema: Schema, options: PostgRestOptions, request: ApiRequest, responder: Responder) -> Work:
    """Return the work of a read. Raises `ApiError`."""
    query = with_top_range(parse_query(request.query), request)
    relation = find_relation(schema, (request.schema, request.name))
    plan = read_plan(
        schema,
        (relation.schema, relation.name),
        query,
        aggregates=options.aggregates,
        legacy_names=options.legacy_target_names,
        max_rows=options.max_rows,
    )
    negotiated = negotiate(
        request.accept,
        schema,
        Shape((relation.schema, relation.name)),
        plans=options.plans,
        plain_select=is_plain(query),
    )
    request.preferences.check()
    counting = Counting(request.preferences.count, options.max_rows)
    statement = read_statement(
        schema,
        plan,
        output=NO_BODY if request.method == "HEAD" else negotiated.output,
        count=counting.exact,
        count_limit=counting.limit,
    )
    respond = partial(_respond, request, query, plan, negotiated, responder, counting)
    estimate = estimate_statement(schema, plan) if counting.estimated and negotiated.plan is None else None
    return explained(Work(statement, respond, read_only=True, estimate=estimate), negotiated)


class Counting:
    """How a total is found. exact: by a count in the statement, of at most `limit` + 1 rows. estimated: also by the
    planner."""

    __slots__ = ("estimated", "exact", "limit")

    def __init__(self, preference: str | None, max_rows: int | None) -> None:
        self.exact = preference in ("exact", "estimated")
        self.estimated = preference in ("planned", "estimated")
        self.limit = max_rows if preference == "estimated" else None

    def total(self, result: Result) -> int | None:
        """Return the total of a result; None if it is not counted."""
        if result.estimate is None:
            return result.total
        if result.total is None:
            return result.estimate
        # A count below its limit is exact.
        return (
            result.total
            if self.limit is not None and result.total <= self.limit
            else max(result.total, result.estimate)
        )


def with_top_range(query: Query, request: ApiRequest) -> Query:
    """Return the query with the range of the header `Range`, which counts for GET only."""
    header = request.scope.headers.get("range") if request.method == "GET" else None
    if header is None:
        return query
    others = tuple(item for item in query.ranges if item[0])
    rows = next((rows for path, rows in query.ranges if not path), None)
    return replace(query, ranges=(*others, ((), ranges.top_level(rows, header))))


def is_plain(query: Query) -> bool:
    """Whether all columns are selected and nothing else."""
    return query.select == (SelectColumn(Field("*")),)


def _respond(
    request: ApiRequest,
    query: Query,
    plan: Plan,
    negotiated: Negotiated,
    responder: Responder,
    counting: Counting,
    result: Result,
) -> Response:
    offset, total = plan.root.range.offset, counting.total(result)
    status = ranges.status(offset, result.rows, total)
    if negotiated.singular and result.rows != 1:
        raise errors.not_singular(result.rows)
    headers = [
        ("Content-Range", ranges.content_range(offset, result.rows, total)),
        ("Content-Location", content_location(f"/{request.name}", query)),
    ]
    if status == 416:
        error: ApiError = errors.offset_beyond(offset, total or 0)
        return responder.error_with_headers(error, headers)
    return responder.success(request, status, headers, result, negotiated=negotiated, renamed=plan.renamed)
