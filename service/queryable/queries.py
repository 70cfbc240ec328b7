"""The step that applies the query of a request: it chooses the steps of an endpoint whose SQL contains the query.

Each text of SQL is compiled once, like an endpoint of its own, so that pools, caching and rendering know it. The shapes
of query strings are remembered, with marks in place of their values; a shape that is known is not parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.endpoint.result_shape import with_whole_composites
from rowcall.core.errors.binding_error import BindingError, quote_value
from rowcall.core.queryable.language import AFTER, BEFORE, LIMIT, OFFSET, ORDER, SELECT, Language
from rowcall.core.queryable.request import OpenCursor, ResultRequest, read_request
from rowcall.core.queryable.statement import Query
from rowcall.core.text import query_text
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import UnknownKeyError
from rowcall.service.queryable.cursors import Cursors
from rowcall.service.queryable.pages import COUNT
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

MOST_QUERIES = 128
"""Texts of SQL that a worker keeps compiled for one endpoint. The oldest one is dropped beyond."""
MOST_SHAPES = 512
"""Shapes of query strings that a worker remembers for one endpoint."""

_SIMPLE = re.compile(r"((?:not\.)?(?:eq|neq|gte|gt|lte|lt)\.)(.*)", re.DOTALL)
_WORDS = frozenset((SELECT, ORDER, LIMIT, OFFSET, AFTER, BEFORE))

Key = TypeVar("Key")
Item = TypeVar("Item")

Compile = Callable[[Endpoint], tuple[Step, ...]]
Shape = tuple[bool, tuple[tuple[str, str], ...]]
Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query over the result of an endpoint, compiled. steps: those that follow binding. mask: bits of the parameters
    that the values of the query fill.
    """

    steps: tuple[Step, ...]
    mask: int


class Queries:
    """The queries of one endpoint. bound: the steps that bind the endpoint's own parameters. compile_query: compiles
    the steps behind binding of an endpoint whose SQL contains a query.
    """

    def __init__(self, language: Language, services: Services, bound: tuple[Step, ...], compile_query: Compile) -> None:
        self._language = language
        self._bound = bound
        self._compile = compile_query
        self._keys = services.auth.keys
        self._cursors = Cursors(services.auth.keys, language)
        self._camel = services.options.camel_case
        self._positioned = language.abilities.page and not language.endpoint.options.raw
        self._queries: dict[tuple[object, ...], CompiledQuery] = {}
        self._shapes: dict[Shape, tuple[CompiledQuery | None, Values]] = {}

    def apply(self, context: RequestContext) -> Waiting:
        """Continue with the steps of the request's query, or with those of the endpoint if there is none. If the query
        has a cursor with an unknown key, the key ring is read again before. Raises `BindingError`.
        """
        try:
            self._apply(context, self._cursors.open)
        except UnknownKeyError:
            return self._apply_later(context)
        return None

    async def _apply_later(self, context: RequestContext) -> None:
        """Read the key ring again, and do the work of `apply`."""
        await self._keys.read_again()
        self._apply(context, self._cursors.open_after_reading)

    def _apply(self, context: RequestContext, open_cursor: OpenCursor) -> None:
        """Do the work of `apply`. Raises `BindingError` and the errors of `open_cursor`."""
        query_string: str = context.scope.query_string
        pages = self._language.abilities.page
        if not query_string and not pages:
            return
        counted = pages and any(COUNT in value for value in context.scope.headers.get_all("prefer"))
        shape, values = self._shape_of(query_string, counted)
        known = self._shapes.get(shape)
        if known is None:
            known = self._plan(shape, open_cursor)
        query, parameters = known
        if query is None:
            return
        arguments = [_query_value(parameter, values) for parameter in parameters]
        context.follow((*self._bound, partial(_add_values, query.mask, arguments), *query.steps))

    def _shape_of(self, query_string: str, counted: bool) -> tuple[Shape, list[str]]:
        """Return the request with marks in place of values, and the values. counted: the request asks for the number of
        all rows.
        """
        own = self._language.own
        values: list[str] = []
        shape: list[tuple[str, str]] = []
        for key, value in _pairs(self._language, query_string):
            if key in own:
                continue
            match = _SIMPLE.fullmatch(value) if key not in _WORDS else None
            if match is not None:
                shape.append((key, f"{match[1]}\0{len(values)}"))
                values.append(match[2])
            else:
                shape.append((key, value))
        return (counted, tuple(shape)), values

    def _plan(self, shape: Shape, open_cursor: OpenCursor) -> tuple[CompiledQuery | None, Values]:
        """Return the query of a new shape and its values; None: it changes nothing. The shape is remembered unless it
        has a cursor. Raises `BindingError` and the errors of `open_cursor`.
        """
        counted, pairs = shape
        request = read_request(self._language, pairs, open_cursor, counted=counted)
        query: CompiledQuery | None = None
        values: Values = ()
        if not request.changes_nothing:
            query, values = self._compile_query(request)
        if request.position is None:
            _make_room(self._shapes, MOST_SHAPES)[shape] = query, values
        return query, values

    def _compile_query(self, request: ResultRequest) -> tuple[CompiledQuery, Values]:
        """Return the compiled query and its values. A query is compiled once for equal SQL, columns and order, with or
        without a position."""
        query = Query(self._language, request, self._positioned)
        rendered = query.render()
        columns = query.shape.columns
        # Cursors contain the order, whose SQL has neither the keys of JSON paths nor what PostgreSQL assumes anyway.
        key = rendered.sql, tuple(column.key for column in columns), request.order, request.position is None
        compiled = self._queries.get(key)
        if compiled is None:
            endpoint = _with_query(self._language.endpoint, query, rendered.labels, camel=self._camel)
            own = len(self._language.endpoint.parameters)
            mask = (1 << len(endpoint.parameters)) - (1 << own)
            compiled = CompiledQuery(self._compile(endpoint), mask)
            _make_room(self._queries, MOST_QUERIES)[key] = compiled
        return compiled, rendered.values


