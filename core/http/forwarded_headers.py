"""Address, scheme and host of a client behind proxies, from `X-Forwarded-*` headers.

Entries are read from the nearest proxy outwards, and only as far as trusted proxies wrote them (server-6 to server-8,
server-10). The remaining entries are claims of the client and are never used.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rowcall.core.sections.declaration import flag, integer, section, texts

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Fields = list[tuple[str, str]]

FORWARDED = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")

_ORIGINAL = tuple(name.replace("forwarded", "original") for name in FORWARDED)
"""Headers for the values before the replacement. Only the service sets them; those of a client are removed."""

NETWORK_BITS = 64
"""Bits of an IPv6 address that are the network of one customer."""

_MAPPED_BITS = 96
"""Number of bits in front of the IPv4 address in an IPv4-mapped IPv6 address."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?", re.ASCII)
_HOST_PATTERN = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


def host_pattern(text: str) -> str:
    """Return the text if `is_host_pattern`. Raises ValueError for other texts."""
    if not is_host_pattern(text):
        raise ValueError(f"{text!r} is no host; shop.example, *.shop.example, [::1] and * are, without port")
    return text


def _valid_address(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise ValueError(f"{text!r} is no address, such as 10.0.0.5")
    return address


def _valid_network(text: str) -> Network:
    try:
        return parse_network(text)
    except ValueError:
        raise ValueError(f"{text!r} is no network, such as 10.0.0.0/8") from None


@section("ForwardedHeaders", "Headers with which a reverse proxy describes the client.")
class Forwarding:
    """The options that decide which forwarded headers are used (server-6 to server-8, server-10). limit: maximum number
    of entries that are used; None: all of trusted proxies. hosts: patterns; empty: any host."""

    enabled: bool = flag("Enabled", False, "Trust X-Forwarded-For, -Proto and -Host.")
    limit: int | None = integer(
        "ForwardLimit", 1, "Number of trusted entries of X-Forwarded-For. null: all.", nullable=True, minimum=1
    )
    proxies: tuple[Address, ...] = texts(
        "KnownProxies",
        (),
        "Addresses of trusted proxies. If KnownNetworks is empty too: a proxy on this host. An invalid address "
        "prevents the start.",
        each=_valid_address,
    )
    networks: tuple[Network, ...] = texts(
        "KnownNetworks", (), "Networks of trusted proxies, such as `10.0.0.0/8`.", each=_valid_network
    )
    all_trusted: bool = flag(
        "TrustAllProxies",
        False,
        "Trust the headers of every client. Use it only if no other client than the proxy can connect.",
    )
    hosts: tuple[str, ...] = texts(
        "AllowedHosts",
        (),
        "Hosts that X-Forwarded-Host may name, without ports; `*.zone.example`: its subdomains. An empty list: any.",
        each=host_pattern,
    )

    def trusts(self, peer: Address | None, *, local: bool = False) -> bool:
        """Return whether a peer is a trusted proxy: with `all_trusted`, every peer; without configured proxies and
        networks, peers on this host; otherwise those in `proxies` and `networks`.

        peer: None: its address is unknown. local: it is connected by a Unix socket, which has no address.
        """
        if self.all_trusted:
            return True
        if not self.proxies and not self.networks:
            return local if peer is None else peer.is_loopback
        return peer is not None and (peer in self.proxies or any(peer in network for network in self.networks))

    def host_of(self, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> str | None:
        """Return the forwarded host of a request; None: the host of the request is valid. Arguments: as for
        `client_of`."""
        return client_of(self, values, peer, scheme).host


@dataclass(frozen=True, slots=True)
class Client:
    """The client of a request: from the forwarded headers that trusted proxies have written, else from the
    connection."""

    address: str | None
    """None: unknown, as on a Unix socket."""
    scheme: str
    host: str | None
    """The forwarded host. None: the host of the request is valid."""


def parse_address(text: str) -> Address | None:
    """Parse `1.2.3.4`, `1.2.3.4:80`, `::1` or `[::1]:80`; return None for other texts.

    An IPv4-mapped IPv6 address is returned as the IPv4 address.
    """
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


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return the key by which requests or failures of an address are counted: an IPv4 address itself; for IPv6 its
    network of `NETWORK_BITS`, such as `2001:db8::/64`, because a customer can choose any address in it.

    address: as `parse_address` reads it; a port is removed. A text that is no address is returned unchanged.
    """
    parsed = parse_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((parsed, NETWORK_BITS), strict=False))
    return address if parsed is None else str(parsed)


def is_address(authority: str) -> bool:
    """Return whether the host of `authority`, with or without a port, is `localhost` or an IP address.

    Such a request cannot be an attack by DNS rebinding, which needs a domain name: its owner can point the name at any
    address, but the requests of its pages then name the domain as host.
    """
    return authority.partition(":")[0].lower() == "localhost" or parse_address(authority) is not None


def parse_network(text: str) -> Network:
    """Parse a network such as `10.0.0.0/8`. An IPv4-mapped IPv6 network is returned as the IPv4 network.

    Raises `ValueError` for other texts.
    """
    network = ipaddress.ip_network(text.strip(), strict=False)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def is_host_pattern(text: str) -> bool:
    """Return whether `is_allowed` can match the pattern: it is a host without a port."""
    return _HOST_PATTERN.fullmatch(text) is not None


def client_of(options: Forwarding, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> Client:
    """Return the client of a request.

    values: returns the lines of a header by its lower-cased name. peer, scheme: of the connection; peer may have a
    port, and is empty on a Unix socket.
    """
    return _walk(options, values, peer, scheme).client


def headers_for_routines(options: Forwarding, fields: Iterable[tuple[str, str]], peer: str, scheme: str) -> Fields:
    """Return the headers of a request as routines see them, after the forwarded headers were applied: names in lower
    case, and the forwarded host, if it is used, as `host`.

    The entries that were used are removed from `X-Forwarded-*`. Address, scheme and host of the connection, as far as
    such entries replace them, are in `X-Original-*` (server-9); `X-Original-*` of the client are removed. fields: the
    headers as sent. peer, scheme: of the connection.
    """
    sent = [(name.lower(), value) for name, value in fields]
    sent = [field for field in sent if field[0] not in _ORIGINAL]
    walked = _walk(options, lambda header: [value for name, value in sent if name == header], peer, scheme)
    replaced = dict(zip(FORWARDED, walked.replaced, strict=True))
    headers: Fields = []
    for name in FORWARDED:
        remaining = _entries([value for other, value in sent if other == name])[walked.entries :][::-1]
        if replaced[name] and remaining:
            headers.append((name, ",".join(remaining)))
    host = next((value for name, value in sent if name == "host"), "")
    before = dict(zip(FORWARDED, (peer, scheme, host), strict=True))
    headers += [(result, before[name]) for name, result in zip(FORWARDED, _ORIGINAL, strict=True) if replaced[name]]
    stored = [
        (name, walked.client.host if name == "host" and walked.client.host is not None else value)
        for name, value in sent
        if not replaced.get(name, False)
    ]
    return stored + headers


@dataclass(frozen=True, slots=True)
class _WalkResult:
    """What trusted proxies have written into the forwarded headers."""

    client: Client
    entries: int
    """Number of entries that are used, beginning with that of the nearest proxy."""
    replaced: tuple[bool, bool, bool]
    """Whether address, scheme and host come from a header."""


def _walk(options: Forwarding, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> _WalkResult:
    """Return the client that the entries of trusted proxies describe, read from the nearest proxy outwards.

    values: returns the lines of a header by its lower-cased name. peer, scheme: of the connection; peer may have a
    port, and is empty on a Unix socket.
    """
    current = parse_address(peer)
    address, host = None if current is None else str(current), None
    if not options.enabled:
        return _WalkResult(Client(address, scheme, None), 0, (False, False, False))
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
        if index < len(hosts) and _is_allowed_host(options.hosts, hosts[index]):
            host = hosts[index]
        walked = index + 1
    return _WalkResult(Client(address, scheme, host), walked, (by_address, by_scheme, host is not None))


def _entries(lines: Sequence[str]) -> list[str]:
    """Return the entries in the lines of a header, the nearest proxy first. Empty entries are ignored (RFC 9110,
    5.6.1.2)."""
    return [stripped for line in lines for entry in line.split(",") if (stripped := entry.strip())][::-1]


def _is_allowed_host(hosts: Sequence[str], host: str) -> bool:
    """Return whether the text is a host, which may have a port, and the list of patterns allows it (`is_allowed`)."""
    return is_allowed(hosts, host) if _HOST.fullmatch(host) else False


def is_allowed(hosts: Sequence[str], host: str) -> bool:
    """Return whether a list of patterns allows the host, regardless of case and of a port of the host. An empty list
    allows all hosts.

    hosts: patterns without ports: `*` matches any host, `*.zone.example` the hosts below `zone.example`.
    """
    bare = (host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]).lower()
    return not hosts or any(_fits(pattern.lower(), bare) for pattern in hosts)


def _fits(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern in ("*", host)
