"""Read `Log:SlowRequests`: the duration from which requests are logged as slow, and whether with their query plan."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config import Settings

_P = "Log:SlowRequests:"


@dataclass(frozen=True, slots=True)
class SlowRequestOptions:
    """Options of the log of slow requests; times in seconds."""

    threshold: float
    plan: bool
    plan_every: float
    """Minimum time between two plans of the same endpoint in the same worker."""


def slow_request_options(settings: Settings) -> SlowRequestOptions | None:
    """Return the options, or None if slow requests are not logged."""
    threshold = settings.seconds_or_none(_P + "Threshold")
    if not threshold:
        return None
    return SlowRequestOptions(threshold, settings.flag(_P + "Plan"), settings.seconds(_P + "PlanInterval"))