def _make_room(items: dict[Key, Item], most: int) -> dict[Key, Item]:
    """Remove the oldest items until there is room for one more, and return the dictionary. most: allowed number of
    items.
    """
    while len(items) >= most:
        del items[next(iter(items))]
    return items


def _pairs(language: Language, query_string: str) -> Sequence[tuple[str, str]]:
    try:
        return query_text.pairs(query_string)
    except query_text.QueryTextError as error:
        raise BindingError(
            400, f"parameter {quote_value(error.key)}: the value {error.reason}", error.key[:100]
        ) from None


def _query_value(parameter: str | None, values: list[str]) -> bytes | None:
    """Return the value of a parameter of the query, in UTF-8. parameter: the text itself, or a mark in place of one of
    `values`; None: NULL, and None is returned."""
    if parameter is None:
        return None
    # A text of a request contains no NUL, so this is a mark.
    return (values[int(parameter[1:])] if parameter[:1] == "\0" else parameter).encode()


def _add_values(mask: int, values: list[bytes | None], context: RequestContext) -> None:
    """Add the values of the query behind the endpoint's own arguments. mask: bits of their parameters."""
    context.arguments.extend(values)
    context.mask |= mask


def _with_query(endpoint: Endpoint, query: Query, labels: Sequence[str], *, camel: bool) -> Endpoint:
    """Return the endpoint whose SQL contains the query. labels: of its values. camel: keys are in camel case."""
    values = tuple(
        EndpointParameter(
            db_name="",
            api_name=label,
            kind=ValueKind.TEXT,
            array=False,
            cast=_type_of(query.language, label),
            has_default=False,
            position=-1,
            of_query=True,
        )
        for label in labels
    )
    shape = query.shape
    return replace(
        endpoint,
        parameters=(*endpoint.parameters, *values),
        shape=shape,
        table_shape=None if endpoint.table_shape is None else with_whole_composites(shape, camel),
        query=query,
    )


def _type_of(language: Language, label: str) -> str:
    column = language.column(label)
    return "bigint" if column is None else column.type_name
