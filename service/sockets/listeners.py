"""The listening sockets: opened by the supervisor, handed to workers, kept while a worker is replaced."""

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

from rowcall.service.sockets.inherited import Inherited
from rowcall.service.startup_error import StartupError

if TYPE_CHECKING:
    from rowcall.service.sockets.certificates import Certificate, CertificateFiles, PemFile

log = logging.getLogger("rowcall")

BACKLOG = 4096
"""Connections that may wait to be accepted, for each socket."""

# Linux spreads connections over sockets that share a port. Elsewhere all workers accept from one socket.
SPREADS = sys.platform == "linux"

_UNIX = "unix:"
_EVERYWHERE = re.compile(r"\A([A-Za-z]+://)[*+](?=[:/]|\Z)")
_LOOPBACK = ("127.0.0.1", "::1")
_ANY = "::"
_ANY_IPV4 = "0.0.0.0"  # noqa: S104 (where it is asked for)
_ABSENT = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT))
"""What a machine without IPv6 says: none in the kernel, or switched off."""
_TRIES = 16
"""To find a port that is free on both addresses of `localhost`."""


@dataclass(frozen=True, slots=True)
class Address:
    """host is the path of the socket where `unix` is true; there is no port then."""

    scheme: str
    host: str
    port: int
    unix: bool = False
    everywhere: bool = False
    """It was given as `*` or `+`."""

    @classmethod
    def parse(cls, url: str, key: str = "Urls") -> Address:
        """`http://localhost:8080`; `*` and `+` stand for every interface, over IPv6 too where the machine has it;
        `http://unix:/run/rowcall.sock`.

        Raises `StartupError`, naming `key`.
        """
        text = url.strip()
        scheme, mark, rest = text.partition("://")
        if text.startswith(_UNIX) or (mark and rest.startswith(_UNIX)):
            return cls._of_path(scheme if mark else "http", text.partition(_UNIX)[2], key)
        try:
            parts = urlsplit(_EVERYWHERE.sub(lambda found: f"{found[1]}{_every_interface()}", text))
            port = parts.port
        except ValueError as error:
            raise StartupError(f"{key}: {url!r} is not a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StartupError(f"{key}: {url!r} is not an http or https URL")
        port = (443 if parts.scheme == "https" else 80) if port is None else port
        return cls(parts.scheme, parts.hostname, port, everywhere=_EVERYWHERE.match(text) is not None)

    @classmethod
    def _of_path(cls, scheme: str, path: str, key: str) -> Address:
        if scheme != "http" or not path.startswith("/"):
            raise StartupError(f"{key}: a Unix socket is written http://unix:/absolute/path, without TLS")
        return cls("http", path, 0, unix=True)

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def bound_hosts(self) -> tuple[str, ...]:
        """`localhost` is two addresses, and clients try either first (RFC 6761, 6.3): never one for other machines."""
        return _LOOPBACK if self.host == "localhost" else (self.host,)

    def url(self, port: int) -> str:
        if self.unix:
            return f"http://unix:{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


@dataclass(frozen=True, slots=True)
class ListenerPlan:
    """What is to be listened on. protocols: `1`, `2` or `auto`, the HTTP versions that are spoken."""

    address: Address
    protocols: str = "auto"
    certificate: CertificateFiles | None = None
    only_tls13: bool = False


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files that a worker can open, and the descriptors that it has to inherit for that."""

    chain: str
    key: str
    descriptors: tuple[int, ...]
    oldest: str = "tls1.2"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket as a worker inherits it."""

    fd: int
    tls: Tls | None = None
    unix: bool = False
    protocols: str = "auto"

    @property
    def secure(self) -> bool:
        return self.tls is not None

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.fd, *(self.tls.descriptors if self.tls else ()))


def certificate_of(plan: ListenerPlan) -> Certificate:
    """Raises `StartupError` for an address that speaks https and has none that can be used."""
    if plan.certificate is None:
        raise StartupError(
            f"{plan.address.url(plan.address.port)}: an https URL needs a certificate: "
            "HttpServer:Certificates:Default:Path and KeyPath"
        )
    # The supervisor's business; workers take listeners over, and can do without cryptography's 10 MB.
    from rowcall.service.sockets.certificates import load_certificate

    return load_certificate(plan.certificate)


