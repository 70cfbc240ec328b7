"""Responses whose status and headers are set by SQL: read behind the call, in its transaction (rendering-7,
rendering-8).

Only endpoints with this option have the second statement; it is sent in the same segment, so it costs no round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint, NullText, ResultPath
from rowcall.core.endpoint.header_lines import header_lines, is_personal
from rowcall.core.endpoint.response_set_by_sql import (
    READ,
    ResponseSettingError,
    headers_set_by_sql,
    split_result,
    status_set_by_sql,
)
from rowcall.core.errors.problems import Problem
from rowcall.core.text.cache_control import private
from rowcall.ext.driver.execution import Execution, Part, Script, Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.service.database.statements import numbers
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import argument_text, fields_of
from rowcall.service.response.responses import needs_row, null_body

BODILESS = (204, 205, 304)
"""Status codes of responses without a body."""


def with_reading(
    build: Callable[[int], Statement], codecs: Codecs, *, first_row_only: bool
) -> Callable[[int], Statement]:
    """Return a function like `build` whose result also contains, at the end of each transaction of the call, the
    statement that reads the status and headers that SQL has set.

    build: returns the statement of the call; its argument is the bit mask of the parameters that are passed.
    first_row_only: further rows of a single statement are dropped.
    """
    writer = RawRenderer(codecs, False)

    def script(mask: int) -> Script:
        statement = build(mask)
        count = statement.nparams
        reading = Statement(next(numbers), READ.encode(), count, writer, statement.repeatable, picks=())
        parts = statement.parts if isinstance(statement, Script) else (Part(statement, True, True, first_row_only),)
        tail = statement.tail if isinstance(statement, Script) else b""
        return Script(next(numbers), count, tuple(_read_at_ends(parts, reading)), tail, statement.repeatable)

    return script


def _read_at_ends(parts: Sequence[Part], reading: Statement) -> Iterator[Part]:
    """Yield the parts, and a part with the reading at the end of each transaction, since transaction-local settings end
    with it: in front of a COMMIT, and behind the last statement that is sent in an implicit transaction."""
    for part in parts:
        if _commits(part):
            yield Part(reading, False, False, behind_commit=part.behind_commit)
            yield part
        elif part.last:
            yield Part(part.statement, False, part.ahead_first, part.first_row_only, part.behind_commit)
            yield Part(reading, True, False, behind_commit=part.behind_commit)
        else:
            yield part


def _commits(part: Part) -> bool:
    """Return whether the statement ends a transaction that the file has begun, other than by a rollback."""
    # Imported here: few files set the response.
    from rowcall.core.sqlfile.commands import commits
    from rowcall.core.sqlfile.splitting import split

    statements = split(part.statement.sql.decode()).statements
    return bool(statements) and commits(statements[0])


def respond_as_set_by_sql(endpoint: Endpoint) -> Step:
    """Return the last step of an endpoint whose response is set by SQL. It raises `Problem`: 500 if the status or the
    headers that SQL has set are invalid, or if the routine returned no result; and as `_usual` does."""
    lines = header_lines(endpoint)
    personal = is_personal(endpoint)

    def respond(context: RequestContext) -> None:
        execution = context.execution
        if execution is None or execution.body is None:
            raise Problem(500, "the routine returned nothing")
        body, status_text, headers_text = split_result(endpoint, execution.body)
        try:
            status = status_set_by_sql(status_text)
            chosen = headers_set_by_sql(headers_text)
        except ResponseSettingError as error:
            raise Problem(500, str(error)) from None
        usual, content_type, body = _usual(endpoint, execution, body)
        section = lines.fill(partial(argument_text, context))
        if personal:
            chosen = [(name, private(value) if name == "cache-control" else value) for name, value in chosen]
        # Values of `Vary` are added to those of the comment.
        own = {name for name, _ in chosen} - {"vary"}
        headers = [field for field in fields_of(section, content_type) if field[0].lower() not in own] + chosen
        status = usual if status is None else status
        if status in BODILESS or content_type is None:
            context.protocol.response_empty(status, [field for field in headers if field[0] != "content-type"])
        else:
            context.protocol.response_bytes(status, headers, body)

    return respond


def _usual(endpoint: Endpoint, execution: Execution, body: bytes) -> tuple[int, str | None, bytes]:
    """Return status, content type (None: there is no body) and body of the response if SQL sets nothing. body: of the
    result. Raises `Problem`: 500 for a scalar without a row, 404 for NULL if the endpoint reports it as not found."""
    shape = endpoint.shape
    if shape.path is ResultPath.VOID:
        return endpoint.success_status, None, b""
    if shape.path is ResultPath.SCALAR and execution.first_rows == 0:
        raise Problem(500, "the routine returned no row")
    is_null = shape.path is ResultPath.SCALAR and execution.first_null
    if not is_null and not (needs_row(endpoint) and execution.first_rows == 0):
        return endpoint.success_status, shape.content_type, body
    if endpoint.options.null_text is NullText.NO_CONTENT:
        return 204, None, b""
    return endpoint.success_status, shape.content_type, null_body(endpoint)
