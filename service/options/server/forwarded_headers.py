"""Read `ForwardedHeaders`: the proxies whose forwarded headers are trusted (server-6 to server-8, server-10)."""

from __future__ import annotations

import logging

from rowcall.core.config import Settings
from rowcall.core.http.forwarded_headers import Forwarding

log = logging.getLogger("rowcall")


def read_forwarding(settings: Settings) -> Forwarding:
    """Return the options for forwarded headers.

    Raises `ConfigError` for an invalid proxy or network. Skipping it would shorten the list of trusted proxies, and an
    empty list has a different meaning.
    """
    options = settings.read_enabled(Forwarding)
    if options is None:
        return Forwarding()
    if options.all_trusted:
        log.warning(
            "ForwardedHeaders:TrustAllProxies is on: any client can say that it has another address, host and scheme"
        )
    log.debug(
        "forwarded headers: limit %s, proxies %d, networks %d, hosts %d",
        "none" if options.limit is None else options.limit,
        len(options.proxies),
        len(options.networks),
        len(options.hosts),
    )
    return options
