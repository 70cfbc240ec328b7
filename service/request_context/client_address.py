"""The client of a request: address and scheme, behind trusted proxies as these report them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowcall.core.http.forwarded_headers import Client, Forwarding, client_of, parse_address


def client_reader(options: Forwarding) -> Callable[[Any], Client]:
    """Reads the client of a request's scope."""

    def read(scope: Any) -> Client:
        return client_of(options, scope.headers.get_all, scope.client, scope.scheme)

    return read


def address_reader(options: Forwarding) -> Callable[[Any], bytes | None]:
    """Reads only the address, for parameters and session variables. Without proxies it is the peer's."""
    if options.enabled:
        read = client_reader(options)

        def forwarded(scope: Any) -> bytes | None:
            address = read(scope).address
            return None if address is None else address.encode()

        return forwarded
    known: dict[str, bytes | None] = {}

    def direct(scope: Any) -> bytes | None:
        peer: str = scope.client
        # One connection sends many requests, and its port makes it the same text each time.
        if peer in known:
            return known[peer]
        address = parse_address(peer)
        if len(known) >= 4096:
            known.clear()
        result = known[peer] = None if address is None else str(address).encode()
        return result

    return direct