class Listeners:
    """For each address one socket, or one for each worker where the system spreads connections.

    stay: all of them stay open, elsewhere, when this process ends.
    """

    def __init__(
        self,
        plans: Iterable[ListenerPlan],
        workers: int,
        unix_mode: int | None = None,
        inherited: Inherited | None = None,
    ) -> None:
        """unix_mode: the permissions of Unix sockets; None leaves them to the umask. Raises StartupError."""
        self.stay = inherited is not None and inherited.stay
        self._inherited = inherited or Inherited()
        self.urls: list[str] = []
        self.https_port: int | None = None
        """Of the first address that speaks TLS."""
        self._unix_mode = unix_mode
        self._sockets: list[list[tuple[socket.socket, Listener]]] = [[] for _ in range(workers)]
        self._quiet: list[socket.socket] = []
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
        address = plan.address
        tls = self._tls(plan) if address.secure else None
        groups = self._taken(address, workers) or self._opened(address, workers)
        port = 0 if address.unix else groups[0][0].getsockname()[1]
        self.urls.append(address.url(port))
        if address.secure and self.https_port is None:
            self.https_port = port
        for sockets in groups:
            # Each worker has one at least, and each socket a worker.
            for number in range(max(workers, len(sockets))):
                one = sockets[number % len(sockets)]
                listener = Listener(one.fileno(), tls, address.unix, plan.protocols)
                self._sockets[number % workers].append((one, listener))

    def _opened(self, address: Address, workers: int) -> list[list[socket.socket]]:
        """For each address that it stands for, the sockets of all workers."""
        self.stay = False
        if address.unix:
            return [[self._listen_on_path(address.host)]]
        firsts = _bound_on_all(address)
        port = firsts[0].getsockname()[1]
        return [self._with_others(one, address, port, workers) for one in firsts]

    def _with_others(self, first: socket.socket, address: Address, port: int, workers: int) -> list[socket.socket]:
        host = first.getsockname()[0]
        sockets = [first, *(_bound(address, host, port) for _ in range(1, workers) if SPREADS)]
        _listen(sockets)
        return sockets

    def _taken(self, address: Address, workers: int) -> list[list[socket.socket]]:
        """Those that others have opened. Where they have opened `localhost` on IPv4 alone, so it stays if they keep
        it: what is to be open is for them to say.
        """
        if address.everywhere:
            places = [host for host in (_ANY, _ANY_IPV4) if (host, address.port) in self._inherited.sockets][:1]
        else:
            places = list(address.bound_hosts)
        taken = {host: self._inherited.take(host, address.port) for host in places}
        groups = [self._adopted(sockets, host, address, workers) for host, sockets in taken.items() if sockets]
        if groups and not self._inherited.stay:
            for host in (host for host, sockets in taken.items() if not sockets):
                one = _bound_if_possible(address, host, address.port)
                if one is not None:
                    groups.append(self._with_others(one, address, address.port, workers))
        return groups

    def _adopted(self, sockets: list[socket.socket], host: str, address: Address, workers: int) -> list[socket.socket]:
        """With others beside them where there are too few, and they may be shared. The system spreads new connections
        over all that listen, and nobody accepts from ours yet: these are quiet until `begin`.
        """
        if address.unix:
            if not self._inherited.stay:
                self._paths.append(address.host)
            return sockets
        for one in sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not SPREADS or not sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT):
            return sockets
        _ours.add((host, address.port))
        with contextlib.suppress(StartupError):  # another user has opened them
            for _ in range(workers - len(sockets)):
                self._quiet.append(_bound(address, host, address.port))
                sockets.append(self._quiet[-1])
                self.stay = False
        return sockets

    def _tls(self, plan: ListenerPlan) -> Tls:
        from rowcall.service.sockets.certificates import PemFile

        certificate = certificate_of(plan)
        files = [PemFile(certificate.chain), PemFile(certificate.key)]
        self._pem_files += files
        oldest = "tls1.3" if plan.only_tls13 else "tls1.2"
        return Tls(files[0].path, files[1].path, tuple(file.descriptor for file in files), oldest)

    def _listen_on_path(self, path: str) -> socket.socket:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            remove_stale(path)
            one.bind(path)
            self._paths.append(path)
            if self._unix_mode is not None:
                os.chmod(path, self._unix_mode)
            one.listen(BACKLOG)
            one.setblocking(False)
        except OSError as error:
            one.close()
            raise StartupError(f"cannot listen on http://unix:{path}: {error.strerror or error}") from None
        return one

    def begin(self) -> None:
        """Their workers are ready to accept. Until then whoever serves beside us gets every connection, so nothing is
        lost if we end. Does nothing the second time. Raises StartupError.
        """
        _listen(self._quiet)
        self._quiet = []

    def of(self, worker: int) -> tuple[Listener, ...]:
        """What a worker inherits."""
        return tuple(listener for _, listener in self._sockets[worker])

    @property
    def sockets(self) -> list[socket.socket]:
        """Each once."""
        return list({one.fileno(): one for sockets in self._sockets for one, _ in sockets}.values())

    def give_away(self) -> None:
        """Another process listens on them from now on."""
        self.stay = True
        self._paths = []

    def close(self) -> None:
        for path in self._paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        for sockets in self._sockets:
            for one, _ in sockets:
                one.close()
        for file in self._pem_files:
            file.close()
        self._paths, self._pem_files = [], []


