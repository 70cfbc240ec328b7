"""Annotations about the response: NULL texts, single, void, nested and header lines."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import (
    Annotation,
    Apply,
    BadValueError,
    Draft,
    Line,
    assigned_flag,
    choose,
    flag,
)
from rowcall.core.endpoint.endpoint import NullText

_NULL_TEXTS = {
    "empty_string": NullText.EMPTY_STRING,
    "empty": NullText.EMPTY_STRING,
    "null_literal": NullText.NULL_LITERAL,
    "null": NullText.NULL_LITERAL,
    "no_content": NullText.NO_CONTENT,
    "204": NullText.NO_CONTENT,
    "204_no_content": NullText.NO_CONTENT,
    "not_found": NullText.NOT_FOUND,
    "404": NullText.NOT_FOUND,
}

_FRAMING = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that delimit messages or control the connection. A wrong value breaks every response."""

_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _null_text(draft: Draft, line: Line) -> None:
    _assign_null_text(draft, line.arguments[0] if line.arguments else "")


def _assign_null_text(draft: Draft, value: str) -> None:
    if not value:
        raise BadValueError(f"a value is missing: one of {', '.join(_NULL_TEXTS)}")
    draft.set(null_text=choose(value, _NULL_TEXTS))


def _status(draft: Draft, line: Line) -> None:
    """Set the status of successful responses. 204 and 205 also drop the result. Raises `BadValueError` for another
    status than 200 to 299."""
    word = line.arguments[0]
    if not (word.isascii() and word.isdecimal() and len(word) == 3 and word.startswith("2")):
        raise BadValueError(f"'{word}' is not a status of success, from 200 to 299")
    draft.set(success_status=int(word))
    if int(word) in (204, 205):
        # These never have a body (RFC 9110 sections 15.3.5 and 15.3.6).
        draft.set(void=True)


def set_header(draft: Draft, name: str, value: str) -> None:
    """Add a header line, also for a repeated name (comments-21). Content-Type is replaced.

    Raises:
        BadValueError: the value has control characters, or the service itself sets the header.
    """
    if _UNSENDABLE.search(value):
        raise BadValueError("a header value cannot contain control characters")
    if name.lower() in _FRAMING:
        raise BadValueError(f"the header {name} is set by the service itself")
    if name.lower() in ("content-type", "content_type"):
        draft.set(content_type=value)
    else:
        draft.headers.append((name, value))


def _column(option: str) -> Apply:
    """Return a function that sets an option to the first argument. option: field of `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: line.arguments[0]})

    return apply


HEADER = Annotation(
    name="header",
    aliases=(),
    syntax="<Name>: <value>",
    description="Sets a response header; a repeated name repeats the header. `Content-Type` replaces the default.",
)

SINGLE = Annotation(
    name="single",
    aliases=("single", "single_record", "single_result"),
    syntax="single",
    description="Only the first row of a set, without brackets around it.",
    apply=flag("single"),
    assign=assigned_flag("single"),
)

ANNOTATIONS = (
    HEADER,
    Annotation(
        name="status",
        aliases=("status",),
        syntax="status <status>",
        description="Status of a successful response (200 to 299), instead of 200, or of 204 without a body. 204 and "
        "205 drop the result, like `void`. A status that SQL sets takes precedence.",
        apply=_status,
        minimum_words=2,
        maximum_words=2,
    ),
    Annotation(
        name="text_response_null_handling",
        aliases=("response_null_handling", "response_null", "text_response_null_handling", "null_handling"),
        syntax="text_response_null_handling empty_string|null_literal|no_content|not_found",
        description="Response if a text result is NULL, or if `single` finds no row: an empty body, the text NULL, "
        "status 204 or status 404.",
        apply=_null_text,
        assign=_assign_null_text,
    ),
    SINGLE,
    Annotation(
        name="response_settings",
        aliases=("response_settings",),
        syntax="response_settings",
        description="Status and headers of the response come from the settings `response.status` and "
        "`response.headers`. Needed only if the text of the routine does not contain these names, because it calls "
        "another routine that sets them.",
        apply=flag("response_settings"),
        assign=assigned_flag("response_settings"),
    ),
    Annotation(
        name="response_status_column",
        aliases=("response_status_column",),
        syntax="response_status_column <column>",
        description="This column of the result is the status of the response (NULL: the default), and not part of its "
        "body.",
        apply=_column("status_column"),
        minimum_words=2,
    ),
    Annotation(
        name="response_headers_column",
        aliases=("response_headers_column",),
        syntax="response_headers_column <column>",
        description="This column of the result, of type `json`, contains headers of the response, and is not part of "
        "its body.",
        apply=_column("headers_column"),
        minimum_words=2,
    ),
    Annotation(
        name="void",
        aliases=("void", "void_result"),
        syntax="void",
        description="Runs the routine, drops its result and responds with 204, or the `status` of the comment.",
        apply=flag("void"),
        assign=assigned_flag("void"),
    ),
    Annotation(
        name="nested_json",
        aliases=("nested", "nested_json", "nested_composite"),
        syntax="nested",
        description="Composite columns become nested objects instead of being expanded into columns.",
        apply=flag("nested"),
    ),
)
