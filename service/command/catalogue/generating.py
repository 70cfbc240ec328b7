"""`--generate`: write client code and documents as a start does, without serving."""

from __future__ import annotations

import asyncio
import logging

from rowcall.service.codegen.describing import Describer
from rowcall.service.command.catalogue.snapshot import SnapshotWithOptions, endpoints_of
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import report_and_check, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.log import configure_logging
from rowcall.service.log.assembly import current_log
from rowcall.service.mcp.server import announce_tools
from rowcall.service.options.capabilities.description_options import Descriptions
from rowcall.service.options.capabilities.descriptions import descriptions
from rowcall.service.options.server.http import listener_plans
from rowcall.service.startup_error import StartupError


def generate(arguments: Arguments) -> int:
    """Write the enabled clients and documents. Return 1 if a file could not be written. Raises ConfigError,
    StartupError, also if nothing is enabled."""
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    configure_logging(settings)
    report_and_check(configuration)
    urls = [plan.address.url(plan.address.port) for plan in listener_plans(settings)]
    with endpoints_of(settings, demo=arguments.has("--demo")) as reading:
        requested = descriptions(settings, reading.database, reading.options.auth, urls)
        if requested == Descriptions(safe_numbers=requested.safe_numbers, resolve_nested=requested.resolve_nested):
            raise StartupError(
                "there is nothing to write: switch on Service:ClientCodeGen, DartClientCodeGen, PythonClientCodeGen, "
                "OpenApiOptions, HttpFileOptions, McpOptions:ToolSchemas or PostgRest:DatabaseTypesFile"
            )
        log = logging.getLogger("rowcall")
        log.info("clients and documents describe %d endpoints", len(reading.snapshot.endpoints))
        if requested.mcp is not None:
            announce_tools(reading.snapshot.endpoints, requested.mcp, reading.snapshot.postgrest)
        succeeded = _write(requested, reading)
    current_log().flush()
    return 0 if succeeded else 1


def _write(requested: Descriptions, reading: SnapshotWithOptions) -> bool:
    """Write the requested clients and documents, and return whether all could be written. Raises `StartupError`."""
    describer = Describer(requested, Connector(reading.options.target), reading.source_connector)
    snapshot = reading.snapshot

    async def write() -> bool:
        succeeded = await describer.write(snapshot.endpoints, snapshot.types_of, snapshot.postgrest)
        return await describer.write_interface(snapshot.postgrest) and succeeded

    return asyncio.run(write())
