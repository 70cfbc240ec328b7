"""Reads the database and makes endpoints of what it finds: what an edition is made of.

The supervisor does it at the start and whenever the schema has changed; `rowcall --endpoints` does it once.
"""

from __future__ import annotations

import asyncio
import logging

import psycopg

from rowcall.core.catalog import Catalog
from rowcall.core.config import Settings
from rowcall.service.database.connector import Connector
from rowcall.service.database.discovery import discover
from rowcall.service.edition import Edition, reachable_types
from rowcall.service.endpoints import EndpointBuilder
from rowcall.service.exposure import Exposure
from rowcall.service.startup import StartupError

log = logging.getLogger("rowcall")


class EndpointReader:
    def __init__(self, settings: Settings, connector: Connector, exposure: Exposure) -> None:
        self._settings = settings
        self._connector = connector
        self._exposure = exposure
        self._builder = EndpointBuilder(settings)

    async def first(self) -> Edition:
        """The first reading, tried as often as `ConnectionSettings:RetryOptions` says. Raises StartupError."""
        delays = list(self._settings.numbers("ConnectionSettings:RetryOptions:RetrySequenceSeconds"))
        if not self._settings.flag("ConnectionSettings:RetryOptions:Enabled"):
            delays = []
        attempt = 0
        while True:
            try:
                return await self.read(1)
            except psycopg.Error as error:
                message = str(error).strip()
                if attempt == len(delays) or not _worth_another_attempt(error, self._settings):
                    raise StartupError(f"cannot read the database: {message}") from None
                delay = delays[attempt]
                attempt += 1
                log.warning("attempt %d: cannot read the database, again in %g s: %s", attempt, delay, message)
                await asyncio.sleep(delay)

    async def read(self, number: int) -> Edition:
        """One reading. Raises psycopg.Error, and StartupError for what must not be served."""
        catalog = await self._discover()
        endpoints = self._builder.build(catalog, self._exposure.objects(catalog))
        return Edition(number, endpoints, reachable_types(endpoints, catalog.types))

    async def _discover(self) -> Catalog:
        async with await self._connector.open_plain() as connection:
            schema = self._settings.text_or_none("ConnectionSettings:MetadataQuerySchema")
            return await discover(connection, self._exposure.wanted, schema)


def _worth_another_attempt(error: psycopg.Error, settings: Settings) -> bool:
    """Network errors always are; errors of the server by their SQLSTATE (reference 06, 1.7)."""
    if error.sqlstate is None:
        message = str(error)
        return "password authentication" not in message and "does not exist" not in message
    return error.sqlstate in (settings.texts("ConnectionSettings:RetryOptions:ErrorCodes") or ())
