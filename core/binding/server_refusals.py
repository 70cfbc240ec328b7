"""Errors for values that only the server can check (an enum, a domain, json …) and that it has refused while parsing
the arguments.

Since version 14 PostgreSQL names the argument in the context of the error. No statement has run by then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rowcall.core.endpoint.endpoint import EndpointParameter
from rowcall.core.errors.binding_error import BindingError, Fault, type_word

_ARGUMENT = re.compile(r"portal (?:\"[^\"]*\" )?parameter \$(\d+)")


def refused_argument(context: str | None) -> int | None:
    """Return the number of the refused argument, from 1; None if the error has another reason. context: of the
    error."""
    match = _ARGUMENT.search(context) if context else None
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class ServerRefusals:
    """Makes the errors for requests with a value that PostgreSQL has refused. Each error names the parameter of the
    value.

    parameters: of one endpoint. own: indexes of parameters that the service fills, which callers cannot correct.
    columns: names of the columns of a table, by `EndpointParameter.position`; empty for other endpoints. The argument
    `mask` of methods is that of `Binding`.
    """

    parameters: Sequence[EndpointParameter]
    own: Collection[int] = ()
    columns: Sequence[str | None] = ()
    version: int | None = None
    """Index of the parameter that `If-Match` or `If-None-Match` fills: a value that is no version fits no row."""

    def error(self, mask: int, place: int, message: str) -> BindingError | None:
        """Return the error for an argument that PostgreSQL has refused: status 400, or 412 for the version in the
        header If-Match; None: callers did not send the argument. place: its index among the values in the call, from 0.
        message: of PostgreSQL."""
        present = [index for index in range(len(self.parameters)) if mask >> index & 1]
        if not 0 <= place < len(present) or present[place] in self.own:
            return None
        if present[place] == self.version:
            return BindingError(412, f"the header If-Match has no version of the row: {message}")
        return _error(f"{_place(self.parameters[present[place]])}: {message}", self.parameters[present[place]])

    def generated_column_error(self, mask: int, column: str) -> BindingError | None:
        """Return the error for a value that a request sends for a generated column (SQLSTATE 428C9); None: it sends
        none.

        For a view, the service cannot know that the column of its table is generated.
        """
        index = self._index(column)
        if index is None or not mask >> index & 1:
            return None
        parameter = self.parameters[index]
        return _error(f"{_place(parameter)}: the database makes this value itself; leave it out", parameter)

    def without_value(self, mask: int, values: Sequence[object], column: str) -> Fault | None:
        """Return the fault of a not-null violation (SQLSTATE 23502): the request has no value, or null.

        None: callers cannot write the column, or have sent a value, which a trigger has replaced. values: those in the
        call.
        """
        index = self._index(column)
        if index is None:
            return None
        parameter = self.parameters[index]
        name = parameter.api_name
        if not mask >> index & 1:
            return Fault(name, name, f"{_place(parameter)} is required", invalid_value=False)
        value = values[(mask & ((1 << index) - 1)).bit_count()]
        return Fault(name, name, f"{_place(parameter)}: null is not allowed") if value is None else None

    def request_name(self, column: str) -> str:
        """Return the name of the parameter that callers write `column` with, or `column` if there is none."""
        index = self._index(column)
        return column if index is None else self.parameters[index].api_name

    def _index(self, column: str) -> int | None:
        """Return the index of the parameter with which callers write the column; None: there is none."""
        if column not in self.columns:
            return None
        position = self.columns.index(column)
        result = (index for index, item in enumerate(self.parameters) if item.position == position)
        return next((index for index in result if index not in self.own), None)


def _place(parameter: EndpointParameter) -> str:
    return f"parameter '{parameter.api_name}' ({type_word(parameter.type_text)})"


def _error(detail: str, parameter: EndpointParameter) -> BindingError:
    return BindingError(400, detail, faults=[Fault(parameter.api_name, parameter.api_name, detail)])
