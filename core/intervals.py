"""Durations as people write them in comments and configuration: `500ms`, `1.5h`, `5 minutes`, `00:00:01` (spec 2.4)."""

from __future__ import annotations

import re

_UNITS: dict[str, float] = {
    unit: seconds
    for seconds, units in (
        (1e-6, "us usec microsecond microseconds"),
        (1e-3, "ms msec millisecond milliseconds"),
        (1.0, "s sec second seconds"),
        (60.0, "m min minute minutes"),
        (3600.0, "h hour hours"),
        (86400.0, "d day days"),
        (604800.0, "w week weeks"),
    )
    for unit in units.split()
}

_AMOUNT = re.compile(r"(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)\s*(?P<unit>[A-Za-z]*)")
_CLOCK = re.compile(
    r"(?:(?P<days>[0-9]+)\.)?(?P<hours>[0-9]+):(?P<minutes>[0-5]?[0-9])(?::(?P<seconds>[0-5]?[0-9](?:\.[0-9]+)?))?"
)

LONGEST_DIGITS = 18
"""More digits than any real duration has; keeps hostile text away from float overflow."""


def parse_interval(text: str) -> float | None:
    """Seconds, or None when the text is no duration. A number without a unit counts seconds; nothing is negative.

    The clock form is `[days.]hours:minutes[:seconds]`.
    """
    stripped = text.strip()
    if len(stripped) > LONGEST_DIGITS * 2:
        return None
    if clock := _CLOCK.fullmatch(stripped):
        return _clock_seconds(clock)
    amount = _AMOUNT.fullmatch(stripped)
    if amount is None:
        return None
    scale = _UNITS.get(amount["unit"].lower() or "s")
    return None if scale is None else float(amount["number"]) * scale


def _clock_seconds(clock: re.Match[str]) -> float:
    days, hours, minutes, seconds = (float(clock[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return days * 86400 + hours * 3600 + minutes * 60 + seconds
