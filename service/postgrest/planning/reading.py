"""Reads of relations: GET and HEAD.

Source: PostgREST's documentation, Tables and Views.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.negotiation import Negotiated, Shape, negotiate
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import Plan, find_relation, read_plan
from rowcall.core.postgrest.request import ranges
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.request.shapes import Location, Template, Values, uses_each_mark
from rowcall.core.postgrest.request.tree import Field, Query, SelectColumn
from rowcall.core.postgrest.schema import Schema
from rowcall.core.postgrest.sql.output import NO_BODY
from rowcall.core.postgrest.sql.reads import estimate_statement, read_statement
from rowcall.ext.binding.query_shape import shape_of
from rowcall.service.postgrest.planning.plan_cache import PlanCache
from rowcall.service.postgrest.planning.work import Headers, Response, RunOptions, Work, explain_instead
from rowcall.service.postgrest.request import ApiRequest, relation_path
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result
from rowcall.service.request_context.header_values import decode_header

MOST_SHAPES = 2000
"""Maximum number of shapes of queries that a worker keeps."""
_RUN_OPTIONS = RunOptions(read_only=True, repeatable=True)


@dataclass(frozen=True, slots=True)
class _Read:
    """A planned read, without the values of its simple comparisons. estimate: the statement that estimates the total;
    None: none is needed. location: of the header `Content-Location`.
    """

    plan: Plan
    negotiated: Negotiated
    counting: Counting
    template: Template
    estimate: Template | None
    location: Location
    headers: Headers
    """Of the response, as far as they do not depend on its result."""


class ReadPlanner:
    """Plans reads of relations with one schema snapshot, each shape of a query once."""

    def __init__(self, schema: Schema, options: PostgRestOptions, responder: Responder) -> None:
        self._schema = schema
        self._options = options
        self._responder = responder
        self._shapes: PlanCache[_Read] = PlanCache(MOST_SHAPES)

    def plan(self, request: ApiRequest) -> Work:
        """Return the work of a read. Raises `ApiError`."""
        raw = request.query
        shape = shape_of(raw)
        read = None if shape is None else self._read_of_shape(request, shape[0], len(shape[1]))
        if shape is None or read is None:
            return self._work(request, self._plan_read(request, raw), ())
        return self._work(request, read, shape[1])

    def _read_of_shape(self, request: ApiRequest, shape: str, count: int) -> _Read | None:
        """Return the read of a shape (a query string with marks in place of values); None if it has to be planned with
        its values, for example to report an error. count: number of the values.
        """
        header = decode_header(request.scope.headers, "range") if request.method == "GET" else None
        key = (request.schema, request.name, request.method, request.profile, request.negotiation, header, shape)
        read = self._shapes.get(key)
        if read is not None:
            return read
        try:
            read = self._plan_read(request, shape)
        except ApiError:
            return None
        if not uses_each_mark(read.template.statement, count):
            return None
        self._shapes.remember(request, key, read, read.template.statement)
        return read

    def _plan_read(self, request: ApiRequest, raw: str) -> _Read:
        """Plan a read of the relation that a request names. Raises `ApiError`.

        raw: the query string; or its shape, with marks in place of the values of simple comparisons. The parameters of
        the planned statement then contain the marks, which `Template.fill` replaces by values.
        """
        schema, options = self._schema, self._options
        query = with_top_range(parse_query(raw), request)
        relation = find_relation(schema, (request.schema, request.name))
        plan = read_plan(
            schema,
            (relation.schema, relation.name),
            query,
            aggregates=options.aggregates,
            legacy_names=options.legacy_target_names,
            max_rows=options.max_rows,
        )
        shape = Shape((relation.schema, relation.name))
        negotiated = negotiate(request.accept, schema, shape, plans=options.plans, plain_select=is_plain(query))
        request.preferences.check()
        counting = Counting(request.preferences.count, options.max_rows)
        statement = read_statement(
            schema,
            plan,
            output=NO_BODY if request.method == "HEAD" else negotiated.output,
            count=counting.exact,
            count_limit=counting.limit,
        )
        estimated = counting.estimated and negotiated.plan is None
        estimate = Template(estimate_statement(schema, plan)) if estimated else None
        headers = self._responder.planned_headers(request, negotiated, renamed=plan.renamed)
        location = Location(relation_path(options, request.name), query.canonical)
        return _Read(plan, negotiated, counting, Template(statement), estimate, location, headers)

    def _work(self, request: ApiRequest, read: _Read, values: Values) -> Work:
        """Return the work of a read. values: of the marks; empty if the read was planned with its values."""
        estimate = None
        if read.estimate is not None:
            estimate = read.estimate.fill(values) if values else read.estimate.statement
        work = Work(
            read.template.fill(values) if values else read.template.statement,
            partial(_respond, read, values, self._responder),
            _RUN_OPTIONS,
            estimate,
        )
        return work if read.negotiated.plan is None else explain_instead(work, read.negotiated, request.profile_headers)


class Counting:
    """How the total number of rows is determined. exact: the statement counts them. limit: it stops counting beyond
    this number; None: it counts all. estimated: PostgreSQL's planner estimates them. With both, a count up to the limit
    is used as it is; beyond it, and without a limit, the larger of count and estimate. With neither, there is no total.
    """

    __slots__ = ("estimated", "exact", "limit")

    def __init__(self, preference: str | None, max_rows: int | None) -> None:
        """preference: `count` of the header `Prefer`. max_rows: the option `db-max-rows`."""
        self.exact = preference in ("exact", "estimated")
        self.estimated = preference in ("planned", "estimated")
        self.limit = max_rows if preference == "estimated" else None

    def total(self, result: Result) -> int | None:
        """Return the total number of rows: the count of the result, or the estimate if there is no count. None: there
        is neither. If the result has both: the count if it is not above `limit`; beyond it, and without a limit, the
        larger of both."""
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
    """Return the query with its top-level range reduced by the header `Range`. Without this header, and for other
    methods than GET, it is unchanged. Raises `ApiError` (`PGRST103`) if the header is reversed, or nothing of the range
    is left."""
    header = decode_header(request.scope.headers, "range") if request.method == "GET" else None
    if header is None:
        return query
    others = tuple(item for item in query.ranges if item[0])
    rows = next((rows for path, rows in query.ranges if not path), None)
    return replace(query, ranges=(*others, ((), ranges.top_level(rows, header))))


def is_plain(query: Query) -> bool:
    """Return whether a query selects all columns by `*`, and no further columns or embeds. Its filters, order and
    ranges do not matter."""
    return query.select == (SelectColumn(Field("*")),)


def _respond(read: _Read, values: Values, responder: Responder, result: Result) -> Response:
    """Return the response of a read from its result. values: of the marks; empty if the read was planned with its
    values. Raises `ApiError` (`PGRST111`, `112`, `116`).
    """
    offset, rows, negotiated = read.plan.root.range.offset, result.rows, read.negotiated
    total = read.counting.total(result)
    status = ranges.status(offset, rows, total)
    if negotiated.singular and rows != 1:
        raise errors.not_singular(rows)
    headers = [
        ("content-range", ranges.content_range(offset, rows, total)),
        ("content-location", read.location.fill(values)),
        *read.headers,
    ]
    if status == 416:
        return responder.beyond_range(offset, headers, result._replace(total=total), negotiated)
    return responder.success(status, headers, result, negotiated)
