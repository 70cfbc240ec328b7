"""The names under which endpoints have jobs and schedules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rowcall.core.endpoint.endpoint import Endpoint


def overloads_by_name(endpoints: Iterable[Endpoint]) -> dict[str, tuple[Endpoint, ...]]:
    """Return the endpoints that have jobs or a schedule, by method and path; overloads in the order of `endpoints`."""
    overloads: dict[str, tuple[Endpoint, ...]] = {}
    for endpoint in endpoints:
        if endpoint.options.job is not None or endpoint.options.schedule is not None:
            overloads[endpoint.name] = (*overloads.get(endpoint.name, ()), endpoint)
    return overloads


def schedules_by_name(overloads: Mapping[str, tuple[Endpoint, ...]]) -> dict[str, Endpoint]:
    """Return the endpoints that have a schedule, by the name of the schedule. It is method and path; if several
    endpoints with jobs or a schedule have these, it also contains the identity of the routine.

    overloads: from `overloads_by_name`.
    """
    return {
        name if len(candidates) == 1 else f"{name} {endpoint.routine.identity}": endpoint
        for name, candidates in overloads.items()
        for endpoint in candidates
        if endpoint.options.schedule is not None
    }
