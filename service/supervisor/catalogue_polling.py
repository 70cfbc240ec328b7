"""Catalogue polling: checks whether the catalogue has changed, when a worker or a notification suggests it. A
suggestion may be wrong or malicious, so the checks are limited.

A check costs the server one fingerprint. There is at most one a second; and if workers repeatedly report changes that
have not happened, their next report is accepted after a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import psycopg

log = logging.getLogger("rowcall")

BETWEEN = 1.0
"""Seconds between two checks."""
LONGEST = 64.0
"""Longest delay in seconds before reports of workers are checked again, after repeated wrong ones."""


class Catalogues(Protocol):
    """The part of `service.snapshot.snapshot_reader.SnapshotReader` that the polling of the catalogue uses."""

    @property
    def has_files(self) -> bool: ...

    async def has_changed(self) -> bool: ...


class CataloguePolling:
    """Runs the checks: `request_check` requests one; `run` runs as long as the service."""

    def __init__(self, catalogues: Catalogues, read: Callable[[], None], read_files: Callable[[], None]) -> None:
        """read: requests a reading of the changes that the last check has found. read_files: requests a reading of the
        files of SQL, which no fingerprint covers.
        """
        self._catalogues = catalogues
        self._read = read
        self._read_files = read_files
        self._check_requested = asyncio.Event()
        self._reason: str | None = None
        self._pause = BETWEEN
        self._not_before = 0.0

    def request_check(self, reason: str | None = None) -> None:
        """Request a check. reason: why a worker suspects a change, logged if the catalogue has changed; after an
        unfounded suspicion, requests with a reason are ignored for a while. None: a notification requests the check."""
        loop = asyncio.get_running_loop()
        if reason is not None:
            if loop.time() < self._not_before:
                return
            self._reason = reason
        self._check_requested.set()

    async def run(self) -> None:
        """Run the requested checks without end. A check that fails is logged and repeated."""
        while True:
            await self._check_requested.wait()
            self._check_requested.clear()
            reason, self._reason = self._reason, None
            try:
                await self._look(reason)
            except (psycopg.Error, OSError) as error:
                log.info("the catalogue cannot be polled: %s", str(error).strip())
                self._check_requested.set()
            await asyncio.sleep(BETWEEN)

    async def _look(self, reason: str | None) -> None:
        """Compare the fingerprints, and request a reading if one has changed. If none has, request a reading of the
        files of SQL after a notification, or ignore further suspicions for a growing pause. reason: as for
        `request_check`. Raises `psycopg.Error`.
        """
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
