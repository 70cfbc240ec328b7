"""The connection that listens to the channels of streams."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.events import channels
from rowcall.service.events.channels import ChannelListener
from tests.ext.wire import run, until
from tests.harness.database import Database


def listener(database: Database, heard: list[tuple[str, str]]) -> ChannelListener:
    parameters = {name: str(value) for name, value in conninfo_to_dict(database.conninfo).items()}
    return ChannelListener(
        Connector(ConnectionTarget(parameters)), lambda channel, payload: heard.append((channel, payload))
    )


def test_every_notification_after_watch_is_received(database: Database) -> None:
    async def work() -> None:
        heard: list[tuple[str, str]] = []
        listening = listener(database, heard)
        await listening.watch(frozenset({"orders"}))
        await asyncio.to_thread(database.execute, "notify orders, '1'")
        await until(lambda: heard == [("orders", "1")])
        await listening.watch(frozenset({"orders", "Straße"}))
        await asyncio.to_thread(database.execute, """notify "Straße", '2'; notify orders, '3'""")
        await until(lambda: heard[1:] == [("Straße", "2"), ("orders", "3")])
        listening.close()

    run(work())


@pytest.mark.slow
def test_a_change_of_channels_neither_loses_nor_repeats_notifications(database: Database) -> None:
    async def notify(count: int) -> None:
        async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as connection:
            for number in range(count):
                await connection.execute("select pg_notify('orders', %s)", (str(number),))

    async def work() -> None:
        heard: list[tuple[str, str]] = []
        listening = listener(database, heard)
        await listening.watch(frozenset({"orders"}))
        notifying = asyncio.ensure_future(notify(400))
        while not notifying.done():
            await listening.watch(frozenset({"orders", "news"}))
            await listening.watch(frozenset({"orders"}))
        await notifying
        await until(lambda: len(heard) >= 400)
        assert heard == [("orders", str(number)) for number in range(400)]
        listening.close()

    run(work())


def test_a_channel_can_be_watched_again(database: Database) -> None:
    async def work() -> None:
        heard: list[tuple[str, str]] = []
        listening = listener(database, heard)
        await listening.watch(frozenset({"orders"}))
        await listening.watch(frozenset())
        assert listening.active == frozenset()
        await asyncio.to_thread(database.execute, "notify orders, 'unknown'")
        await listening.watch(frozenset({"orders"}))
        assert listening.active == frozenset({"orders"})
        await asyncio.to_thread(database.execute, "notify orders, 'known'")
        await until(lambda: heard == [("orders", "known")])
        listening.close()

    run(work())


def test_each_interruption_is_followed_by_a_fast_reconnection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def pause(attempt: int) -> float:
        attempts.append(attempt)
        return 0

    monkeypatch.setattr(channels, "pause", pause)

    async def interrupt(listening: ChannelListener) -> None:
        count = len(attempts) + 1
        await asyncio.to_thread(
            database.execute,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and query = 'listen \"orders\"'",
        )
        await until(lambda: len(attempts) == count and listening.active)

    async def work() -> None:
        listening = listener(database, [])
        await listening.watch(frozenset({"orders"}))
        for _ in range(3):
            await interrupt(listening)
        listening.close()

    run(work())
    assert attempts == [1, 1, 1]
