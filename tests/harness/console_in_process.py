"""The console and its listener in this process, without workers: for lists that a service would take minutes to start
with, and to see what the console does by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.command.serve import connections
from rowcall.service.console.console import Console
from rowcall.service.console.sources import Sources
from rowcall.service.database.connector import Connector
from rowcall.service.events.activity import HubActivity
from rowcall.service.log.recent import RecentEntries
from rowcall.service.metrics.admin import AdminListener
from rowcall.service.metrics.report import Gauge
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.server.metrics import admin_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot


@dataclass
class ConsoleInProcess:
    """url: of the listener. loop: that of the console. samples: one for each time that the workers are asked."""

    url: str
    loop: asyncio.AbstractEventLoop
    samples: list[None] = field(default_factory=list)


@contextmanager
def console_in_process(settings: Settings, snapshot: SchemaSnapshot, folder: Path) -> Iterator[ConsoleInProcess]:
    """Serve the console of a snapshot. folder: for the state that workers would share."""
    with connections(settings, demo=False) as opened:
        options = worker_options(settings, opened)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield from _listening(settings, options, snapshot, loop, folder)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _listening(
    settings: Settings,
    options: WorkerOptions,
    snapshot: SchemaSnapshot,
    loop: asyncio.AbstractEventLoop,
    folder: Path,
) -> Iterator[ConsoleInProcess]:
    samples: list[None] = []

    async def connector() -> Connector:
        return Connector(options.target)

    main = asyncio.run_coroutine_threadsafe(connector(), loop).result()

    async def gauges() -> list[list[Gauge] | None]:
        samples.append(None)
        return []

    async def no_spans(_trace: str | None) -> list[tuple[int, None]]:
        return []

    async def no_streams() -> list[tuple[int, None]]:
        return []

    async def no_worker(*_arguments: object) -> None:
        return None

    admin = admin_options(settings)
    assert admin is not None
    assert admin.console is not None
    sources = Sources(
        settings,
        options,
        folder,
        gauges,
        lambda: [],
        lambda: snapshot,
        main,
        lambda _name: main,
        RecentEntries(),
        loop,
        KeyRing,
        lambda: [],
        no_worker,
        no_worker,
        no_worker,
        lambda: HubActivity(0, 0, {}, 0, 0),
        lambda: (frozenset(), frozenset()),
        no_streams,
        no_spans,
        no_worker,
    )
    console = Console(admin.console, admin.token, sources)
    listener = AdminListener(admin, {}, {"console": console})
    console.announce(listener.url)
    yield ConsoleInProcess(listener.url, loop, samples)
    console.close()
    listener.close()
