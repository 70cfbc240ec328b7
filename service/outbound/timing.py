"""`Server-Timing` of requests that go out, where `HttpServer:ServerTiming` asks for it."""

from __future__ import annotations

from rowcall.service.exchange.exchange import Exchange
from rowcall.service.exchange.head import HeadProtocol
from rowcall.service.exchange.protocols import HeadersProtocol


def tell_time(exchange: Exchange, name: str, seconds: float) -> None:
    """Adds `name;dur=12.3` (milliseconds) to whatever is answered."""
    if type(exchange.protocol) is not HeadProtocol:
        header = ("server-timing", f"{name};dur={seconds * 1000:.3f}")
        exchange.protocol = HeadersProtocol(exchange.protocol, [header])