def remove_stale(path: str) -> None:
    """A socket that nobody listens on any more, left by a process that was killed. Raises OSError for one in use."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return  # bind says what it is
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def _every_interface() -> str:
    """One socket takes both families: an address of IPv4 then looks like `::ffff:192.0.2.1` (RFC 4291, 2.5.5.2), which
    `core.http.forwarded_headers` reads as what it is.
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


def _bound_on_all(address: Address) -> list[socket.socket]:
    """One for each of its addresses, on one port. Raises StartupError."""
    first, *others = address.bound_hosts
    for attempt in range(_TRIES):
        found = [_bound(address, first, address.port)]
        port = found[0].getsockname()[1]
        try:
            found += (one for host in others if (one := _bound_if_possible(address, host, port)) is not None)
        except StartupError:
            for one in found:
                one.close()
            if address.port or attempt == _TRIES - 1:
                raise
        else:
            return found
    raise AssertionError("the last try raises")


def _bound_if_possible(address: Address, host: str, port: int) -> socket.socket | None:
    """None: the machine has no such address."""
    try:
        return _bound(address, host, port)
    except StartupError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _ABSENT:
            log.debug("%s is not listened on: this machine has no IPv6", host)
            return None
        raise


def _bound(address: Address, host: str, port: int) -> socket.socket:
    """Does not listen yet. Raises StartupError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    one: socket.socket | None = None
    try:
        one = socket.socket(family, socket.SOCK_STREAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _take_both_families(one, host)
        # Accepted connections inherit it. Without it the end of a streamed body waits 40 ms for the client's
        # acknowledgement of what went before (Nagle's algorithm against delayed acknowledgements).
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if SPREADS:
            _refuse_foreign_owner(family, host, port)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((host, port))
        _ours.add((host, one.getsockname()[1]))
        one.setblocking(False)
    except OSError as error:
        if one is not None:
            one.close()
        where = address.url(port)
        where += f" ({host})" if host != address.host else ""
        raise StartupError(f"cannot listen on {where}: {error.strerror or error}") from error
    return one


def _listen(sockets: Iterable[socket.socket]) -> None:
    for one in sockets:
        try:
            one.listen(BACKLOG)
        except OSError as error:
            host, port = one.getsockname()[:2]
            raise StartupError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


def _take_both_families(one: socket.socket, host: str) -> None:
    """Whatever the system's own default is (`net.ipv6.bindv6only`)."""
    if one.family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != _ANY)


_ours: set[tuple[str, int]] = set()


def _refuse_foreign_owner(family: int, host: str, port: int) -> None:
    """A shared port would also be shared with another rowcall that runs by mistake; so the first bind is exclusive."""
    if port == 0 or (host, port) in _ours:
        return
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _take_both_families(probe, host)
        probe.bind((host, port))
        probe.listen(1)
    _ours.add((host, port))
