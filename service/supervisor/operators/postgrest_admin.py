"""The admin server of PostgREST's interface: liveness, readiness, schema cache and metrics.

Source: PostgREST's documentation, Admin Server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import orjson
import psycopg

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.exposition import Family, exposition, single_value_family
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.service.database.connector import Connector
from rowcall.service.metrics.admin import AdminListener, AdminRequest, AdminResponse, Page
from rowcall.service.metrics.report import Gauge
from rowcall.service.options.server.metrics import AdminOptions
from rowcall.service.sockets.listeners import Address

_SECONDS = 5.0
"""Longest time of a check in seconds."""
_TEXT = "text/plain; charset=utf-8"
_CONNECTIONS = "rowcall_database_connections"
_IN_FLIGHT = "rowcall_database_requests_in_flight"
_WAITING = "rowcall_database_requests_waiting"
_EMPTY = AdminResponse(_TEXT, b"")


class PostgRestAdmin:
    """Serves the pages of PostgREST's admin server, from construction until `close`. Raises `StartupError` if it cannot
    listen.

    Must be created in the running event loop. catalogue: returns the catalogue that the workers serve; None before they
    serve the first one. running: returns whether a worker runs. sample: returns the gauges of each worker, None for one
    that does not answer. loads: returns how many readings of the schema the workers have activated. most_connections:
    maximum number of database connections of one worker.
    """

    def __init__(
        self,
        options: PostgRestOptions,
        connector: Connector,
        catalogue: Callable[[], PostgRestCatalogue | None],
        running: Callable[[], bool],
        sample: Callable[[], Awaitable[Sequence[Sequence[Gauge] | None]]],
        loads: Callable[[], int],
        most_connections: int,
    ) -> None:
        self._most_connections = most_connections
        self._connector = connector
        self._catalogue = catalogue
        self._running = running
        self._sample = sample
        self._loads = loads
        self._loop = asyncio.get_running_loop()
        pages: dict[str, Page] = {
            "/live": self._live,
            "/ready": self._ready,
            "/schema_cache": self._schema_cache,
            "/metrics": self._metrics,
        }
        address = (
            Address.parse(f"http://{options.admin_host}:{options.admin_port}", "PostgRest:AdminServerPort")
            if options.admin_socket is None
            else Address.parse(f"http://unix:{options.admin_socket}", "PostgRest:AdminServerUnixSocket")
        )
        self._listener = AdminListener(
            AdminOptions(address, None, None), {("GET", path): page for path, page in pages.items()}
        )
        self.url = self._listener.url

    def close(self) -> None:
        """Close the listener. Blocks until its thread has ended, so it must not be called in the event loop."""
        self._listener.close()

    def _live(self, _request: AdminRequest) -> AdminResponse:
        """Return an empty response. Raises `Problem` 500 while no worker runs, except before the first reading."""
        if self._catalogue() is not None and not self._running():
            raise Problem(500, "no worker runs; the log says why the last one has ended")
        return _EMPTY

    def _ready(self, request: AdminRequest) -> AdminResponse:
        """Return an empty response. Raises `Problem` 503 before the first reading and while the database cannot be
        reached, and 500 while no worker runs.
        """
        if self._catalogue() is None:
            raise Problem(503, "the schema cache is not loaded yet")
        self._live(request)
        if not self._wait(self._reaches_database()):
            raise Problem(503, "the database cannot be reached")
        return _EMPTY

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the event loop, from a thread, and return its result. Raises `TimeoutError` when it
        takes one second longer than `_SECONDS`.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS + 1)

    async def _reaches_database(self) -> bool:
        """Return whether the database answers a query within `_SECONDS`, on a new connection."""
        try:
            async with asyncio.timeout(_SECONDS), await self._connector.open_plain() as connection:
                await connection.execute("select 1")
        except (psycopg.Error, OSError, TimeoutError):
            return False
        return True

    def _schema_cache(self, _request: AdminRequest) -> AdminResponse:
        """Return the schema cache as JSON. Raises `Problem` 503 before the first reading."""
        catalogue = self._catalogue()
        if catalogue is None:
            raise Problem(503, "the schema cache is not loaded yet")
        schema = catalogue.schema
        content = {
            "dbMediaHandlers": schema.handlers,
            "dbRelationships": [*schema.relationships.items()],
            "dbRepresentations": [*schema.representations.items()],
            "dbRoutines": [*schema.functions.items()],
            "dbTables": [*schema.relations.items()],
        }
        return AdminResponse("application/json; charset=utf-8", orjson.dumps(content))

    def _metrics(self, _request: AdminRequest) -> AdminResponse:
        """Return the metrics that PostgREST has as well. Raises `TimeoutError` if the gauges take too long."""
        samples = self._wait(_as_coroutine(self._sample()))
        catalogue = self._catalogue()
        seconds = 0.0 if catalogue is None else catalogue.load_seconds
        families = postgrest_families(samples, seconds, self._loads(), self._most_connections)
        return AdminResponse(_TEXT, exposition(families, open_metrics=False))


def postgrest_families(
    samples: Sequence[Sequence[Gauge] | None], seconds: float, loads: int, most_connections: int
) -> list[Family]:
    """Return the metrics that PostgREST has as well. samples: the gauges of each worker, None for one that did not
    answer. seconds: duration of the last reading of the schema. loads: number of readings. most_connections: maximum
    number of database connections of one worker."""
    answered = [sample for sample in samples if sample is not None]
    most = most_connections * len(answered)
    busy = sum(map(_busy, answered))
    waiting = sum(value for sample in answered for name, _, value in sample if name == _WAITING)
    success = (("status", "SUCCESS"),)
    return [
        single_value_family("pgrst_schema_cache_query_time_seconds", "gauge", "Time of the last reading.", seconds),
        Family("pgrst_schema_cache_loads", "counter", "Readings of the schema.", [(success, float(loads))]),
        single_value_family("pgrst_db_pool_max", "gauge", "Maximum number of connections.", most),
        single_value_family(
            "pgrst_db_pool_available", "gauge", "Connections that may begin another request.", max(0, most - busy)
        ),
        single_value_family("pgrst_db_pool_waiting", "gauge", "Requests without a connection.", waiting),
    ]


def _busy(sample: Sequence[Gauge]) -> float:
    """Return how many connections of a worker are busy: for each pool the number of requests in flight, but at most
    that of its open connections, because a pipelined connection has several requests in flight."""
    open_connections = {tuple(labels.items()): value for name, labels, value in sample if name == _CONNECTIONS}
    in_flight = [(tuple(labels.items()), value) for name, labels, value in sample if name == _IN_FLIGHT]
    return sum(min(value, open_connections.get(pool, 0)) for pool, value in in_flight)


async def _as_coroutine(work: Awaitable[Any]) -> Any:
    """Return the result of `work`, as a coroutine, which `run_coroutine_threadsafe` requires."""
    return await work
