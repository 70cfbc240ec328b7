"""What a worker counts: which numbers belong to an endpoint, to another server, to the worker itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import Step
from rowcall.service.shared_state.host_state import HostState

if TYPE_CHECKING:
    from rowcall.ext.driver.meter import Meter
    from rowcall.service.metrics.segments import Segment

CACHE_COLUMNS = {"hit": "cache_hits", "miss": "cache_misses"}
"""By what the cache says of a request."""

Something = TypeVar("Something")


def segment_of(options: WorkerOptions, host: HostState) -> Segment | None:
    """One for each worker, whichever edition it serves; None where nothing is counted."""
    if options.metrics is None:
        return None
    # Imported where it is used: most services count nothing.
    from rowcall.service.metrics.segments import Segment

    most = options.metrics.most
    return host.once("metrics", lambda: Segment(Path(options.store), most))


def meter_of(endpoint: Endpoint, services: Services) -> Meter | None:
    """The numbers of an endpoint. Its path is that of the route, so that there are as many as there are endpoints."""
    segment = segment_of(services.options, services.host)
    if segment is None:
        return None
    routine = f"{endpoint.routine.schema}.{endpoint.routine.name}".strip(".")
    return segment.meter("endpoint", endpoint.method, endpoint.path, routine)


def count_requests(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of everything that may refuse."""
    return meter_of(endpoint, services)


def counted(
    method: str, path: str, steps: tuple[Step, ...], options: WorkerOptions, host: HostState
) -> tuple[Step, ...]:
    """The steps of a path of the service itself, behind which no routine stands."""
    segment = segment_of(options, host)
    return steps if segment is None else (segment.meter("endpoint", method, path, ""), *steps)


def cache_counter(endpoint: Endpoint, services: Services) -> Callable[[str], None] | None:
    """Told `hit`, `miss` or `bypass` of each request that a kept answer might have been for."""
    meter = meter_of(endpoint, services)
    if meter is None:
        return None

    def count(word: str) -> None:
        column = CACHE_COLUMNS.get(word)
        if column is not None:
            meter.add(column)

    return count


def repetition_counter(endpoint: Endpoint, services: Services) -> Callable[[], None] | None:
    """Called when a call runs once more."""
    meter = meter_of(endpoint, services)
    return None if meter is None else lambda: meter.add("retries")


def upstream_meters(options: WorkerOptions, host: HostState) -> Callable[[str], Meter] | None:
    """The numbers of another server, by `host:port`."""
    segment = segment_of(options, host)
    return None if segment is None else lambda authority: segment.meter("upstream", authority)


def counting(does: Callable[[Something], None], options: WorkerOptions, host: HostState) -> Callable[[Something], None]:
    """`does`, each call of which is an event that has been published, where that is counted."""
    segment = segment_of(options, host)
    if segment is None:
        return does
    meter = segment.meter("worker", "events")

    def count(something: Something) -> None:
        meter.add("rows")
        does(something)

    return count


def refusal_counter(options: WorkerOptions, host: HostState) -> Callable[[int], None] | None:
    """Told the status of each request that no endpoint was found for."""
    segment = segment_of(options, host)
    return None if segment is None else segment.meter("worker", "unrouted").refused
