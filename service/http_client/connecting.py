"""Opening connections: resolve the name, check the addresses with the guard, connect by TCP, start TLS.

Every new connection resolves its host again, and connects to the addresses that were checked: no second resolution in
between could return other ones.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import cached_property

from rowcall.core.outgoing.address import Origin, literal_ip
from rowcall.core.outgoing.guard import Guard
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.http_client.errors import NotReachedError
from rowcall.service.http_client.http1 import Http1Connection
from rowcall.service.http_client.http2 import Http2Connection

Connection = Http1Connection | Http2Connection

CONNECT_WITHIN = 10.0
"""Seconds for one address, including TLS."""


class ConnectionOpener:
    """Opens the connections of one HTTP client."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """TLS settings: certificates are verified, with the authorities of the system and the configured ones."""
        return self._new_context()

    def _new_context(self) -> ssl.SSLContext:
        options = self._options
        context = ssl.create_default_context()
        if options.ca_file is not None:
            context.load_verify_locations(options.ca_file)
        context.set_alpn_protocols(["h2", "http/1.1"] if options.http2 else ["http/1.1"])
        return context

    @cached_property
    def _tls_with_certificate(self) -> ssl.SSLContext:
        """The same settings with the client certificate of the options."""
        options = self._options
        if options.certificate is None:
            return self._tls
        context = self._new_context()
        context.load_cert_chain(options.certificate, options.certificate_key)
        return context

    def _tls_for(self, origin: Origin, guard: Guard | None) -> ssl.SSLContext | None:
        """Return the TLS settings for a host; None for http. A host that a request or a redirect has selected gets the
        client certificate only if the guard lists it. guard: None for a host that the operator has named.
        """
        if origin.scheme != "https":
            return None
        return self._tls_with_certificate if guard is None or guard.lists_host(origin) else self._tls

    async def open_connection(
        self, origin: Origin, guard: Guard | None, on_free: Callable[[Connection], None]
    ) -> Connection:
        """Open a connection. guard: None for a host that the operator has named. on_free: called when the connection
        can take a request again, or is closed.

        Raises:
            NotReachedError: no address can be reached.
            RefusedError: one of the addresses of the host is not allowed.
        """
        addresses = await self._resolve(origin)
        if guard is not None:
            for address in addresses:
                guard.check_address(origin, ipaddress.ip_address(address.partition("%")[0]))
        tls = self._tls_for(origin, guard)
        last: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_WITHIN):
                    return await self._connect(origin, address, tls, on_free)
            except TimeoutError:
                last = OSError(f"no answer within {CONNECT_WITHIN:g} s")
            except (OSError, ssl.SSLError) as error:
                last = error
        raise NotReachedError(f"no connection to {origin.authority}: {_reason(last)}")

    async def _resolve(self, origin: Origin) -> list[str]:
        """Return the IP addresses of the host. Raises `NotReachedError` if its name is not known."""
        if literal_ip(origin.host) is not None:
            return [origin.host]
        loop = asyncio.get_running_loop()
        try:
            result = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NotReachedError(f"the name {origin.host} is not known: {_reason(error)}") from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in result))

    async def _connect(
        self, origin: Origin, address: str, tls: ssl.SSLContext | None, on_free: Callable[[Connection], None]
    ) -> Connection:
        """Connect to one IP address; with TLS, the server selects HTTP/2 or HTTP/1.1. tls: None for http. Raises
        OSError.
        """
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            lambda: Http1Connection(on_free),
            address,
            origin.port,
            ssl=tls,
            server_hostname=None if tls is None else origin.host,
        )
        if tls is not None and transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
            second = Http2Connection(on_free)
            transport.set_protocol(second)
            second.connection_made(transport)
            return second
        return connection


def _reason(error: Exception | None) -> str:
    """Return why a host could not be reached, for the message of an error. None: it has no address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "no address" if error is None else str(error) or type(error).__name__
