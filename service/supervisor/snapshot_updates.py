"""Updates all workers to one schema snapshot.

After a change of the schema, every worker builds the new snapshot beside the one it serves, and only if all of them
succeed, all activate it. If any step fails, the last good snapshot stays active.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from dataclasses import replace

import psycopg

from rowcall.service.background import Background
from rowcall.service.codegen.describing import Describer
from rowcall.service.events.channels import channels_of
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.sockets.listeners import Listeners
from rowcall.service.startup_error import StartupError
from rowcall.service.supervisor.announcement import find_hidden_objects, report_hidden, report_left_out
from rowcall.service.supervisor.catalogue_polling import CataloguePolling
from rowcall.service.supervisor.event_routing import EventRouting
from rowcall.service.supervisor.operators.servers import OperatorServers
from rowcall.service.supervisor.processes.workers import Workers
from rowcall.service.supervisor.service_manager import ServiceManager

log = logging.getLogger("rowcall")

MOST_DOUBLED = 6
"""Doublings of the delay before a reading is repeated, from one second on, so that the longest is about a minute."""


class _ReadingScope(enum.IntEnum):
    """How much is read again. If several readings are requested, one with the largest scope is done."""

    FILES = 0
    SEEN = 1
    """The changes that the last check of the catalogue has found."""
    CHANGES = 2
    """All changes until now."""
    WHOLE = 3


class SnapshotUpdates:
    """Reads the first schema snapshot, and the next ones on request, and publishes them to the workers."""

    def __init__(
        self,
        options: WorkerOptions,
        reader: SnapshotReader,
        describer: Describer,
        workers: Workers,
        listeners: Listeners,
        events: EventRouting,
        operators: OperatorServers,
        manager: ServiceManager,
    ) -> None:
        self._mcp = options.mcp
        self._reader = reader
        self._describer = describer
        self._workers = workers
        self._listeners = listeners
        self._events = events
        self._operators = operators
        self._manager = manager
        self._requested = asyncio.Event()
        self._scope = _ReadingScope.FILES
        """How much the next reading includes."""
        self._failures = 0
        """Number of readings in a row for which a database could not be read."""
        self._retrying: asyncio.TimerHandle | None = None
        self._polling = CataloguePolling(reader, self._read_what_was_seen, self.read_files)
        self.request_check = self._polling.request_check

    # --- requests --------------------------------------------------------------------------------------------------

    def read_files(self) -> None:
        """Request that the SQL files are read again."""
        self._requested.set()

    def read_changes(self) -> None:
        """Request that all changes are read."""
        self._read(_ReadingScope.CHANGES)

    def read_whole(self) -> None:
        """Request that everything is read again."""
        self._read(_ReadingScope.WHOLE)

    def _read_what_was_seen(self) -> None:
        """Request a reading of the changes that the last check of the catalogue has found."""
        self._read(_ReadingScope.SEEN)

    def _read(self, scope: _ReadingScope) -> None:
        """Request a reading of at least this scope."""
        self._scope = max(self._scope, scope)
        self._requested.set()

    # --- the first snapshot ----------------------------------------------------------------------------------------

    async def publish_first(self, snapshot: SchemaSnapshot) -> None:
        """Write client code and documents, connect to the other hosts, and publish the snapshot of the start. Raises
        `StartupError` if the workers do not serve it, if two tools have the same name, or if the configuration of the
        cross-host transport is invalid."""
        await self._describe(snapshot)
        await self._describer.write_interface(snapshot.postgrest)
        await self._events.connect_hosts()
        error = await self._publish(await self._with_requests(snapshot))
        if error is not None:
            raise StartupError(error)

    # --- the next ones ---------------------------------------------------------------------------------------------

    async def watch_changes(self, background: Background) -> None:
        """Start watch mode, if it is configured. From the return on, it detects every change of SQL files and
        catalogues. Raises `StartupError` if there is nothing to watch, or a folder does not exist."""
        watching = self._reader.watcher()
        if watching is not None:
            await watching.start(background, self.read_files, self.read_changes)

    def start(self, background: Background) -> None:
        """Start the tasks that run requested readings and poll the catalogue. If the first reading could not read all
        databases, it is repeated after a delay. background: runs the tasks."""
        if not self._reader.complete:
            self._retry_later()
        background.keep("the reloading", self._read_on_request)
        background.keep("looking at the catalogue", self._polling.run)

    def notify_manager(self) -> None:
        """Report to systemd that the service is ready, and what is served."""
        endpoints = len(self._workers.snapshot.endpoints)
        self._manager.report_ready(
            f"{endpoints} endpoints, {len(self._workers.pids)} workers, {';'.join(self._listeners.urls)}"
        )

    async def _read_on_request(self) -> None:
        """Do the requested readings, without end."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            scope, self._scope = self._scope, _ReadingScope.FILES
            if self._retrying is not None:
                self._retrying.cancel()
            self._manager.report_reloading()
            await self._read_again(scope)
            self.notify_manager()
            # Requests that arrive in the meantime are served by one more reading.
            await asyncio.sleep(0.2)

    async def _read_again(self, scope: _ReadingScope) -> None:
        """Read a snapshot and publish it, log what it changes, and write client code and documents again if these
        change. Errors are logged. If the snapshot cannot be read or published, the last good one stays active. If a
        database cannot be read, the reading is repeated later. scope: how much is read.

        A snapshot without a change is not published if only files were read, or if a database could not be read.
        """
        only_files = scope is _ReadingScope.FILES
        try:
            snapshot = await self._reader.read(
                self._workers.next_number,
                only_files=only_files,
                whole=scope is _ReadingScope.WHOLE,
                seen=scope is _ReadingScope.SEEN,
            )
        except (psycopg.Error, OSError, StartupError) as error:
            log.error("the catalogue cannot be read, the last good one stays: %s", str(error).strip())
            if not isinstance(error, StartupError):
                self._retry_later()
            return
        except Exception:
            log.exception("the catalogue cannot be read, the last good one stays")
            return
        if self._reader.complete:
            self._failures = 0
        else:
            self._retry_later()
        before = self._workers.snapshot
        difference = Difference.from_snapshots(before, snapshot)
        same_interface = snapshot.postgrest == before.postgrest
        same_types = snapshot.has_types_of(before)
        unchanged = not difference and same_interface and same_types and snapshot.left_out == before.left_out
        if unchanged and (only_files or not self._reader.complete):
            return  # saved without a change, still invalid, or still without a database
        reason = await self._publish(await self._with_requests(snapshot))
        if reason is not None:
            log.error("schema snapshot %d is not served, the last good one stays: %s", snapshot.number, reason)
            self._reader.forget()
            return
        _log_difference(snapshot, difference)
        self._operators.note_reload(before, snapshot, difference)
        if snapshot.left_out != before.left_out:
            report_left_out(snapshot)
        if find_hidden_objects(snapshot) != find_hidden_objects(before):
            report_hidden(snapshot)
        await self._describer.write_interface(snapshot.postgrest)
        if difference or not same_interface or not same_types:
            try:
                await self._describe(snapshot)
            except StartupError as error:
                log.error("%s", error)

    def _retry_later(self) -> None:
        """Request another reading after a growing delay, because a database could not be read. Possibly no other event
        would trigger one: neither the change nor the return of the database need be announced."""
        delay = 2.0 ** min(MOST_DOUBLED, self._failures)
        self._failures += 1
        self._retrying = asyncio.get_running_loop().call_later(delay, self.read_changes)

    async def _publish(self, snapshot: SchemaSnapshot) -> str | None:
        """Publish a snapshot to the workers. Return None, or the reason if they do not serve it.

        Before they serve it, the supervisor listens on the notification channels of the snapshot and begins to accept
        connections. Afterwards, it stops listening on channels that only the former snapshot has.
        """
        channels = channels_of(snapshot.options)

        async def begin_listening() -> None:
            # A stream is open from its first response on: a notification right behind that must be received.
            await self._events.listen_also(channels)
            self._listeners.begin()

        error = await self._workers.publish(snapshot, begin_listening)
        if error is None:
            self._operators.count_load()
            await self._events.listen_only(channels)
        return error

    async def _with_requests(self, snapshot: SchemaSnapshot) -> SchemaSnapshot:
        """Return the snapshot; with the `.http` files of its endpoints as `example_requests`, if workers serve these
        files."""
        requests = await self._describer.served_requests(snapshot.endpoints, snapshot.types_of)
        return replace(snapshot, example_requests=requests) if requests else snapshot

    async def _describe(self, snapshot: SchemaSnapshot) -> None:
        """Write client code and documents for the endpoints, and log the MCP tools. Raises `StartupError`."""
        await self._describer.write(snapshot.endpoints, snapshot.types_of, snapshot.postgrest)
        if self._mcp is not None:
            announce_tools(snapshot.endpoints, self._mcp, snapshot.postgrest)


def _log_difference(snapshot: SchemaSnapshot, difference: Difference) -> None:
    """Log how many endpoints are served, and the names of those that are added, changed and removed."""
    left_out = f", {snapshot.left_out_count} left out" if snapshot.left_out else ""
    log.info("schema snapshot %d is served: %d endpoints%s", snapshot.number, len(snapshot.endpoints), left_out)
    for word, names in (
        ("added", difference.added),
        ("changed", difference.changed),
        ("removed", difference.removed),
    ):
        for name in names:
            log.info("%s %s", word, name)
