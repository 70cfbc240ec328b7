"""Listening sockets: opened by the supervisor, inherited by workers, and open while a worker is replaced."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import socket
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rowcall.service.sockets.inherited_sockets import InheritedSockets
from rowcall.service.startup_error import StartupError

if TYPE_CHECKING:
    from rowcall.service.sockets.certificates import Certificate, CertificateFiles, PemFile

log = logging.getLogger("rowcall")

BACKLOG = 4096
"""Maximum number of connections that wait to be accepted, for each socket."""

# Linux distributes connections over sockets that share a port. On other systems all workers accept from one socket.
SPREADS = sys.platform == "linux"

_UNIX = "unix:"
_EVERYWHERE = re.compile(r"\A([A-Za-z]+://)[*+](?=[:/]|\Z)")
_LOOPBACK = ("127.0.0.1", "::1")
_ANY = "::"
_ANY_IPV4 = "0.0.0.0"  # noqa: S104 (only if configured)
_ABSENT = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT))
"""Errors of a machine without IPv6: not in the kernel, or disabled."""
_TRIES = 16
"""Maximum number of attempts to find a port that is free on both addresses of `localhost`."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on. port: 0: a free one. If `unix` is true, `host` is the path of the socket, and there is
    no port.
    """

    scheme: str
    host: str
    port: int
    unix: bool = False
    everywhere: bool = False
    """Whether the host was written as `*` or `+`."""

    @classmethod
    def parse(cls, url: str, key: str = "Urls") -> Address:
        """Parse `http://localhost:8080` or `http://unix:/run/rowcall.sock`.

        The hosts `*` and `+` mean every interface, with IPv6 if the machine has it. Raises `StartupError` that names
        `key`.
        """
        text = url.strip()
        scheme, mark, rest = text.partition("://")
        if text.startswith(_UNIX) or (mark and rest.startswith(_UNIX)):
            return cls._of_path(scheme if mark else "http", text.partition(_UNIX)[2], key)
        try:
            parts = urlsplit(_EVERYWHERE.sub(lambda match: f"{match[1]}{_every_interface()}", text))
            port = parts.port
        except ValueError as error:
            raise StartupError(f"{key}: {url!r} is not a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StartupError(f"{key}: {url!r} is not an http or https URL")
        port = (443 if parts.scheme == "https" else 80) if port is None else port
        return cls(parts.scheme, parts.hostname, port, everywhere=_EVERYWHERE.match(text) is not None)

    @classmethod
    def _of_path(cls, scheme: str, path: str, key: str) -> Address:
        """Return the address of the Unix socket at `path`. Raises `StartupError` that names `key` for another scheme
        than `http`, and for a relative path.
        """
        if scheme != "http" or not path.startswith("/"):
            raise StartupError(f"{key}: a Unix socket is written http://unix:/absolute/path, without TLS")
        return cls("http", path, 0, unix=True)

    @property
    def secure(self) -> bool:
        """Whether connections use TLS."""
        return self.scheme == "https"

    @property
    def bound_hosts(self) -> tuple[str, ...]:
        """The hosts to bind. `localhost` means both loopback addresses, since clients may try either one first (RFC
        6761, 6.3).
        """
        return _LOOPBACK if self.host == "localhost" else (self.host,)

    def url(self, port: int) -> str:
        """Return the address as a URL. port: the bound port, which differs from that of the address if that is 0;
        ignored for a Unix socket."""
        if self.unix:
            return f"http://unix:{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


def tcp_urls(urls: Iterable[str]) -> list[str]:
    """Return the URLs of listeners (`Address.url`) without those of Unix sockets, to which HTTP clients have no URL."""
    return [url for url in urls if not url.startswith(f"http://{_UNIX}")]


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """A configured listener. protocols: `1`, `2` or `auto`, the supported HTTP versions. certificate: None: none is
    configured. only_tls13: TLS 1.2 is refused.
    """

    address: Address
    protocols: str = "auto"
    certificate: CertificateFiles | None = None
    only_tls13: bool = False


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files for a worker, and the descriptors that it must inherit to open them. chain: the certificates.
    key: the private key. oldest: minimum TLS version.
    """

    chain: str
    key: str
    descriptors: tuple[int, ...]
    oldest: str = "tls1.2"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket as a worker inherits it. tls: None: connections do not use TLS. protocols: as for
    `ListenerPlan`.
    """

    fd: int
    tls: Tls | None = None
    unix: bool = False
    protocols: str = "auto"

    @property
    def secure(self) -> bool:
        """Whether connections use TLS."""
        return self.tls is not None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that a worker has to inherit."""
        return (self.fd, *(self.tls.descriptors if self.tls else ()))


