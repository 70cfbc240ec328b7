"""Changes of arguments of a bound request by the service itself, by the index of their parameter."""

from __future__ import annotations

from rowcall.service.request_context.request_context import RequestContext


def set_argument(context: RequestContext, index: int, value: bytes | None) -> None:
    """Set the value of the parameter with this index among those of the endpoint, whatever the request supplied for it.
    `context.has_null` is not changed; the caller has to set it."""
    bit = 1 << index
    position = (context.mask & (bit - 1)).bit_count()
    if context.mask & bit:
        context.arguments[position] = value
    else:
        context.arguments.insert(position, value)
        context.mask |= bit


def remove_argument(context: RequestContext, index: int) -> None:
    """Remove the parameter with this index among those of the endpoint from the call, if it is there.
    `context.has_null` is not changed; the caller has to set it."""
    bit = 1 << index
    if context.mask & bit:
        del context.arguments[(context.mask & (bit - 1)).bit_count()]
        context.mask &= ~bit
