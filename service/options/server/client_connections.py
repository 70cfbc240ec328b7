"""Number of client connections that a worker accepts: the configured limit, reduced to the available file
descriptors."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.service.options.worker import WorkerOptions
from rowcall.service.sockets.open_files import LEAST_CONNECTIONS, limit, room_for_connections

OWN_SESSIONS = 1 + 4
"""Sessions of each database outside its connection pools: one maintenance session of the worker, and up to four cancel
requests (`service.database.connector`)."""


def client_connections(options: WorkerOptions, listeners: int) -> int:
    """Return the number of client connections that each listener of a worker accepts: the configured limit, or less if
    the limit of open files leaves room for fewer. listeners: number of listeners."""
    room = _room(options, listeners)
    return room if options.http.limits.connections is None else min(options.http.limits.connections, room)


def configuration_warnings(options: WorkerOptions, listeners: int) -> Iterator[str]:
    """Yield warnings about connection limits that the limit of open files (`ulimit -n`) does not allow. listeners:
    their number.
    """
    room = _room(options, listeners)
    requested = options.http.limits.connections
    if requested is not None and requested > room:
        yield (
            f"HttpServer:Limits:MaxConcurrentConnections: a worker may have {limit()} open files (ulimit -n), which"
            f" leaves room for {room} connections of each address and not {requested}"
        )
    elif room <= LEAST_CONNECTIONS:
        yield (
            f"a worker may have {limit()} open files (ulimit -n): that is hardly enough for its database connections,"
            f" and leaves {room} connections of clients"
        )


def _room(options: WorkerOptions, listeners: int) -> int:
    """Return how many connections each listener can accept with the file descriptors that the pools leave."""
    databases = [options.database, *(access.options for access in options.others.values() if access.routable)]
    databases += [] if options.replicas is None else [server.database for server in options.replicas.servers]
    streams = sum(database.pools.dedicated_connections for database in databases)
    shared = sum(2 * database.pools.pipelined_connections + database.pools.write_connections for database in databases)
    return room_for_connections(limit(), streams + shared + OWN_SESSIONS * len(databases), streams, listeners)
