"""What health is made of: each check asks one server that the service needs, within a time of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from rowcall.core.cache.redis_address import RedisAddress
from rowcall.core.operations.health import Finding, Status
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

Ask = Callable[[], Awaitable[None]]
"""Raises one of the `failures` of its check."""


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """name: as it is called in logs and reports. failing: what a failure makes of the whole."""

    name: str
    failing: Status
    ask: Ask
    failures: tuple[type[Exception], ...]
    """OSError and TimeoutError are such anyway."""


class Check:
    """One question at a time, whoever wants to know; the log hears of each change once."""

    def __init__(self, asked: HealthProbe, within: float) -> None:
        self._asked = asked
        self._within = within
        self._well = True
        self._asking: asyncio.Task[None] | None = None

    async def look(self) -> Finding:
        asked = self._asked
        began = time.monotonic()
        try:
            await self._ask_in_time()
        except Exception as error:
            if not isinstance(error, (*asked.failures, OSError, TimeoutError)):
                raise
            if self._well:
                reason = str(error).strip() or f"no answer within {self._within:g} s"
                log.error("health check %s: %s: %s", asked.name, asked.failing.value, reason)
            self._well = False
        else:
            if not self._well:
                log.info("health check %s: Healthy again", asked.name)
            self._well = True
        status = Status.HEALTHY if self._well else asked.failing
        return Finding(asked.name, status, time.monotonic() - began)

    async def _ask_in_time(self) -> None:
        """Not by cancelling: psycopg then waits for what the server says to that, and one that hangs says nothing. What
        is late goes on until its session is shut down, and nothing else is asked meanwhile."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._asked.ask())
            self._asking.add_done_callback(_outcome)
        done, _ = await asyncio.wait({self._asking}, timeout=self._within)
        if not done:
            raise TimeoutError
        self._asking.result()


def _outcome(asking: asyncio.Task[None]) -> None:
    """Looks at it, as perhaps nobody else does any more."""
    if not asking.cancelled():
        asking.exception()


def database_check(name: str, connector: Connector, within: float) -> HealthProbe:
    """On a connection of its own: those of the lanes would be there still when no new one can be had."""

    async def ask() -> None:
        async with connector.maintenance_connection(within) as session:
            await session.execute("select 1")

    return HealthProbe(name, Status.UNHEALTHY, ask, (psycopg.Error,))


def redis_check(
    name: str, address: RedisAddress, failing: Status, fallen_back: Callable[[], str | None]
) -> HealthProbe:
    """On a connection of its own, for the same reason.

    fallen_back: returns why the service does without this Redis although it may answer, or None.
    """
    # Redis's client is only for those who use it.
    from rowcall.service.shared_state.redis_connection import FAILURES, open_client

    async def ask() -> None:
        await (await open_client(address, "rowcall-checks")).aclose()
        reason = fallen_back()
        if reason is not None:
            raise ConnectionError(reason)

    return HealthProbe(name, failing, ask, FAILURES)
