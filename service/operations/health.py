"""`/health`, `/health/ready`, `/health/live` (spec 2.8, reference 06, 9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import psycopg

from rowcall.service.database.connector import Connector
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.protocols import Headers
from rowcall.service.operations.guard import Answer, guarded
from rowcall.service.options.capabilities.operations import HealthOptions
from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Probes ask as they like."""

_HEADERS: Headers = [
    ("content-type", "text/plain"),
    ("cache-control", "no-store, no-cache"),
    ("pragma", "no-cache"),
    ("expires", "Thu, 01 Jan 1970 00:00:00 GMT"),
]


def health_routes(options: HealthOptions, services: Services) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
    """Method, path and steps of each."""
    check = DatabaseCheck(options, services)
    for path, make in ((options.path, check.ask), (options.ready, check.ask), (options.live, _alive)):
        steps = guarded(path, options.guarded, services, make)
        yield from ((method, path, steps) for method in METHODS)


async def _alive(_exchange: Exchange) -> Answer:
    """Whoever can say so is alive; the database is somebody else's business."""
    return _answer(well=True)


class DatabaseCheck:
    """Opens a connection of its own: those of the lanes would be there still when no new one can be had."""

    def __init__(self, options: HealthOptions, services: Services) -> None:
        self._name = options.check
        self._within = options.within
        self._connector = Connector(services.options.target)
        self._well = True
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, _exchange: Exchange) -> Answer:
        if self._name is None:
            return _answer(well=True)
        try:
            await self._select_in_time()
        except (psycopg.Error, OSError, TimeoutError) as error:
            if self._well:
                reason = str(error).strip() or f"no answer within {self._within:g} s"
                log.error("health check %s: Unhealthy: %s", self._name, reason)
            self._well = False
            return _answer(well=False)
        if not self._well:
            log.info("health check %s: Healthy again", self._name)
        self._well = True
        return _answer(well=True)

    async def _select_in_time(self) -> None:
        """Not by cancelling: psycopg then waits for what the server says to that, and one that hangs says nothing. What
        is late goes on until its session is shut down, and nothing else is asked meanwhile."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._select())
            self._asking.add_done_callback(_outcome)
        done, _ = await asyncio.wait({self._asking}, timeout=self._within)
        if not done:
            raise TimeoutError
        self._asking.result()

    async def _select(self) -> None:
        async with self._connector.errand(self._within) as session:
            await session.execute("select 1")


def _outcome(asking: asyncio.Task[None]) -> None:
    """Looks at it, as perhaps nobody else does any more."""
    if not asking.cancelled():
        asking.exception()


def _answer(*, well: bool) -> Answer:
    return Answer(200, _HEADERS, b"Healthy") if well else Answer(503, _HEADERS, b"Unhealthy")
