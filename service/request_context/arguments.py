"""Changes of arguments of a bound request by the service itself, by the index of their parameter."""

from __future__ import annotations

from rowcall.service.request_context.request_context import RequestContext


def set_argument(context: RequestContext, index: int, value: bytes | None) -> None:
    """Set the value of a parameter in a bound request; a value that the request has supplied is replaced. index: of the
    parameter among those of the endpoint. `context.has_null` is not changed; the caller has to set it."""
    bit = 1 << index
    position = (context.mask & (bit - 1)).bit_count()
    if context.mask & bit:
        context.arguments[position] = value
    else:
        context.arguments.insert(position, value)
        context.mask |= bit


def remove_argument(context: RequestContext, index: int) -> None:
    """Remove the value of a parameter from a bound request, if there is one, so that the parameter is not passed.
    index: of the parameter among those of the endpoint. `context.has_null` is not changed; the caller has to set it."""
    bit = 1 << index
    if context.mask & bit:
        del context.arguments[(context.mask & (bit - 1)).bit_count()]
        context.mask &= ~bit


def record_nulls(context: RequestContext, ignored: frozenset[int]) -> None:
    """Set `context.has_null`: whether an argument is NULL, except those of ignored parameters. ignored: indexes of
    parameters among those of the endpoint.
    """
    position = 0
    context.has_null = False
    for index in range(context.mask.bit_length()):
        if context.mask >> index & 1:
            context.has_null |= context.arguments[position] is None and index not in ignored
            position += 1
