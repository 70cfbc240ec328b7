"""Selection of the configured cross-host transport."""

from __future__ import annotations

import logging

from rowcall.core.cache.redis_address import BadAddressError, parse_redis
from rowcall.core.events.options import EventOptions, Way
from rowcall.service.database.connector import Connector
from rowcall.service.events.hub import HostTransport
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.events")


def transport_for(options: EventOptions, connector: Connector, *, pooler: bool) -> HostTransport | None:
    """Return the transport, or None if events stay on their host. pooler: the database is behind a transaction pooler.

    Raises:
        StartupError: the configuration of the transport is invalid.
    """
    if options.way is Way.REDIS:
        # Imported here, so that only services with Redis load its library.
        from rowcall.service.events.cross_host.redis import RedisTransport

        try:
            address = parse_redis(options.redis)
        except BadAddressError as error:
            raise StartupError(f"Service:ServerSentEvents:RedisConfiguration: {error}") from None
        return RedisTransport(address, options.channel, options.replay_events, options.stored_bytes)
    if options.way is Way.POSTGRES:
        if pooler:
            raise StartupError(
                "Service:ServerSentEvents:BetweenHosts: nothing can listen behind a transaction pooler; use Redis"
            )
        from rowcall.service.events.cross_host.postgres import PostgresTransport

        return PostgresTransport(connector, options.channel)
    return None
