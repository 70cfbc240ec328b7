"""Options of the log of slow requests. Times in seconds."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, interval, section


def _or_zero(seconds: float | None) -> float:
    return seconds or 0.0


@section("Log:SlowRequests", "Slow requests.")
class SlowRequestOptions:
    """Options of the log of slow requests. Times in seconds."""

    threshold: float = interval(
        "Threshold",
        None,
        "Requests that take longer are logged as warnings of `rowcall.slow`. null: none.",
        convert=_or_zero,
    )
    plan: bool = flag("Plan", False, "Log the plan of their statement too: EXPLAIN without values and without ANALYZE.")
    plan_every: float = interval(
        "PlanInterval", "1 minute", "Minimum time between two plans of an endpoint in a worker."
    )
