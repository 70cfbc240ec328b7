"""The catalogue of a database, and the endpoints of all of its routines."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from rowcall.core.building.endpoint_builder import EndpointDefaults, build_endpoint
from rowcall.core.catalogue.catalog import Catalog
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.discovery.catalogue import ObjectSelection, discover_all


async def discover(
    connection: AsyncConnection[Any], wanted: ObjectSelection | None = None, search_path: str | None = None
) -> Catalog:
    """Return everything that the connected role may call, read or write."""
    return (await discover_all(connection, wanted or ObjectSelection(), search_path)).catalog


def build_endpoints(catalog: Catalog, defaults: EndpointDefaults) -> tuple[list[Endpoint], list[Diagnostic]]:
    """Return the endpoints and diagnostics of all routines of a catalogue, in its order."""
    results = [build_endpoint(routine, catalog, defaults) for routine in catalog.routines]
    endpoints = [result.endpoint for result in results if result.endpoint is not None]
    return endpoints, [diagnostic for result in results for diagnostic in result.diagnostics]