def certificate_of(plan: ListenerPlan) -> Certificate:
    """Return the certificate of an https listener. Raises `StartupError` if there is no usable one."""
    if plan.certificate is None:
        raise StartupError(
            f"{plan.address.url(plan.address.port)}: an https URL needs a certificate: "
            "HttpServer:Certificates:Default:Path and KeyPath"
        )
    # Imported here because only the supervisor needs it: `cryptography` would take 10 MB in each worker.
    from rowcall.service.sockets.certificates import load_certificate

    return load_certificate(plan.certificate)


class Listeners:
    """The listening sockets of all addresses: one for each address, or on Linux one for each TCP address and worker.
    `localhost` counts as two addresses.

    stay: another process keeps all of them open when this process ends.
    """

    def __init__(
        self,
        plans: Iterable[ListenerPlan],
        workers: int,
        unix_mode: int | None = None,
        inherited: InheritedSockets | None = None,
    ) -> None:
        """Open the sockets, or take over inherited ones. Raises StartupError.

        workers: their number. unix_mode: permissions of Unix sockets; None: the umask decides. inherited: None: there
        are none.
        """
        self.stay = inherited is not None and inherited.stay
        self._inherited = inherited or InheritedSockets()
        self.urls: list[str] = []
        self.https_port: int | None = None
        """Port of the first https address."""
        self._unix_mode = unix_mode
        self._sockets: list[list[tuple[socket.socket, Listener]]] = [[] for _ in range(workers)]
        self._not_listening: list[socket.socket] = []
        self._pem_files: list[PemFile] = []
        self._paths: list[str] = []
        try:
            for plan in plans:
                self._open(plan, workers)
            self._inherited.finish()
        except BaseException:
            self.close()
            raise
        if not self.urls:
            raise StartupError("Urls: there is nothing to listen on")

    def _open(self, plan: ListenerPlan, workers: int) -> None:
        """Open or take over the sockets of an address, and give each worker its listeners. workers: their number.
        Raises StartupError.
        """
        address = plan.address
        tls = self._tls(plan) if address.secure else None
        groups = self._take_inherited(address, workers) or self._open_sockets(address, workers)
        port = 0 if address.unix else groups[0][0].getsockname()[1]
        self.urls.append(address.url(port))
        if address.secure and self.https_port is None:
            self.https_port = port
        for sockets in groups:
            # Each worker gets at least one socket, and each socket belongs to at least one worker.
            for number in range(max(workers, len(sockets))):
                sock = sockets[number % len(sockets)]
                listener = Listener(sock.fileno(), tls, address.unix, plan.protocols)
                self._sockets[number % workers].append((sock, listener))

    def _open_sockets(self, address: Address, workers: int) -> list[list[socket.socket]]:
        """Open the sockets of an address: for each host that it stands for, a list with one socket per worker, or with
        a single one where sockets cannot share a port. workers: their number. Raises StartupError.
        """
        self.stay = False
        if address.unix:
            return [[self._listen_on_path(address.host)]]
        firsts = _bind_all_hosts(address)
        port = firsts[0].getsockname()[1]
        return [self._with_others(first, address, port, workers) for first in firsts]

    def _with_others(self, first: socket.socket, address: Address, port: int, workers: int) -> list[socket.socket]:
        """Listen on a bound socket, and on one more for each further worker where sockets can share a port; return all
        of them. port: that of `first`. workers: their number. Raises StartupError.
        """
        host = first.getsockname()[0]
        sockets = [first, *(_bind_socket(address, host, port) for _ in range(1, workers) if SPREADS)]
        _listen(sockets)
        return sockets

    def _take_inherited(self, address: Address, workers: int) -> list[list[socket.socket]]:
        """Take over inherited sockets of an address, and return them as `_open_sockets` does; empty if there are none.

        If only one address of `localhost` was inherited, the other one is opened too, unless the owner keeps the
        sockets open (systemd), which then decides what is open. workers: their number.
        """
        if address.everywhere:
            places = [host for host in (_ANY, _ANY_IPV4) if (host, address.port) in self._inherited.sockets][:1]
        else:
            places = list(address.bound_hosts)
        inherited = {host: self._inherited.take(host, address.port) for host in places}
        groups = [
            self._complete_inherited(sockets, host, address, workers) for host, sockets in inherited.items() if sockets
        ]
        if groups and not self._inherited.stay:
            for host in (host for host, sockets in inherited.items() if not sockets):
                sock = _bind_if_available(address, host, address.port)
                if sock is not None:
                    groups.append(self._with_others(sock, address, address.port, workers))
        return groups

    def _complete_inherited(
        self, sockets: list[socket.socket], host: str, address: Address, workers: int
    ) -> list[socket.socket]:
        """Return inherited sockets, and further ones if there are fewer than workers and the port can be shared. host:
        to which they are bound. workers: their number.

        The system distributes new connections over all listening sockets, and no worker accepts from the further ones
        yet; so they do not listen before `begin`.
        """
        if address.unix:
            if not self._inherited.stay:
                self._paths.append(address.host)
            return sockets
        for sock in sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not SPREADS or not sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT):
            return sockets
        _ours.add((host, address.port))
        with contextlib.suppress(StartupError):  # another user owns the inherited sockets
            for _ in range(workers - len(sockets)):
                self._not_listening.append(_bind_socket(address, host, address.port))
                sockets.append(self._not_listening[-1])
                self.stay = False
        return sockets

    def _tls(self, plan: ListenerPlan) -> Tls:
        """Write the certificate into files in memory for the workers. Raises StartupError."""
        from rowcall.service.sockets.certificates import PemFile

        certificate = certificate_of(plan)
        files = [PemFile(certificate.chain), PemFile(certificate.key)]
        self._pem_files += files
        oldest = "tls1.3" if plan.only_tls13 else "tls1.2"
        return Tls(files[0].path, files[1].path, tuple(file.descriptor for file in files), oldest)

    def _listen_on_path(self, path: str) -> socket.socket:
        """Return a socket that listens on a Unix path, in place of one that no process uses any more. Raises
        `StartupError`.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            remove_stale(path)
            sock.bind(path)
            self._paths.append(path)
            if self._unix_mode is not None:
                os.chmod(path, self._unix_mode)
            sock.listen(BACKLOG)
            sock.setblocking(False)
        except OSError as error:
            sock.close()
            raise StartupError(f"cannot listen on http://unix:{path}: {error.strerror or error}") from None
        return sock

    def begin(self) -> None:
        """Listen on the sockets that were opened in addition to inherited ones. Call it when the workers are ready to
        accept. Raises StartupError.

        Before, the previous process gets every connection, so that none is lost if this process ends. A second call has
        no effect.
        """
        _listen(self._not_listening)
        self._not_listening = []

    def of(self, worker: int) -> tuple[Listener, ...]:
        """Return the listeners that the worker with this number inherits."""
        return tuple(listener for _, listener in self._sockets[worker])

    @property
    def sockets(self) -> list[socket.socket]:
        """All sockets, each once."""
        return list({sock.fileno(): sock for sockets in self._sockets for sock, _ in sockets}.values())

    def give_away(self) -> None:
        """Leave the sockets to another process: `close` no longer deletes the paths of Unix sockets."""
        self.stay = True
        self._paths = []

    def close(self) -> None:
        """Close all sockets, and delete the paths of Unix sockets that no other process has taken over."""
        for path in self._paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        for sockets in self._sockets:
            for sock, _ in sockets:
                sock.close()
        for file in self._pem_files:
            file.close()
        self._paths, self._pem_files = [], []


def remove_stale(path: str) -> None:
    """Delete the Unix socket at `path` if no process listens on it, as after a kill.

    Raises OSError for other errors.
    """
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return  # bind reports the error
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def _every_interface() -> str:
    """Return the host of all interfaces: `[::]`, or `0.0.0.0` on a machine without IPv6.

    A socket on `[::]` accepts both families. IPv4 addresses of clients then have the form `::ffff:192.0.2.1` (RFC 4291,
    2.5.5.2), which `core.http.forwarded_headers` reads as IPv4.
    """
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind((_ANY, 0))
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        log.debug("this machine has no IPv6: * is every IPv4 interface")
        return _ANY_IPV4
    return f"[{_ANY}]"


def _bind_all_hosts(address: Address) -> list[socket.socket]:
    """Return bound sockets for the hosts of the address, all on the same port. If the machine lacks a host other than
    the first one (`::1` without IPv6), that host is left out. Raises StartupError."""
    first, *others = address.bound_hosts
    for attempt in range(_TRIES):
        bound = [_bind_socket(address, first, address.port)]
        port = bound[0].getsockname()[1]
        try:
            bound += (sock for host in others if (sock := _bind_if_available(address, host, port)) is not None)
        except StartupError:
            for sock in bound:
                sock.close()
            if address.port or attempt == _TRIES - 1:
                raise
        else:
            return bound
    raise AssertionError("the last try raises")


def _bind_if_available(address: Address, host: str, port: int) -> socket.socket | None:
    """Return a socket that is bound to this host and port, or None if the machine has no such address. address: for
    messages. Raises StartupError.
    """
    try:
        return _bind_socket(address, host, port)
    except StartupError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _ABSENT:
            log.debug("%s is not listened on: this machine has no IPv6", host)
            return None
        raise


def _bind_socket(address: Address, host: str, port: int) -> socket.socket:
    """Return a socket that is bound to this host and port and does not listen yet. address: for messages. Raises
    StartupError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _take_both_families(sock, host)
        # Accepted connections inherit TCP_NODELAY. Without it the end of a streamed body waits 40 ms for the
        # acknowledgement of the data before it (Nagle's algorithm with delayed acknowledgements).
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if SPREADS:
            _refuse_foreign_owner(family, host, port)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
        _ours.add((host, sock.getsockname()[1]))
        sock.setblocking(False)
    except OSError as error:
        if sock is not None:
            sock.close()
        where = address.url(port)
        where += f" ({host})" if host != address.host else ""
        raise StartupError(f"cannot listen on {where}: {error.strerror or error}") from error
    return sock


def _listen(sockets: Iterable[socket.socket]) -> None:
    """Listen on bound sockets. Raises `StartupError`."""
    for sock in sockets:
        try:
            sock.listen(BACKLOG)
        except OSError as error:
            host, port = sock.getsockname()[:2]
            raise StartupError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


def _take_both_families(sock: socket.socket, host: str) -> None:
    """Let a socket that will be bound to `[::]` accept IPv4 too, and one on another IPv6 host only IPv6, independent of
    the system default (`net.ipv6.bindv6only`). An IPv4 socket is left as it is.
    """
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != _ANY)


_ours: set[tuple[str, int]] = set()
"""Hosts and ports that this process has bound."""


def _refuse_foreign_owner(family: int, host: str, port: int) -> None:
    """Raise OSError if another process has the port. family: that of the socket to bind.

    SO_REUSEPORT would also share it with another rowcall that runs by mistake, so the first bind is exclusive.
    """
    if port == 0 or (host, port) in _ours:
        return
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _take_both_families(probe, host)
        probe.bind((host, port))
        probe.listen(1)
    _ours.add((host, port))
