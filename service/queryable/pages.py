"""Responses with one page of a result: `Link` to its neighbours (RFC 8288), and the number of all rows if requested.

Links are relative to the requested URL, so that they are right behind every proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote, unquote_plus

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import header_lines, no_value
from rowcall.core.errors.problems import Problem
from rowcall.core.queryable.language import AFTER, BEFORE, OFFSET
from rowcall.core.queryable.statement import Query
from rowcall.ext.rendering.page_rows import MARK
from rowcall.service.pipeline.services import Services
from rowcall.service.queryable.cursors import Cursors
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import Headers, argument_text, fields_of

_SAFE = re.compile(r"[!#-;=?-~]*")
"""Characters that do not end the address of a link."""
_PLACES = frozenset((OFFSET, AFTER, BEFORE))
COUNT = "count=exact"
"""Preference of requests that want the number of all rows (as in PostgREST)."""


def respond_with_page(endpoint: Endpoint, query: Query, services: Services) -> Step:
    """Return the last step of a query whose result is a page. It raises `Problem` 500 if there is no result, and
    `NoKeyError` if a link needs a cursor and the key ring is empty."""
    lines = header_lines(endpoint)
    fixed = fields_of(lines.fill(no_value), endpoint.shape.content_type) if lines.is_fixed else None
    links = _Links(query, Cursors(services.auth.keys, query.language))
    status = endpoint.success_status

    def respond(context: RequestContext) -> None:
        execution = context.execution
        if execution is None or execution.body is None:
            raise Problem(500, "the routine returned nothing")
        body, more, rows, total, first, last = execution.body.rsplit(MARK, 5)
        if fixed is None:
            section = lines.fill(partial(argument_text, context))
            headers = fields_of(section, endpoint.shape.content_type)
        else:
            headers = list(fixed)
        page = _Page(query, context.scope.query_string, bool(more), int(rows), total, first, last)
        link = links.of(page)
        if link:
            headers.append(("link", link))
        headers += page.count()
        context.protocol.response_bytes(status, _with_vary(headers), body)

    return respond


def _with_vary(headers: Headers) -> Headers:
    """Return the headers with `Prefer` added to `Vary`, merged into one field: every page depends on `Prefer`."""
    fields = [value for name, value in headers if name.lower() == "vary"]
    others = [field for field in headers if field[0].lower() != "vary"]
    return [*others, ("vary", ", ".join((*fields, "Prefer")))]


class _Page:
    """One page and its place in the result."""

    __slots__ = ("first", "last", "more", "offset", "pieces", "query", "rows", "total")

    def __init__(
        self, query: Query, query_string: str, more: bool, rows: int, total: bytes, first: bytes, last: bytes
    ) -> None:
        """more: further rows follow (for a query backwards: precede). rows: their number in this page. total: number of
        rows of all pages as text; empty: not counted. first, last: positions of the first and the last row, for
        `Cursors.seal`; empty without rows.
        """
        self.query = query
        self.more = more
        self.rows = rows
        self.total = int(total) if total else None
        self.first = first
        self.last = last
        self.offset: int | None = None
        self.pieces: list[str] = []
        """The other parameters of the request, as sent."""
        for piece in query_string.split("&"):
            key, _, value = piece.partition("=")
            if unquote_plus(key) not in _PLACES:
                if piece:
                    self.pieces.append(piece if _SAFE.fullmatch(piece) else quote(piece, safe="%=,.()*:!~'"))
            elif unquote_plus(key) == OFFSET:
                self.offset = int(unquote_plus(value))

    def count(self) -> Iterator[tuple[str, str]]:
        """Yield the headers with the number of all rows, if the request asks for it: `Content-Range` and
        `Preference-Applied`."""
        request = self.query.request
        if not request.counted:
            return
        begin = None if request.position is not None else self.offset or 0
        place = "*" if begin is None or not self.rows else f"{begin}-{begin + self.rows - 1}"
        yield "content-range", f"{place}/{self.total or 0}"
        yield "preference-applied", COUNT


class _Links:
    """The links of the pages of one query."""

    def __init__(self, query: Query, cursors: Cursors) -> None:
        self._query = query
        self._cursors = cursors
        self._keyset = bool(query.language.unique)
        self._start = cursors.start(query.request.order)

    def of(self, page: _Page) -> str:
        """Return the value of `Link`; empty if the query has no limit, there is no other page, or rows are JSON lines:
        the step that chose this format has taken it out of the query string."""
        limit = self._query.request.limit or 0
        if not limit or self._query.language.endpoint.options.json_lines:
            return ""
        by_offset = page.offset is not None or not self._keyset
        places = self._by_offset(page, limit) if by_offset else self._by_cursor(page)
        return ", ".join(f'<?{"&".join((*page.pieces, place))}>; rel="{name}"' for name, place in places)

    def _by_offset(self, page: _Page, limit: int) -> Iterator[tuple[str, str]]:
        offset = page.offset or 0
        if page.more:
            yield "next", f"{OFFSET}={offset + limit}"
        if offset:
            yield "prev", f"{OFFSET}={max(0, offset - limit)}"
        if page.more or offset:
            yield "first", f"{OFFSET}=0"
            if page.total:
                yield "last", f"{OFFSET}={(page.total - 1) // limit * limit}"

    def _by_cursor(self, page: _Page) -> Iterator[tuple[str, str]]:
        request = self._query.request
        inside = request.position is not None and bool(request.position.values)
        has_next = inside if request.backwards else page.more
        has_previous = page.more if request.backwards else inside
        if has_next and page.last:
            yield "next", f"{AFTER}={self._cursors.seal(self._start, page.last)}"
        if has_previous and page.first:
            yield "prev", f"{BEFORE}={self._cursors.seal(self._start, page.first)}"
        if has_next or has_previous or inside:
            yield "first", f"{AFTER}="
            yield "last", f"{BEFORE}="
