"""`NOTIFY rowcall`: what databases say of themselves on one channel.

Anybody who can connect can notify, and what is sent is no secret: whoever listens reads it, so no signature would stay
one. A notification is therefore a hint, and costs a fingerprint a second at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import psycopg

from rowcall.service.background import Background, pause
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

NOTIFY_CHANNEL = "rowcall"
_FORGET = "forget "


@dataclass(frozen=True, slots=True)
class Notified:
    """What is done with that which is heard."""

    may_have_changed: Callable[[], None]
    """Without payload, or `reload`."""
    forgotten: Callable[[str], None]
    """What follows after `forget `."""
    found_again: Callable[[], None]
    """The database is back after a loss; it may be another server than before."""


async def listen(sources: Iterable[Connector], heard: Notified, background: Background) -> None:
    """Begins to listen at each source. A change between the first reading and the first LISTEN would go unnoticed, so
    this returns when LISTEN has been tried everywhere.
    """
    every = []
    for connector in sources:
        tried = asyncio.Event()
        background.keep("listening for NOTIFY", partial(_listen, connector, heard, tried))
        every.append(tried.wait())
    await asyncio.gather(*every)


async def _listen(connector: Connector, heard: Notified, tried: asyncio.Event) -> None:
    attempt = 0
    listened = False
    """Before it listens for the first time, whoever reads the database tells that it is away."""
    lost = False
    while True:
        try:
            async with await connector.open_plain() as connection:
                await connection.execute(f"listen {NOTIFY_CHANNEL}")
                tried.set()
                listened = True
                attempt = 0
                if lost:
                    heard.found_again()
                async for notification in connection.notifies():
                    payload = notification.payload
                    if payload.startswith(_FORGET):
                        heard.forgotten(payload.removeprefix(_FORGET))
                    elif payload in ("", "reload"):
                        heard.may_have_changed()
        except (psycopg.Error, OSError) as error:
            tried.set()
            lost = True
            level = logging.INFO if listened else logging.DEBUG
            log.log(level, "not listening for NOTIFY: %s", " ".join(str(error).split()))
        await asyncio.sleep(pause(attempt + 2))
        attempt += 1
