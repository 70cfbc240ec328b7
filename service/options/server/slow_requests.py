"""`Log:SlowRequests` → which requests are told for being slow, and whether with their plan."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config import Settings

_P = "Log:SlowRequests:"


@dataclass(frozen=True, slots=True)
class SlowRequestOptions:
    """Times in seconds."""

    threshold: float
    plan: bool
    plan_every: float
    """Between two plans of one endpoint in one worker."""


def slow_request_options(settings: Settings) -> SlowRequestOptions | None:
    """None: nobody looks for them."""
    threshold = settings.seconds_or_none(_P + "Threshold")
    if not threshold:
        return None
    return SlowRequestOptions(threshold, settings.flag(_P + "Plan"), settings.seconds(_P + "PlanInterval"))
