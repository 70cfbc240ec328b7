"""A start without serving, for `--validate`: everything that a start reads and checks before the first request."""

from __future__ import annotations

import asyncio
import io
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg

from rowcall.core.config import ConfigError, Settings
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.command.serve import connections
from rowcall.service.database.connector import Connector
from rowcall.service.embedded.postgres import has_cluster
from rowcall.service.events.cross_host.transport_choice import transport_for
from rowcall.service.log.assembly import Log
from rowcall.service.log.options import log_options
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.capabilities.description_options import Descriptions
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.connection_string import EmbeddedServerPath, connection_for
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.server.affinity import worker_count
from rowcall.service.options.server.http import configuration_warnings, listener_plans
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.sockets.listeners import certificate_of
from rowcall.service.startup_error import StartupError


@dataclass(slots=True)
class DryRun:
    """The messages of a start without serving."""

    errors: list[str] = field(default_factory=list)
    """Errors that would prevent the start."""
    warnings: list[str] = field(default_factory=list)
    endpoints: int | None = None
    """Number of endpoints; None: the database was not read."""
    left_out: tuple[Diagnostic, ...] = ()
    """Objects that are annotated and would not be served, with the reason."""
    looked_at: tuple[str, ...] = ()
    """Where endpoints were searched, in words."""

    def run(self, part: Callable[[], object]) -> None:
        """Run one part of the start, and record its error once: a ConfigError, StartupError, `psycopg.Error` or
        OSError.
        """
        try:
            part()
        except (ConfigError, StartupError, psycopg.Error, OSError) as error:
            message = str(error).strip()
            if message not in self.errors:
                self.errors.append(message)


def dry_run(settings: Settings, *, reads_database: bool) -> DryRun:
    """Run a start without serving, and return its messages.

    reads_database: the database is available and is read. Embedded servers are started only if they exist already.
    """
    rehearsal = DryRun()
    with _listening_to("rowcall", rehearsal.warnings):
        rehearsal.run(lambda: _check_log(settings))
        rehearsal.run(lambda: worker_count(settings))
        rehearsal.run(lambda: _look_at_listeners(settings, rehearsal.warnings))
        rehearsal.run(lambda: _assemble(settings, rehearsal, reads_database=reads_database))
    return rehearsal


def _check_log(settings: Settings) -> None:
    """Check the options of the log by opening it, without use of stdout and without the file, which the service may be
    writing. Raises ConfigError, StartupError."""
    options = log_options(settings)
    if options.file is not None:
        _check_log_file(Path(options.file.path).absolute())
    Log(replace(options, file=None), io.StringIO()).handler.close()


def _check_log_file(path: Path) -> None:
    """Raise StartupError if no file can be created in the folder of the log file, or, if that does not exist yet, in
    the nearest folder above it that does."""
    folder = next(parent for parent in path.parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):  # It has no name.
            pass
    except OSError as error:
        raise StartupError(f"Log:FilePath: {path} cannot be written: {folder}: {error.strerror}") from None


def _look_at_listeners(settings: Settings, warnings: list[str]) -> None:
    """Check the listeners and their certificates. No port is bound, because the service may be running. warnings:
    receives the warnings about the configuration. Raises StartupError.
    """
    plans = listener_plans(settings)
    secure = [plan.address.port for plan in plans if plan.address.secure]
    warnings += configuration_warnings(settings, secure[0] if secure else None)
    for plan in plans:
        if plan.address.secure:
            certificate_of(plan)


def _assemble(settings: Settings, rehearsal: DryRun, *, reads_database: bool) -> None:
    """Build the options and the parts of the service, and read the database if `reads_database`. If an embedded server
    does not exist yet, add a warning and do nothing else.

    rehearsal: gets the warnings, the results, and the errors of parts; other errors are raised: ConfigError,
    StartupError.
    """
    plan = connection_plan(settings)
    for name in (plan.main, *plan.others):
        target = connection_for(settings, name, "rowcall")
        if isinstance(target, EmbeddedServerPath) and not has_cluster(target.path):
            rehearsal.warnings.append(
                f"embedded:{target.path} does not exist yet: the first start creates an empty database"
            )
            return
    with connections(settings, demo=False) as opened:
        options = worker_options(settings, opened)
        for part in _parts(settings, options):
            rehearsal.run(part)
        documents: list[Descriptions] = []
        rehearsal.run(lambda: documents.append(_descriptions(settings, options)))
        for document in documents:
            options = options.with_documents(document)
        if reads_database:
            asyncio.run(_read_once(settings, options, opened, rehearsal))


def _parts(settings: Settings, options: WorkerOptions) -> Iterator[Callable[[], object]]:
    """Yield functions that build further parts of the supervisor from the configuration, to find errors in it. They
    write nothing."""
    connector = Connector(options.target)
    yield lambda: transport_for(options.events, connector, pooler=options.target.pooler)
    yield lambda: key_rotation_for(settings, connector, lambda _ring: None)


def _descriptions(settings: Settings, options: WorkerOptions) -> Descriptions:
    """Return which documents and clients a start would write and serve. Raises ConfigError, StartupError."""
    urls = [plan.address.url(plan.address.port) for plan in listener_plans(settings)]
    return descriptions(settings, options.target.parameters.get("dbname", ""), options.auth, urls)


async def _read_once(settings: Settings, options: WorkerOptions, opened: Connections, rehearsal: DryRun) -> None:
    """Read the database and the key ring once, and add the results and errors to `rehearsal`. An error of the key ring
    is added only if there is no other error."""
    reader = SnapshotReader(settings, options, opened.plan, exposure(settings, options, opened.plan))
    rehearsal.run(reader.watcher)
    try:
        snapshot = await reader.first(patient=False)
    except StartupError as error:
        rehearsal.errors.append(str(error))
    else:
        rehearsal.endpoints = len(snapshot.endpoints)
        rehearsal.left_out = snapshot.left_out
        rehearsal.looked_at = snapshot.looked_at
        if options.mcp is not None:
            announce_tools(snapshot.endpoints, options.mcp, snapshot.postgrest)
    try:
        await key_rotation_for(settings, Connector(options.target), lambda _ring: None).check()
    except (psycopg.Error, OSError, StartupError, ConfigError) as error:
        if not rehearsal.errors:
            rehearsal.errors.append(f"the key ring cannot be read: {str(error).strip()}")


@contextmanager
def _listening_to(channel: str, messages: list[str]) -> Iterator[None]:
    """Append warnings and errors of the logger with the name `channel` to the list `messages`, each once, instead of
    logging them.
    """
    logger = logging.getLogger(channel)
    handler = _MessageCollector(messages)
    before = (logger.level, logger.propagate, logger.handlers)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.handlers = [handler]
    try:
        yield
    finally:
        logger.level, logger.propagate, logger.handlers = before


class _MessageCollector(logging.Handler):
    """Adds each different message from level WARNING on to `messages`."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._messages:
            self._messages.append(message)
