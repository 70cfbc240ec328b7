"""Annotations about what a request sets for its routine: tenant, timezone_from."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import FALSE_WORDS, Annotation, BadValueError, Draft, keyword_form, rest_of
from rowcall.core.endpoint.capabilities import Tenant, TimeZone, ValuePlace

_TENANT = re.compile(
    r"from\s+(?:(?P<place>claim|header)\s+(?P<name>\S+)|host(?:\s+(?P<host>(?!as\s)\S+))?)"
    r"(?:\s+as\s+(?:setting\s+(?P<setting>\S+)|search_path(?:\s+(?P<schemas>.+))?"
    r"|connection(?:\s+(?P<connection>\S+))?))?",
    re.IGNORECASE,
)
_SETTING = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SCHEMA = re.compile(r"[A-Za-z_0-9$-]*(?:\{0\}[A-Za-z_0-9$-]*)?")
_CONNECTION = re.compile(r"\sas\s+connection\b", re.IGNORECASE)
_SEARCH_PATH = re.compile(r"\sas\s+search_path\b", re.IGNORECASE)


def tenant_from(text: str) -> Tenant:
    """Return the tenant that a text describes. Raises `BadValueError`."""
    match = _TENANT.fullmatch(text.strip())
    if match is None:
        raise BadValueError(
            f"'{text}' is none of: from claim <claim>, from header <header>, from host [<pattern>]; then as setting "
            "<name>, as search_path <schema>, ... or as connection <name>"
        )
    place = ValuePlace((match["place"] or "host").lower())
    name = match["name"] or (match["host"] or "*").lower()
    if place is ValuePlace.HOST and name.count("*") != 1:
        raise BadValueError(f"'{name}' is no pattern of host names with one *, such as *.example.com")
    if _CONNECTION.search(text):
        connection = match["connection"] or "{0}"
        if connection.count("{0}") != 1:
            raise BadValueError(f"'{connection}' is no name of a connection with one {{0}}, such as shop_{{0}}")
        return Tenant(place, name, "", connection=connection)
    if not _SEARCH_PATH.search(text):
        setting = match["setting"] or "request.tenant"
        if not _SETTING.fullmatch(setting):
            raise BadValueError(f"'{setting}' is no setting with a dot in its name, such as app.tenant")
        return Tenant(place, name, setting)
    schemas = tuple(part.strip() for part in (match["schemas"] or "{0}, public").split(","))
    if not all(part and _SCHEMA.fullmatch(part) for part in schemas) or "{0}" not in schemas[0]:
        raise BadValueError(
            "search_path takes names of schemas, of which the first one contains {0}: tenant_{0}, public"
        )
    return Tenant(place, name, "", schemas)


def _assign_tenant(draft: Draft, value: str) -> None:
    draft.set(tenant=None if value.strip().lower() in FALSE_WORDS else tenant_from(value))


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
