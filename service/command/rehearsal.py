"""The start without serving: everything that is read, checked and said before the first request, for `--validate`."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from rowcall.core.config import ConfigError, Settings
from rowcall.service.command.serve import connections
from rowcall.service.edition.exposure_options import exposure
from rowcall.service.edition.reader import EndpointReader
from rowcall.service.log.assembly import Log
from rowcall.service.log.options import log_options
from rowcall.service.options.connection_string import Embedded, connection_for
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.server.http import doubts, listener_plans, worker_count
from rowcall.service.sockets.listeners import certificate_of
from rowcall.service.startup_error import StartupError


@dataclass(slots=True)
class Rehearsal:
    """What a start would have said."""

    errors: list[str] = field(default_factory=list)
    """What would have stopped it."""
    warnings: list[str] = field(default_factory=list)
    endpoints: int | None = None
    """None: the database was not read."""
    left_out: list[str] = field(default_factory=list)
    """What asks to be served and would not be, with the reason."""

    def run(self, part: Callable[[], object]) -> None:
        try:
            part()
        except (ConfigError, StartupError, psycopg.Error, OSError) as error:
            message = str(error).strip()
            if message not in self.errors:
                self.errors.append(message)


def rehearse(settings: Settings, *, reads_database: bool) -> Rehearsal:
    """reads_database: it answers. Private servers are not started for this."""
    rehearsal = Rehearsal()
    with _listening_to("rowcall", rehearsal.warnings):
        rehearsal.run(lambda: _open_log(settings))
        rehearsal.run(lambda: worker_count(settings))
        rehearsal.run(lambda: _look_at_listeners(settings, rehearsal.warnings))
        if reads_database:
            rehearsal.run(lambda: _read(settings, rehearsal))
    return rehearsal


def _open_log(settings: Settings) -> None:
    Log(log_options(settings), io.StringIO()).handler.close()


def _look_at_listeners(settings: Settings, warnings: list[str]) -> None:
    """Certificates are read; no port is taken, as the service may be running."""
    plans = listener_plans(settings)
    secure = [plan.address.port for plan in plans if plan.address.secure]
    warnings += doubts(settings, secure[0] if secure else None)
    for plan in plans:
        if plan.address.secure:
            certificate_of(plan)


def _read(settings: Settings, rehearsal: Rehearsal) -> None:
    plan = connection_plan(settings)
    if any(isinstance(connection_for(settings, name, "rowcall"), Embedded) for name in (plan.main, *plan.others)):
        return
    with connections(settings, demo=False) as opened:
        asyncio.run(_read_once(_reader(settings, opened), rehearsal))


def _reader(settings: Settings, opened: Connections) -> EndpointReader:
    options = worker_options(settings, opened)
    return EndpointReader(settings, options, opened.plan, exposure(settings, options, opened.plan))


async def _read_once(reader: EndpointReader, rehearsal: Rehearsal) -> None:
    edition = await reader.read(1)
    rehearsal.endpoints = len(edition.endpoints)
    rehearsal.left_out = [str(one) for one in edition.left_out]


@contextmanager
def _listening_to(channel: str, heard: list[str]) -> Iterator[None]:
    """Warnings and errors of the log go to `heard`, and nowhere else."""
    logger = logging.getLogger(channel)
    handler = _Hearer(heard)
    before = (logger.level, logger.propagate, logger.handlers)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.handlers = [handler]
    try:
        yield
    finally:
        logger.level, logger.propagate, logger.handlers = before


class _Hearer(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._heard:
            self._heard.append(message)
