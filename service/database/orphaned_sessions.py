"""Sessions that were given up because the server had stopped answering, until the server has ended them.

Closing our end does not end a session whose backend hangs: it keeps its slot, and what it runs. A lane that opened
another one at once would take one slot after another, and all of them would be there when the server wakes up. So a
session counts for its lane until it is known to be gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from rowcall.ext.driver.connection import Connection
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.dedicated import DedicatedPool
from rowcall.service.database.pools.pipelined import PipelinedPool

log = logging.getLogger("rowcall.database")

LOOK_FOR = 10.0
"""Seconds that one look may take."""
CLOCKS_DIFFER = 5.0
"""Seconds. A backend that is younger than our connection by more than this has only got the same number."""

_END = """
select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
where pid = %s and pg_catalog.clock_timestamp() - backend_start >= %s * interval '1 second'
"""

Pool = DedicatedPool | PipelinedPool


@dataclass(frozen=True, slots=True)
class _Session:
    pool: Pool
    pid: int
    created: float
    """On the clock of the event loop."""


class OrphanedSessions:
    """Those of one database."""

    def __init__(self, connector: Connector, start: Callable[..., None]) -> None:
        """start: takes a coroutine that nobody awaits."""
        self._connector = connector
        self._start = start
        self._sessions: list[_Session] = []
        self._looking = False

    def give_up(self, pool: Pool, connection: Connection, reason: str) -> None:
        """Closes the connection; its lane has one less until the server has ended the session."""
        pool.orphaned_sessions += 1
        self._sessions.append(_Session(pool, connection.backend_pid, connection.created))
        connection.close(reason)
        if not self._looking:
            self._looking = True
            self._start(self._end_all())

    async def _end_all(self) -> None:
        attempt = 0
        try:
            while self._sessions:
                await self._look()
                if self._sessions:
                    await asyncio.sleep(pause(attempt))
                    attempt += 1
        finally:
            self._looking = False

    async def _look(self) -> None:
        try:
            async with self._connector.maintenance_connection(LOOK_FOR) as session:
                for item in list(self._sessions):
                    age = asyncio.get_running_loop().time() - item.created - CLOCKS_DIFFER
                    if await (await session.execute(_END, (item.pid, age))).fetchone() is None:
                        self._sessions.remove(item)
                        item.pool.orphaned_sessions -= 1
                        item.pool.open_missing()
        except psycopg.Error as error:
            log.warning("%d sessions that hang cannot be ended yet: %s", len(self._sessions), str(error).strip())
