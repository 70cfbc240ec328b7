"""Health checks: each one queries one server that the service needs, with its own timeout."""

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
"""Function that queries a server; it raises one of the `failures` of its probe."""


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """A query of one server. name: of the health check, in logs and reports. failing: status of the service if the
    query fails."""

    name: str
    failing: Status
    ask: Ask
    failures: tuple[type[Exception], ...]
    """Exceptions that count as failures, in addition to OSError and TimeoutError."""


class Check:
    """A health check, which runs one query at a time for all callers and logs each change of the status once.

    within: timeout in seconds.
    """

    def __init__(self, probe: HealthProbe, within: float) -> None:
        self._probe = probe
        self._within = within
        self._well = True
        self._asking: asyncio.Task[None] | None = None

    async def look(self) -> Finding:
        """Run the check and return its status and duration. A change of the status is logged. Raises errors of the
        query other than `failures`, OSError and TimeoutError.
        """
        probe = self._probe
        began = time.monotonic()
        try:
            await self._ask_in_time()
        except Exception as error:
            if not isinstance(error, (*probe.failures, OSError, TimeoutError)):
                raise
            if self._well:
                reason = str(error).strip() or f"no answer within {self._within:g} s"
                log.error("health check %s: %s: %s", probe.name, probe.failing.value, reason)
            self._well = False
        else:
            if not self._well:
                log.info("health check %s: Healthy again", probe.name)
            self._well = True
        status = Status.HEALTHY if self._well else probe.failing
        return Finding(probe.name, status, time.monotonic() - began)

    async def _ask_in_time(self) -> None:
        """Run the query; raise TimeoutError if it takes longer than the timeout.

        The query is not cancelled: psycopg would then wait for the reply of the server, and a server that hangs sends
        none. A late query continues until its session is closed; meanwhile no other query is started.
        """
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._probe.ask())
            self._asking.add_done_callback(_retrieve_exception)
        done, _ = await asyncio.wait({self._asking}, timeout=self._within)
        if not done:
            raise TimeoutError
        self._asking.result()


def _retrieve_exception(asking: asyncio.Task[None]) -> None:
    """Retrieve the exception of a finished task, because asyncio logs one that is never retrieved, as when no caller
    waits any more."""
    if not asking.cancelled():
        asking.exception()


def database_check(name: str, connector: Connector, within: float) -> HealthProbe:
    """Return the probe of PostgreSQL. It opens a new connection: those in the pools may still work when the server
    accepts no new ones. name: of the check. within: timeout in seconds.
    """

    async def ask() -> None:
        async with connector.maintenance_connection(within) as session:
            await session.execute("select 1")

    return HealthProbe(name, Status.UNHEALTHY, ask, (psycopg.Error,))


def redis_check(
    name: str, address: RedisAddress, failing: Status, fallen_back: Callable[[], str | None]
) -> HealthProbe:
    """Return the probe of a Redis server, with a new connection for the same reason as `database_check`.

    fallen_back: returns the reason if the service does not use this Redis, although it may respond; else None. With a
    reason, the query fails. name, failing: as for `HealthProbe`.
    """
    # The client of Redis is imported only if Redis is used.
    from rowcall.service.shared_state.redis_connection import FAILURES, open_client

    async def ask() -> None:
        await (await open_client(address, "rowcall-checks")).aclose()
        reason = fallen_back()
        if reason is not None:
            raise ConnectionError(reason)

    return HealthProbe(name, failing, ask, FAILURES)
