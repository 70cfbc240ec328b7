"""Records of the supervisor: changes of the last schema snapshots, and the last log entries."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.service.console.query import whole
from rowcall.service.log.entry import LEVELS, VERBOSE, level_name
from rowcall.service.log.recent import RecentEntries
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot

_RELOADS = 50
_NAMES = 500
"""Most endpoints of a reload that are listed."""
_ENTRIES = 500


class Reloads:
    """The last reloads of the schema."""

    def __init__(self) -> None:
        self._reloads: deque[dict[str, Any]] = deque(maxlen=_RELOADS)

    def add(self, number: int, difference: Difference) -> None:
        self._reloads.appendleft(
            {
                "snapshot": number,
                "time": time.time(),
                "counts": {
                    "added": len(difference.added),
                    "changed": len(difference.changed),
                    "removed": len(difference.removed),
                },
                "added": difference.added[:_NAMES],
                "changed": difference.changed[:_NAMES],
                "removed": difference.removed[:_NAMES],
            }
        )

    def report(self, snapshot: SchemaSnapshot) -> dict[str, Any]:
        """Return the last reloads, newest first, and the objects that the active snapshot leaves out."""
        return {
            "snapshot": snapshot.number,
            "endpoints": len(snapshot.endpoints),
            "leftOut": [str(reason) for reason in snapshot.left_out],
            "reloads": list(self._reloads),
        }


def log_entries(entries: RecentEntries, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the last entries of at least `level`, of the channel `channel`, that contain `search`, and that are newer
    than `after`, oldest first. Raises `Problem` 400 for an unknown level or number.
    """
    level = _level(query.get("level", "Verbose"))
    limit = whole(query, "limit", _ENTRIES, 2000)
    word = query.get("search", "").casefold()
    channel = query.get("channel", "")
    after = whole(query, "after", 0, 10**11)
    newer = entries.after(after)
    found = [
        {
            "number": number,
            "time": entry.time,
            "level": level_name(entry.level),
            "channel": entry.source,
            "message": entry.message,
            "exception": entry.exception,
            "properties": dict(entry.properties),
        }
        for number, entry in newer
        if entry.level >= level
        and (not channel or entry.source == channel)
        and word in f"{entry.message}\n{entry.exception or ''}".casefold()
    ]
    return {"last": newer[-1][0] if newer else after, "entries": found[-limit:] if limit else []}


def _level(name: str) -> int:
    level = LEVELS.get(name.casefold(), VERBOSE if not name else None)
    if level is None:
        raise Problem(400, f"level: {name[:50]!r} is none of Verbose, Debug, Information, Warning, Error, Fatal")
    return level
