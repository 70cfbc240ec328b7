"""Looks whether the catalogue has changed when somebody says so, who need not be right, nor mean well.

A look costs the server a fingerprint. There is one a second at most; and where workers keep saying that the catalogue
has changed and it has not, they are asked to wait longer each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import psycopg

log = logging.getLogger("rowcall")

BETWEEN = 1.0
"""Seconds between two looks."""
LONGEST = 64.0
"""Seconds after which errors of workers are looked into again, when they were wrong time and again."""


class Catalogues(Protocol):
    """`service.snapshot.snapshot_reader.EndpointReader`"""

    @property
    def has_files(self) -> bool: ...

    async def has_changed(self) -> bool: ...


class CataloguePolling:
    """`wish` a look; `run` for as long as the service lives."""

    def __init__(self, catalogues: Catalogues, read: Callable[[], None], read_files: Callable[[], None]) -> None:
        """read: reads everything again. read_files: looks at files of SQL, which no fingerprint covers."""
        self._catalogues = catalogues
        self._read = read
        self._read_files = read_files
        self._wished = asyncio.Event()
        self._reason: str | None = None
        self._pause = BETWEEN
        self._not_before = 0.0

    def request_check(self, reason: str | None = None) -> None:
        """reason: what a worker takes for a sign of a change, logged where there is one. None: somebody says so."""
        loop = asyncio.get_running_loop()
        if reason is not None:
            if loop.time() < self._not_before:
                return
            self._reason = reason
        self._wished.set()

    async def run(self) -> None:
        while True:
            await self._wished.wait()
            self._wished.clear()
            reason, self._reason = self._reason, None
            try:
                await self._look(reason)
            except (psycopg.Error, OSError) as error:
                log.info("the catalogue cannot be polled: %s", str(error).strip())
                self._wished.set()
            await asyncio.sleep(BETWEEN)

    async def _look(self, reason: str | None) -> None:
        if await self._catalogues.has_changed():
            self._pause = BETWEEN
            if reason is not None:
                log.warning("%s", reason)
            self._read()
        elif reason is not None:
            self._not_before = asyncio.get_running_loop().time() + self._pause
            self._pause = min(LONGEST, 2 * self._pause)
        elif self._catalogues.has_files:
            self._read_files()
