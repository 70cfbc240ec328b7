"""Opens and closes the servers for operators: the admin listener with the console, and PostgREST's admin server.

Their modules are imported on use, because most services have none of them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.operations.metrics import ProfilingOptions
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.background import Background
from rowcall.service.database.connector import Connector
from rowcall.service.log import current_log
from rowcall.service.options.server.metrics import admin_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot
from rowcall.service.startup_error import StartupError
from rowcall.service.supervisor.event_routing import EventRouting
from rowcall.service.supervisor.operators.profiling import Profiler, ProfileTarget
from rowcall.service.supervisor.processes.questions import Questions
from rowcall.service.supervisor.processes.workers import Workers

if TYPE_CHECKING:
    from rowcall.service.console.console import Console
    from rowcall.service.options.server.metrics import AdminOptions
    from rowcall.service.supervisor.operators.admin import Admin
    from rowcall.service.supervisor.operators.postgrest_admin import PostgRestAdmin

log = logging.getLogger("rowcall")

_ATTEMPTS = 40
"""Attempts to open a server behind the previous process."""
_BETWEEN = 0.25
"""Seconds between attempts to open a server behind the previous process."""


@dataclass(frozen=True, slots=True)
class OperatorView:
    """The parts of the supervisor that operators see. folder: the shared state of the host. keys: the key ring. urls:
    of the public listeners. source_connector: returns the connector of the database where routines were found, by
    `Endpoint.catalogue_connection`.
    """

    settings: Settings
    options: WorkerOptions
    folder: Path
    workers: Workers
    questions: Questions
    connector: Connector
    source_connector: Callable[[str | None], Connector]
    events: EventRouting
    keys: Callable[[], KeyRing]
    urls: Callable[[], Sequence[str]]


class OperatorServers:
    """The servers for operators of one service."""

    def __init__(self, view: OperatorView) -> None:
        self._view = view
        self._admin_options = admin_options(view.settings)
        self._admin: Admin | None = None
        self._console: Console | None = None
        self._postgrest_admin: PostgRestAdmin | None = None
        self._openers = (self._open_admin, self._open_postgrest_admin)
        self._loads = 0
        """How often workers have activated a schema snapshot."""
        self.profiler = Profiler(view.settings.read(ProfilingOptions), self._profile_targets)

    def open(self, *, first: bool) -> None:
        """Open the servers before the database is connected, so that operators see a service that waits for it.

        first: no previous process has servers at the same addresses; otherwise they are opened by
        `open_after_previous`. Raises `StartupError`.
        """
        if first:
            for open_server in self._openers:
                open_server()

    async def open_after_previous(self) -> None:
        """Open the servers after the previous process, which closes its own at the same moment: try again while an
        address is in use, and log an error if it stays so.
        """
        await asyncio.gather(*map(_open_with_retries, self._openers))

    def close_for_successor(self, background: Background) -> None:
        """Close the console at once and the servers in the background, so that a successor can open its own at the same
        addresses."""
        if self._console is not None:
            self._console.close()
        for server in (self._admin, self._postgrest_admin):
            if server is not None:
                background.start(asyncio.to_thread(server.close))
        self._admin = self._postgrest_admin = None

    async def close(self) -> None:
        if self._console is not None:
            self._console.close()
        for server in (self._admin, self._postgrest_admin):
            if server is not None:
                await asyncio.to_thread(server.close)

    def count_worker_exit(self) -> None:
        """Count a worker that has exited and is replaced."""
        if self._admin is not None:
            self._admin.restarts += 1

    def count_load(self) -> None:
        """Count a schema snapshot that the workers serve."""
        self._loads += 1

    def note_reload(self, before: SchemaSnapshot, snapshot: SchemaSnapshot, difference: Difference) -> None:
        """Record for the console which endpoints a new schema snapshot has changed."""
        if self._console is not None:
            self._console.note_reload(before, snapshot, difference)

    def hear_console(self, channel: str, connector: Connector) -> None:
        """Answer the console of another host, if this service has one too. channel: the channel on which the other
        console waits for answers. connector: of the database where it asks.
        """
        if self._console is not None:
            self._console.hosts.hear(channel, connector)

    def _open_admin(self) -> None:
        """Open the admin listener, and the console with it, if they are configured. Raises `StartupError`."""
        if self._admin_options is None:
            return
        from rowcall.service.supervisor.operators.admin import Admin

        view = self._view
        console = self._open_console(self._admin_options)
        self._admin = Admin(
            self._admin_options,
            view.folder,
            view.questions.sample,
            lambda: view.workers.pids,
            self.profiler,
            {} if console is None else {"console": console},
        )
        log.info("the admin listener is at %s", self._admin.url)
        if console is not None:
            console.announce(self._admin.url)

    def _open_console(self, options: AdminOptions) -> Console | None:
        """Return a new console; None if it is not configured. options: of the admin listener that serves it."""
        if options.console is None:
            return None
        from rowcall.service.console.console import Console
        from rowcall.service.console.sources import Sources

        shown = self._view
        sources = Sources(
            shown.settings,
            shown.options,
            shown.folder,
            shown.questions.sample,
            lambda: shown.workers.pids,
            lambda: shown.workers.snapshot,
            shown.connector,
            shown.source_connector,
            current_log().keep_recent(),
            asyncio.get_running_loop(),
            shown.keys,
            shown.urls,
            shown.questions.invalidate_tags,
            shown.questions.invalidate_entry,
            shown.questions.identify,
            lambda: shown.events.activity,
            lambda: shown.events.channels,
            shown.questions.streams,
            shown.questions.spans,
            shown.questions.end_stream,
        )
        self._console = Console(options.console, options.token, sources)
        return self._console

    def _open_postgrest_admin(self) -> None:
        """Open PostgREST's admin server, if it is configured. Raises `StartupError`."""
        options = self._view.options.postgrest
        if options is None or (options.admin_port is None and options.admin_socket is None):
            return
        from rowcall.service.supervisor.operators.postgrest_admin import PostgRestAdmin

        shown = self._view
        self._postgrest_admin = PostgRestAdmin(
            options,
            shown.connector,
            lambda: shown.workers.snapshot.postgrest,
            lambda: bool(shown.workers.running),
            shown.questions.sample,
            lambda: self._loads,
            shown.settings.read(PoolOptions).dedicated_connections,
        )
        log.info("the admin server of PostgREST's interface is at %s", self._postgrest_admin.url)

    def _profile_targets(self) -> dict[int, ProfileTarget]:
        """Return the running workers for the profiler, by number."""
        return {
            worker.number: ProfileTarget(worker.process.pid, partial(worker.profile, self._view.questions.number()))
            for worker in self._view.workers.running
        }


async def _open_with_retries(open_server: Callable[[], None]) -> None:
    """Open a server after the previous process has closed its own. A failed attempt is repeated every `_BETWEEN`
    seconds, at most `_ATTEMPTS` times; then the error is logged."""
    for attempt in itertools.count():
        try:
            open_server()
        except StartupError as error:
            if attempt >= _ATTEMPTS:
                log.error("%s", error)
                return
            await asyncio.sleep(_BETWEEN)
        else:
            return
