"""The way between hosts that the configuration asks for."""

from __future__ import annotations

import logging

from rowcall.core.cache.redis_address import BadAddressError, parse_redis
from rowcall.service.database.connector import Connector
from rowcall.service.events.hub import Bridge
from rowcall.service.options.capabilities.events import EventOptions, Way
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.events")


def bridge_for(options: EventOptions, connector: Connector, *, pooler: bool) -> Bridge | None:
    """None: events stay on their host.

    Raises:
        StartupError: it cannot be had like this.
    """
    if options.way is Way.REDIS:
        # Its library is for those who ask for it.
        from rowcall.service.events.between_hosts.redis import RedisBridge

        try:
            address = parse_redis(options.redis)
        except BadAddressError as error:
            raise StartupError(f"Service:ServerSentEvents:RedisConfiguration: {error}") from None
        return RedisBridge(address, options.channel, options.kept, options.kept_bytes)
    if options.way is Way.POSTGRES:
        if pooler:
            raise StartupError(
                "Service:ServerSentEvents:BetweenHosts: nothing can listen behind a transaction pooler; use Redis"
            )
        from rowcall.service.events.between_hosts.postgres import PostgresBridge

        return PostgresBridge(connector, options.channel)
    return None
