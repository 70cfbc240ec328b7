"""Values of a bound request that the service itself gives or takes away, by the index of their parameter."""

from __future__ import annotations

from rowcall.service.exchange.exchange import Exchange


def put(exchange: Exchange, index: int, value: bytes | None) -> None:
    """Gives a parameter its value, whatever the request had for it."""
    bit = 1 << index
    position = (exchange.mask & (bit - 1)).bit_count()
    if exchange.mask & bit:
        exchange.arguments[position] = value
    else:
        exchange.arguments.insert(position, value)
        exchange.mask |= bit


def take_out(exchange: Exchange, index: int) -> None:
    """The parameter is no longer part of the call."""
    bit = 1 << index
    if exchange.mask & bit:
        del exchange.arguments[(exchange.mask & (bit - 1)).bit_count()]
        exchange.mask &= ~bit
