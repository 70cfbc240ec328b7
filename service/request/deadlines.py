"""The step that sets the deadline of a request, from its endpoint, its header or the configuration."""

from __future__ import annotations

import asyncio
import time

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.deadlines import DeadlineOptions, seconds_left
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.deadline import DeadlineError, end_by
from rowcall.service.request_context.request_context import RequestContext, Step


def may_have_deadline(endpoint: Endpoint, services: Services) -> bool:
    """Return whether requests of the endpoint may have a deadline."""
    return bool(services.options.deadlines.headers or _deadline_of(endpoint, services.options.deadlines))


def set_deadline(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sets the deadline; None: there is none. A client may shorten the deadline of the endpoint,
    but not lengthen it. The step raises `DeadlineError` if the client allows no time at all, and `Problem` 400 for an
    invalid header; a positive time counts as at least the configured minimum.
    """
    options = services.options.deadlines
    own = _deadline_of(endpoint, options)
    return _requested_deadline(options, own) if options.headers else None if own is None else _fixed_deadline(own)


def set_requested_deadline(options: DeadlineOptions) -> Step | None:
    """Return the step that sets the deadline which the client requests, for a route that makes several subrequests.
    Without it, each subrequest, which has the header of the client too, would get the whole time. None: no header is
    read. The step raises as that of `set_deadline` does."""
    return _requested_deadline(options, None) if options.headers else None


def _requested_deadline(options: DeadlineOptions, own: float | None) -> Step:
    """Return the step that sets the deadline which a header of the request states, at most `own` seconds from now;
    without such a header, `own` seconds. own: deadline of the endpoint; None: it has none."""
    headers = options.headers

    def set_as_asked(context: RequestContext) -> None:
        requested = _requested_seconds(context, headers)
        seconds = own
        if requested is not None:
            if requested <= 0:
                raise DeadlineError(context)
            requested = max(requested, options.shortest)
            seconds = requested if own is None else min(requested, own)
        if seconds is not None:
            end_by(context, asyncio.get_running_loop().time() + seconds)

    return set_as_asked


def _deadline_of(endpoint: Endpoint, options: DeadlineOptions) -> float | None:
    """Return the deadline of the endpoint in seconds, for all callers: that of its comment, or else the configured one.
    None: there is none; 0 in the comment means this, too."""
    seconds = options.otherwise if endpoint.options.deadline is None else endpoint.options.deadline
    return seconds or None


def _fixed_deadline(seconds: float) -> Step:
    def set_always(context: RequestContext) -> None:
        end_by(context, asyncio.get_running_loop().time() + seconds)

    return set_always


def _requested_seconds(context: RequestContext, names: tuple[str, ...]) -> float | None:
    """Return the seconds that the first present header of these allows; None without one. Raises `Problem` 400 for an
    invalid one.
    """
    for name in names:
        value = context.scope.headers.get(name)
        if value is None:
            continue
        seconds = seconds_left(name, value, time.time())
        if seconds is None:
            raise Problem(400, f"the header {name} does not say how long the client waits: {value[:60]!r}")
        return seconds
    return None
