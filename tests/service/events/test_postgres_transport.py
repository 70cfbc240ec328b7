"""Events between hosts by NOTIFY: messages of several parts, and what others notify on the channel."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.events.event import Event
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.events.batches import Batch, pack
from rowcall.service.events.cross_host.outbox import MOST_BYTES
from rowcall.service.events.cross_host.postgres import MOST_PARTS, PART, PostgresTransport, _parts
from tests.ext.wire import run, until
from tests.harness.database import Database

CHANNEL = "between hosts"
IN_PARTS = "select pg_notify(%s, 'x ' || n || '/' || %s || ' ' || substr(%s, n, 1)) from generate_series(1, %s) n"
"""Notifies a text in as many parts as requested, of one character each; those behind the text are empty."""


def batch(text: str) -> Batch:
    return Batch("host", 1, [Event(text)])


def received(database: Database, *notified: list[str] | tuple[str, int]) -> list[str]:
    """Return the messages of the events that a transport receives while others notify, until it has one `end`.
    notified: by one transaction each, payloads, or a text with a number of parts.
    """

    async def work() -> list[str]:
        parameters = {name: str(value) for name, value in conninfo_to_dict(database.conninfo).items()}
        transport = PostgresTransport(Connector(ConnectionTarget(parameters)), CHANNEL)
        messages: list[str] = []

        def receive(batch: Batch) -> None:
            messages.extend(event.message for event in batch.events)

        await transport.catch_up(receive)
        reading = asyncio.ensure_future(transport.read(receive))
        async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as other:
            for item in (*notified, _parts(pack([batch("end")]))):
                if isinstance(item, tuple):
                    await other.execute(IN_PARTS, (CHANNEL, item[1], *item))
                else:
                    await other.execute("select pg_notify(%s, part) from unnest(%s::text[]) part", (CHANNEL, item))
        await until(lambda: "end" in messages)
        reading.cancel()
        await asyncio.wait({reading})
        return messages

    return run(work())


def text(message: str) -> str:
    return pack([batch(message)]).decode()


def test_a_message_with_more_parts_than_any_host_sends_is_ignored(database: Database) -> None:
    assert received(database, (text("allowed"), MOST_PARTS), (text("larger"), MOST_PARTS + 1)) == ["allowed", "end"]


def test_only_the_parts_of_one_message_are_stored(database: Database) -> None:
    first, last = text("split")[:9], text("split")[9:]
    whole = _parts(pack([batch("whole")]))
    assert received(database, [f"x 1/2 {first}"], whole, [f"x 2/2 {last}"]) == ["whole", "end"]
    assert received(database, [f"x 1/2 {first}", f"x 2/2 {last}"], ["y 2/2 ]"], ["x 2/1 "]) == ["split", "end"]


@pytest.mark.parametrize("character", ["a", "ä", "€", "\U0001f600", "\x01", '"', "\\"])
def test_queued_events_fit_into_the_maximum_number_of_parts(character: str) -> None:
    packed = pack([batch(character * 100_000)])
    size = sum(len(part.split(" ", 2)[2]) for part in _parts(packed))
    assert size <= 3 * len(packed)
    assert 3 * MOST_BYTES <= MOST_PARTS * PART
