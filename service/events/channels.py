"""Notifications of PostgreSQL on the channels that endpoints stream: one connection of the host listens for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import psycopg
from psycopg import sql

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall.events")

Hear = Callable[[str, str], None]
"""Channel and payload."""


def channels_of(endpoints: Iterable[Endpoint]) -> frozenset[str]:
    wanted = (endpoint.options.events for endpoint in endpoints)
    return frozenset(events.channel for events in wanted if events is not None and events.channel is not None)


class ChannelListener:
    """`watch` as often as the channels change."""

    def __init__(self, connector: Connector, hear: Hear) -> None:
        self._connector = connector
        self._hear = hear
        self._channels: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def watch(self, channels: frozenset[str]) -> None:
        if channels == self._channels:
            return
        self._channels = channels
        self.close()
        if channels:
            self._task = asyncio.get_running_loop().create_task(self._run(sorted(channels)))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, channels: list[str]) -> None:
        attempt = 0
        while True:
            try:
                async with await self._connector.open_plain() as connection:
                    for channel in channels:
                        await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                    if attempt:
                        log.info("listening again on %s; what was notified meanwhile is lost", ", ".join(channels))
                    attempt = 0
                    async for notification in connection.notifies():
                        self._hear(notification.channel, notification.payload)
            except (psycopg.Error, OSError) as error:
                log.warning("streams of %s: not listening, tried again: %s", ", ".join(channels), str(error).strip())
            attempt += 1
            await asyncio.sleep(pause(min(attempt, 6)))
