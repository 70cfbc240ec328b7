"""Parse durations of configuration and comments (comments-29): `5 seconds`, `1.5h`, `00:00:01`.

The result for a text that is not a duration is None; the caller decides what follows (a default, a warning, a failed
start).
"""

from __future__ import annotations

import re

_UNITS = {
    1e-6: "us usec usecs microsecond microseconds",
    1e-3: "ms msec msecs millisecond milliseconds",
    1.0: "s sec secs second seconds",
    60.0: "m min mins minute minutes",
    3600.0: "h hour hours",
    86_400.0: "d day days",
    604_800.0: "w week weeks",
}
_SECONDS = {name: seconds for seconds, names in _UNITS.items() for name in names.split()}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)", re.ASCII)

LONGEST = 64
"""Maximum number of characters of a duration; the number in a longer text would only overflow."""


def parse_interval(text: str) -> float | None:
    """Return the seconds of `text`; None: it is not a duration (comments-29).

    A duration is one non-negative number with an optional unit, or a clock form `[days.]hh:mm:ss[.fraction]`. It has at
    most `LONGEST` characters; case does not matter. A number without a unit is in seconds.
    """
    text = text.strip().lower()
    if len(text) > LONGEST:
        return None
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = clock.groups(default="0")
        return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    amount = _AMOUNT.fullmatch(text)
    if amount is None:
        return None
    unit = _SECONDS.get(amount[2] or "s")
    return None if unit is None else float(amount[1]) * unit
