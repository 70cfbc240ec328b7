"""`--endpoints`: what would be served, as JSON, without serving it (reference 06, 2.9)."""

from __future__ import annotations

import logging

from rowcall.core.building.description import described
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.command.about import print_json
from rowcall.service.command.configuration_files import load
from rowcall.service.command.reading.edition import endpoints_of
from rowcall.service.command.serve import require_readable
from rowcall.service.command.switches import Arguments


def show(arguments: Arguments) -> int:
    """Nothing but JSON on stdout, and nothing on stderr when it goes well. Raises ConfigError, StartupError."""
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    with endpoints_of(settings, demo=arguments.has("--demo")) as found:
        print_json([described(endpoint) for endpoint in _answering(found.edition.endpoints)])
    return 0


def _answering(endpoints: tuple[Endpoint, ...]) -> list[Endpoint]:
    """In the order they were found, overloads included: each of them can answer."""
    return list(endpoints)
