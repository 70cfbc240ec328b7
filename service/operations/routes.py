"""Reserved paths of health checks and statistics."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.service.operations.health import health_routes
from rowcall.service.operations.statistics import statistics_routes
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services


def operation_routes(services: Services) -> Iterator[FixedRoute]:
    """Yield the routes of each enabled path."""
    if services.options.health is not None:
        yield from health_routes(services.options.health, services)
    if services.options.statistics is not None:
        yield from statistics_routes(services.options.statistics, services)
