"""Schedules: the times of a cron expression in a time zone.

When clocks change, the times are those of Debian's cron: a time that does not exist in spring is moved to the end of
the gap, and a time that exists twice in autumn is the first one. Expressions with a `*` in hours or minutes follow the
clock instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rowcall.core.endpoint.capabilities import Schedule

if TYPE_CHECKING:
    from cronsim import CronSim

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Names of expressions, as in crontab(5)."""


class ScheduleError(ValueError):
    """The expression or the time zone is not valid."""


def check_schedule(schedule: Schedule) -> None:
    """Raise `ScheduleError` if the expression or time zone of a schedule is not valid, or it is never due."""
    if next(_times(schedule, datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
        raise ScheduleError(f"'{schedule.expression}' is never due")


def due_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """Iterate over the times in UTC at which a schedule is due after a moment. moment: with a time zone. Raises
    `ScheduleError` if the schedule is not valid."""
    return _times(schedule, moment)


def due_before(schedule: Schedule, moment: datetime) -> datetime | None:
    """Return the last time in UTC at which a schedule was due before a moment; None: there is none. moment: with a time
    zone. Raises `ScheduleError` if the schedule is not valid."""
    return next(_times(schedule, moment, reverse=True), None)


def _times(schedule: Schedule, moment: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """Iterate over the times in UTC after a moment, or with `reverse` before it. moment: with a time zone. Raises
    `ScheduleError` if the schedule is not valid."""
    # Imported here, because only services with schedules need it.
    from cronsim import CronSim, CronSimError

    expression = NAMED.get(schedule.expression.lower(), schedule.expression)
    if expression.startswith("@"):
        raise ScheduleError(f"'{expression}' is none of {', '.join(NAMED)}")
    try:
        times: CronSim = CronSim(expression, moment.astimezone(_zone(schedule.time_zone)), reverse=reverse)
    except (CronSimError, ValueError) as error:
        raise ScheduleError(f"'{schedule.expression}' is no cron expression: {error}") from None
    return (time.astimezone(UTC) for time in times)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name. Raises `ScheduleError` if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"there is no time zone '{name}'") from None
