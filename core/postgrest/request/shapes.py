"""Shapes of query strings: queries that differ only in values have the same shape, which is planned once.

A shape is a query string in which the values of simple comparisons are replaced by marks. It is parsed and planned like
any other query string. The marks become parameters of the statement, where they are replaced by the values of a
request. A mark contains a NUL, which no text of PostgreSQL contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rowcall.core.postgrest.request.query_string import percent_decode, percent_encode
from rowcall.core.postgrest.sql.output import Statement

_NAME = r"(?!(?:[^=]*\.)?(?:select|columns|on_conflict|order|limit|offset|and|or)=)[^=]*="
_SIMPLE = re.compile(_NAME + r"(?:not\.)?(?:eq|neq|gte|gt|lte|lt)\.")
"""The part of a parameter before the value of a simple comparison."""
_ARGUMENT = re.compile(_NAME)
"""The part of a parameter before the value of an argument, if the value is not an operation."""
_MARK = "\0{}\0"
_IS_MARK = re.compile("\0[0-9]+\0").fullmatch
LONGEST = 2048
"""Maximum number of characters of a query string for which a shape is made."""
_ENCODED_MARK = re.compile("%00([0-9]+)%00")

Values = tuple[str, ...]


def shape_of(query: str, is_operation: Callable[[str], bool] | None = None) -> tuple[str, Values] | None:
    """Return a query string with marks in place of the values of simple comparisons, and these values in order.

    None: the query string is planned as it is. is_operation: for calls of functions, whether a value is an operation.
    Other values are arguments, which are replaced too. This is the slow twin of `ext.binding.query_shape.shape_of`.
    """
    if len(query) > LONGEST or not query.isascii() or ";" in query or "%00" in query or "\0" in query:
        return None
    values: list[str] = []
    parts = query.split("&")
    for place, part in enumerate(parts):
        match = _SIMPLE.match(part)
        if match is None and is_operation is not None:
            match = _ARGUMENT.match(part)
            if match is not None and is_operation(percent_decode(part[match.end() :])):
                continue
        if match is not None:
            parts[place] = f"{match[0]}%00{len(values)}%00"
            values.append(percent_decode(part[match.end() :]))
    return "&".join(parts), tuple(values)


PAYLOAD_MARK = "\0payload\0"
"""Mark in place of the text of a body."""


def marks(count: int) -> Values:
    """Return the marks of the first values."""
    return tuple(_MARK.format(place) for place in range(count))


class Template:
    """A statement some of whose parameters are marks, which stand for values of a request."""

    __slots__ = ("_after", "_before", "_in_order", "_marks", "statement")

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._marks = [
            (index, None if parameter == PAYLOAD_MARK else int(parameter[1:-1]))
            for index, parameter in enumerate(statement.parameters)
            if parameter and (parameter == PAYLOAD_MARK or _IS_MARK(parameter))
        ]
        count = len(self._marks)
        first = self._marks[0][0] if self._marks else 0
        self._before, self._after = statement.parameters[:first], statement.parameters[first + count :]
        self._in_order: int | None = None
        """Number of values if the marks are neighbours in their order, which they nearly always are, or 0 if the only
        mark is that of a body; None for any other template."""
        if self._marks == [(first + place, place) for place in range(count)]:
            self._in_order = count
        elif self._marks == [(first, None)]:
            self._in_order = 0

    def fill(self, values: tuple[str | None, ...], payload: str | None = None) -> Statement:
        """Return the statement with values in the places of the marks. payload: the text of a body."""
        if not self._marks:
            return self.statement
        if self._in_order == 0:
            return Statement(self.statement.sql, (*self._before, payload, *self._after))
        if self._in_order == len(values):
            return Statement(self.statement.sql, self._before + values + self._after)
        parameters = list(self.statement.parameters)
        for index, place in self._marks:
            parameters[index] = payload if place is None else values[place]
        return Statement(self.statement.sql, tuple(parameters))


def uses_each_mark(statement: Statement, count: int) -> bool:
    """Return whether each mark is a whole parameter, so that a `Template` replaces all of them. count: of marks."""
    present = {parameter for parameter in statement.parameters if parameter is not None and "\0" in parameter}
    return present - {PAYLOAD_MARK} == {_MARK.format(place) for place in range(count)}


class Location:
    """The relative URL of a read with marks in the places of values, for `Content-Location`."""

    __slots__ = ("_first", "_others", "_unfilled")

    def __init__(self, path: str, canonical: str) -> None:
        """path: of the relation, percent-encoded. canonical: the encoded parameters."""
        self._unfilled = f"{path}{'?' if canonical else ''}{canonical}"
        self._first, *others = _ENCODED_MARK.split(self._unfilled)
        self._others = [(int(place), text) for place, text in zip(others[::2], others[1::2], strict=True)]

    def fill(self, values: Values) -> str:
        """Return the location with values in the places of the marks. values: empty if the parameters are those of the
        request itself; a text in them that looks like a mark is none then."""
        if not values:
            return self._unfilled
        result = self._first
        for place, text in self._others:
            result += percent_encode(values[place]) + text
        return result
