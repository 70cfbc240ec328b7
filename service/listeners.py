"""The listening sockets: opened by the supervisor, handed to workers, kept while a worker is replaced."""

from __future__ import annotations

import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rowcall.service.edition import HttpOptions
from rowcall.service.startup import StartupError

BACKLOG = 4096
"""Connections that may wait to be accepted, for each socket."""

# Linux spreads connections over sockets that share a port. Elsewhere all workers accept from one socket.
SPREADS = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Address:
    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Address:
        """`http://localhost:8080`; `*` and `+` stand for every interface. Raises `StartupError`."""
        try:
            parts = urlsplit(url.strip().replace("://*", "://0.0.0.0").replace("://+", "://0.0.0.0"))
            port = parts.port
        except ValueError as error:
            raise StartupError(f"Urls: {url!r} is not a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StartupError(f"Urls: {url!r} is not an http or https URL")
        return cls(parts.scheme, parts.hostname, (443 if parts.scheme == "https" else 80) if port is None else port)

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    def url(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket as a worker inherits it."""

    fd: int
    secure: bool
    """Speaks TLS."""


class Listeners:
    """For each address one socket, or one for each worker where the system spreads connections."""

    def __init__(self, urls: str, workers: int) -> None:
        addresses = [Address.parse(url) for url in urls.split(";") if url.strip()]
        if not addresses:
            raise StartupError("Urls: there is nothing to listen on")
        self.urls: list[str] = []
        self.secure = any(address.secure for address in addresses)
        self._sockets: list[list[tuple[socket.socket, bool]]] = [[] for _ in range(workers)]
        for address in addresses:
            self._open(address, workers)

    def _open(self, address: Address, workers: int) -> None:
        first = _listen(address, address.port)
        port = first.getsockname()[1]
        self.urls.append(address.url(port))
        for number in range(workers):
            one = first if number == 0 or not SPREADS else _listen(address, port)
            self._sockets[number].append((one, address.secure))

    def of(self, worker: int) -> tuple[Listener, ...]:
        """What a worker inherits."""
        return tuple(Listener(one.fileno(), secure) for one, secure in self._sockets[worker])

    def close(self) -> None:
        for sockets in self._sockets:
            for one, _ in sockets:
                one.close()


def check_certificate(options: HttpOptions) -> None:
    """The certificate that https listeners present. Raises `StartupError` when there is none, or none that works."""
    if options.tls_certificate is None:
        raise StartupError("Urls: an https URL needs a certificate: HttpServer:Certificates:Default:Path and KeyPath")
    key = options.tls_key or options.tls_certificate
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.tls_certificate, key, options.tls_password or "")
        encrypted = "ENCRYPTED" in Path(key).read_text()
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartupError(f"HttpServer:Certificates:Default: {options.tls_certificate}: {reason}") from None
    if encrypted:
        # granian ends its whole process over one.
        raise StartupError(
            f"HttpServer:Certificates:Default: {key} is encrypted; the key must be stored without password"
        )


def _listen(address: Address, port: int) -> socket.socket:
    host = "127.0.0.1" if address.host == "localhost" else address.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it. Without it the end of a streamed body waits 40 ms for the client's
        # acknowledgement of what went before (Nagle's algorithm against delayed acknowledgements).
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if SPREADS:
            _refuse_foreign_owner(family, host, port)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((host, port))
        _ours.add((host, one.getsockname()[1]))
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError as error:
        one.close()
        raise StartupError(f"cannot listen on {address.url(port)}: {error.strerror or error}") from None
    return one


_ours: set[tuple[str, int]] = set()


def _refuse_foreign_owner(family: int, host: str, port: int) -> None:
    """A shared port would also be shared with another rowcall that runs by mistake; so the first bind is exclusive."""
    if port == 0 or (host, port) in _ours:
        return
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
    _ours.add((host, port))
