"""`--endpoints`: what would be served, as JSON, without serving it (reference 06, 2.9)."""

from __future__ import annotations

import asyncio
import logging

from rowcall.core.building.description import described
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.command.about import print_json
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.edition.exposure_options import exposure
from rowcall.service.edition.reader import EndpointReader
from rowcall.service.options.from_settings import worker_options


def show(arguments: Arguments) -> int:
    """Nothing but JSON on stdout, and nothing on stderr when it goes well. Raises ConfigError, StartupError."""
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    with connections(settings, demo=arguments.has("--demo")) as opened:
        options = worker_options(settings, opened)
        reader = EndpointReader(settings, options, opened.plan, exposure(settings, options, opened.plan))
        asyncio.run(_print(reader))
    return 0


async def _print(reader: EndpointReader) -> None:
    """Gives nothing back: `asyncio.run` writes what its task gives out as text, twice (CPython's signal module)."""
    edition = await reader.first()
    print_json([described(endpoint) for endpoint in _answering(edition.endpoints)])


def _answering(endpoints: tuple[Endpoint, ...]) -> list[Endpoint]:
    """In the order they were found, overloads included: each of them can answer."""
    return list(endpoints)
