"""SQL text of a call, for an endpoint and the set of supplied parameters.

The set is a bit mask over `endpoint.parameters` (bit i for parameter i), so that callers can cache the text and its
prepared statement under one small integer. Values are never part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rowcall.core.catalogue.catalog import ParameterMode, RoutineKind
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.endpoint.response_set_by_sql import rows_that_set_response
from rowcall.core.text.naming import quote_identifier, quote_qualified


class UncallableError(Exception):
    """No SQL can omit exactly the arguments that a request omits, so the request cannot be served (execution-3)."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A request value, and its SQL in the call."""

    parameter: EndpointParameter
    sql: str | None
    """`$n::type`; None if the parameter is absent."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of the call. position: in the whole argument list, from 0. name: None: unnamed. sql: None: absent."""

    position: int
    name: str | None
    sql: str | None
    variadic: bool = False


def all_present(endpoint: Endpoint) -> int:
    """Return the mask of a request that supplies every parameter."""
    return (1 << len(endpoint.parameters)) - 1


def call_sql(endpoint: Endpoint, present: int) -> str:
    """Return `select "a", ("b")."c" from "shop"."f"("_x" => $1::integer)`, `call …` for a procedure, or the SQL of the
    routine's `source`. If the endpoint has a `query`, that SQL is inside of it.

    present: mask of the supplied parameters, with bit i for parameter i. The n-th of them is `$n`. Absent parameters
    with a server-side default are omitted; absent fields of a composite are NULL.

    Raises `UncallableError` if an argument before a positional one is absent, or if the `source` has no statement for
    these values. Unnamed arguments are positional; if a variadic argument is absent, all are.
    """
    if endpoint.query is not None:
        inner: Endpoint = endpoint.query.inner
        own = present & all_present(inner)
        return endpoint.query.wrap_statement(call_sql(inner, own), own.bit_count())
    routine = endpoint.routine
    if routine.source is not None:
        return routine.source.sql(endpoint, present)
    arguments = ", ".join(_format_arguments(_arguments(endpoint, present)))
    call = f"{quote_qualified(routine.schema, routine.name)}({arguments})"
    if routine.kind is RoutineKind.PROCEDURE:
        return f"call {call}"
    if endpoint.response_set_by_columns:
        expressions = ", ".join(column.expression for column in endpoint.shape.columns) or "1"
        return f"select {expressions} from {rows_that_set_response(endpoint, call)}"
    if not endpoint.shape.columns:
        return f"select {call}{endpoint.shape.cast}"
    return f"select {', '.join(column.expression for column in endpoint.shape.columns)} from {call}"


def _arguments(endpoint: Endpoint, present: int) -> list[_Argument]:
    """Return all arguments in the order of the signature, including absent ones. present: as for `call_sql`."""
    routine = endpoint.routine
    arguments = [_Argument(out.argument, out.name, "null") for out in routine.out_parameters]
    for position, slots in groupby(_slots(endpoint, present), key=lambda slot: slot.parameter.position):
        declared = routine.parameters[position]
        group = list(slots)
        arguments.append(
            _Argument(declared.argument, declared.name, _value(group), declared.mode is ParameterMode.VARIADIC)
        )
    return sorted(arguments, key=lambda argument: argument.position)


def _slots(endpoint: Endpoint, present: int) -> Iterator[_Slot]:
    """Yield the request values of the endpoint in order. present: as for `call_sql`."""
    number = 0
    for index, parameter in enumerate(endpoint.parameters):
        if present >> index & 1:
            number += 1
            yield _Slot(parameter, f"${number}::{parameter.cast}")
        else:
            yield _Slot(parameter, None)


def _value(slots: list[_Slot]) -> str | None:
    """Return the SQL of an argument from its slots; None if it is absent.

    A composite is always sent; if all its fields are absent, as a row of NULLs (binding-4).
    """
    composite = slots[0].parameter.composite
    if composite is None:
        return slots[0].sql
    return f"row({', '.join(slot.sql or 'null' for slot in slots)})::{composite}"


def _format_arguments(arguments: list[_Argument]) -> Iterator[str]:
    """Yield the arguments in SQL, by name if possible. Positional arguments precede and have no gaps.

    arguments: all of them, in the order of the signature. Raises `UncallableError` if an argument before a positional
    one is absent.
    """
    present = [argument for argument in arguments if argument.sql is not None]
    last_positional = max((argument.position for argument in _positional(arguments)), default=-1)
    missing = next((gap for gap in arguments if gap.sql is None and gap.position < last_positional), None)
    if missing is not None:
        raise UncallableError(
            f"argument {missing.position + 1} cannot be left out when a later positional one is given"
        )
    for argument in present:
        notation = "" if argument.position <= last_positional else f"{quote_identifier(argument.name or '')} => "
        yield f"{'variadic ' if argument.variadic else ''}{notation}{argument.sql}"


def _positional(arguments: list[_Argument]) -> Iterator[_Argument]:
    """Yield the present arguments that have no name in the call: unnamed ones, or all if a variadic argument is absent,
    because PostgreSQL then does not match names."""
    nameless = any(argument.variadic and argument.sql is None for argument in arguments)
    return (argument for argument in arguments if argument.sql is not None and (nameless or argument.name is None))
