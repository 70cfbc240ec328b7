"""Steps of event streams: authentication, then the subscription (events-7).

Unless the configuration requires it, connecting needs no authorization; it is checked for each event which subscribers
may receive it. A stream of an endpoint with tenants needs the tenant that a request would need (events-16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.endpoint.capabilities import Events
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.events.stream_path import stream_path
from rowcall.service.auth.access import authorize
from rowcall.service.auth.basic import basic_step, has_scheme
from rowcall.service.auth.database_role import refuse_without_role
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.subscription import Subscription
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.tenancy.tenants import require_tenant
from rowcall.service.tracing.request_tracing import trace_streams


class EventStreamRoute(NamedTuple):
    """The route of an event stream. terms: its access rules and filters, to be compared; open streams end when these
    change.
    """

    path: str
    terms: object
    access: Access
    """Who may connect; each event has its own recipients."""
    steps: tuple[Step, ...]


def event_stream_routes(
    endpoints: Iterable[Endpoint], services: Services, broadcaster: Broadcaster
) -> Iterator[EventStreamRoute]:
    """Yield the route of each event stream of the endpoints. A path that several endpoints name is one stream, that of
    the last of them.
    """
    result: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        path = stream_path(endpoint, services.options.events.level)
        if path is not None:
            result[path] = endpoint
    for path, endpoint in result.items():
        terms = _terms(endpoint, services)
        steps = _steps(endpoint, path, terms, services.for_connection(endpoint.options.connection), broadcaster)
        events = endpoint.options.events or Events()
        access = endpoint.access if _is_closed(events, services) else ANYONE
        yield EventStreamRoute(path, terms, access, tuple(steps))


def _is_closed(events: Events, services: Services) -> bool:
    """Whether connecting requires authorization. It always does for a channel: its messages have no scope of their own,
    so the subscriber needs the rights to call the endpoint.
    """
    return services.options.events.authorize or events.channel is not None


def _terms(endpoint: Endpoint, services: Services) -> object:
    """Return what has to be unchanged for open streams to continue after a reload of the schema."""
    events = endpoint.options.events or Events()
    result = (events.channel, events.filters, endpoint.options.connection, endpoint.options.tenant)
    return (*result, endpoint.access) if _is_closed(events, services) else result


def _steps(
    endpoint: Endpoint, path: str, terms: object, services: Services, broadcaster: Broadcaster
) -> Iterator[Step]:
    """Yield the steps of a stream, in order; the last one opens it. path: of the stream. terms: as in
    `EventStreamRoute`.
    """
    events = endpoint.options.events or Events()
    traced = trace_streams(endpoint, path, services)
    if traced is not None:
        yield traced
    closed = _is_closed(events, services)
    if endpoint.access.basic is not None:
        check = basic_step(endpoint, services)
        yield check if closed else _if_basic_credentials(check)
    elif services.options.auth.schemes:
        yield services.auth.sessions.authenticate
    admission = (authorize, refuse_without_role, require_tenant) if closed else (require_tenant,)
    for step in (factory(endpoint, services) for factory in admission):
        if step is not None:
            yield step
    yield Subscription(path, terms, events, endpoint.options.tenant, services, broadcaster).open


def _if_basic_credentials(check: Step) -> Step:
    """Return a step that runs `check` only for requests with HTTP Basic credentials, so that wrong ones are refused and
    callers without any pass."""

    def check_credentials(context: RequestContext) -> Waiting:
        return check(context) if has_scheme(context.scope.headers.get("authorization")) else None

    return check_credentials
