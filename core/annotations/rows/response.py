"""Annotations about the response: NULL texts, single, void, nested and header lines."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, assigned_flag, choose, flag
from rowcall.core.endpoint.endpoint import NullText

_NULL_TEXTS = {
    "empty_string": NullText.EMPTY_STRING,
    "empty": NullText.EMPTY_STRING,
    "null_literal": NullText.NULL_LITERAL,
    "null": NullText.NULL_LITERAL,
    "no_content": NullText.NO_CONTENT,
    "204": NullText.NO_CONTENT,
    "204_no_content": NullText.NO_CONTENT,
}

_FRAMING = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that say where a message ends or how its connection goes on: a wrong one breaks every answer."""

_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _null_text(draft: Draft, line: Line) -> None:
    _assign_null_text(draft, line.arguments[0] if line.arguments else "")


def _assign_null_text(draft: Draft, value: str) -> None:
    if not value:
        raise BadValueError(f"a value is missing: one of {', '.join(_NULL_TEXTS)}")
    draft.set(null_text=choose(value, _NULL_TEXTS))


def set_header(draft: Draft, name: str, value: str) -> None:
    """Content-Type replaces; every other name adds a header line, a repeated one too (reference 01, 5.6)."""
    if _UNSENDABLE.search(value):
        raise BadValueError("a header value cannot contain control characters")
    if name.lower() in _FRAMING:
        raise BadValueError(f"the header {name} is set by the service itself")
    if name.lower() in ("content-type", "content_type"):
        draft.set(content_type=value)
    else:
        draft.headers.append((name, value))


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
        name="text_response_null_handling",
        aliases=("response_null_handling", "response_null", "text_response_null_handling"),
        syntax="text_response_null_handling empty_string|null_literal|no_content",
        description="What a NULL text result becomes: an empty body, the text NULL, or status 204.",
        apply=_null_text,
        assign=_assign_null_text,
    ),
    SINGLE,
    Annotation(
        name="void",
        aliases=("void", "void_result"),
        syntax="void",
        description="Runs the routine, drops its result and answers 204.",
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
