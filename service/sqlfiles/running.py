"""Running of files in a worker: the statements of a file in the form that a connection runs, and the writers of their
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from rowcall.core.endpoint.endpoint import Endpoint, ResultPart, ResultPath, ResultShape
from rowcall.core.sqlfile.execution import as_single_transaction
from rowcall.core.sqlfile.source import FileSource, FileStatement
from rowcall.ext.driver.execution import Part, Script, Statement
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.script_results import AffectedRows, NamedRows, key_prefix
from rowcall.service.database.statements import numbers
from rowcall.service.response.rendering import body_writer


class Change(Protocol):
    """Function that returns the writer to use instead of the writer of a statement's rows. None, as argument or as
    result: the rows are not rendered. shape: of the result of the statement."""

    def __call__(self, writer: BodyWriter | None, *, shape: ResultShape) -> BodyWriter | None: ...


def file_statements(
    endpoint: Endpoint, writer: BodyWriter | None, codecs: Codecs, change: Change, *, repeatable: bool, wrapped: bool
) -> Callable[[int], Statement] | None:
    """Return the function that builds the statement for a bit mask of supplied parameters; None for routines that are
    no files.

    writer: used if the file has one statement; None: its rows are not rendered. change: applied to the writer of each
    statement if the file has several. repeatable: running the file twice does no harm. wrapped: all statements are one
    transaction.
    """
    source = endpoint.routine.source
    if not isinstance(source, FileSource):
        return None

    statement = source.statements[0]
    if endpoint.query is not None:
        statement = _with_query(statement, endpoint)

    def single_statement(mask: int) -> Statement:
        return _statement(statement, mask, writer, repeatable=repeatable)

    def script(mask: int) -> Statement:
        writers = _writers(endpoint, codecs, change)
        ways = tuple(single_statement.execution for single_statement in source.statements)
        ways = as_single_transaction(ways) if wrapped else ways
        parts = tuple(
            Part(
                _statement(statement, mask, next(writers), repeatable=repeatable),
                way.last,
                way.fresh,
                statement.result.single,
                way.behind_commit,
            )
            for statement, way in zip(source.statements, ways, strict=True)
        )
        return Script(next(numbers), mask.bit_count(), parts, _tail(endpoint), repeatable)

    return script if source.several else single_statement


def _with_query(statement: FileStatement, endpoint: Endpoint) -> FileStatement:
    """Return the statement; if the endpoint is `queryable`, wrapped in the query that selects from its result what a
    request asks for. The parameters of that query follow those of the statement."""
    if endpoint.query is None:
        return statement
    values = tuple(index for index, parameter in enumerate(endpoint.parameters) if parameter.of_query)
    return replace(
        statement,
        text=endpoint.query.wrap_statement(statement.text, len(statement.numbers)),
        numbers=(*statement.numbers, *values),
        types=(*statement.types, *(0 for _ in values)),
    )


def _statement(statement: FileStatement, mask: int, writer: BodyWriter | None, *, repeatable: bool) -> Statement:
    """Return the driver statement for a bit mask of supplied parameters. writer: of its rows; None: they are not
    rendered. repeatable: as for `file_statements`.
    """
    values = mask.bit_count()
    picks = tuple(_place(number, mask) for number in statement.numbers)
    return Statement(
        next(numbers),
        statement.text.encode(),
        values,
        writer,
        repeatable,
        picks=None if picks == tuple(range(values)) else picks,
        types=statement.types if any(statement.types) else None,
    )


def _place(number: int, mask: int) -> int:
    """Return the index of a parameter among the values of a request; -1 for NULL if it has no value. number: of the
    parameter, from 0. mask: bit mask of the supplied parameters.
    """
    bit = 1 << number
    return (mask & (bit - 1)).bit_count() if mask & bit else -1


def _writers(endpoint: Endpoint, codecs: Codecs, change: Change) -> Iterator[BodyWriter | None]:
    """Yield the writer of each statement; None for a hidden one. If the results of the endpoint are not members of an
    object, None is yielded without end.
    """
    first = True
    if endpoint.shape.path is not ResultPath.OBJECT:
        while True:
            yield None
    for part in endpoint.shape.parts:
        if part.key is None:
            yield None
            continue
        yield _member_writer(endpoint, part, key_prefix(part.key, first), codecs, change)
        first = False


def _member_writer(endpoint: Endpoint, part: ResultPart, prefix: bytes, codecs: Codecs, change: Change) -> BodyWriter:
    """Return the writer of one statement's result as a member of the object that holds all results. prefix: from
    `key_prefix`. change: wraps the writer of its rows.
    """
    if part.shape.path is ResultPath.VOID:
        return AffectedRows(prefix)
    # Only the options that make sense within an object.
    plain = replace(endpoint.options, single=part.single, raw=False)
    inner = body_writer(replace(endpoint, shape=part.shape, options=plain), codecs)
    inner = change(inner, shape=part.shape)
    return AffectedRows(prefix) if inner is None else NamedRows(inner, prefix)


def _tail(endpoint: Endpoint) -> bytes:
    """Return the end of the body behind the last member: `}`; if there is no member, `{}`; empty if the body is no
    object of results.
    """
    if endpoint.shape.path is not ResultPath.OBJECT:
        return b""
    return b"}" if any(part.key is not None for part in endpoint.shape.parts) else b"{}"
