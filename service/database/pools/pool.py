"""What shared and exclusive lanes have in common: sizes and times, cancelling, the end of a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.queue_time import QueueTimeBound

log = logging.getLogger("rowcall.database")

STOPPING = "stopping"
REPLACED = "replaced after its time"
NOT_RETURNED = "a cancel request has not returned"
CANCEL_SECONDS = 5.0
"""How long to wait for the server to take a cancel request."""

NoticeHandler = Callable[[str | None, str, str, str, str | None, object], None]
"""Label of the call, severity, SQLSTATE, message, context (the stack)."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Sizes and times of the lanes of one worker. Times in seconds."""

    pipelined_connections: int = 2
    pipelined_depth: int = 16
    write_connections: int = 16
    """At most; commits wait for the disk, and several connections can wait together."""
    write_depth: int = 4
    dedicated_connections: int = 16
    queue_limit: int = 1000
    queue_timeout: float = 5.0
    queue_target: float | None = 0.5
    queue_interval: float = 5.0
    """These two: see `queue_time`."""
    lifetime: float = 1800.0
    """Age after which a connection is replaced, so that nothing a routine left in its backend stays for ever."""
    requests: int = 1_000_000
    """Requests after which a connection is replaced."""


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """Open connections of a lane, requests under way on them, and those that wait for one."""

    name: str
    connections: int
    in_flight: int
    waiting: int


def queue_timeout_for(queue_timeout: float, limit: float) -> float:
    """Seconds to wait for a connection. limit: what is left of the request's own time; 0: as much as it likes."""
    return min(queue_timeout, limit) if limit > 0 else queue_timeout


def queue_time_of(pool: str, options: PoolOptions) -> QueueTimeBound:
    return QueueTimeBound(pool, options.queue_timeout, options.queue_target, options.queue_interval)


def log_closed(pool: str, connection: Connection) -> None:
    """One line, whatever libpq wrote; a planned end interests nobody."""
    reason = (connection.close_reason or "").partition("\n")[0]
    planned = reason in (STOPPING, REPLACED)
    log.log(
        logging.DEBUG if planned else logging.INFO, "%s: connection %d closed: %s", pool, connection.backend_pid, reason
    )


async def cancel_safely(connector: Connector, connection: Connection, execution: Execution) -> bool:
    """Cancels `request` if the connection still runs it, and nothing stands behind it but its own reset. Nobody else
    gets the connection before the cancel request has returned and the Sync was read: a late cancel would hit whoever
    uses it next (driver-22). False: there was nothing to cancel."""
    if not connection.begin_cancel(execution):
        return False
    try:
        await connector.cancel(connection, CANCEL_SECONDS)
    except psycopg.Error as error:
        # Nobody knows whether it will still arrive, so nobody else may use this connection.
        log.info("cancelling on %d failed: %s", connection.backend_pid, str(error).strip())
        connection.drain(NOT_RETURNED)
    except asyncio.CancelledError:
        connection.drain(NOT_RETURNED)
        raise
    finally:
        connection.end_cancel()
    return True
