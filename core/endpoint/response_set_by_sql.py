"""Response status and headers set by SQL: by columns of the result, or by settings of the transaction.

Columns become settings while the rows are read, so that both ways are read in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from rowcall.core.catalogue.catalog import Routine
from rowcall.core.endpoint.endpoint import Endpoint, Options, ResultPath, ResultShape
from rowcall.core.endpoint.result_shape import VOID
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.text.naming import quote_identifier

STATUS = "response.status"
HEADERS = "response.headers"

MARK = b"\x01"
"""Separator around the settings, behind the body or between its members. JSON never contains it; in other bodies, the
last three count."""

READ = (
    f"select e'\\x01' || coalesce(current_setting('{STATUS}', true), '')"
    f" || e'\\x01' || coalesce(current_setting('{HEADERS}', true), '') || e'\\x01'"
)
"""Query that returns both settings of the transaction, with `MARK` in front of each and behind them."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})


class ResponseSettingError(ValueError):
    """Status or headers set by SQL cannot be sent."""


def split_result(endpoint: Endpoint, whole: bytes) -> tuple[bytes, str, str]:
    """Return body, status and headers of the result of an endpoint, in which the results of `READ` stand. A file of
    several statements has one for each of its transactions; of status and headers, the last that is not empty
    counts."""
    if endpoint.shape.path not in (ResultPath.OBJECT, ResultPath.VOID):
        # Results that earlier versions have stored for idempotency keys have no mark at their end.
        body, status, headers, *_ = whole.rsplit(MARK, 3)
        return body, status.decode(), headers.decode()
    pieces = whole.split(MARK)
    status, headers = (b"".join(list(filter(None, pieces[first::3]))[-1:]) for first in (1, 2))
    return b"".join(pieces[::3]), status.decode(), headers.decode()


def status_set_by_sql(text: str) -> int | None:
    """Return the status that SQL has set, or None if it has set none. text: value of the setting `response.status`;
    empty: not set. Raises `ResponseSettingError` if the text is not a status from 200 to 599."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) == 3 and 200 <= int(text) <= 599):
        raise ResponseSettingError(f"{STATUS} is no status from 200 to 599")
    return int(text)


def headers_set_by_sql(text: str) -> list[tuple[str, str]]:
    """Return the headers that SQL has set, with names in lower case.

    text: JSON such as `{"Location": "/x", "Set-Cookie": ["a", "b"]}`, or a list of such objects; empty: no headers.
    Raises `ResponseSettingError` if the text is not such JSON, or a header cannot be sent.
    """
    if not text:
        return []
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ResponseSettingError(f"{HEADERS} is not valid JSON") from None
    return [header for headers in (value if isinstance(value, list) else [value]) for header in _headers(headers)]


def _headers(members: Any) -> Iterator[tuple[str, str]]:
    """Yield the headers of one JSON object, names in lower case. A list repeats a header, and null leaves it out.
    Raises `ResponseSettingError`."""
    if not isinstance(members, Mapping):
        raise ResponseSettingError(f"{HEADERS} is neither an object nor a list of objects")
    for name, value in members.items():
        if not _NAME.fullmatch(name) or name.lower() in _FRAMING:
            raise ResponseSettingError(f"{HEADERS}: {name[:60]!r} is not a header that a response can set")
        for text in value if isinstance(value, list) else [value]:
            if text is None:
                continue
            plain = text if isinstance(text, str) else _json(name, text)
            if _CONTROL.search(plain) or not plain.isascii():
                raise ResponseSettingError(
                    f"{HEADERS}: the value of {name[:60]!r} has characters that are not allowed in headers"
                )
            yield name.lower(), plain


def _json(name: str, value: Any) -> str:
    """Return a JSON value as text. Raises `ResponseSettingError` if it has more levels than orjson writes."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise ResponseSettingError(f"{HEADERS}: the value of {name[:60]!r} is nested too deeply") from None


def without_response_columns(shape: ResultShape, routine: Routine, options: Options) -> ResultShape:
    """Return the shape of the response body, without the columns for status and headers; `VOID` if no column remains,
    also if a lone OUT parameter is the status or the headers.

    The shape is unchanged for a routine with a `source` (file or table).
    """
    names = {name.lower() for name in (options.status_column, options.headers_column) if name is not None}
    names &= {column.name.lower() for column in routine.columns}
    if not names or routine.source is not None:
        return shape
    if not shape.columns:
        return VOID if shape.path is ResultPath.SCALAR else shape
    indexes = [index for index, column in enumerate(shape.columns) if column.column.name.lower() not in names]
    if not indexes:
        return VOID
    type_oids = None if shape.type_oids is None else tuple(shape.type_oids[index] for index in indexes)
    return replace(shape, columns=tuple(shape.columns[index] for index in indexes), type_oids=type_oids)


def rows_that_set_response(endpoint: Endpoint, call: str) -> str:
    """Return the SQL behind `from` for the rows of `call`, with a condition that is true for all rows and copies their
    columns for status and headers to the settings.

    With OFFSET, PostgreSQL evaluates this condition for rows of the result only. Otherwise it merges an SQL function
    with the query around it, and evaluates the condition also for rows that conditions of the function exclude. The
    rows have the name of the routine, as in `from f(…)`. With `single`, only the first row counts.
    """
    parts = [
        f"({name} is null or set_config('{setting}', {name}::text, true) is not null)"
        for setting, name in _columns(endpoint)
    ]
    limit = " limit 1" if endpoint.options.single else ""
    rows = f"(select * from {call} offset 0{limit}) as {quote_identifier(endpoint.routine.name)}"
    return f"{rows} where {' and '.join(parts)}"


def _columns(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Yield the setting and the quoted column for each column of the result that sets status or headers."""
    columns = {column.name.lower(): column.name for column in endpoint.routine.columns}
    for setting, name in ((STATUS, endpoint.options.status_column), (HEADERS, endpoint.options.headers_column)):
        if name is not None and name.lower() in columns:
            yield setting, quote_identifier(columns[name.lower()])


def response_set_diagnostics(routine: Routine, options: Options) -> Iterator[Diagnostic]:
    """Report unknown columns, and columns for routines that are not functions."""
    if options.status_column is None and options.headers_column is None:
        return
    columns = {column.name.lower() for column in routine.columns}
    for name in (options.status_column, options.headers_column):
        if name is not None and routine.source is not None:
            message = f"{name}: columns set the response for functions only; write set_config('{STATUS}', …, true)"
            yield Diagnostic(routine.identity, None, message)
        elif name is not None and name.lower() not in columns:
            message = f"the result has no column {name}, which would set status or headers"
            yield Diagnostic(routine.identity, None, message)
