"""Responses of finished calls: status, header fields, body (rendering-4 to rendering-22).

`respond` makes all decisions for an endpoint once; only those that depend on values remain for each request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint, NullText, ResultPath
from rowcall.core.endpoint.header_lines import HeaderSection, header_lines, no_value
from rowcall.core.errors.problems import Problem
from rowcall.service.database.database import Database
from rowcall.service.request_context.head_protocol import is_head
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import Headers, argument_text, fields_of
from rowcall.service.response.rendering import begins_with_names, is_json
from rowcall.service.response.streaming import PLAIN, Encoder, client_of_only_response, stream_result


def respond(endpoint: Endpoint, database: Database, time_limit: float) -> Step:
    """Return the last step of an endpoint, which responds with the result of the finished call. time_limit: seconds for
    which a client may leave a streamed response unread.
    """
    if endpoint.shape.path is ResultPath.VOID:
        return _with_header_section(endpoint, lambda section: _respond_empty(section, endpoint.success_status))
    if endpoint.shape.path is ResultPath.SCALAR:
        return _with_header_section(endpoint, lambda section: _respond_scalar(endpoint, section))
    return _with_header_section(endpoint, lambda section: _respond_rows(endpoint, section, database, time_limit))


def no_content(endpoint: Endpoint) -> Step:
    """Return a step that sends status 204 with the comment's headers."""
    return _with_header_section(endpoint, lambda section: _respond_empty(section, 204))


def _with_header_section(endpoint: Endpoint, answer: Callable[[HeaderSection], Step]) -> Step:
    """Return the last step, made by `answer` from the header section of the comment: once if its lines are fixed, or
    anew for each request if they have placeholders."""
    lines = header_lines(endpoint)
    if lines.is_fixed:
        return answer(lines.fill(no_value))
    return lambda context: answer(lines.fill(partial(argument_text, context)))(context)


def _respond_empty(section: HeaderSection, status: int) -> Step:
    """Return a step that responds without a body."""
    headers = fields_of(section, content_type=None)

    def respond_empty(context: RequestContext) -> None:
        context.protocol.response_empty(status, headers)

    return respond_empty


def _respond_scalar(endpoint: Endpoint, section: HeaderSection) -> Step:
    """Return the step that responds with a scalar result. It raises `Problem`: 500 if there is no row, 404 for NULL if
    the endpoint reports it as not found."""
    headers = fields_of(section, endpoint.shape.content_type)
    status = endpoint.success_status
    respond_null = null_response(endpoint, section)

    def respond_scalar(context: RequestContext) -> None:
        execution = context.execution
        if execution is None or execution.rows == 0:
            raise Problem(500, "the routine returned no row")
        if execution.is_null:
            respond_null(context)
        else:
            context.protocol.response_bytes(status, headers, execution.body)

    return respond_scalar


def _respond_rows(endpoint: Endpoint, section: HeaderSection, database: Database, time_limit: float) -> Step:
    """Return the step that responds with rows, streamed or complete. It raises `Problem`: 500 if no call has run, 404
    for a missing row if the endpoint reports NULL as not found, 503 as `stream_response` does. time_limit: as for
    `respond`."""
    headers = fields_of(section, endpoint.shape.content_type)
    status = endpoint.success_status
    respond_null = null_response(endpoint, section)
    row_needed = needs_row(endpoint)

    def respond_rows(context: RequestContext) -> Awaitable[None] | None:
        execution = context.execution
        if execution is None:
            raise Problem(500, "the routine returned nothing")
        if execution.streaming:
            return stream_response(context, database, status, headers, time_limit)
        if row_needed and execution.rows == 0:
            respond_null(context)
        else:
            context.protocol.response_bytes(status, headers, execution.body)
        return None

    return respond_rows


async def stream_response(
    context: RequestContext,
    database: Database,
    status: int,
    headers: Headers,
    time_limit: float,
    encoder: Encoder = PLAIN,
) -> None:
    """Send the result of a STREAMING execution as it arrives (for HEAD only the header section), and release its
    connection in any case. time_limit: seconds for which the client may leave the response unread. encoder: converts
    rendered rows into the bytes that are sent. Raises `Problem` 503 if the process has too many open files."""
    execution = context.execution
    if execution is None:
        return
    complete = False
    try:
        if is_head(context):
            # Only the size of the body is unknown, and the rest of the rows is not needed for that.
            context.protocol.response_empty(status, headers)
            return
        client = client_of_only_response(context.scope)
        complete = await stream_result(context.protocol, client, execution, status, headers, time_limit, encoder)
    finally:
        database.end_stream(execution, gone=not complete)


def null_response(endpoint: Endpoint, section: HeaderSection) -> Callable[[RequestContext], None]:
    """Return the function that responds for a NULL result, or for `single` without a row (rendering-15). It raises
    `Problem` 404 if the endpoint reports this as not found. section: header lines of the comment.
    """
    mode = endpoint.options.null_text
    headers = fields_of(section, endpoint.shape.content_type)
    if mode is NullText.NO_CONTENT:
        bare = fields_of(section, content_type=None)
        return lambda context: context.protocol.response_empty(204, bare)
    if mode is NullText.NOT_FOUND:
        return _not_found
    body = null_body(endpoint)
    status = endpoint.success_status
    return lambda context: context.protocol.response_bytes(status, headers, body)


def null_body(endpoint: Endpoint) -> bytes:
    """Return the body for a NULL result. Raises `Problem` 404 if the endpoint reports it as not found."""
    if endpoint.options.null_text is NullText.NOT_FOUND:
        raise _no_record_problem()
    is_rows = endpoint.shape.path is ResultPath.ROWS
    if endpoint.options.null_text is not NullText.NULL_LITERAL:
        # An empty body is no valid JSON document (RFC 8259 section 2).
        return b"null" if endpoint.null_is_json else b""
    # A row of JSON can only be null; every other result is NULL (rendering-15).
    return b"null" if is_rows and is_json(endpoint) else b"NULL"


def _not_found(_context: RequestContext) -> None:
    raise _no_record_problem()


def _no_record_problem() -> Problem:
    return Problem(404, "there is no such record")


def needs_row(endpoint: Endpoint) -> bool:
    """Whether a result without rows counts as NULL."""
    one_row = endpoint.shape.path is ResultPath.ROWS
    return one_row and (not endpoint.shape.is_set or endpoint.options.single) and not begins_with_names(endpoint)
