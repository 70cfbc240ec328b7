"""Shapes of query strings: queries that differ only in values have the same shape, which is planned once.

A shape is a query string in which the values of simple comparisons are replaced by marks. It is parsed and planned like
any other query string. The marks become parameters of the statement, where they are replaced by the values of a
request. A mark contains a NUL, which no text of PostgreSQL contains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote_plus

from rowcall.core.postgrest.sql.output import Statement

_SIMPLE = re.compile(
    rb"(?!(?:[^=]*\.)?(?:select|columns|on_conflict|order|limit|offset|and|or)=)"
    rb"[^=]*=(?:not\.)?(?:eq|neq|gte|gt|lte|lt)\."
)
"""The part of a parameter before the value of a simple comparison."""
_MARK = "\0{}\0"
LONGEST = 2048
"""Maximum number of bytes of a query string for which a shape is made."""
_ENCODED_MARKS = [b"%%00%d%%00" % place for place in range(LONGEST)]


def shape_of(raw: bytes) -> tuple[bytes, list[str]] | None:
    """Return the shape of a query string, and the values behind its marks; None: the query string is planned as it
    is."""
    if len(raw) > LONGEST or b";" in raw or b"%00" in raw:
        return None
    values: list[str] = []
    parts = raw.split(b"&")
    for place, part in enumerate(parts):
        match = _SIMPLE.match(part)
        if match is not None:
            end = match.end()
            parts[place] = part[:end] + _ENCODED_MARKS[len(values)]
            value = part[end:].decode("latin-1")
            values.append(unquote_plus(value, errors="replace") if "%" in value or "+" in value else value)
    return b"&".join(parts), values


PAYLOAD_MARK = "\0payload\0"
"""Mark in place of the text of a body."""


def filled(statement: Statement, values: Sequence[str], payload: str | None = None) -> Statement:
    """Return the statement with values in place of the marks. payload: the text of a body."""
    parameters = [
        parameter
        if not parameter or parameter[0] != "\0"
        else payload
        if parameter == PAYLOAD_MARK
        else values[int(parameter[1:-1])]
        for parameter in statement.parameters
    ]
    return Statement(statement.sql, tuple(parameters))


def uses_each_mark(statement: Statement, count: int) -> bool:
    """Return whether each mark is a whole parameter, so that `filled` replaces all of them. count: number of marks."""
    present = {parameter for parameter in statement.parameters if parameter is not None and "\0" in parameter}
    return present - {PAYLOAD_MARK} == {_MARK.format(place) for place in range(count)}


def filled_text(canonical: str, values: Sequence[str]) -> str:
    """Return the encoded query string with values in place of the marks."""
    for place, value in enumerate(values):
        canonical = canonical.replace(f"%00{place}%00", quote(value, "-_.~"), 1)
    return canonical
