"""Read `ForwardedHeaders`: the proxies whose forwarded headers are trusted (server-6 to server-8, server-10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from rowcall.core.config import Settings
from rowcall.core.http.forwarded_headers import Address, Forwarding, is_host_pattern, parse_address, parse_network
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_SECTION = "ForwardedHeaders:"
_TRUST_ALL = _SECTION + "TrustAllProxies"

Read = TypeVar("Read")


def forwarding(settings: Settings) -> Forwarding:
    """Return the options for forwarded headers.

    Raises `StartupError` for an invalid proxy or network. Skipping it would shorten the list of trusted proxies, and an
    empty list has a different meaning.
    """
    if not settings.flag(_SECTION + "Enabled"):
        return Forwarding()
    trust_all = settings.flag(_TRUST_ALL)
    if trust_all:
        log.warning("%s is on: any client can say that it has another address, host and scheme", _TRUST_ALL)
    options = Forwarding(
        enabled=True,
        limit=settings.integer_or_none(_SECTION + "ForwardLimit"),
        proxies=tuple(_read(settings, "KnownProxies", _address)),
        networks=tuple(_read(settings, "KnownNetworks", parse_network)),
        all_trusted=trust_all,
        hosts=host_patterns(settings, _SECTION + "AllowedHosts"),
    )
    log.debug(
        "forwarded headers: limit %s, proxies %d, networks %d, hosts %d",
        "none" if options.limit is None else options.limit,
        len(options.proxies),
        len(options.networks),
        len(options.hosts),
    )
    return options


def host_patterns(settings: Settings, key: str) -> tuple[str, ...]:
    """Return the host patterns under `key`. Raises `StartupError` for a pattern that no host can match."""
    hosts = tuple(settings.texts(key) or ())
    for host in hosts:
        if not is_host_pattern(host):
            raise StartupError(
                f"{key}: {host!r} is no host; shop.example, *.shop.example, [::1] and * are, without port"
            )
    return hosts


def _read(settings: Settings, key: str, read: Callable[[str], Read]) -> Iterator[Read]:
    for text in settings.texts(_SECTION + key) or ():
        try:
            yield read(text)
        except ValueError:
            what = "address, such as 10.0.0.5" if read is _address else "network, such as 10.0.0.0/8"
            raise StartupError(f"{_SECTION}{key}: {text!r} is no {what}") from None


def _address(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise ValueError(text)
    return address
