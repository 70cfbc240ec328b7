"""`ForwardedHeaders` → which proxies are believed (spec 2.10)."""

from __future__ import annotations

from rowcall.core.config import Settings
from rowcall.core.http.forwarded_headers import Forwarding, parse_address, parse_networks

_SECTION = "ForwardedHeaders:"


def forwarding(settings: Settings) -> Forwarding:
    proxies = (parse_address(text) for text in settings.texts(_SECTION + "KnownProxies") or ())
    return Forwarding(
        enabled=settings.flag(_SECTION + "Enabled"),
        limit=settings.integer_or_none(_SECTION + "ForwardLimit"),
        proxies=tuple(address for address in proxies if address is not None),
        networks=parse_networks(settings.texts(_SECTION + "KnownNetworks") or ()),
        hosts=tuple(settings.texts(_SECTION + "AllowedHosts") or ()),
    )
