"""Which hosts and addresses requests may go to that no comment and no configuration names (SSRF).

A host that stands in the comment or in the configuration is the operator's own word and is taken as it is. One that
comes from a value of a request, or from a redirect, is held against lists; without any list it may be any host on the
public internet. Addresses are judged once more when a name has been resolved: a name says nothing about where it leads.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from rowcall.core.data.record import Record
from rowcall.core.outbound.address import Origin, literal_ip

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


class RefusedError(Exception):
    """A request that must not go out."""


@dataclass(frozen=True, slots=True)
class Guard(Record):
    """hosts: names that may be called, `*.example.com` and `host:port` too; empty: any.
    networks: addresses that may be called although they are not public, `10.1.0.0/16`."""

    hosts: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("http", "https")

    def check_origin(self, origin: Origin) -> None:
        """Before anything is resolved. Raises `RefusedError`."""
        if origin.scheme not in self.schemes:
            raise RefusedError(f"the scheme {origin.scheme} is not among the allowed schemes")
        address = literal_ip(origin.host)
        if address is not None:
            if self._names(origin):
                return
            self.check_address(origin, address)
            if self.hosts and not self._lists(address):
                raise RefusedError(f"{origin.host} is not among the allowed hosts")
        elif self.hosts and not self._fits(origin):
            raise RefusedError(f"{origin.host} is not among the allowed hosts")

    def check_address(self, origin: Origin, address: IpAddress) -> None:
        """One that the host has. Raises `RefusedError` where it is not public and neither it nor its host is listed."""
        real = embedded(address)
        if is_public(real) or self._lists(real) or self._names(origin):
            return
        raise RefusedError(f"{origin.host} leads to an address that is not public; its network is not allowed")

    def _names(self, origin: Origin) -> bool:
        """In full: a pattern does not open private networks."""
        return origin.host in _lowered(self.hosts) or f"{origin.host}:{origin.port}" in _lowered(self.hosts)

    def _fits(self, origin: Origin) -> bool:
        host = origin.host.rstrip(".")
        suffixes = (name[1:] for name in _lowered(self.hosts) if name.startswith("*."))
        return self._names(origin) or "*" in self.hosts or any(host.endswith(suffix) for suffix in suffixes)

    def _lists(self, address: IpAddress) -> bool:
        return any(address in network for network in _networks(self.networks))


def embedded(address: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 one stands for: mapped, compatible, 6to4, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 0xFFFF):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_public(address: IpAddress) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


@lru_cache(maxsize=16)
def _lowered(hosts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(host.lower().strip("[]") for host in hosts)


@lru_cache(maxsize=16)
def _networks(texts: tuple[str, ...]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)
