"""The client behind proxies (server-6 to server-10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rowcall.core.http.forwarded_headers import (
    Client,
    Forwarding,
    client_of,
    headers_for_routines,
    network_of,
    parse_address,
    parse_network,
)

PEER = "10.1.1.1:4711"
NETWORKS = (parse_network("10.0.0.0/8"),)
LOCAL = "127.0.0.1:4711"


def client(options: Forwarding, peer: str = PEER, **headers: str) -> Client:
    """headers: names without `x-forwarded-`; lines are the values of headers of one name."""

    def values(name: str) -> Sequence[str]:
        return headers.get(name.removeprefix("x-forwarded-"), "").splitlines()

    return client_of(options, values, peer, "http")


def test_disabled_forwarding_uses_the_address_of_the_peer() -> None:
    assert client(Forwarding(), **{"for": "9.9.9.9", "proto": "https"}) == Client("10.1.1.1", "http", None)


def test_one_forwarded_entry_is_used_by_default() -> None:
    options = Forwarding(enabled=True)
    result = client(options, LOCAL, **{"for": "5.5.5.5, 9.9.9.9", "proto": "https", "host": "shop.example"})
    assert result == Client("9.9.9.9", "https", "shop.example")


def test_entries_are_walked_from_the_nearest_proxy() -> None:
    options = Forwarding(enabled=True, limit=2, networks=NETWORKS)
    assert client(options, **{"for": "5.5.5.5, 9.9.9.9, 10.2.2.2"}).address == "9.9.9.9"


def test_headers_of_an_untrusted_peer_are_ignored() -> None:
    options = Forwarding(enabled=True, limit=None, networks=NETWORKS)
    assert client(options, peer="8.8.8.8:1", **{"for": "1.2.3.4", "proto": "https"}) == Client("8.8.8.8", "http", None)
    assert client(options, **{"for": "1.2.3.4, 9.9.9.9, 10.2.2.2"}).address == "9.9.9.9"


def test_all_entries_without_a_limit() -> None:
    options = Forwarding(enabled=True, limit=None, all_trusted=True)
    assert client(options, **{"for": "1.1.1.1, 2.2.2.2\n3.3.3.3"}).address == "1.1.1.1"


@pytest.mark.parametrize("entry", ["unknown", "_hidden", "1.2.3.4.5", "[::1"])
def test_an_unreadable_entry_stops_the_walk(entry: str) -> None:
    options = Forwarding(enabled=True, limit=None, all_trusted=True)
    assert client(options, **{"for": f"1.1.1.1, {entry}"}).address == "10.1.1.1"


def test_a_host_that_is_not_allowed_is_ignored() -> None:
    options = Forwarding(enabled=True, all_trusted=True, hosts=("*.zone.example",))
    assert client(options, **{"host": "a.zone.example:8443"}).host == "a.zone.example:8443"
    assert client(options, **{"host": "evil.example", "for": "9.9.9.9"}) == Client("9.9.9.9", "http", None)
    assert client(Forwarding(enabled=True), LOCAL, **{"host": "bad host"}).host is None
    assert client(Forwarding(enabled=True), LOCAL, **{"host": "zone.example:८०"}).host is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4:80", "1.2.3.4"),
        ("::1", "::1"),
        ("[::1]:80", "::1"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("unix", None),
        ("", None),
    ],
)
def test_addresses(text: str, address: str | None) -> None:
    result = parse_address(text)
    assert (None if result is None else str(result)) == address


@pytest.mark.parametrize("peer", ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1", ""])
def test_without_lists_a_proxy_on_this_host_is_trusted(peer: str) -> None:
    """Also over a Unix socket, where a peer has no address."""
    assert client(Forwarding(enabled=True), peer, **{"for": "9.9.9.9"}).address == "9.9.9.9"


@pytest.mark.parametrize("peer", ["10.1.1.1:1", "192.168.0.1:1", "[fe80::1]:1", "8.8.8.8:1"])
def test_no_other_peer_is_trusted(peer: str) -> None:
    result = client(Forwarding(enabled=True), peer, **{"for": "9.9.9.9", "proto": "https", "host": "evil.example"})
    assert (result.address, result.scheme, result.host) == (str(parse_address(peer)), "http", None)


def test_without_lists_only_the_local_step_of_a_chain_is_trusted() -> None:
    options = Forwarding(enabled=True, limit=None)
    assert client(options, LOCAL, **{"for": "1.1.1.1, 9.9.9.9"}).address == "9.9.9.9"


def test_lists_do_not_include_the_local_host() -> None:
    options = Forwarding(enabled=True, networks=NETWORKS)
    assert client(options, LOCAL, **{"for": "9.9.9.9"}).address == "127.0.0.1"
    assert client(options, "", **{"for": "9.9.9.9"}).address is None


SEEN = [
    (
        {"x-forwarded-for": "5.5.5.5, 9.9.9.9, 10.2.2.2"},
        {"host": "own", "x-forwarded-for": "5.5.5.5", "x-original-for": PEER},
    ),
    (
        {"X-Forwarded-For": "9.9.9.9", "x-forwarded-proto": "https", "x-forwarded-host": "shop.example"},
        {"host": "shop.example", "x-original-for": PEER, "x-original-proto": "http", "x-original-host": "own"},
    ),
    (
        {"x-forwarded-for": "unknown", "x-forwarded-proto": "no scheme", "x-forwarded-host": "bad host"},
        {"host": "own", "x-forwarded-for": "unknown", "x-forwarded-proto": "no scheme", "x-forwarded-host": "bad host"},
    ),
    ({"x-forwarded-proto": "http, https"}, {"host": "own", "x-original-proto": "http"}),
]


@pytest.mark.parametrize(("sent", "received"), SEEN)
def test_trusted_entries_are_removed_from_their_headers(sent: dict[str, str], received: dict[str, str]) -> None:
    options = Forwarding(enabled=True, limit=2, networks=NETWORKS)
    assert dict(headers_for_routines(options, [("Host", "own"), *sent.items()], PEER, "http")) == received
    assert dict(headers_for_routines(options, [("host", "own")], PEER, "http")) == {"host": "own"}


@pytest.mark.parametrize("text", ["x", "1.1.1.1/33", "", "10.0.0.0/8, 10.1.0.0/16"])
def test_unreadable_networks(text: str) -> None:
    with pytest.raises(ValueError):
        parse_network(text)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_ipv6_address_is_counted_by_its_network(address: str, network: str) -> None:
    assert network_of(address) == network
