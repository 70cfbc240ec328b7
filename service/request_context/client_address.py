"""The client of a request: address and scheme, as reported by trusted proxies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowcall.core.http.forwarded_headers import Client, Forwarding, client_of, parse_address


def client_reader(options: Forwarding) -> Callable[[Any], Client]:
    """Return the function that reads the client from the scope of a request."""

    def read(scope: Any) -> Client:
        return client_of(options, lines_of(scope.headers), scope.client, scope.scheme)

    return read


def lines_of(headers: Any) -> Callable[[str], list[str]]:
    """Return the function that returns the lines of a header. A proxy adds its entry to the line of the client, so that
    a line counts although another entry in it is not ASCII."""
    lines: Callable[[str], list[str]] = getattr(headers, "decoded_all", None) or headers.get_all
    return lines


def address_reader(options: Forwarding) -> Callable[[Any], bytes | None]:
    """Return the function that reads only the address, for parameters and session variables; None: it is unknown, as
    for a Unix socket. Without proxies it is the address of the peer.
    """
    if options.enabled:
        read = client_reader(options)

        def read_forwarded_address(scope: Any) -> bytes | None:
            address = read(scope).address
            return None if address is None else address.encode()

        return read_forwarded_address
    addresses: dict[str, bytes | None] = {}

    def direct(scope: Any) -> bytes | None:
        peer: str = scope.client
        # One connection sends many requests with the same peer text, which includes the port.
        if peer in addresses:
            return addresses[peer]
        address = parse_address(peer)
        if len(addresses) >= 4096:
            addresses.clear()
        result = addresses[peer] = None if address is None else str(address).encode()
        return result

    return direct
