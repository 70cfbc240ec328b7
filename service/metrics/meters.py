"""Meters of a worker: which numbers belong to an endpoint, an upstream server, or the worker itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rowcall.core.accounts.lockout import OUTCOMES
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import Step
from rowcall.service.shared_state.host_state import HostState

if TYPE_CHECKING:
    from rowcall.ext.driver.meter import Meter
    from rowcall.service.metrics.segments import Segment

CACHE_COLUMNS = {"hit": "cache_hits", "miss": "cache_misses"}
"""Column by outcome of the cache lookup."""

KEY_STATES = ("new", "finished", "running", "other")
"""States of requests with an `Idempotency-Key` and of received webhooks, as the database returns them."""

Something = TypeVar("Something")


def segment_of(options: WorkerOptions, host: HostState) -> Segment | None:
    """Return the file of counters (`metrics.segments`) of this worker, which all schema snapshots share; None if
    metrics are off. The first call opens it and raises as `Segment` does."""
    if options.metrics is None:
        return None
    # Imported on use, because most services have no metrics.
    from rowcall.service.metrics.segments import Segment

    limit = options.metrics.most
    return host.get_or_create("metrics", lambda: Segment(Path(options.store), limit))


def meter_of(endpoint: Endpoint, services: Services) -> Meter | None:
    """Return the meter of an endpoint; None: metrics are off. Its path is the template of the route, so the number of
    meters is bounded.
    """
    segment = segment_of(services.options, services.host)
    if segment is None:
        return None
    routine = f"{endpoint.routine.schema}.{endpoint.routine.name}".strip(".")
    return segment.meter("endpoint", endpoint.method, endpoint.path, routine)


def count_requests(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that counts requests, before everything that may refuse them; None: metrics are off."""
    return meter_of(endpoint, services)


def with_request_count(
    method: str, path: str, steps: tuple[Step, ...], options: WorkerOptions, host: HostState
) -> tuple[Step, ...]:
    """Return the steps of a reserved path, which has no routine, behind one that counts its requests; unchanged if
    metrics are off.
    """
    segment = segment_of(options, host)
    return steps if segment is None else (segment.meter("endpoint", method, path, ""), *steps)


def count_path(method: str, path: str, services: Services) -> Step | None:
    """Return the step that counts the requests of one method and path of PostgREST's interface, which has no endpoints;
    None: metrics are off. path: a template without values."""
    segment = segment_of(services.options, services.host)
    return None if segment is None else segment.meter("endpoint", method, path, "")


def cache_counter(endpoint: Endpoint, services: Services) -> Callable[[str], None] | None:
    """Return a function to call with `hit`, `miss` or `bypass` for each cacheable request; None: metrics are off."""
    meter = meter_of(endpoint, services)
    if meter is None:
        return None

    def count(word: str) -> None:
        column = CACHE_COLUMNS.get(word)
        if column is not None:
            meter.add(column)

    return count


def repetition_counter(endpoint: Endpoint, services: Services) -> Callable[[], None] | None:
    """Return a function to call when a call is repeated after an error; None: metrics are off."""
    meter = meter_of(endpoint, services)
    return None if meter is None else lambda: meter.add("retries")


def upstream_meters(options: WorkerOptions, host: HostState) -> Callable[[str], Meter] | None:
    """Return a function that returns the meter of an upstream server by `host:port`; None: metrics are off."""
    segment = segment_of(options, host)
    return None if segment is None else lambda authority: segment.meter("upstream", authority)


def with_event_count(
    publish: Callable[[Something], None], options: WorkerOptions, host: HostState
) -> Callable[[Something], None]:
    """Return a function that calls `publish` and counts each call as a published event. Without metrics, `publish`
    itself."""
    segment = segment_of(options, host)
    if segment is None:
        return publish
    meter = segment.meter("worker", "events")

    def count(something: Something) -> None:
        meter.add("rows")
        publish(something)

    return count


def event_counter(outcome: str, options: WorkerOptions, host: HostState) -> Callable[[int], None]:
    """Return a function to call with a number of events that have the outcome `delivered` (to streams) or `dropped`.
    Without metrics, it has no effect.
    """
    segment = segment_of(options, host)
    if segment is None:
        return lambda _count: None
    meter = segment.meter("worker", f"events {outcome}")
    return lambda count: meter.add("rows", count)


def sign_in_counter(options: WorkerOptions, host: HostState) -> Callable[[str], None]:
    """Return a function to call with the outcome, one of `OUTCOMES`, of a sign-in that did not succeed. Without
    metrics, it has no effect.
    """
    segment = segment_of(options, host)
    if segment is None:
        return lambda _outcome: None
    meters = {outcome: segment.meter("worker", f"sign-ins {outcome}") for outcome in OUTCOMES}
    return lambda outcome: meters[outcome].add("rows")


def key_counter(services: Services) -> Callable[[str], None]:
    """Return a function to call with the state, one of `KEY_STATES`, of each request with an `Idempotency-Key`, and of
    each received webhook. Without metrics, it has no effect.
    """
    segment = segment_of(services.options, services.host)
    if segment is None:
        return lambda _state: None
    meters = {state: segment.meter("worker", f"keys {state}") for state in KEY_STATES}
    return lambda state: meters[state].add("rows")


def job_counter(options: WorkerOptions, host: HostState) -> Callable[[str, str], None] | None:
    """Return a function to call with the endpoint and the outcome of each attempt of a job; None: metrics are off."""
    segment = segment_of(options, host)
    return None if segment is None else lambda endpoint, outcome: segment.meter("job", endpoint, outcome).add("rows")


def refusal_counter(options: WorkerOptions, host: HostState) -> Callable[[int], None] | None:
    """Return a function to call with the status of the error response to each request whose method and path have no
    route; None: metrics are off."""
    segment = segment_of(options, host)
    return None if segment is None else segment.meter("worker", "unrouted").count_refusal
