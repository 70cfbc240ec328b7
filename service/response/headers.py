"""Header fields of a response: those of the comment, with values of the request in their placeholders."""

from __future__ import annotations

from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import HeaderSection, header_lines, no_value
from rowcall.core.errors.problems import Problem
from rowcall.core.text.cache_control import PRIVATE, VARY_BY_CREDENTIALS, allows_errors
from rowcall.service.request_context.request_context import RequestContext

Headers = list[tuple[str, str]]


def fields_of(section: HeaderSection, content_type: str | None) -> Headers:
    """Return the header fields of a response: Content-Type, if there is one, and all other fields of the section.

    section: of the comment; its content type overrides that of the result (rendering-6). content_type: of the result;
    None: there is no body, so there is a Content-Type only if the comment sets it.
    """
    chosen = section.content_type or content_type
    headers: Headers = [("content-type", chosen)] if chosen is not None else []
    return headers + list(section.fields)


def argument_text(context: RequestContext, index: int) -> str | None:
    """Return the argument of a parameter as text; None for NULL and for a missing argument. index: of the parameter
    among those of the endpoint.
    """
    bit = 1 << index
    if not context.mask & bit:
        return None
    value = context.arguments[(context.mask & (bit - 1)).bit_count()]
    return None if value is None else value.decode(errors="replace")


class CommentHeaders:
    """The header lines of one endpoint's comment. Called as a step, it adds them to every later response of the
    request, also to errors.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._lines = header_lines(endpoint)
        self._fixed = self._lines.fields(no_value) if self._lines.is_fixed else None

    def __call__(self, context: RequestContext) -> None:
        context.comment_headers = self

    def fields(self, context: RequestContext) -> tuple[tuple[str, str], ...]:
        """Return the header lines with values of the request, without the content type."""
        return self._lines.fields(partial(argument_text, context)) if self._fixed is None else self._fixed


def comment_fields(context: RequestContext) -> Headers:
    """Return the header lines of the comment with values of the request, without the content type, for responses that
    are not made from a `HeaderSection`. Empty before the step `CommentHeaders`."""
    return [] if context.comment_headers is None else list(context.comment_headers.fields(context))


def _is_for_errors(name: str, value: str) -> bool:
    """Whether a field is sent with errors too; those about the lifetime of a response are not."""
    return name != "expires" and (name != "cache-control" or allows_errors(value))


def problem_headers(context: RequestContext, problem: Problem) -> Headers:
    """Return the headers of an error response: its own, then those of the comment that it does not set itself, except
    those about the lifetime of a response (`Expires`, and most of `Cache-Control`). If the error depends on the caller,
    headers against shared caches are added, unless there is a `Cache-Control` already."""
    own = {name.lower() for name, _ in problem.headers}
    headers = list(problem.headers)
    if context.comment_headers is not None:
        fields = context.comment_headers.fields(context)
        headers += [(name, value) for name, value in fields if name not in own and _is_for_errors(name, value)]
    depends_on_caller = problem.status in (401, 403) or context.user is not None
    if depends_on_caller and all(name.lower() != "cache-control" for name, _ in headers):
        headers += [("cache-control", PRIVATE), ("vary", VARY_BY_CREDENTIALS)]
    return headers
