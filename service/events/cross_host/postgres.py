"""Cross-host transport by NOTIFY of the main database. It needs no other server, but a host misses what is notified
while it does not listen.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable

import orjson
import psycopg
from psycopg import sql

from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.events.batches import Batch, unpack_received
from rowcall.service.events.cross_host.outbox import MOST_BYTES, Outbox

log = logging.getLogger("rowcall.events")

PART = 7_800
"""Characters of a payload, all of them ASCII; PostgreSQL accepts less than 8000 bytes."""
MOST_PARTS = 3 * MOST_BYTES // PART + 1
"""Maximum number of parts of a message: enough for the largest batches that `Outbox` holds, as one byte of UTF-8
becomes at most three characters (`ä`: two bytes, `\\u00e4`), only DEL six.
"""

_Listening = psycopg.AsyncConnection[tuple[object, ...]]


class PostgresTransport:
    """The transport of one host. It publishes and listens on connections of its own. channel: of NOTIFY."""

    def __init__(self, connector: Connector, channel: str) -> None:
        self._connector = connector
        self._channel = channel
        self._outbox = Outbox()
        self._name = ""
        self._arrived: list[str] = []
        """Name and parts of the message that is incomplete. There is only one: PostgreSQL delivers what one transaction
        notifies without notifications of others in between.
        """
        self._listening: psycopg.AsyncConnection | None = None
        """Connection that listens already, opened before any client subscribes, and not read yet."""

    def send(self, batch: Batch) -> None:
        self._outbox.add(batch)

    async def wait_until_sent(self) -> None:
        """Wait until all published events have been sent to PostgreSQL with NOTIFY."""
        await self._outbox.wait_until_empty()

    async def catch_up(self, receive: Callable[[Batch], None]) -> None:
        """Start to listen. Earlier notifications are not available, so `receive` is not called."""
        try:
            self._listening = await self._listen()
        except (psycopg.Error, OSError) as error:
            _report_not_listening(error)

    async def write(self) -> None:
        """Send queued events with NOTIFY, forever. After a failure, which is logged, connect again and send them
        again."""
        attempt = 0
        while True:
            try:
                async with await self._connector.open_plain() as connection:
                    attempt = 0
                    await self._write_over(connection)
            except (psycopg.Error, OSError) as error:
                log.warning(
                    "events cannot be sent to other hosts by NOTIFY, and are sent again: %s", str(error).strip()
                )
                await asyncio.sleep(pause(attempt))
                attempt += 1

    async def _write_over(self, connection: _Listening) -> None:
        """Send events over this connection until it fails. Raises `psycopg.Error`."""
        while True:
            waiting = await self._outbox.first()
            # One statement in one transaction, so that all parts are notified together and in order.
            payloads = [payload for packed in waiting for payload in _parts(packed)]
            await connection.execute(
                "select pg_notify(%s, part) from unnest(%s::text[]) as part", (self._channel, payloads)
            )
            self._outbox.remove(waiting)

    async def read(self, receive: Callable[[Batch], None]) -> None:
        """Pass the events that hosts publish to `receive`, forever. After a failure, which is logged, connect again;
        events that were notified meanwhile are missed."""
        attempt = 0
        while True:
            try:
                opened, self._listening = self._listening, None
                async with opened or await self._listen() as connection:
                    attempt = 0
                    self._arrived = []
                    async for notification in connection.notifies():
                        self._take(notification.payload, receive)
            except (psycopg.Error, OSError) as error:
                _report_not_listening(error)
            await asyncio.sleep(pause(attempt))
            attempt += 1

    async def _listen(self) -> psycopg.AsyncConnection:
        """Return a new connection that listens on the channel. Raises `psycopg.Error` and `OSError`."""
        connection = await self._connector.open_plain()
        await connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
        return connection

    def _take(self, payload: str, receive: Callable[[Batch], None]) -> None:
        """Collect the parts of a message, and pass its batches to `receive` when it is complete. payload: of one
        notification, as in `_parts`. Other payloads are ignored, and so is a message with a missing part or with more
        than `MOST_PARTS`: every user of the database may notify.
        """
        name, _, rest = payload.partition(" ")
        position, _, text = rest.partition(" ")
        try:
            number, total = (int(part) for part in position.split("/"))
        except ValueError:
            return  # from another user of the channel
        if number == 1:
            self._name, self._arrived = name, []
        if name != self._name or number != len(self._arrived) + 1 or not number <= total <= MOST_PARTS:
            self._arrived = []
            return
        self._arrived.append(text)
        if number < total:
            return
        parts, self._arrived = self._arrived, []
        try:
            batches = unpack_received("".join(parts).encode())
        except ValueError:
            return  # from another user of the channel
        for batch in batches:
            receive(batch)


def _report_not_listening(error: Exception) -> None:
    log.warning("events of other hosts are not received, tried again: %s", str(error).strip())


def _parts(packed: bytes) -> list[str]:
    """Return the payloads `name number/total text` of a message. The name is unique to the message, so that no two
    payloads are equal. A message with more than `MOST_PARTS` parts has none: it is logged and not sent. packed: a batch
    from `pack`.
    """
    text = json.dumps(orjson.loads(packed), separators=(",", ":"))
    pieces = [text[start : start + PART] for start in range(0, len(text), PART)]
    if len(pieces) > MOST_PARTS:
        log.warning("events of %d bytes are too large for NOTIFY and do not reach other hosts", len(packed))
        return []
    name = secrets.token_hex(8)
    return [f"{name} {number}/{len(pieces)} {piece}" for number, piece in enumerate(pieces, 1)]
