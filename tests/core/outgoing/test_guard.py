"""Hosts and addresses to which values and redirects may lead."""

from __future__ import annotations

import ipaddress

import pytest

from rowcall.core.outgoing.address import read_address
from rowcall.core.outgoing.guard import Guard, RefusedError

OPEN = Guard()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "192.0.2.1", "198.18.0.1", "2001:db8::1",
        "192.0.0.1", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.192", "168.63.129.16", "192.88.99.1",
        "198.51.100.1", "203.0.113.1", "100.100.100.200", "0.1.2.3", "255.0.0.1",
        "fec0::1", "fd00:ec2::254", "3fff::1", "3fff:fff::1", "5f00::1", "100::1", "64:ff9b:1::1", "4000::1", "e000::1",
        "2001::1", "2001:1::1", "2001:10::1", "2001:20::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2002:a00:1::", "2002:c0a8:101::1", "2002:a9fe:a9fe::", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b::a83f:8110", "::ffff:168.63.129.16", "::ffff:0:127.0.0.1", "2002:a83f:8110::",
        "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "fe80::5efe:10.0.0.1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    host = read_address("http://name.example/").origin
    with pytest.raises(RefusedError):
        OPEN.check_address(host, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "8.8.8.8",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "192.0.1.1",
        "168.63.129.17",
        "2a00:1450:4001::1",
        "64:ff9b::808:808",
        "2002:808:808::",
        "2001:200::1",
        "4.4.4.4",
    ],
)
def test_public_addresses_are_not_refused(address: str) -> None:
    OPEN.check_address(read_address("http://name.example/").origin, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("hosts", "url", "allowed"),
    [
        ((), "http://any.example/", True),
        ((), "http://127.0.0.1/", False),
        ((), "http://[::ffff:127.0.0.1]/", False),
        (("api.example",), "http://api.example/", True),
        (("API.example",), "http://api.EXAMPLE/", True),
        (("api.example",), "http://api.example.evil/", False),
        (("api.example",), "http://xapi.example/", False),
        (("*.example",), "http://a.example/", True),
        (("*.example",), "http://a.b.example/", True),
        (("*.example",), "http://example/", False),
        (("*.example",), "http://evilexample/", False),
        (("api.example:8080",), "http://api.example:8080/", True),
        (("api.example:8080",), "http://api.example:81/", False),
        (("*",), "http://any.example/", True),
        (("*",), "http://8.8.8.8/", True),
        (("*",), "http://[2606:4700::1111]/", True),
        (("*", "api.example"), "http://8.8.8.8/", True),
        (("*",), "http://127.0.0.1/", False),
        (("*",), "http://[fe80::1]/", False),
        (("*.example",), "http://8.8.8.8/", False),
        (("127.0.0.1",), "http://127.0.0.1:5000/", True),
        (("127.0.0.1:5000",), "http://127.0.0.1:5001/", False),
        (("[::1]",), "http://[::1]/", True),
    ],
)
def test_hosts_are_compared_with_the_list(hosts: tuple[str, ...], url: str, allowed: bool) -> None:
    origin = read_address(url).origin
    if allowed:
        Guard(hosts=hosts).check_origin(origin)
        return
    with pytest.raises(RefusedError):
        Guard(hosts=hosts).check_origin(origin)


def test_a_network_permits_only_its_addresses() -> None:
    guard = Guard(networks=("10.1.0.0/16",))
    guard.check_origin(read_address("http://10.1.2.3/").origin)
    with pytest.raises(RefusedError):
        guard.check_origin(read_address("http://10.2.0.1/").origin)


def test_a_pattern_permits_no_private_network() -> None:
    guard = Guard(hosts=("*.example",))
    with pytest.raises(RefusedError):
        guard.check_address(read_address("http://a.example/").origin, ipaddress.ip_address("10.0.0.1"))
    Guard(hosts=("a.example",)).check_address(
        read_address("http://a.example/").origin, ipaddress.ip_address("10.0.0.1")
    )


def test_schemes_are_compared_with_the_list() -> None:
    with pytest.raises(RefusedError):
        Guard(schemes=("https",)).check_origin(read_address("http://any.example/").origin)


def test_listed_ipv6_address_with_a_port() -> None:
    guard = Guard(hosts=("[::1]:8080",))
    guard.check_origin(read_address("http://[::1]:8080/").origin)
    for url in ("http://[::1]:8081/", "http://[::1:8080]/"):
        with pytest.raises(RefusedError):
            guard.check_origin(read_address(url).origin)
