"""Invalidate cached responses, of all workers and, with Redis, of all hosts."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from rowcall.core.cache.options import endpoint_tag, profile_tag
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.service.console.actions.action import Action, Result, Values
from rowcall.service.console.sources import Invalidation, Sources

_SCOPES = ("endpoint", "profile", "tag", "all")


def cache_actions(sources: Sources) -> Iterator[Action]:
    """Yield the action that invalidates cached responses; none if no responses are cached."""
    if not sources.options.cache.enabled:
        return

    def invalidate(values: Values) -> Result:
        if "arguments" in values:
            return invalidate_one(values)
        return result_of(sources.run(sources.invalidate(_tags(sources, values))))

    def invalidate_one(values: Values) -> Result:
        if set(values) != {"endpoint", "arguments"}:
            raise Problem(400, "arguments belong to an endpoint, and to nothing else")
        _tags(sources, {"endpoint": values["endpoint"]})
        return result_of(sources.run(sources.invalidate_entry(values["endpoint"], _arguments(values["arguments"]))))

    def result_of(answer: Invalidation | None) -> Result:
        """Return the members of the response. Raises `Problem` 503 if no worker has answered or the invalidation is not
        confirmed.
        """
        if answer is None:
            raise unavailable("no worker has answered in time; it is not known whether the responses are invalidated")
        if answer.error is not None:
            raise Problem(answer.status, answer.error)
        return {"invalidated": answer.count}

    yield Action(
        "invalidate-cache",
        "Invalidates the cached responses of an endpoint (with arguments, as JSON: one), a profile, a tag, or all.",
        invalidate,
        optional=(*_SCOPES, "arguments"),
    )


def _arguments(text: str) -> bytes:
    """Return the text of the arguments in UTF-8. Numbers are not changed, as the cache key has their digits. Raises
    `Problem` 400 if it is no JSON object.
    """
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"arguments: no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise Problem(400, 'arguments: it is a JSON object such as {"id": 7}')
    return text.encode()


def _tags(sources: Sources, values: Values) -> tuple[str, ...]:
    """Return the tags of the cached responses that the action invalidates: all, those of a profile, of an endpoint, or
    with a tag. Raises `Problem`: 400 for invalid parameters, 404 for an unknown profile or endpoint.
    """
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
