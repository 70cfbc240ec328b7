"""Annotations about what a request sets for its routine: tenant, timezone_from."""

from __future__ import annotations

from rowcall.core.annotations.declaration import FALSE_WORDS, Annotation, BadValueError, Draft, keyword_form, rest_of
from rowcall.core.endpoint.before_routine import tenant_from
from rowcall.core.endpoint.capabilities import TimeZone, ValuePlace


def _assign_tenant(draft: Draft, value: str) -> None:
    """Set the tenant from its description; with `off` or another word of `FALSE_WORDS`, the endpoint has no tenant,
    also if the configuration sets one. Raises `BadValueError` for another form."""
    try:
        draft.set(tenant=None if value.strip().lower() in FALSE_WORDS else tenant_from(value))
    except ValueError as error:
        raise BadValueError(str(error)) from None


def _assign_timezone_from(draft: Draft, value: str) -> None:
    words = value.split()
    place = words[0].lower() if words else ""
    if words and (place, len(words)) in (("prefer", 1), ("claim", 2), ("header", 2)):
        draft.set(time_zone=TimeZone(ValuePlace(place), "".join(words[1:])))
        return
    raise BadValueError(f"'{value}' is none of: prefer, claim <claim>, header <header>")


ANNOTATIONS = (
    Annotation(
        name="tenant",
        aliases=("tenant",),
        syntax="tenant from claim|header <tenant> [as setting <setting>]",
        description="Sets the tenant of a request for its transaction: as a setting that routines and policies read, "
        "or with `as search_path tenant_{0}, public` as the schema in which names are looked up. `as connection "
        "shop_{0}` runs the routine on the connection of the tenant. `tenant from host *.example.com` takes it from "
        "the host name. `tenant off` ends that of the configuration.",
        apply=keyword_form(_assign_tenant, rest_of),
        assign=_assign_tenant,
        minimum_words=2,
    ),
    Annotation(
        name="timezone_from",
        aliases=("timezone_from",),
        syntax="timezone_from prefer | timezone_from claim|header <tenant>",
        description="Runs the routine in the time zone of the request, and renders its timestamps in it: that of "
        "`Prefer: timezone=Europe/Berlin`, of a claim or of a header.",
        apply=keyword_form(_assign_timezone_from),
        assign=_assign_timezone_from,
        minimum_words=2,
    ),
)
