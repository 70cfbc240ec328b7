"""Orphaned sessions: sessions whose connection was closed because the server stopped responding, until the server has
ended them.

Closing our end does not end a session whose backend hangs: it keeps its connection slot and its statement. A pool that
opened another connection at once would take one slot after another, and all of these sessions would exist when the
server continues. So a session counts for its pool until it is known to have ended.
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
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.pools.pipelined_pool import PipelinedPool

log = logging.getLogger("rowcall.database")

LOOK_FOR = 10.0
"""Longest duration of one check, in seconds."""
CLOCKS_DIFFER = 5.0
"""Seconds by which the clocks may differ. A backend that is younger than our connection by more than this is another
one with the same process id.
"""

_END = """
select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
where pid = %s and pg_catalog.clock_timestamp() - backend_start >= %s * interval '1 second'
"""

Pool = DedicatedPool | PipelinedPool


@dataclass(frozen=True, slots=True)
class _Session:
    """A session that the server may still have."""

    pool: Pool
    pid: int
    created: float
    """Time of the event loop."""


class OrphanedSessions:
    """The sessions of one database whose connections were closed because the server stopped responding. Each one counts
    for its pool until the server has ended it.
    """

    def __init__(self, connector: Connector, start: Callable[..., None]) -> None:
        """connector: opens the maintenance connections that end the sessions. start: runs a coroutine in the
        background.
        """
        self._connector = connector
        self._start = start
        self._sessions: list[_Session] = []
        self._looking = False

    def give_up(self, pool: Pool, connection: Connection, reason: str) -> None:
        """Close the connection, and count its session for the pool until the server has ended it. reason: why, for the
        log.
        """
        pool.orphaned_sessions += 1
        self._sessions.append(_Session(pool, connection.backend_pid, connection.created))
        connection.close(reason)
        if not self._looking:
            self._looking = True
            self._start(self._end_all())

    async def _end_all(self) -> None:
        """End the sessions, with growing delays, until none is left."""
        attempt = 0
        try:
            while self._sessions:
                await self._terminate_sessions()
                if self._sessions:
                    await asyncio.sleep(pause(attempt))
                    attempt += 1
        finally:
            self._looking = False

    async def _terminate_sessions(self) -> None:
        """Terminate the sessions on the server, and stop counting those that it no longer has, so that their pools open
        new connections. A failure is logged.
        """
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
