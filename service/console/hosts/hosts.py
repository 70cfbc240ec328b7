"""The services that share the database or Redis with this one: their state, which they are asked for while a page of
the console is open, and the answers to the same question of their consoles."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

from rowcall.core.operations.console import ConsoleOptions, HostDiscovery
from rowcall.service.background import Background
from rowcall.service.console.hosts.status import HostStatus, OwnStatus, parse_status
from rowcall.service.console.hosts.transport import (
    CHANNEL,
    DatabaseTransport,
    HostTransport,
    RedisTransport,
    UnreachableError,
)
from rowcall.service.console.sources import Sources
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall.console")

_FIRST_PAUSES = (1.0, 0.5)
"""Seconds after the first questions: two answers make a rate."""
_PAUSE = 3.0
"""Seconds between further questions."""
_UNUSED = 10.0
"""Seconds without a request for the report after which no more questions are asked."""
_GONE = 600.0
"""Seconds after which a service that answers no more is left out."""
_AGAIN = 3.0
"""Seconds before a further attempt if the others cannot be reached."""
_MOST = 200
"""Most other services that are listed."""
_LEAST = 0.2
"""Seconds between two answers that make a rate."""
_MOST_ASKING = 50
"""Most consoles that are answered at a time."""
_BETWEEN = 0.5
"""Seconds between two answers, for all consoles that ask."""


@dataclass(slots=True)
class _HostEntry:
    """What is known of a service. rates: requests and errors a second, None before the second answer. at: when the last
    answer has arrived, in seconds of the monotonic clock.
    """

    status: HostStatus
    at: float
    rates: tuple[float, float] | None = None

    def update(self, status: HostStatus, at: float) -> None:
        """Store a newer status and compute the rates since the one before. If it follows too soon, store only the time
        of its arrival. at: that time, in seconds of the monotonic clock."""
        seconds = status.clock - self.status.clock
        if seconds >= _LEAST:
            changes = (status.requests - self.status.requests, status.errors - self.status.errors)
            self.rates = (max(0.0, changes[0]) / seconds, max(0.0, changes[1]) / seconds)
            self.status = status
        self.at = at


class Hosts:
    """Reports about all services that share a database or Redis, and answers the consoles of the others.

    Except for `report` and `latest`, methods are called in the event loop of the supervisor. Nothing is asked while no
    page is open.
    """

    def __init__(self, options: ConsoleOptions, sources: Sources) -> None:
        self._by = options.hosts
        self._sources = sources
        self._name = secrets.token_hex(8)
        self._channel = f"rowcall_hosts_{self._name}"
        self._own = OwnStatus(sources, self._name)
        self._transport: HostTransport | None = None
        self._background = Background()
        self._known: dict[str, _HostEntry] = {}
        self._asking: asyncio.Task[None] | None = None
        self._unreachable: str | None = None
        self._used = 0.0
        self._rounds = 0
        self._ready = asyncio.Event()
        """Set when the first answers have had time to arrive."""
        self._waiting: dict[HostTransport, set[str]] = {}
        """Channels of consoles that wait for an answer."""
        self._databases: dict[Connector, DatabaseTransport] = {}
        """Transports of the databases in which questions have arrived."""
        self._answers = False
        """Whether answers are being sent."""
        if self._by is HostDiscovery.DATABASE and not sources.options.target.pooler:
            self._transport = DatabaseTransport(sources.connector)
        elif self._by is HostDiscovery.REDIS:
            transport = RedisTransport(options.redis or sources.settings.text("CacheOptions:RedisConfiguration"))
            self._transport = transport
            self._background.keep(
                "listening for other hosts", lambda: transport.hear(lambda name: self._hear(name, transport))
            )

    # --- answers ---------------------------------------------------------------------------------------------------

    def hear(self, channel: str, connector: Connector) -> None:
        """Answer the console of another service, whose question has arrived as a notification of a database; ignored if
        the services communicate by Redis. channel: on which that console listens. connector: of this database."""
        if self._by is HostDiscovery.DATABASE:
            self._hear(channel, self._databases.setdefault(connector, DatabaseTransport(connector)))

    def _hear(self, channel: str, transport: HostTransport) -> None:
        waiting = self._waiting.setdefault(transport, set())
        if not CHANNEL.fullmatch(channel) or channel == self._channel or len(waiting) >= _MOST_ASKING:
            return
        waiting.add(channel)
        if not self._answers:
            self._answers = True
            self._background.start(self._answer())

    async def _answer(self) -> None:
        """Answer all who have asked, until there is no question left."""
        try:
            while any(self._waiting.values()):
                waiting, self._waiting = self._waiting, {}
                text = (await asyncio.to_thread(self._own.read)).to_json()
                for transport, channels in waiting.items():
                    await self._send(transport, channels, text)
                await asyncio.sleep(_BETWEEN)
        finally:
            self._answers = False

    async def _send(self, transport: HostTransport, channels: Set[str], text: str) -> None:
        try:
            await transport.answer(sorted(channels), text)
        except UnreachableError as error:
            log.debug("a console of another host gets no answer: %s", error)

    # --- questions -------------------------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """Return all services with their rates. The first call takes about two seconds. Called in a thread."""
        return self._sources.run(self._complete())

    def latest(self) -> dict[str, Any]:
        """Return the services that have answered so far, and go on to ask. Called in a thread."""
        return self._sources.run(self._so_far())

    async def _complete(self) -> dict[str, Any]:
        self._request()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(sum(_FIRST_PAUSES) + 1):
                await self._ready.wait()
        return self._report()

    async def _so_far(self) -> dict[str, Any]:
        self._request()
        return self._report()

    def _request(self) -> None:
        """Record that the report is requested now, and start the task that asks other services, unless it runs."""
        self._used = time.monotonic()
        if self._asking is None or self._asking.done():
            self._ready.clear()
            self._rounds = 0
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    def _report(self) -> dict[str, Any]:
        reason = self._reason()
        now = time.monotonic()
        return {
            "by": self._by.value,
            "hosts": [
                {
                    **{name: value for name, value in asdict(known.status).items() if name != "clock"},
                    "self": name == self._name,
                    "requestsPerSecond": None if known.rates is None else known.rates[0],
                    "errorsPerSecond": None if known.rates is None else known.rates[1],
                    "lastSeenSeconds": round(now - known.at, 3),
                }
                for name, known in sorted(self._known.items(), key=lambda item: _order(item, self._name))
            ],
            "unavailable": {} if reason is None else {"hosts": reason},
        }

    def _reason(self) -> str | None:
        """Return why there are no other services in the report, with the remedy; None if they are asked."""
        if self._by is HostDiscovery.NONE:
            return "other hosts are not asked: set Console:Hosts to Database or Redis"
        if self._transport is None:
            return "other hosts cannot be asked behind a transaction pooler: set Console:Hosts to Redis"
        return self._unreachable

    async def _ask(self) -> None:
        """Ask until the report has not been requested for some time."""
        while time.monotonic() - self._used < _UNUSED:
            await self._note_own()
            try:
                if self._transport is None:
                    await self._only_own()
                else:
                    await self._transport.ask(self._channel, self._take, self._pause)
            except UnreachableError as error:
                self._unreachable = str(error)
                await self._wait_for_retry()

    async def _only_own(self) -> None:
        """Store the status of this service regularly until the report is not requested any more, for a service that
        asks no others."""
        while True:
            seconds = self._pause()
            if seconds is None:
                return
            await asyncio.sleep(seconds)

    async def _wait_for_retry(self) -> None:
        """Wait before a further attempt, and note the own state meanwhile."""
        await asyncio.sleep(_FIRST_PAUSES[0])
        await self._note_own()
        self._ready.set()
        await asyncio.sleep(_AGAIN)

    def _pause(self) -> float | None:
        """Return the seconds until the next question; None if no answer is needed any more. Services that have not
        answered for long are dropped, and the own status is noted. After the first questions, the report counts as
        complete, and a former error is cleared."""
        now = time.monotonic()
        if now - self._used >= _UNUSED:
            return None
        self._known = {name: known for name, known in self._known.items() if now - known.at < _GONE}
        self._background.start(self._note_own())
        if self._rounds >= len(_FIRST_PAUSES):
            self._ready.set()
            self._unreachable = None
            return _PAUSE
        self._rounds += 1
        return _FIRST_PAUSES[self._rounds - 1]

    async def _note_own(self) -> None:
        self._store_status(await asyncio.to_thread(self._own.read))

    def _take(self, text: str | bytes) -> None:
        status = parse_status(text)
        if status is not None and status.id != self._name:
            self._store_status(status)

    def _store_status(self, status: HostStatus) -> None:
        """Store the status of a service. If `_MOST` other services are known already, the status of a new one is
        ignored."""
        known = self._known.get(status.id)
        if known is not None:
            known.update(status, time.monotonic())
        elif len(self._known) <= _MOST:
            self._known[status.id] = _HostEntry(status, time.monotonic())

    def close(self) -> None:
        self._background.cancel()
        if self._asking is not None:
            self._asking.cancel()


def _order(item: tuple[str, _HostEntry], own: str) -> tuple[bool, str, str, str]:
    """Return the sort key of a service: the service of this console first, then the others by host, application and id.
    own: id of the service of this console."""
    name, known = item
    return (name != own, known.status.host, known.status.application, name)
