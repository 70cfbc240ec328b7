"""`NOTIFY rowcall`: notifications of databases on one channel.

Every user of the database can notify, and payloads are not secret: every listener reads them, so a signature could be
copied. A notification is therefore only a hint, and causes at most one fingerprint a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import psycopg
from psycopg import sql

from rowcall.service.background import Background, pause
from rowcall.service.console.hosts.transport import HOSTS, NOTIFY_CHANNEL
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

_INVALIDATE = "forget "
_RELOADS_OF_POSTGREST = ("", "reload schema", "reload config")


@dataclass(frozen=True, slots=True)
class NotificationHandlers:
    """What to call for notifications on the channel `rowcall`."""

    on_change: Callable[[], None]
    """Called without payload, or for `reload`."""
    on_invalidate: Callable[[str], None]
    """Called with the text after `forget `."""
    on_reconnect: Callable[[], None]
    """Called when the database is reachable again after a loss; it may be another server than before."""
    on_hosts: Callable[[str, Connector], None]
    """Called with the text after `hosts `, with which the console of another host asks, and the database."""


async def listen(sources: Iterable[Connector], handlers: NotificationHandlers, background: Background) -> None:
    """Start to listen on each database, and return when LISTEN has been tried on all. Await it before the first reading
    of the catalogue: otherwise a change between the reading and LISTEN would not be noticed. background: holds the
    listening tasks."""

    def handle(connector: Connector, payload: str) -> None:
        if payload.startswith(_INVALIDATE):
            handlers.on_invalidate(payload.removeprefix(_INVALIDATE))
        elif payload.startswith(HOSTS):
            handlers.on_hosts(payload.removeprefix(HOSTS), connector)
        elif payload in ("", "reload"):
            handlers.on_change()

    channels = {item: Channel(NOTIFY_CHANNEL, partial(handle, item), handlers.on_reconnect) for item in sources}
    await asyncio.gather(*(listen_on(connector, channel, background) for connector, channel in channels.items()))


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel to listen on. on_payload: called with the payload of each notification. on_reconnect: called when the
    connection was lost and is restored.
    """

    name: str
    on_payload: Callable[[str], None]
    on_reconnect: Callable[[], None]


def postgrest_channel(name: str, on_change: Callable[[], None]) -> Channel:
    """Return the channel of PostgREST's interface, where other payloads than those of a reload have no effect.
    on_change: called for a reload, and when a lost connection is restored.
    """

    def handle(payload: str) -> None:
        if payload in _RELOADS_OF_POSTGREST:
            on_change()

    return Channel(name, handle, on_change)


async def listen_on(connector: Connector, channel: Channel, background: Background) -> None:
    """Start to listen on a channel, and return when LISTEN has been tried. background: holds the listening task."""
    tried = asyncio.Event()
    background.keep(f"listening for NOTIFY {channel.name}", partial(_listen, connector, channel, tried))
    await tried.wait()


async def _listen(connector: Connector, channel: Channel, tried: asyncio.Event) -> None:
    """Listen on a channel until the connection is lost, and connect again, without end. tried: set after the first
    attempt.
    """
    attempt = 0
    listened = False
    # Before the first LISTEN, the code that reads the database logs that it cannot be reached.
    was_lost = False
    while True:
        try:
            async with await connector.open_plain() as connection:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel.name)))
                tried.set()
                listened = True
                attempt = 0
                if was_lost:
                    channel.on_reconnect()
                async for notification in connection.notifies():
                    channel.on_payload(notification.payload)
        except (psycopg.Error, OSError) as error:
            tried.set()
            was_lost = True
            level = logging.INFO if listened else logging.DEBUG
            log.log(level, "not listening for NOTIFY: %s", " ".join(str(error).split()))
        await asyncio.sleep(pause(attempt + 2))
        attempt += 1
