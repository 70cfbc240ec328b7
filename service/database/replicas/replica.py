"""One replica: its reachability, its WAL position, and its connections."""

from __future__ import annotations

import asyncio
import logging
import math

import psycopg

from rowcall.core.text.wal_position import parse_position
from rowcall.service.database.connector import Connector
from rowcall.service.database.database import Database
from rowcall.service.database.replicas.monitoring_connection import MonitoringConnection
from rowcall.service.database.replicas.options import ReplicaServer
from rowcall.service.database.replicas.primary import Primary

log = logging.getLogger("rowcall.database")

STATE = "select pg_is_in_recovery(), pg_last_wal_replay_lsn()::text"
POLL = 0.005
"""Seconds between two queries while requests wait for a position."""


class Replica:
    """One replica, as the checks of this worker see it."""

    def __init__(self, server: ReplicaServer) -> None:
        self.name = server.name
        self.database = Database(server.target, server.database)
        self._asking = MonitoringConnection(Connector(server.target))
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Positions that requests wait for. A future is cancelled if its wait is over without success."""
        self._polling: asyncio.Task[None] | None = None
        self._behind_since = -math.inf
        """The result of `Primary.moment_of_position` at the last check."""
        self._started = False
        self._why: str | None = None
        """The fault that the last check found; None: there was none."""
        self.up = False
        """The last check has found it usable."""
        self.position = 0
        """The WAL position that it has replayed, at the last query."""

    def lag(self) -> float:
        """Return how many seconds the replica is behind at most; infinite: unknown."""
        return self._loop.time() - self._behind_since if self._behind_since else 0.0

    async def check(self, primary: Primary) -> None:
        """Check reachability, recovery mode and position of the replica, and log changes. At the first success, its
        pools are started. If it is unusable, its pools refuse executions until a check succeeds.
        """
        try:
            recovering, position = await self._asking.ask(STATE)
        except psycopg.Error as error:
            self._exclude(f"it cannot be queried: {' '.join(str(error).split())}")
            return
        if not recovering:
            self._exclude("it is no replica: it does not replay another server's changes")
            return
        self._record_position(str(position))
        self._behind_since = primary.moment_of_position(self.position)
        if not self._started:
            self._started = True
            await self.database.start()
        if not self.up:
            self.up = True
            self._why = None
            self.database.come_back()
            log.info("replica %s is read from", self.name)

    def _exclude(self, why: str) -> None:
        """Mark the replica as unusable, close its connections, and end all waits for a position. why: the fault, which
        is logged unless it is the same as that of the check before.
        """
        if self._why != why:
            log.warning("replica %s is not read from: %s", self.name, why)
        self._why = why
        if self.up:
            self.up = False
            self.database.go_away(f"replica {self.name} is gone")
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.cancel()

    def _record_position(self, text: str) -> None:
        """Record the position that the replica has replayed, and end the waits for it. text: the position as PostgreSQL
        writes it; any other text is ignored.
        """
        position = parse_position(text)
        if position is None:
            return
        self.position = position
        remaining = []
        for entry in self._waiting:
            if entry[1].done():
                continue
            if entry[0] <= position:
                entry[1].set_result(None)
            else:
                remaining.append(entry)
        self._waiting = remaining

    async def wait_until_replayed(self, position: int, seconds: float) -> bool:
        """Wait until the replica has replayed everything up to this WAL position, and return True. Return False if it
        has not done so within `seconds`, or has become unusable.
        """
        if position <= self.position:
            return True
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((position, waiter))
        if self._polling is None or self._polling.done():
            self._polling = self._loop.create_task(self._poll())
        try:
            await asyncio.wait({waiter}, timeout=seconds)
        finally:
            waiter.cancel()  # no effect if the position has been reached
        return not waiter.cancelled()

    async def _poll(self) -> None:
        """Query the position every `POLL` seconds until no request waits for one, the replica is unusable, or a query
        fails.
        """
        while any(not waiter.done() for _, waiter in self._waiting) and self.up:
            try:
                self._record_position(str((await self._asking.ask(STATE))[1]))
            except psycopg.Error:
                return  # the next check logs the error
            await asyncio.sleep(POLL)

    def close(self) -> None:
        """Close the monitoring connection; the pools are closed with those of the other databases."""
        if self._polling is not None:
            self._polling.cancel()
        self._asking.close()
