"""Runs the service in this process and its workers until it is stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from rowcall.core.config import Settings
from rowcall.service.database.connector import for_libpq
from rowcall.service.log import current_log
from rowcall.service.options.connections import Connections
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.shared_state.state_folder import StateFolder
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.sockets.open_files import raise_limit
from rowcall.service.startup_error import START_AGAIN, StartupError
from rowcall.service.supervisor.processes.prefork import Template
from rowcall.service.supervisor.supervisor import Supervisor


async def _restart_after(until: Callable[[], Awaitable[None]], supervisor: Supervisor) -> None:
    """Wait until `until` returns, and then end the supervisor with START_AGAIN."""
    await until()
    supervisor.end(START_AGAIN)


def run(
    settings: Settings,
    connections: Connections,
    log: logging.Logger,
    on_listening: Callable[[list[str]], None] | None = None,
    until: Callable[[], Awaitable[None]] | None = None,
    template: Template | None = None,
    reread: Callable[[], Settings] | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or SIGQUIT, and return the exit code; or until `until` returns, and return
    START_AGAIN. Increases the limit of open files, and closes the log at the end.

    on_listening: called with the addresses once the service listens. template: the process of which workers are copies;
    without it, each is started by exec. reread: loads PostgREST's configuration file again, if it configures the
    service; SIGUSR1 and SIGUSR2 have PostgREST's effects then.

    Raises:
        StartupError: a port is taken, the database cannot be read, no worker can serve, or the folder of the shared
            state cannot be created.
        ConfigError: a value of the configuration cannot be used.
        OSError: a worker process cannot be started.
    """

    raise_limit()
    options = worker_options(settings, connections)

    async def serve(options: WorkerOptions) -> int:
        exposed = exposure(settings, options, connections.plan)
        reader = SnapshotReader(settings, options, connections.plan, exposed, reread)
        supervisor = Supervisor(settings, options, reader, on_listening, template, as_postgrest=reread is not None)
        waiting = asyncio.ensure_future(_restart_after(until, supervisor)) if until else None
        try:
            return await supervisor.run()
        finally:
            if waiting is not None:
                waiting.cancel()

    async def serve_with_store() -> int:
        try:
            store = StateFolder()
        except OSError as error:
            raise StartupError(f"the folder of the shared state cannot be created: {error}") from None
        try:
            return await serve(replace(options, store=str(store.path)))
        finally:
            store.remove()

    current_log().connect_database(for_libpq(options.target.parameters))
    log.debug("starting")
    try:
        return asyncio.run(serve_with_store())
    finally:
        # Before an embedded database is stopped: the log may be written to it.
        current_log().close()
