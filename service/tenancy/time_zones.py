"""`timezone_from`: the time zone of a request, in which its routine runs and its timestamps are rendered."""

from __future__ import annotations

from rowcall.core.endpoint.capabilities import ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.database.preamble import Preamble
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import is_time_zone, zone_of


def apply_time_zone(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step that refuses unknown time zones (`Problem` 400); None: the endpoint takes no time zone.

    The step adds response headers: `Vary`, unless the time zone is a claim, and `Preference-Applied`, if it is from the
    header `Prefer`.
    """
    zone = endpoint.options.time_zone
    if zone is None:
        return None
    varies = [("vary", "Prefer" if zone.place is ValuePlace.PREFER else zone.name)]

    def apply(context: RequestContext) -> None:
        name = zone_of(zone, context)
        if name is not None and not is_time_zone(name):
            raise Problem(400, f"there is no time zone {name[:60]!r}; an example is Europe/Berlin")
        headers = [] if zone.place is ValuePlace.CLAIM else list(varies)
        if name is not None and zone.place is ValuePlace.PREFER:
            headers.append(("preference-applied", f"timezone={name}"))
        context.protocol = HeadersProtocol(context.protocol, headers)

    return apply


def time_zone_settings(endpoint: Endpoint, _services: Services) -> Preamble | None:
    """Return the preamble with the time zone of a request; None: the endpoint takes no time zone."""
    zone = endpoint.options.time_zone
    if zone is None:
        return None

    def setting(context: RequestContext) -> list[bytes | None]:
        name = zone_of(zone, context)
        return [] if name is None else [b"TimeZone", name.encode()]

    return Preamble(settings=(setting,))
