"""Annotations about caching in this service and in caches of others (caching-4 to caching-7)."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, flag
from rowcall.core.endpoint.capabilities import Caching, Stale
from rowcall.core.text.cache_control import directives, unknown_directive
from rowcall.core.text.interval import parse_interval


def _enable_caching(draft: Draft, line: Line) -> None:
    """Turn caching on, and set the parameters that are part of the cache key (caching-4).

    Unknown names give a warning and are dropped. If no name remains, the line counts as `cached` without a list.
    """
    names = tuple(name for name in line.arguments if name in draft.parameters)
    draft.change_fields("caching", Caching(), enabled=True, parameters=names or None)
    for name in line.arguments:
        if name not in draft.parameters:
            draft.warn(line, f"the routine has no parameter {name}; it is no part of the cache key")


def _expires(draft: Draft, line: Line) -> None:
    _set_expires(draft, line.joined)


def _set_expires(draft: Draft, value: str) -> None:
    seconds = parse_interval(value)
    if seconds is None:
        raise BadValueError(f"'{value}' is not an interval such as '5 minutes'")
    draft.change_fields("caching", Caching(), expires=seconds)


def _profile(draft: Draft, line: Line) -> None:
    if len(line.arguments) != 1:
        raise BadValueError("exactly one profile name is expected")
    _set_profile(draft, line, line.arguments[0])


def _assign_profile(draft: Draft, value: str) -> None:
    line = Line(f"cache_profile = {value}")
    if len(value.split()) != 1:
        raise BadValueError("exactly one profile name is expected")
    _set_profile(draft, line, value)


def _set_profile(draft: Draft, line: Line, name: str) -> None:
    """Set the profile. A later line takes precedence, with a warning that names both."""
    before = draft.get("caching", Caching()).profile
    if before is not None and before != name:
        earlier = draft.used.get("cache_profile", f"cache_profile {before}")
        draft.warn(line, f"an endpoint has one profile; {name!r} replaces that of the earlier line `{earlier}`")
    draft.change_fields("caching", Caching(), profile=name)


def _tags(draft: Draft, line: Line) -> None:
    """Add tags to those of earlier lines."""
    tags = (*draft.get("caching", Caching()).tags, *line.arguments)
    draft.change_fields("caching", Caching(), tags=tuple(dict.fromkeys(tags)))


def _cache_control(draft: Draft, line: Line) -> None:
    """Replace `Cache-Control` of the response. Raises `BadValueError` for an unknown directive."""
    text = ", ".join(directives(line.rest))
    unknown = unknown_directive(text)
    if unknown is not None:
        raise BadValueError(f"'{unknown}' is no directive of Cache-Control such as max-age=60 or private")
    _set_only(draft, "Cache-Control", text)


def _vary(draft: Draft, line: Line) -> None:
    """Replace `Vary` of the response. Raises `BadValueError` for a word that cannot be the name of a header."""
    for name in line.arguments:
        if not _FIELD_NAME.fullmatch(name):
            raise BadValueError(f"'{name}' cannot be the name of a header")
    _set_only(draft, "Vary", ", ".join(line.arguments))


def _set_only(draft: Draft, name: str, value: str) -> None:
    """Set a header line in place of earlier ones of the same name."""
    draft.headers[:] = [header for header in draft.headers if header[0].lower() != name.lower()]
    draft.headers.append((name, value))


_FIELD_NAME = re.compile(r"\*|[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STALE = {"while_revalidate": "revalidate", "if_error": "error"}


def _stale(draft: Draft, line: Line) -> None:
    """Set the stale intervals `while_revalidate` and `if_error` (RFC 5861) in place of those of earlier lines. A name
    may begin with `stale_`, and have hyphens. Raises `BadValueError` for another name, or an invalid or repeated
    interval."""
    intervals: dict[str, float] = {}
    for part in line.rest.split(","):
        words = part.split()
        name = words[0].lower().replace("-", "_").removeprefix("stale_") if words else ""
        seconds = parse_interval(" ".join(words[1:])) if name in _STALE else None
        if seconds is None or seconds <= 0 or _STALE[name] in intervals:
            raise BadValueError(
                f"'{part.strip()}' is none of while_revalidate <interval> and if_error <interval>, once"
            )
        intervals[_STALE[name]] = seconds
    draft.change_fields("caching", Caching(), stale=Stale(**intervals))


ANNOTATIONS = (
    Annotation(
        name="cached",
        aliases=("cached",),
        syntax="cached [<parameter>, ...]",
        description="Caches the result and answers equal requests from the cache. With names, only these parameters "
        "(by their database names) distinguish requests; otherwise all do.",
        apply=_enable_caching,
    ),
    Annotation(
        name="cache_expires",
        aliases=("cache_expires", "cache_expires_in"),
        syntax="cache_expires <interval>",
        description="How long a cached result is used. Does not turn caching on.",
        apply=_expires,
        assign=_set_expires,
        minimum_words=2,
    ),
    Annotation(
        name="cache_profile",
        aliases=("cache_profile",),
        syntax="cache_profile <profile>",
        description="Caches with the settings of a profile of the configuration. Parameters of a `cached` line take "
        "precedence over those of the profile.",
        apply=_profile,
        assign=_assign_profile,
    ),
    Annotation(
        name="cache_stale",
        aliases=("cache_stale",),
        syntax="cache_stale while_revalidate <interval>, if_error <interval>",
        description="How long a cached response is used after its lifetime: `while_revalidate`, while a single "
        "request computes a new one; `if_error`, if a new one cannot be computed (a status from 500 on). One of the "
        "two is enough. Does not turn caching on.",
        apply=_stale,
        minimum_words=2,
    ),
    Annotation(
        name="cache_tags",
        aliases=("cache_tags", "cache_tag"),
        syntax="cache_tags <tag>, ...",
        description="Cached responses can be invalidated together by a tag, which may contain `{parameter}`. Does not "
        "turn caching on.",
        apply=_tags,
        minimum_words=2,
    ),
    Annotation(
        name="cache_control",
        aliases=("cache_control",),
        syntax="cache_control <directive>, ...",
        description="`Cache-Control` of successful responses. If the endpoint is restricted to some callers, or the "
        "response depends on the caller, it is sent as `private`, and the log has a warning at the start.",
        apply=_cache_control,
        minimum_words=2,
    ),
    Annotation(
        name="vary",
        aliases=("vary",),
        syntax="vary <header>, ...",
        description="Request headers on which responses depend, for caches (`Vary`).",
        apply=_vary,
        minimum_words=2,
    ),
    Annotation(
        name="etag",
        aliases=("etag", "entity_tag"),
        syntax="etag",
        description="Responses to GET and HEAD have an `ETag`; a client that sends it back in `If-None-Match` gets "
        "304.",
        apply=flag("entity_tag"),
    ),
)
