"""`--endpoints`: print the endpoints that would be served as JSON (command-9)."""

from __future__ import annotations

import logging
import sys

from rowcall.core.building.description import describe_endpoint
from rowcall.service.command.about import print_json
from rowcall.service.command.catalogue.snapshot import endpoints_of
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot


def show(arguments: Arguments) -> int:
    """Print the endpoints as JSON to stdout, and objects that are left out with the reason to stderr.

    Raises ConfigError, StartupError.
    """
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    with endpoints_of(settings, demo=arguments.has("--demo")) as reading:
        _print(reading.snapshot)
    return 0


def _print(snapshot: SchemaSnapshot) -> None:
    print_json([describe_endpoint(endpoint) for endpoint in snapshot.endpoints])
    if snapshot.left_out:
        print(f"{snapshot.left_out_count} left out:", file=sys.stderr)
    for reason in snapshot.left_out:
        print(f"  - {reason}", file=sys.stderr)
    if not snapshot.endpoints:
        print(f"no endpoints. Looked at: {'; '.join(snapshot.looked_at)}", file=sys.stderr)
