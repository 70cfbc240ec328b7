"""`--schedules`: print the schedules, with their next times and the outcome of the last one, as JSON."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from rowcall.core.jobs.names import overloads_by_name, schedules_by_name
from rowcall.core.jobs.schedule import due_after
from rowcall.service.command.about import print_json
from rowcall.service.command.catalogue.snapshot import endpoints_of
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.startup_error import StartupError

SHOWN = 3
"""Next times of a schedule that are printed."""


def show(arguments: Arguments) -> int:
    """Print the schedules as JSON to stdout, and schedules that are left out with the reason to stderr.

    Raises ConfigError, StartupError.
    """
    settings = load(arguments).settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    with endpoints_of(settings, demo=arguments.has("--demo")) as endpoints:
        scheduled = any(endpoint.options.schedule for endpoint in endpoints.snapshot.endpoints)
        last = asyncio.run(_last_runs(Connector(endpoints.options.target))) if scheduled else {}
        print_json(list(_schedule_members(endpoints.snapshot, last)))
        for reason in endpoints.snapshot.left_out:
            line = str(reason)
            if "schedule" in line:
                print(f"left out: {line}", file=sys.stderr)
    return 0


async def _last_runs(connector: Connector) -> dict[str, tuple[datetime, str | None]]:
    """Return, by name of the schedule, its last time and the state of the job (None: it is unknown).
    Raises `StartupError`.
    """
    try:
        async with await connector.open_plain() as connection:
            cursor = await connection.execute(
                b"select endpoint, due, state from rowcall.schedules() where isfinite(due)"
            )
            rows: list[Any] = await cursor.fetchall()
            return {endpoint: (due, state) for endpoint, due, state in rows}
    except psycopg.Error as error:
        raise StartupError(f"the schedules cannot be read: {str(error).strip()}") from None


def _schedule_members(
    snapshot: SchemaSnapshot, last: Mapping[str, tuple[datetime, str | None]]
) -> Iterator[dict[str, Any]]:
    """Yield the schedule of each endpoint that has one, as members of a JSON object. last: as `_last_runs` returns
    it."""
    now = datetime.now(UTC)
    for name, endpoint in schedules_by_name(overloads_by_name(snapshot.endpoints)).items():
        schedule = endpoint.options.schedule
        if schedule is None:
            continue
        zone = ZoneInfo(schedule.time_zone)
        due, state = last.get(name, (None, None))
        yield {
            "endpoint": name,
            "schedule": schedule.expression,
            "timezone": schedule.time_zone,
            "ifMissed": "run" if schedule.missed else "skip",
            "overlap": "run" if schedule.overlap else "skip",
            "next": [time.astimezone(zone).isoformat() for time in islice(due_after(schedule, now), SHOWN)],
            "last": None if due is None else due.astimezone(zone).isoformat(),
            "lastState": state,
        }
