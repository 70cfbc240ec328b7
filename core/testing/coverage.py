"""Endpoint coverage: the endpoints that tests have called, and the untested cases of called endpoints (testing-12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.http.router import Route


@dataclass(slots=True)
class Calls:
    """What calls of one endpoint by tests have covered: statuses, callers, and supplied values."""

    statuses: set[int] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    """Roles of callers that were admitted."""
    anonymous: bool = False
    supplied: list[frozenset[str]] = field(default_factory=list)
    """For each call, the names of the request values that it has supplied."""


@dataclass(frozen=True, slots=True)
class EndpointCalls:
    """The number of calls of one endpoint by tests."""

    name: str
    """`POST /api/prune`."""
    routine: str
    """`public.prune`, or the path of a `.sql` file."""
    calls: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The result of a run: numbers of covered, testable and not testable (excluded) endpoints, and what was not
    tested."""

    covered: int
    testable: int
    excluded: int
    untested: tuple[str, ...]
    """Names of testable endpoints that were not called, such as `POST /api/prune`."""
    gaps: tuple[str, ...] = ()
    """Untested cases of called endpoints."""
    endpoints: tuple[EndpointCalls, ...] = ()
    """The testable endpoints, sorted by name."""

    @property
    def percent(self) -> int:
        """Covered endpoints in percent, rounded down; 100 if there are no testable endpoints."""
        return self.covered * 100 // self.testable if self.testable else 100

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report about coverage."""
        more = f"  —  {self.excluded} endpoint(s) excluded (not testable in test mode)" if self.excluded else ""
        yield f"endpoint coverage: {self.covered}/{self.testable} ({self.percent}%){more}"
        yield from (f"        untested: {name}" for name in self.untested)
        yield from (f"        {gap}" for gap in self.gaps)


def refusal(endpoint: Endpoint) -> str | None:
    """Return why a test cannot call the endpoint, as the end of a sentence; None if it can."""
    options = endpoint.options
    if options.login or options.logout:
        return "it signs in or out"
    if options.upload is not None and options.upload.enabled:
        return "it takes uploads"
    if options.events is not None and options.events.subscribe:
        return "it is a stream of events"
    return None


def sends_away(endpoint: Endpoint, host: str | None) -> bool:
    """Return whether the endpoint is a proxy to another service, and not to an endpoint of this one.

    host: `Service:ProxyOptions:Host`, which counts if the annotation names no URL; None: it is not set.
    """
    forwardings = (endpoint.options.proxy, endpoint.options.proxy_out)
    return any(
        forwarding is not None and not (forwarding.url or host or "").startswith("/") for forwarding in forwardings
    )


def coverage_of(
    routes: Sequence[Route], called: Mapping[str, Calls], host: str | None, *, gaps: bool, stubbed: bool = False
) -> Coverage:
    """Return the coverage of a run.

    routes: of all endpoints; those that invalidate cached responses are ignored. called: name of an endpoint → its
    calls; endpoints without calls are missing. host: as in `sends_away`. gaps: also find untested cases of called
    endpoints. stubbed: other services have stubs in tests, so that proxies are testable.
    """
    listed = [route for route in routes if not route.primary.options.invalidates]
    testable = [
        route
        for route in listed
        if refusal(route.primary) is None
        and (route.primary.name in called or stubbed or not sends_away(route.primary, host))
    ]
    covered = [route for route in testable if route.primary.name in called]
    untested = tuple(sorted(route.primary.name for route in testable if route.primary.name not in called))
    all_gaps = (
        tuple(gap for route in covered for gap in _gaps(route.primary, called[route.primary.name])) if gaps else ()
    )
    endpoints = sorted((_calls_of(route.primary, called) for route in testable), key=lambda item: item.name)
    return Coverage(len(covered), len(testable), len(listed) - len(testable), untested, all_gaps, tuple(endpoints))


def _calls_of(endpoint: Endpoint, called: Mapping[str, Calls]) -> EndpointCalls:
    calls = called.get(endpoint.name)
    routine = f"{endpoint.routine.schema}.{endpoint.routine.name}" if endpoint.routine.schema else endpoint.routine.name
    return EndpointCalls(endpoint.name, routine, 0 if calls is None else len(calls.supplied))


def _gaps(endpoint: Endpoint, calls: Calls) -> Iterator[str]:
    """Yield a line for each case of an endpoint that its calls have not tested."""
    access = endpoint.access
    for role in sorted(access.roles):
        if role not in calls.roles:
            yield f"{endpoint.name}: never called with the role {role}"
    if not access.anonymous and 401 not in calls.statuses:
        yield f"{endpoint.name}: never called without a user (401)"
    if access.required and 403 not in calls.statuses:
        yield f"{endpoint.name}: never called without its roles (403)"
    if not any(200 <= status < 300 for status in calls.statuses):
        yield f"{endpoint.name}: never succeeded"
    if not any(status >= 400 and status not in (401, 403) for status in calls.statuses) and _may_fail(endpoint):
        yield f"{endpoint.name}: no error path was taken"
    yield from _defaults(endpoint, calls.supplied)


def _may_fail(endpoint: Endpoint) -> bool:
    """Return whether calls can fail: values of a request may be wrong, or the comment has an error policy."""
    return bool(endpoint.parameters) or endpoint.options.error_policy is not None


def _defaults(endpoint: Endpoint, supplied: Iterable[frozenset[str]]) -> Iterator[str]:
    """Yield a line for each parameter with a default whose default was never used, or whose value was never supplied.
    supplied: as in `Calls`."""
    choices = list(supplied)
    for parameter in endpoint.parameters:
        if not parameter.has_default or parameter.path:
            continue
        name = parameter.api_name
        if all(name in names for names in choices):
            yield f"{endpoint.name}: the default of {name} was never used"
        elif not any(name in names for names in choices):
            yield f"{endpoint.name}: {name} was never supplied"
