"""`--endpoints`: what would be served, as JSON, without serving it (reference 06, 2.9)."""

from __future__ import annotations

import asyncio
import logging
import sys

from rowcall.core.building.description import described
from rowcall.service.command.about import print_json
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.edition.exposure_options import exposure
from rowcall.service.edition.reader import EndpointReader
from rowcall.service.options.from_settings import worker_options


def show(arguments: Arguments) -> int:
    """Nothing but JSON on stdout; on stderr what is left out, with the reason. Raises ConfigError, StartupError."""
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
    print_json([described(endpoint) for endpoint in edition.endpoints])
    if edition.left_out:
        print(f"{edition.left_out_count} left out:", file=sys.stderr)
    for reason in edition.left_out:
        print(f"  - {reason}", file=sys.stderr)
    if not edition.endpoints:
        print(f"no endpoints. Looked at: {'; '.join(edition.looked_at)}", file=sys.stderr)
