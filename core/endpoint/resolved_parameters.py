"""Resolved parameters: SQL in a comment → a statement and the parameters it needs (execution-17 to execution-19).

Every `{name}` becomes a `$n` of its own, so that a value of a request is never part of the SQL text. Within quotes and
comments it stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.endpoint.template import placeholder_names
from rowcall.core.errors.diagnostics import Diagnostic

_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*|\$\d+)\}")
"""What could be a name: braces of JSON and of arrays stay."""
_STATEMENT = re.compile(r"\s*(?:\(\s*)*(?:select|with|values|table|insert|update|delete|merge)\b", re.IGNORECASE)
"""What may stand in a common table expression."""


@dataclass(frozen=True, slots=True)
class Resolved(Record):
    """One parameter that the database fills."""

    target: int
    """Index of the parameter."""
    sql: str
    typed: str
    """The same with every value cast to the type of its parameter, for what PostgreSQL cannot infer."""
    values: tuple[int | None, ...]
    """For `$1` and on: index of a parameter, None where the name is none: NULL."""
    line: str
    """As written, for messages."""


def resolved_parameters(endpoint: Endpoint) -> tuple[Resolved, ...]:
    """In the order of the comment. Composite parameters have no single value and are left alone."""
    targets = {
        parameter.db_name: index for index, parameter in enumerate(endpoint.parameters) if parameter.attribute is None
    }
    names = placeholder_names(endpoint.parameters)
    return tuple(
        _resolved(targets[name], f"{name} = {expression}", expression, names, endpoint.parameters)
        for name, expression in endpoint.options.expressions
        if name in targets
    )


def bound_parameters(endpoint: Endpoint) -> tuple[EndpointParameter, ...]:
    """The parameters as binding shall see them: what will be filled need not be sent, nor be right."""
    targets = unsupplied_parameters(endpoint) | endpoint.outgoing.filled
    return tuple(
        replace(one, has_default=True, kind=ValueKind.TEXT, array=False) if index in targets else one
        for index, one in enumerate(endpoint.parameters)
    )


def metadata_parameter(endpoint: Endpoint) -> int | None:
    """Index of the parameter that receives the metadata of uploaded files."""
    upload = endpoint.options.upload
    if upload is None or upload.metadata is None:
        return None
    names = (index for index, one in enumerate(endpoint.parameters) if one.db_name == upload.metadata)
    return next(names, None)


def unsupplied_parameters(endpoint: Endpoint) -> frozenset[int]:
    """Indexes of the parameters that only the service fills: what a request has for them is dropped."""
    metadata = metadata_parameter(endpoint)
    resolved = frozenset(one.target for one in resolved_parameters(endpoint))
    return resolved if metadata is None else resolved | {metadata}


def expression_diagnostics(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Names in braces that are none, and parameters that an expression cannot fill."""
    if not endpoint.options.expressions:
        return
    identity = endpoint.routine.identity
    names = placeholder_names(endpoint.parameters)
    filled = {endpoint.parameters[one.target].db_name for one in resolved_parameters(endpoint)}
    for name, expression in endpoint.options.expressions:
        line = f"{name} = {expression}"
        if name not in filled:
            yield Diagnostic(identity, line, f"{name} is a composite, which no expression can fill; it is not used")
        values, kept = _placeholders(expression)
        for word in (one[1] for one in values if one[1].lower() not in names):
            yield Diagnostic(identity, line, f"{{{word}}} names no parameter and is NULL")
        for word in (one[1] for one in kept if one[1].lower() in names):
            message = f"{{{word}}} stands within quotes, where it is text and no value; write it outside"
            yield Diagnostic(identity, line, message)


def _resolved(
    target: int, line: str, expression: str, names: Mapping[str, int], parameters: Sequence[EndpointParameter]
) -> Resolved:
    placeholders, _kept = _placeholders(expression)
    values = tuple(names.get(one[1].lower()) for one in placeholders)
    types = ("text" if index is None else parameters[index].cast for index in values)
    numbered = [f"${number}" for number, _ in enumerate(values, 1)]
    cast = [f"{number}::{type}" for number, type in zip(numbered, types, strict=True)]
    untyped, typed = (_as_text(_written(expression, placeholders, each)) for each in (numbered, cast))
    return Resolved(target, untyped, typed, values, line)


def _placeholders(expression: str) -> tuple[list[re.Match[str]], list[re.Match[str]]]:
    """Those that stand for values, and those within quotes and comments, where no parameter can be."""
    found = list(_PLACEHOLDER.finditer(expression))
    if not found:
        return found, []
    # Only who has expressions needs it: each worker comes through here.
    from rowcall.core.text.sql_lexer import Kind, tokens

    strings, comments = {Kind.STRING, Kind.DOLLAR_STRING, Kind.QUOTED_NAME}, {Kind.LINE_COMMENT, Kind.BLOCK_COMMENT}
    closed = [range(one.start, one.end) for one in tokens(expression) if one.kind in strings | comments]
    kept = [one for one in found if any(one.start() in each for each in closed)]
    return [one for one in found if one not in kept], kept


def _written(expression: str, placeholders: Iterable[re.Match[str]], values: Iterable[str]) -> str:
    written, end = "", 0
    for placeholder, value in zip(placeholders, values, strict=True):
        written += expression[end : placeholder.start()] + value
        end = placeholder.end()
    return written + expression[end:]


def _as_text(sql: str) -> str:
    """First column of the first row, as text whatever its type is; a bare expression is selected."""
    statement = sql.rstrip("; \t")
    if not _STATEMENT.match(statement):
        statement = f"select {statement}"
    return f"with resolved(value) as ({statement}) select value::text from resolved limit 1"
