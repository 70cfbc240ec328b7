"""Invalidate cached responses, of all workers and, with Redis, of all hosts."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.cache.options import endpoint_tag, profile_tag
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.service.console.actions.action import Action, Result, Values
from rowcall.service.console.sources import Sources

_SCOPES = ("endpoint", "profile", "tag", "all")


def cache_actions(sources: Sources) -> Iterator[Action]:
    """Yield the action, if responses are cached."""
    if not sources.options.cache.enabled:
        return

    def invalidate(values: Values) -> Result:
        tags = _tags(sources, values)
        answer = sources.run(sources.invalidate(tags))
        if answer is None:
            raise unavailable("no worker has answered in time; it is not known whether the responses are invalidated")
        if answer.error is not None:
            raise unavailable(answer.error)
        return {"invalidated": answer.count}

    yield Action(
        "invalidate-cache",
        "Invalidates the cached responses of an endpoint, of a profile, with a tag, or all of them.",
        invalidate,
        optional=_SCOPES,
    )


def _tags(sources: Sources, values: Values) -> tuple[str, ...]:
    """Return the tags of the responses. Raises `Problem` 400 and 404."""
    if len(values) != 1:
        raise Problem(400, f"invalidate-cache needs exactly one of {', '.join(_SCOPES)}")
    (scope, value), *_ = values.items()
    options = sources.options.cache
    if scope == "all":
        if value != "true":
            raise Problem(400, "all: only the value true is possible")
        return options.every_operator_tag
    if scope == "profile":
        if value not in options.names:
            raise Problem(
                404, f"there is no cache profile {value[:200]!r}; there are {', '.join(sorted(options.names))}"
            )
        return (profile_tag(value),)
    if scope == "endpoint":
        endpoints = (item for item in sources.snapshot().endpoints if item.name == value)
        if not any(item.options.caching is not None and item.options.caching.requested for item in endpoints):
            raise Problem(404, f"there is no endpoint {value[:200]!r} with cached responses")
        return (endpoint_tag(value),)
    if not value or any(letter.isspace() or letter == "," for letter in value):
        raise Problem(400, f"tag: {value[:200]!r} is no tag; a tag is one word without a comma")
    return (value,)
