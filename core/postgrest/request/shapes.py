"""Shapes of query strings: the same query with other values has the same shape, and is planned once.

A shape is a query string in which the values of simple comparisons are replaced by marks. It is parsed and planned like
any other query string; the marks arrive among the parameters of the statement, where the values of a request take their
places. A mark contains a NUL, which no text of PostgreSQL contains.
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
"""Bytes of a query string beyond which no shape is made."""
_ENCODED_MARKS = [b"%%00%d%%00" % place for place in range(LONGEST)]


def shape_of(raw: bytes) -> tuple[bytes, list[str]] | None:
    """Return the shape of a query string and its values; None: it is planned as it is."""
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
"""Stands for the text of a body."""


def filled(statement: Statement, values: Sequence[str], payload: str | None = None) -> Statement:
    """Return the statement with values in the places of the marks. payload: the text of a body."""
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
    """Whether each mark is a whole parameter, so that `filled` replaces all of them."""
    present = {parameter for parameter in statement.parameters if parameter is not None and "\0" in parameter}
    return present - {PAYLOAD_MARK} == {_MARK.format(place) for place in range(count)}


def filled_text(canonical: str, values: Sequence[str]) -> str:
    """Return the encoded parameters with values in the places of the marks."""
    for place, value in enumerate(values):
        canonical = canonical.replace(f"%00{place}%00", quote(value, "-_.~"), 1)
    return canonical
