"""Entries as JSON, one object per line, for collectors that read standard output or files."""

from __future__ import annotations

import datetime

import orjson

from rowcall.service.log.entry import Entry, level_name


def json_line(entry: Entry) -> str:
    """Return `{"time":…,"level":…,"source":…,"message":…}`, with `exception` and the properties if there are any."""
    moment = datetime.datetime.fromtimestamp(entry.time, datetime.UTC)
    fields = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level_name(entry.level),
        "source": entry.source,
        "message": entry.message,
    }
    if entry.exception:
        fields["exception"] = entry.exception
    return orjson.dumps({**entry.properties, **fields}, default=str, option=orjson.OPT_APPEND_NEWLINE).decode()
