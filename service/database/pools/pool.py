"""Common parts of pipelined and dedicated pools: sizes and times, cancelling, the end of a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.queue_time import QueueTimeBound

log = logging.getLogger("rowcall.database")

STOPPING = "stopping"
REPLACED = "replaced after its time"
UNUSED = "closed because no request used it"
NOT_RETURNED = "a cancel request has not returned"
CANCEL_SECONDS = 5.0
"""Seconds to wait for the server to accept a cancel request."""

NoticeHandler = Callable[[str | None, str, str, str, str | None, object], None]
"""Parameters: label of the call, severity, SQLSTATE, message, context (the call stack in the server), request context
or protocol.
"""


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """Open connections of a pool, executions in flight on them, and executions that wait for one."""

    name: str
    connections: int
    in_flight: int
    waiting: int


def queue_timeout_for(queue_timeout: float, limit: float) -> float:
    """Return the seconds to wait for a connection. queue_timeout: longest wait of the pool. limit: the remaining time
    of the request; 0: no limit.
    """
    return min(queue_timeout, limit) if limit > 0 else queue_timeout


def queue_time_of(pool: str, options: PoolOptions) -> QueueTimeBound:
    """Return the limit for waiting in the queue of a pool. pool: its name, for the log."""
    return QueueTimeBound(pool, options.queue_timeout, options.queue_target, options.queue_interval)


def log_closed(pool: str, connection: Connection) -> None:
    """Log the end of a connection on one line, whatever libpq wrote; a planned end only at level DEBUG. pool: the name
    of its pool, for the log.
    """
    reason = (connection.close_reason or "").partition("\n")[0]
    planned = reason in (STOPPING, REPLACED, UNUSED)
    log.log(
        logging.DEBUG if planned else logging.INFO, "%s: connection %d closed: %s", pool, connection.backend_pid, reason
    )


async def cancel_safely(connector: Connector, connection: Connection, execution: Execution) -> bool:
    """Cancel `execution` if the connection still runs it. The caller ensures that no other execution is in flight on
    the connection, except the reset of this one. Return False if there was nothing to cancel; True also if the cancel
    request fails: that is logged, and the connection closes once nothing is in flight.

    The connection is not reused before the cancel request has returned and the Sync was read: a late cancel request
    would hit the next execution on it (driver-22).
    """
    if not connection.begin_cancel(execution):
        return False
    try:
        await connector.cancel(connection, CANCEL_SECONDS)
    except psycopg.Error as error:
        # The cancel request may still arrive, so this connection must not be reused.
        log.info("cancelling on %d failed: %s", connection.backend_pid, str(error).strip())
        connection.drain(NOT_RETURNED)
    except asyncio.CancelledError:
        connection.drain(NOT_RETURNED)
        raise
    finally:
        connection.end_cancel()
    return True
