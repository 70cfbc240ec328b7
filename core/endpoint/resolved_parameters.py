"""Resolved parameters: SQL expressions in a comment → a statement and its parameters (execution-17 to execution-19).

Every `{name}` becomes a `$n`, so that a request value is never part of the SQL text. In quotes and comments, braces are
unchanged.
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
"""Braces that may contain a parameter name. Braces of JSON and of arrays do not match."""
_STATEMENT = re.compile(r"\s*(?:\(\s*)*(?:select|with|values|table|insert|update|delete|merge)\b", re.IGNORECASE)
"""Beginning of a statement that a common table expression may contain."""


@dataclass(frozen=True, slots=True)
class ResolvedParameter(Record):
    """A parameter that an SQL expression of the comment fills. sql: the statement with `$n` for values of the
    request."""

    target: int
    """Index of the parameter."""
    sql: str
    typed: str
    """The same statement with every value cast to the type of its parameter, for types that PostgreSQL cannot infer."""
    values: tuple[int | None, ...]
    """For `$1` and following: index of a parameter, None for an unknown name, whose value is NULL."""
    line: str
    """The line as written, for messages."""


def resolved_parameters(endpoint: Endpoint) -> tuple[ResolvedParameter, ...]:
    """Return the resolved parameters in the order of the comment. Fields of composites are left out."""
    targets = {
        parameter.db_name: index for index, parameter in enumerate(endpoint.parameters) if parameter.attribute is None
    }
    names = placeholder_names(endpoint.parameters)
    return tuple(
        _resolve_expression(targets[name], f"{name} = {expression}", expression, names, endpoint.parameters)
        for name, expression in endpoint.options.expressions
        if name in targets
    )


def binding_parameters(endpoint: Endpoint) -> tuple[EndpointParameter, ...]:
    """Return the parameters for binding: those that expressions, uploads or outgoing requests fill are optional, and
    their values are ignored if sent."""
    targets = unsupplied_parameters(endpoint) | endpoint.outgoing.filled
    return tuple(
        replace(parameter, has_default=True, kind=ValueKind.TEXT, array=False, ignored=True)
        if index in targets
        else parameter
        for index, parameter in enumerate(endpoint.parameters)
    )


def metadata_parameter(endpoint: Endpoint) -> int | None:
    """Return the index of the parameter that receives the metadata of uploaded files, or None."""
    upload = endpoint.options.upload
    if upload is None or upload.metadata is None:
        return None
    names = (index for index, parameter in enumerate(endpoint.parameters) if parameter.db_name == upload.metadata)
    return next(names, None)


def unsupplied_parameters(endpoint: Endpoint) -> frozenset[int]:
    """Return the indexes of the resolved parameters and of the one for the metadata of uploads. Values of a request for
    them are dropped."""
    metadata = metadata_parameter(endpoint)
    resolved = frozenset(item.target for item in resolved_parameters(endpoint))
    return resolved if metadata is None else resolved | {metadata}


def expression_diagnostics(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Report unknown names in braces, placeholders within quotes or comments, and parameters that an expression
    cannot fill."""
    if not endpoint.options.expressions:
        return
    identity = endpoint.routine.identity
    names = placeholder_names(endpoint.parameters)
    filled = {endpoint.parameters[item.target].db_name for item in resolved_parameters(endpoint)}
    for name, expression in endpoint.options.expressions:
        line = f"{name} = {expression}"
        if name not in filled:
            yield Diagnostic(identity, line, f"{name} is a composite, which no expression can fill; it is not used")
        values, quoted = _placeholders(expression)
        for word in (match[1] for match in values if match[1].lower() not in names):
            yield Diagnostic(identity, line, f"{{{word}}} names no parameter and is NULL")
        for word in (match[1] for match in quoted if match[1].lower() in names):
            message = f"{{{word}}} is within quotes, where it is text and not a value; write it outside of quotes"
            yield Diagnostic(identity, line, message)


def _resolve_expression(
    target: int, line: str, expression: str, names: Mapping[str, int], parameters: Sequence[EndpointParameter]
) -> ResolvedParameter:
    """Return the resolved parameter of an expression. target: its index. line: the line as written. names: from
    `placeholder_names`."""
    placeholders, _quoted = _placeholders(expression)
    values = tuple(names.get(match[1].lower()) for match in placeholders)
    types = ("text" if index is None else parameters[index].cast for index in values)
    numbered = [f"${number}" for number, _ in enumerate(values, 1)]
    cast = [f"{number}::{type}" for number, type in zip(numbered, types, strict=True)]
    untyped, typed = (_as_text(_replace_placeholders(expression, placeholders, each)) for each in (numbered, cast))
    return ResolvedParameter(target, untyped, typed, values, line)


def _placeholders(expression: str) -> tuple[list[re.Match[str]], list[re.Match[str]]]:
    """Return the placeholders that are values, and those in quotes and comments, where SQL allows no parameter."""
    matches = list(_PLACEHOLDER.finditer(expression))
    if not matches:
        return matches, []
    # Imported here for the same reason as in `_as_text`.
    from rowcall.core.text.sql_lexer import Kind, tokens

    strings, comments = {Kind.STRING, Kind.DOLLAR_STRING, Kind.QUOTED_NAME}, {Kind.LINE_COMMENT, Kind.BLOCK_COMMENT}
    closed = [range(token.start, token.end) for token in tokens(expression) if token.kind in strings | comments]
    quoted = [match for match in matches if any(match.start() in each for each in closed)]
    return [match for match in matches if match not in quoted], quoted


def _replace_placeholders(expression: str, placeholders: Iterable[re.Match[str]], values: Iterable[str]) -> str:
    """Return the expression with values in place of its placeholders, one for each."""
    text, end = "", 0
    for placeholder, value in zip(placeholders, values, strict=True):
        text += expression[end : placeholder.start()] + value
        end = placeholder.end()
    return text + expression[end:]


def _as_text(sql: str) -> str:
    """Return a statement for the first column of the first row, as text. A bare expression is selected."""
    # Imported only for expressions, which few services have, because each worker runs this.
    from rowcall.core.text.sql_lexer import statement_span

    statement = sql[statement_span(sql)].rstrip()
    if not _STATEMENT.match(statement):
        statement = f"select {statement}"
    return f"with resolved(value) as ({statement}) select value::text from resolved limit 1"
