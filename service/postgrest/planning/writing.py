"""Writes of relations: POST, PATCH, PUT and DELETE.

Source: PostgREST's documentation, Tables and Views.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from urllib.parse import quote

import orjson

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.negotiation import Negotiated, Shape, negotiate
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.plan import Plan, find_relation, read_plan
from rowcall.core.postgrest.request.payload import JSON, Payload, media_type_of, parse_payload
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.request.shapes import LONGEST, PAYLOAD_MARK, Template, marks, uses_each_mark
from rowcall.core.postgrest.request.tree import LogicNode, Query
from rowcall.core.postgrest.schema import Relation, Schema
from rowcall.core.postgrest.sql.output import NO_BODY, Statement
from rowcall.core.postgrest.sql.writes import (
    Conflict,
    Returning,
    delete_statement,
    insert_statement,
    update_statement,
    written_columns,
)
from rowcall.ext.binding.query_shape import shape_of
from rowcall.service.postgrest.planning.calling import check_rows
from rowcall.service.postgrest.planning.many_rows import ManyRows
from rowcall.service.postgrest.planning.plan_cache import PlanCache
from rowcall.service.postgrest.planning.reading import is_plain
from rowcall.service.postgrest.planning.work import Headers, Response, RunOptions, Work, explain_instead
from rowcall.service.postgrest.request import ApiRequest, relation_path
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result
from rowcall.service.request_context.header_values import decode_header

MOST_SHAPES = 1000
"""Maximum number of shapes of writes that a worker keeps."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A planned write, without its values and the text of its body. path: of the relation, percent-encoded.
    represented: its response contains the rows. conflict: as `_conflict` returns it.
    """

    path: str
    plan: Plan
    negotiated: Negotiated
    represented: bool
    conflict: Conflict | None
    template: Template
    options: RunOptions
    headers: Headers
    """Of the response, as far as they do not depend on its result."""


class WritePlanner:
    """Plans writes of relations with one schema snapshot, each shape once."""

    def __init__(self, schema: Schema, options: PostgRestOptions, responder: Responder) -> None:
        self._schema = schema
        self._options = options
        self._responder = responder
        self._many_rows = ManyRows(schema)
        self._shapes: PlanCache[_Write] = PlanCache(MOST_SHAPES)

    def plan(self, request: ApiRequest, body: bytes) -> Work:
        """Return the work of a write. Raises `ApiError`."""
        raw = request.query
        shape = shape_of(raw)
        if shape is None or request.method == "POST":
            shape = raw, ()
        parse = _known_write_query if len(raw) <= LONGEST else _parse_write_query
        query = parse(request.method, shape[0])
        payload = None if request.method == "DELETE" else self._payload(request, query, body)
        # Only inserts have arrays, and the shape of an insert has no values.
        values = shape[1] if payload is None or payload.arrays is None else payload.arrays
        # A NUL in the query string could be taken for a mark.
        write = None if "%00" in raw else self._write(request, shape[0], query, payload, len(values))
        if write is None:
            write = self._plan_write(request, parse(request.method, raw), payload)
            return self._work(request, write, write.template.statement)
        statement = write.template.fill(values, None if payload is None else payload.text)
        return self._work(request, write, statement)

    def _payload(self, request: ApiRequest, query: Query, body: bytes) -> Payload:
        """Parse the body of a write. Except for PUT, the parameter `columns` selects its keys. Raises `ApiError`."""
        columns = None if request.method == "PUT" else query.columns
        content_type = decode_header(request.scope.headers, "content-type")
        if request.method == "POST" and media_type_of(content_type) == JSON:
            # With defaults, PostgreSQL adds them to the JSON, in which it also changes numbers.
            defaults = request.preferences.missing == "default"
            payload = None if defaults else self._many_rows.read((request.schema, request.name), body, columns)
            if payload is not None:
                return payload
        return parse_payload(body, content_type, columns)

    def _write(
        self, request: ApiRequest, shape: str, query: Query, payload: Payload | None, count: int
    ) -> _Write | None:
        """Return the write of a shape (a query string with marks in place of values); None if it has to be planned with
        its values, for example to report an error. query: parsed from the shape. payload: None: DELETE. count: number
        of the values in the query string, or of the arrays.
        """
        form = None
        if payload is not None:
            arrays = None if payload.arrays is None else marks(count)
            form = payload._replace(text=PAYLOAD_MARK, rows=min(payload.rows, 1), fields=(), arrays=arrays)
        key = (request.schema, request.name, request.method, request.profile, request.negotiation, shape, form)
        write = self._shapes.get(key)
        if write is not None:
            return write
        try:
            write = self._plan_write(request, query, form)
        except ApiError:
            return None
        if not uses_each_mark(write.template.statement, count):
            return None
        self._shapes.remember(request, key, write, write.template.statement)
        return write

    def _plan_write(self, request: ApiRequest, query: Query, payload: Payload | None) -> _Write:
        """Plan a write with the values of this query and payload (None: DELETE). Raises `ApiError`."""
        schema, options = self._schema, self._options
        method, preferences = request.method, request.preferences
        relation = find_relation(schema, (request.schema, request.name))
        plan = read_plan(
            schema,
            (relation.schema, relation.name),
            replace(query, ranges=()),  # `limit` and `offset` apply to no level of a write
            aggregates=options.aggregates,
            legacy_names=options.legacy_target_names,
        )
        key = _key(relation, query) if method == "PUT" else ()
        if payload is not None:
            written_columns(relation, payload)  # Unknown keys are reported before preferences and media types.
        preferences.check()
        shape = Shape((relation.schema, relation.name))
        negotiated = negotiate(request.accept, schema, shape, plans=options.plans, plain_select=is_plain(query))
        represented = preferences.returning == "representation"
        returning = Returning(
            plan,
            negotiated.output if represented else NO_BODY,
            represented,
            method == "POST" and preferences.returning == "headers-only" and bool(relation.key),
        )
        conflict = _conflict(request, relation, query)
        statement = _statement(schema, request, relation, query, payload, returning, conflict, key)
        check = _check_put if method == "PUT" else _check(request, negotiated)
        run_options = RunOptions(read_only=False, check=check)
        headers = self._responder.planned_headers(
            request, negotiated if represented else None, renamed=plan.renamed, resolution=conflict is not None
        )
        path = relation_path(options, relation.name)
        return _Write(path, plan, negotiated, represented, conflict, Template(statement), run_options, headers)

    def _work(self, request: ApiRequest, write: _Write, statement: Statement) -> Work:
        """Return the work of a write. statement: that of the write, with the values of this request."""
        respond = partial(_respond, request, write, self._responder)
        return explain_instead(Work(statement, respond, write.options), write.negotiated, request.profile_headers)


def _parse_write_query(method: str, raw: str) -> Query:
    """Parse the query string of a write. method: of the request. Raises `ApiError` (`PGRST100`, `103`; for PUT with a
    range `114`).
    """
    query = parse_query(raw)
    if method == "PUT" and query.has_ranges:
        raise errors.put_range()
    return query


_known_write_query = lru_cache(maxsize=512)(_parse_write_query)


def _key(relation: Relation, query: Query) -> tuple[tuple[str, str], ...]:
    """Return names and values of the key in the filters of a PUT, in which a name may be repeated. Raises `ApiError`
    (`PGRST105`)."""
    values: list[tuple[str, str]] = []
    for path, condition in query.filters:
        operation = condition.operation
        plain = operation.operator == "eq" and not operation.negated and operation.quantifier is None
        if path or condition.field.path or not plain or not isinstance(operation.value, str):
            raise errors.put_filters()
        values.append((condition.field.name, operation.value))
    if not relation.key or query.logic or set(query.filter_keys) != set(relation.key):
        raise errors.put_filters()
    return tuple(values)


def _conflict(request: ApiRequest, relation: Relation, query: Query) -> Conflict | None:
    """Return the target of an upsert, and whether rows are merged; None: the write is no upsert."""
    if request.method == "PUT":
        return Conflict(relation.key, merge=True)
    resolution = request.preferences.resolution
    target = query.on_conflict or relation.key
    if request.method != "POST" or resolution is None or not target:
        return None
    return Conflict(target, merge=resolution == "merge-duplicates")


def _statement(
    schema: Schema,
    request: ApiRequest,
    relation: Relation,
    query: Query,
    payload: Payload | None,
    returning: Returning,
    conflict: Conflict | None,
    key: tuple[tuple[str, str], ...],
) -> Statement:
    """Return the statement of a write. payload: None: DELETE. key: as `_key` returns it; empty except for PUT."""
    filters: list[LogicNode] = [condition for path, condition in query.filters if not path]
    filters += [group for path, group in query.logic if not path]
    defaults = request.preferences.missing == "default" and request.method != "PUT"
    if payload is None:
        return delete_statement(schema, relation, filters, returning)
    if request.method == "PATCH":
        return update_statement(schema, relation, payload, filters, returning, defaults=defaults)
    return insert_statement(schema, relation, payload, returning, conflict=conflict, defaults=defaults, key=key)


def _check(request: ApiRequest, negotiated: Negotiated) -> partial[None] | None:
    """Return the check of a result, which raises `ApiError` if the transaction has to be rolled back; None: it always
    commits."""
    preferences = request.preferences
    limited = preferences.strict and request.method in ("PATCH", "DELETE")
    most = preferences.max_affected if limited else None
    return partial(check_rows, negotiated.singular, most) if negotiated.singular or most is not None else None


def _check_put(result: Result) -> None:
    """Raise `ApiError` unless a PUT has written exactly one row."""
    if result.rows != 1:
        raise errors.put_mismatch()


def _respond(request: ApiRequest, write: _Write, responder: Responder, result: Result) -> Response:
    """Return the response of a write from its result. Raises `ApiError` (`PGRST111`, `112`)."""
    headers: Headers = []
    if result.keys is not None:
        headers.append(("location", location(write.path, result.keys)))
    if request.method != "PUT":
        headers.append(("content-range", _content_range(request, result)))
    status = _status(request.method, write.represented, write.conflict, result)
    return responder.success(status, headers + write.headers, result, write.negotiated if write.represented else None)


def _status(method: str, represented: bool, conflict: Conflict | None, result: Result) -> int:
    """Return the status of a write that succeeded. represented: its response contains the rows. conflict: as
    `_conflict` returns it.
    """
    inserts = method == "POST" or (method == "PUT" and represented)
    if inserts:
        return 200 if conflict is not None and conflict.merge and not result.inserted else 201
    return 200 if represented else 204


def _content_range(request: ApiRequest, result: Result) -> str:
    """Return the value of `Content-Range`: the affected rows for PATCH, else `*`; then their number, if it is
    requested, else `*`.
    """
    counted = request.preferences.count in ("exact", "estimated")
    total = str(result.rows) if counted else "*"
    rows = f"0-{result.rows - 1}" if request.method == "PATCH" and result.rows else "*"
    return f"{rows}/{total}"


def location(path: str, keys: str) -> str:
    """Return the relative URL of a row, with its key as filters. path: of the relation, percent-encoded. keys: JSON
    array of pairs of a column name and its value as text; null is the filter `is.null`.
    """
    parts = (
        f"{quote(column, '')}={'is.null' if value is None else 'eq.' + quote(value, '')}"
        for column, value in orjson.loads(keys)
    )
    return f"{path}?{'&'.join(parts)}"
