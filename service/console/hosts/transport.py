"""How services reach each other: by notifications of the main database, or by publish and subscribe of Redis.

A question is the name of a channel, which only the console that asks listens on; an answer is a text on this channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import psycopg
from psycopg import sql

from rowcall.service.database.connector import Connector

if TYPE_CHECKING:
    from rowcall.service.shared_state.redis_link import LateLink, RedisLink

NOTIFY_CHANNEL = "rowcall"
"""Channel on which each service listens in its databases."""
HOSTS = "hosts "
"""Begins the payload with which the console of a host asks the others."""
CHANNEL = re.compile(r"rowcall_hosts_[0-9a-f]{16}")
"""Names of channels for answers. Others are not answered, as every user of the database can ask."""
_REDIS_CHANNEL = b"rowcall:hosts"
_WITHIN = 5.0
"""Seconds for sending answers."""
_AGAIN = 1.0
"""Seconds between attempts to reach Redis."""

Take = Callable[[str | bytes], None]


class UnreachableError(Exception):
    """The other services cannot be reached; the text says why."""


class HostTransport(Protocol):
    """Carries questions and answers. Methods run in the event loop of the supervisor."""

    async def ask(self, channel: str, take: Take, pauses: Callable[[], float | None]) -> None:
        """Ask all services again and again, and call `take` with each answer. channel: on which answers arrive. pauses:
        returns the seconds until the next question, None to end. Raises `UnreachableError`.
        """

    async def answer(self, channels: Sequence[str], text: str) -> None:
        """Send an answer to each of these channels. Raises `UnreachableError`."""


class DatabaseTransport:
    """Carries questions and answers as notifications. It has a connection only while it asks or answers."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    async def ask(self, channel: str, take: Take, pauses: Callable[[], float | None]) -> None:
        try:
            async with await self._connector.open_plain() as connection:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                while (seconds := pauses()) is not None:
                    await connection.execute("select pg_notify(%s, %s)", (NOTIFY_CHANNEL, HOSTS + channel))
                    async for notification in connection.notifies(timeout=seconds):
                        take(notification.payload)
        except (psycopg.Error, OSError) as error:
            raise UnreachableError(f"the database cannot be asked: {_reason(error)}") from None

    async def answer(self, channels: Sequence[str], text: str) -> None:
        try:
            async with asyncio.timeout(_WITHIN), await self._connector.open_plain() as connection:
                await connection.execute(
                    "select pg_notify(channel, %s) from unnest(%s::text[]) as channel", (text, list(channels))
                )
        except (psycopg.Error, OSError) as error:
            raise UnreachableError(_reason(error)) from None


class RedisTransport:
    """Carries questions and answers by publish and subscribe, over connections that are open as long as the service.
    Construct it in the running event loop.
    """

    def __init__(self, address: str) -> None:
        # Imported here, so that only services with Redis load its library.
        from rowcall.service.shared_state.redis_link import LateLink

        self._late: LateLink = LateLink(address, "Console:RedisConfiguration", "the console lists only this host")

    async def hear(self, on_question: Callable[[str], None]) -> None:
        """Listen for questions, forever. on_question: called with the channel of the console that asks."""
        while True:
            link = await self._late.link()
            if link is not None:
                await link.listen(
                    _REDIS_CHANNEL, lambda payload: on_question(payload.decode("ascii", "replace")), _none
                )
            await asyncio.sleep(_AGAIN)

    async def ask(self, channel: str, take: Take, pauses: Callable[[], float | None]) -> None:
        link = await self._link()
        listens = asyncio.Event()
        listening = asyncio.create_task(link.listen(channel.encode(), take, listens.set))
        try:
            async with asyncio.timeout(_WITHIN):
                await listens.wait()
            while (seconds := pauses()) is not None:
                await self._publish(link, _REDIS_CHANNEL, channel)
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise UnreachableError("Redis does not answer") from None
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    async def answer(self, channels: Sequence[str], text: str) -> None:
        link = await self._link()
        for channel in channels:
            await self._publish(link, channel.encode(), text)

    async def _link(self) -> RedisLink:
        link = await self._late.link()
        if link is None:
            raise UnreachableError("Redis cannot be reached; Console:RedisConfiguration has its address")
        return link

    async def _publish(self, link: RedisLink, channel: bytes, text: str) -> None:
        from rowcall.service.shared_state.redis_link import RedisUnavailableError

        try:
            await link.ask(None if link.client is None else link.client.publish, channel, text)
        except RedisUnavailableError:
            raise UnreachableError("Redis does not answer") from None


def _none() -> None:
    """Do nothing when listening begins again: a question that was missed is asked again."""


def _reason(error: Exception) -> str:
    return (str(error).strip() or "no answer in time").splitlines()[0]
