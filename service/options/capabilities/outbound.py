"""Read `HttpClientOptions` and `ProxyOptions`: outgoing requests (outbound-1, outbound-2, proxies-1, proxies-2)."""

from __future__ import annotations

import logging

from rowcall.core.config import Settings
from rowcall.core.outgoing.options import FALLBACK_TIMEOUT, ClientOptions, OutboundOptions, ProxyOptions, TypeOptions
from rowcall.core.text.interval import parse_interval

log = logging.getLogger("rowcall")

_TIMEOUT = "Service:ProxyOptions:DefaultTimeout"


def outbound_options(settings: Settings) -> OutboundOptions:
    """Return the options of outgoing requests, and warn about an invalid timeout. Raises `ConfigError`."""
    proxy = settings.read_enabled(ProxyOptions) or ProxyOptions()
    text = proxy.default_timeout
    if text and parse_interval(text) is None:
        log.warning("%s: %r is no interval such as '5 seconds'; %g seconds are used", _TIMEOUT, text, FALLBACK_TIMEOUT)
    return OutboundOptions(settings.read(ClientOptions), settings.read(TypeOptions), proxy)
