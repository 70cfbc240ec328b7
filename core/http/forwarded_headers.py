"""Who the client is behind proxies: address, scheme and host of the request as the first proxy saw it.

Only what a trusted proxy has said counts, walked from the nearest one outwards (server-6 to server-8, server-10,
server-6 to server-10). What is
left of the headers beyond that is the client's own word and is never used.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Fields = list[tuple[str, str]]

FORWARDED = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")

_ORIGINAL = tuple(name.replace("forwarded", "original") for name in FORWARDED)
"""What the request had itself; only the service says so."""

_MAPPED_BITS = 96
"""In front of the IPv4 address in one of IPv6."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
_HOST_PATTERN = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Which forwarded headers count (server-6 to server-8, server-10)."""

    enabled: bool = False
    limit: int | None = 1
    """Entries that count; None: all."""
    proxies: tuple[Address, ...] = ()
    networks: tuple[Network, ...] = ()
    """Without any proxy and network, a proxy on this host is believed and nobody else."""
    anybody: bool = False
    """Whoever connects is believed."""
    hosts: tuple[str, ...] = ()

    def trusts(self, peer: Address | None, *, local: bool = False) -> bool:
        """local: the peer has come over a Unix socket, where there is no address."""
        if self.anybody:
            return True
        if not self.proxies and not self.networks:
            return local if peer is None else peer.is_loopback
        return peer is not None and (peer in self.proxies or any(peer in network for network in self.networks))


@dataclass(frozen=True, slots=True)
class Client:
    address: str | None
    """None: not known, as on a unix socket."""
    scheme: str
    host: str | None
    """As forwarded; None: the request's own."""


def parse_address(text: str) -> Address | None:
    """`1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]:80`. An IPv4 address in IPv6's clothes is the IPv4 address."""
    bare = text.strip()
    if bare.startswith("["):
        bare, closed, _ = bare[1:].partition("]")
        bare = bare if closed else ""
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_address(authority: str) -> bool:
    """Host and port by which no page of another site can reach this service: such a page has a name, which whoever it
    belongs to may lead anywhere (DNS rebinding)."""
    return authority.partition(":")[0].lower() == "localhost" or parse_address(authority) is not None


def parse_network(text: str) -> Network:
    """`10.0.0.0/8`. One in IPv6's clothes is that of IPv4, as addresses are. Raises `ValueError`."""
    network = ipaddress.ip_network(text.strip(), strict=False)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def is_host_pattern(text: str) -> bool:
    """What `is_allowed` can find: hosts without a port."""
    return _HOST_PATTERN.fullmatch(text) is not None


def client_of(options: Forwarding, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> Client:
    """values: the lines of a header, by its lower-cased name. peer: address of the connection, with its port."""
    return _walk(options, values, peer, scheme).client


def seen_headers(options: Forwarding, fields: Iterable[tuple[str, str]], peer: str, scheme: str) -> Fields:
    """The fields of a request as those see them who stand behind the proxies: entries that count have moved to where
    they belong, and what stood there before is in `X-Original-*` (server-9).
    """
    sent = [(name.lower(), value) for name, value in fields]
    sent = [field for field in sent if field[0] not in _ORIGINAL]
    walked = _walk(options, lambda expected: [value for name, value in sent if name == expected], peer, scheme)
    replaced = dict(zip(FORWARDED, walked.replaced, strict=True))
    seen: Fields = []
    for name in FORWARDED:
        left = _entries([value for other, value in sent if other == name])[walked.entries :][::-1]
        if replaced[name] and left:
            seen.append((name, ",".join(left)))
    host = next((value for name, value in sent if name == "host"), "")
    before = dict(zip(FORWARDED, (peer, scheme, host), strict=True))
    seen += [(result, before[name]) for name, result in zip(FORWARDED, _ORIGINAL, strict=True) if replaced[name]]
    stored = [
        (name, walked.client.host if name == "host" and walked.client.host is not None else value)
        for name, value in sent
        if not replaced.get(name, False)
    ]
    return stored + seen


@dataclass(frozen=True, slots=True)
class _Walked:
    client: Client
    entries: int
    """That count, of the nearest proxy first."""
    replaced: tuple[bool, bool, bool]
    """Address, scheme and host have come out of a header."""


def _walk(options: Forwarding, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> _Walked:
    current = parse_address(peer)
    address, host = None if current is None else str(current), None
    if not options.enabled:
        return _Walked(Client(address, scheme, None), 0, (False, False, False))
    addresses, schemes, hosts = (_entries(values(name)) for name in FORWARDED)
    count = max(len(addresses), len(schemes), len(hosts))
    by_address = by_scheme = False
    walked = 0
    for index in range(count if options.limit is None else min(count, options.limit)):
        if not options.trusts(current, local=current is None and not index):
            break
        if index < len(addresses):
            current = parse_address(addresses[index])
            if current is None:
                break
            address, by_address = str(current), True
        if index < len(schemes) and _SCHEME.fullmatch(schemes[index]):
            scheme, by_scheme = schemes[index].lower(), True
        if index < len(hosts) and _allowed(options.hosts, hosts[index]):
            host = hosts[index]
        walked = index + 1
    return _Walked(Client(address, scheme, host), walked, (by_address, by_scheme, host is not None))


def _entries(lines: Sequence[str]) -> list[str]:
    """The nearest proxy's first. Empty ones are none (RFC 9110, 5.6.1.2)."""
    return [stripped for line in lines for entry in line.split(",") if (stripped := entry.strip())][::-1]


def _allowed(hosts: Sequence[str], host: str) -> bool:
    return is_allowed(hosts, host) if _HOST.fullmatch(host) else False


def is_allowed(hosts: Sequence[str], host: str) -> bool:
    """By the list, in which `*` stands for any host and `*.zone.example` for those below; an empty one allows all."""
    bare = (host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]).lower()
    return not hosts or any(_fits(pattern.lower(), bare) for pattern in hosts)


def _fits(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern in ("*", host)
