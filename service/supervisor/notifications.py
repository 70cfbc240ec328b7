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
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

NOTIFY_CHANNEL = "rowcall"
_FORGET = "forget "


@dataclass(frozen=True, slots=True)
class Notified:
    """The handlers of notifications."""

    may_have_changed: Callable[[], None]
    """Called without payload, or for `reload`."""
    forgotten: Callable[[str], None]
    """Called with the text after `forget `."""
    found_again: Callable[[], None]
    """Called when the database is reachable again after a loss; it may be another server than before."""


async def listen(sources: Iterable[Connector], heard: Notified, background: Background) -> None:
    """Start to listen on each database. A change between the first reading and the first LISTEN would not be noticed,
    so this returns when LISTEN has been tried on all.
    """

    def handle(payload: str) -> None:
        if payload.startswith(_FORGET):
            heard.forgotten(payload.removeprefix(_FORGET))
        elif payload in ("", "reload"):
            heard.may_have_changed()

    channel = Channel(NOTIFY_CHANNEL, handle, heard.found_again)
    await asyncio.gather(*(listen_on(connector, channel, background) for connector in sources))


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a database. notified: called with each payload. found_again: called after a loss of the database."""

    name: str
    notified: Callable[[str], None]
    found_again: Callable[[], None]


async def listen_on(connector: Connector, channel: Channel, background: Background) -> None:
    """Start to listen on a channel, and return when LISTEN has been tried."""
    tried = asyncio.Event()
    background.keep(f"listening for NOTIFY {channel.name}", partial(_listen, connector, channel, tried))
    await tried.wait()


async def _listen(connector: Connector, channel: Channel, tried: asyncio.Event) -> None:
    attempt = 0
    listened = False
    """Before the first LISTEN, the code that reads the database logs that it cannot be reached."""
    was_lost = False
    while True:
        try:
            async with await connector.open_plain() as connection:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel.name)))
                tried.set()
                listened = True
                attempt = 0
                if was_lost:
                    channel.found_again()
                async for notification in connection.notifies():
                    channel.notified(notification.payload)
        except (psycopg.Error, OSError) as error:
            tried.set()
            was_lost = True
            level = logging.INFO if listened else logging.DEBUG
            log.log(level, "not listening for NOTIFY: %s", " ".join(str(error).split()))
        await asyncio.sleep(pause(attempt + 2))
        attempt += 1
