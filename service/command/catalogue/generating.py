"""`--generate`: write clients and documents, as a start does, and serve nothing."""

from __future__ import annotations

import asyncio
import logging

from rowcall.core.documents.descriptions import Descriptions
from rowcall.service.codegen.describing import Describer
from rowcall.service.command.catalogue.snapshot import Found, endpoints_of
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import report_and_check, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.log import configure_logging
from rowcall.service.log.assembly import current_log
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.server.http import listener_plans
from rowcall.service.startup_error import StartupError


def generate(arguments: Arguments) -> int:
    """1 where something could not be written. Raises ConfigError, StartupError."""
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    configure_logging(settings)
    if not report_and_check(configuration):
        return 1
    urls = [plan.address.url(plan.address.port) for plan in listener_plans(settings)]
    with endpoints_of(settings, demo=arguments.has("--demo")) as found:
        wanted = descriptions(settings, found.database, found.options.auth, urls)
        if wanted == Descriptions(safe_numbers=wanted.safe_numbers, resolve_nested=wanted.resolve_nested):
            raise StartupError(
                "there is nothing to write: switch on Service:ClientCodeGen, DartClientCodeGen, PythonClientCodeGen, "
                "OpenApiOptions, HttpFileOptions or McpOptions:ToolSchemas"
            )
        log = logging.getLogger("rowcall")
        log.info("%d endpoints are described", len(found.snapshot.endpoints))
        if wanted.mcp is not None:
            announce_tools(found.snapshot.endpoints)
        done = _write(wanted, found)
    current_log().flush()
    return 0 if done else 1


def _write(wanted: Descriptions, found: Found) -> bool:
    describer = Describer(wanted, Connector(found.options.target))
    return asyncio.run(describer.write(found.snapshot.endpoints, found.snapshot.types_of))
