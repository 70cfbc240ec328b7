"""Notifications of PostgreSQL on the channels that endpoints stream: one connection of the host listens on all
of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

import psycopg
from psycopg import sql

from rowcall.core.endpoint.endpoint import Options
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall.events")

SETTLE_SECONDS = 5.0
"""Seconds for which a schema snapshot waits until it listens on the channels of its streams."""

Hear = Callable[[str, str], None]
"""Receives channel and payload."""


def channels_of(options: Iterable[Options]) -> frozenset[str]:
    """Return the channels of PostgreSQL that endpoints with these options stream."""
    all_events = (item.events for item in options)
    return frozenset(events.channel for events in all_events if events is not None and events.channel is not None)


class ChannelListener:
    """Listens on channels over one connection. No notification is lost when the channels change: those that arrive
    during a `listen` command are buffered. hear: called with the channel and payload of each notification."""

    def __init__(self, connector: Connector, hear: Hear) -> None:
        self._connector = connector
        self._hear = hear
        self._watched: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        """Set when it listens on the watched channels, or has failed to."""
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        """Consecutive failures since it has last listened."""
        self.active: frozenset[str] = frozenset()
        """Channels on which it listens at the moment."""

    @property
    def watched(self) -> frozenset[str]:
        """The channels that the last `watch` has requested."""
        return self._watched

    async def watch(self, channels: frozenset[str]) -> None:
        """Listen on these channels instead of the previous ones. Wait until PostgreSQL has executed the commands,
        listening has failed, or `SETTLE_SECONDS` have passed. A failure is logged, and listening is tried again in the
        background without end."""
        if channels == self._watched:
            return
        self._watched = channels
        self._settled.clear()
        self._changed.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), SETTLE_SECONDS)

    def close(self) -> None:
        """Stop listening, and end the connection in the background."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        """Listen on the watched channels, forever; after a failure, connect again with growing delays."""
        while True:
            while not self._watched:
                self._settled.set()
                self._changed.clear()
                await self._changed.wait()
            try:
                async with await self._connector.open_plain() as connection:
                    await self._listen(connection)
            except (psycopg.Error, OSError) as error:
                names = ", ".join(sorted(self._watched))
                log.warning("streams of %s: not listening, tried again: %s", names, str(error).strip())
                self._settled.set()
                self._failures += 1
                await asyncio.sleep(pause(min(self._failures, 6)))

    async def _listen(self, connection: psycopg.AsyncConnection) -> None:
        """Listen on the watched channels and pass notifications on, until no channel is watched. The first success
        after a failure is logged. Raises `psycopg.Error` and `OSError`."""
        try:
            while watched := self._watched:
                self._changed.clear()
                for command, channels in (("listen {}", watched - self.active), ("unlisten {}", self.active - watched)):
                    for channel in sorted(channels):
                        await connection.execute(sql.SQL(command).format(sql.Identifier(channel)))
                self.active = watched
                if self._failures:
                    self._failures = 0
                    log.info("listening again on %s; what was notified meanwhile is lost", ", ".join(sorted(watched)))
                if watched == self._watched:
                    self._settled.set()
                await self._hear_until_changed(connection)
        finally:
            self.active = frozenset()

    async def _hear_until_changed(self, connection: psycopg.AsyncConnection) -> None:
        """Pass notifications on until the watched channels change. Raises `psycopg.Error` and `OSError` if the
        connection is lost.
        """
        hearing = asyncio.ensure_future(self._hear_all(connection))
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((hearing, changed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hearing

    async def _hear_all(self, connection: psycopg.AsyncConnection) -> None:
        async for notification in connection.notifies():
            self._hear(notification.channel, notification.payload)
