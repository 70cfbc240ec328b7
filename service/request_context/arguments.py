"""Values of a bound request that the service itself gives or takes away, by the index of their parameter."""

from __future__ import annotations

from rowcall.service.request_context.request_context import RequestContext


def set_argument(context: RequestContext, index: int, value: bytes | None) -> None:
    """Gives a parameter its value, whatever the request had for it."""
    bit = 1 << index
    position = (context.mask & (bit - 1)).bit_count()
    if context.mask & bit:
        context.arguments[position] = value
    else:
        context.arguments.insert(position, value)
        context.mask |= bit


def remove_argument(context: RequestContext, index: int) -> None:
    """The parameter is no longer part of the call."""
    bit = 1 << index
    if context.mask & bit:
        del context.arguments[(context.mask & (bit - 1)).bit_count()]
        context.mask &= ~bit
