"""The guard against server-side request forgery (SSRF): hosts and addresses to which requests may be sent although
neither comment nor configuration names them.

A host in the comment or the configuration is the choice of the operator and always allowed. A host from a value of a
request, or from a redirect, is compared with lists; without a list, any host on the public internet is allowed.
Addresses are checked again after a name was resolved, because a name does not show to which address it leads.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from rowcall.core.data.record import Record
from rowcall.core.outgoing.address import DEFAULT_PORTS, Origin, literal_ip
from rowcall.core.sections.declaration import section, texts
from rowcall.core.sections.values import or_nothing

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DENIED_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this host (RFC 1122)
            "10.0.0.0/8",  # private (RFC 1918)
            "100.64.0.0/10",  # carrier-grade NAT (RFC 6598); metadata of Alibaba Cloud
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # services of Azure inside a virtual machine
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments (RFC 6890); metadata of Oracle Cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4 (RFC 7526)
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
"""Networks that are not public. The tables of Python's `ipaddress` differ between versions, and lack addresses of
clouds."""

_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
"""All addresses that are allocated to networks. Other addresses are denied: fc00::/7, fe80::/10, fec0::/10, ff00::/8
…"""
_DENIED_IPV6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)

_EMBEDDING = tuple(
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (
        ("::ffff:0:0/96", 0),  # IPv4-mapped
        ("::ffff:0:0:0/96", 0),  # IPv4-translated (RFC 2765)
        ("64:ff9b::/96", 0),  # NAT64 (RFC 6052)
        ("2002::/16", 80),  # 6to4
    )
)
"""Networks whose addresses contain an IPv4 address, and the number of bits behind it."""
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""Bits 64 to 95 of an address that ends with an IPv4 address (RFC 5214)."""


class RefusedError(Exception):
    """The request must not be sent. The message has the host and the reason."""


def _allowed_network(text: str) -> str:
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is no network such as 10.1.0.0/16") from None
    return text


def _allowed_scheme(text: str) -> str:
    if text.lower() not in DEFAULT_PORTS:
        raise ValueError(f"{text!r} is neither http nor https")
    return text.lower()


@section("Service:HttpClientOptions")
class Guard(Record):
    """Allowed hosts and addresses.

    hosts: allowed names, also `*.example.com` and `host:port`; empty, or with `*`: any public host. networks: addresses
    that are allowed although they are not public, such as `10.1.0.0/16`. schemes: in lower case.
    """

    hosts: tuple[str, ...] = texts(
        "AllowedHosts",
        None,
        "Hosts to which values of requests and redirects may lead: `api.example.com`, `*.example.com`, "
        "`host:8080`; null or `*`: any host on the public internet. A host in a comment or in the configuration needs "
        "no entry.",
        convert=or_nothing,
    )
    networks: tuple[str, ...] = texts(
        "AllowedNetworks",
        None,
        "Networks that are not public and that these requests may reach, such as `10.1.0.0/16`; not needed for "
        "hosts of `AllowedHosts` without wildcard.",
        each=_allowed_network,
    )
    schemes: tuple[str, ...] = texts(
        "AllowedSchemes",
        (
            "http",
            "https",
        ),
        "Schemes that these requests may have.",
        each=_allowed_scheme,
    )

    def check_origin(self, origin: Origin) -> None:
        """Check scheme and host before the host is resolved. An IP address as host is also checked as in
        `check_address`; it is allowed by `networks` too, if `hosts` does not have it. Raises `RefusedError` if the
        scheme or the host is not allowed."""
        if origin.scheme not in self.schemes:
            raise RefusedError(f"the scheme {origin.scheme} is not among the allowed schemes")
        address = literal_ip(origin.host)
        if address is not None:
            if self._lists_host_literally(origin):
                return
            self.check_address(origin, address)
            if self.hosts and "*" not in self.hosts and not self._allows_network(address):
                raise RefusedError(f"{origin.host} is not among the allowed hosts")
        elif self.hosts and "*" not in self.hosts and not self.lists_host(origin):
            raise RefusedError(f"{origin.host} is not among the allowed hosts")

    def check_address(self, origin: Origin, address: IpAddress) -> None:
        """Check an address to which the host of `origin` was resolved.

        Raises `RefusedError` if the address is not public, its network is not in `networks`, and its host is not
        literally in `hosts`. A pattern such as `*.example.com` does not count.
        """
        real = embedded_address(address)
        if is_public(real) or self._allows_network(real) or self._lists_host_literally(origin):
            return
        raise RefusedError(f"{origin.host} leads to an address that is not public; its network is not allowed")

    def _lists_host_literally(self, origin: Origin) -> bool:
        """Return whether `hosts` has the host or `host:port` literally. A pattern with `*` does not count, because it
        must not allow private networks."""
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        return origin.host in _normalize_hosts(self.hosts) or f"{host}:{origin.port}" in _normalize_hosts(self.hosts)

    def lists_host(self, origin: Origin) -> bool:
        """Return whether an entry of `hosts` other than `*` has the host."""
        host = origin.host.rstrip(".")
        suffixes = (name[1:] for name in _normalize_hosts(self.hosts) if name.startswith("*."))
        return self._lists_host_literally(origin) or any(host.endswith(suffix) for suffix in suffixes)

    def _allows_network(self, address: IpAddress) -> bool:
        return any(address in network for network in _networks(self.networks))


def embedded_address(address: IpAddress) -> IpAddress:
    """Return the IPv4 address in an IPv6 address (mapped, translated, compatible, 6to4, NAT64, ISATAP).

    Any other address is returned unchanged.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    number = int(address)
    for network, shift in _EMBEDDING:
        if address in network:
            return ipaddress.IPv4Address(number >> shift & 0xFFFF_FFFF)
    compatible = address in _COMPATIBLE and number > 0xFFFF
    if compatible or number >> 32 & 0xFFFF_FFFF in _ISATAP:
        return ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    return address


def is_public(address: IpAddress) -> bool:
    """Return whether the address is on the public internet. address: as `embedded_address` returns it; an IPv4 address
    within an IPv6 address is not examined here."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _DENIED_IPV4)
    return address in _GLOBAL_IPV6 and not any(address in network for network in _DENIED_IPV6)


@lru_cache(maxsize=16)
def _normalize_hosts(hosts: tuple[str, ...]) -> frozenset[str]:
    """Return hosts in lower case. IPv6 addresses lose their brackets unless a port follows."""
    return frozenset(
        host.lower().removeprefix("[").removesuffix("]") if host.endswith("]") else host.lower() for host in hosts
    )


@lru_cache(maxsize=16)
def _networks(texts: tuple[str, ...]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)
