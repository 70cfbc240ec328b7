"""Two services on one database, which differ only in `HttpServer:Engine`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.streams import SQL
from tests.harness.database import Database
from tests.harness.service import Service

ENGINES = ("Auto", "Granian")
_SETTINGS = {
    "HttpServer:Workers": "1",
    "Service:RequiresAuthorization": "false",
    "CacheOptions:Enabled": "true",
    "Log:MinimalLevels:rowcall.http": "Off",
}


@contextmanager
def both_engines(database: Database, folder: Path) -> Iterator[tuple[Service, Service]]:
    database.execute(SQL)
    shared = {**_SETTINGS, "ConnectionStrings:Default": database.conninfo}
    services = [Service(folder / engine, {**shared, "HttpServer:Engine": engine}) for engine in ENGINES]
    try:
        for service in services:
            service.wait_until_ready()
        yield services[0], services[1]
        for service in services:
            service.check_log()
    finally:
        for service in services:
            service.stop()
