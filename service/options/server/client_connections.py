"""How many connections of clients a worker takes: what is configured, within what the system has descriptors for."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.service.options.worker import WorkerOptions
from rowcall.service.sockets.open_files import LEAST_CONNECTIONS, limit, room_for_connections

OWN_SESSIONS = 1 + 4
"""Of a database, besides its lanes: one for the worker itself, and cancel requests (`service.database.connector`)."""


def client_connections(options: WorkerOptions, listeners: int) -> int:
    """For each listener of a worker."""
    room = _room(options, listeners)
    return room if options.http.connections is None else min(options.http.connections, room)


def configuration_warnings(options: WorkerOptions, listeners: int) -> Iterator[str]:
    """What cannot be had."""
    room = _room(options, listeners)
    wanted = options.http.connections
    if wanted is not None and wanted > room:
        yield (
            f"HttpServer:Limits:MaxConcurrentConnections: a worker may have {limit()} open files (ulimit -n), which"
            f" leaves room for {room} connections of each address and not {wanted}"
        )
    elif room <= LEAST_CONNECTIONS:
        yield (
            f"a worker may have {limit()} open files (ulimit -n): that is hardly enough for its database connections,"
            f" and leaves {room} connections of clients"
        )


def _room(options: WorkerOptions, listeners: int) -> int:
    databases = [options.database, *(access.options for access in options.others.values() if access.routable)]
    databases += [] if options.replicas is None else [server.database for server in options.replicas.servers]
    streams = sum(database.pools.dedicated_connections for database in databases)
    shared = sum(2 * one.pools.pipelined_connections + one.pools.write_connections for one in databases)
    return room_for_connections(limit(), streams + shared + OWN_SESSIONS * len(databases), streams, listeners)
