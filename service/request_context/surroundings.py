"""Tenant and time zone of a request, as endpoints take them from claims and headers."""

from __future__ import annotations

import re
from functools import lru_cache
from zoneinfo import ZoneInfo

from rowcall.core.auth.claims import User
from rowcall.core.endpoint.capabilities import Tenant, TimeZone, ValuePlace
from rowcall.core.text.ascii_case import ascii_lower
from rowcall.service.request_context.client_address import lines_of
from rowcall.service.request_context.header_values import read_header, read_header_lines
from rowcall.service.request_context.request_context import RequestContext

LONGEST = 255
"""Maximum length of the name of a tenant in characters."""
_TIME_ZONE = re.compile(r'(?:^|[,;\s])timezone\s*=\s*"?([A-Za-z0-9_+/-]+)"?', re.IGNORECASE)


def tenant_of(tenant: Tenant | None, context: RequestContext) -> str | None:
    """Return the tenant of a request, or None if it has none. tenant: where the endpoint takes it from; None: from
    nowhere.
    """
    if tenant is None:
        return None
    if tenant.place is ValuePlace.HOST:
        return _of_host(tenant, context)
    return _value(tenant.place, tenant.name, context) or None


def with_tenant(text: bytes, tenant: Tenant | None, context: RequestContext) -> bytes:
    """Return the text with the tenant of the request in front, so that keys of different tenants differ; unchanged if
    the request has no tenant (`tenant_of`). text: without line breaks, so that a tenant cannot be mistaken for a part
    of it."""
    value = tenant_of(tenant, context)
    return text if value is None else value.encode(errors="surrogateescape") + b"\n" + text


def headers_of_tenant(tenant: Tenant, value: str) -> list[tuple[str, str]]:
    """Return the headers that a request of the service itself needs to be of this tenant, so that `tenant_of` returns
    `value` for it. Empty if the tenant is a claim, which the user of the request has."""
    if tenant.place is ValuePlace.HEADER:
        return [(tenant.name, value)]
    return [("host", tenant.name.replace("*", value))] if tenant.place is ValuePlace.HOST else []


def headers_of_zone(zone: TimeZone | None, context: RequestContext) -> list[tuple[str, str]]:
    """Return the headers that a later request of the service itself needs to have the time zone of this request
    (`zone_of`). Empty if this request names none, or if the time zone is a claim, which the user has."""
    name = zone_of(zone, context)
    if zone is None or name is None or zone.place is ValuePlace.CLAIM:
        return []
    return [("prefer", f"timezone={name}") if zone.place is ValuePlace.PREFER else (zone.name.lower(), name)]


def _of_host(tenant: Tenant, context: RequestContext) -> str | None:
    """Return the part of the host name in the place of the `*` in the pattern of `tenant`, with A to Z in lower case;
    None: the host name does not match. The host of a trusted proxy counts before that of the request.
    """
    scope = context.scope
    forwarded = None
    if tenant.forwarding is not None:
        forwarded = tenant.forwarding.host_of(lines_of(scope.headers), scope.client, scope.scheme)
    host = ascii_lower(forwarded or scope.headers.get("host") or scope.authority or "")
    host = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    before, _, behind = tenant.name.partition("*")
    if len(host) <= len(before) + len(behind) or not host.startswith(before) or not host.endswith(behind):
        return None
    return host[len(before) : len(host) - len(behind)]


def zone_of(zone: TimeZone | None, context: RequestContext) -> str | None:
    """Return the time zone that a request names, unchecked, or None. zone: where the endpoint takes it from; None: from
    nowhere.
    """
    if zone is None:
        return None
    if zone.place is ValuePlace.PREFER:
        match = _TIME_ZONE.search(",".join(read_header_lines(context.scope.headers, "prefer")))
        return None if match is None else match[1]
    return _value(zone.place, zone.name, context) or None


def _value(place: ValuePlace, name: str, context: RequestContext) -> str | None:
    """Return the value of the header or of the claim (as `place` says) with this name; None without it."""
    if place is ValuePlace.HEADER:
        return read_header(context.scope.headers, name.lower())
    user: User | None = context.user
    return None if user is None else user.first(name)


@lru_cache(maxsize=1024)
def is_time_zone(name: str) -> bool:
    """Whether a name is one of a time zone."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return False
    except KeyError:
        return False
    return True
