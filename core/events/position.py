"""Position in a stream: the number of the last event of each publishing host (`id:` and `Last-Event-ID`).

Hosts number their own events and agree on nothing else, neither on clocks nor on an order among each other, so a
position is one number for each of them: `9f3ac2d1.17,04be77aa.3`. A client that reconnects to another host continues
there exactly behind the last event that it has seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Position = Mapping[str, int]
"""Id of a publishing host → number of the last event from this host."""

MOST_ORIGINS = 64
"""Maximum number of hosts in a position. Those that have not published for the longest time are omitted first."""

MOST_NUMBER = 999_999_999_999_999
"""Highest number of an event."""

_ORIGIN = re.compile(r"[0-9a-z]{1,16}")
_PLACE = re.compile(rf"({_ORIGIN.pattern})\.([0-9]{{1,{len(str(MOST_NUMBER))}}})")


def is_origin(text: str) -> bool:
    """Return whether the text can be the id of a publishing host."""
    return _ORIGIN.fullmatch(text) is not None


def position_text(position: Position) -> str:
    """Return the text of a position, as `id:` has it; empty for an empty one."""
    return ",".join(f"{origin}.{number}" for origin, number in position.items())


def read_position(text: str) -> dict[str, int]:
    """Parse a position: return host → number of its last event. Of a repeated host, the last number counts.

    Invalid parts are ignored, as a client may send anything, and so are all parts behind the first `MOST_ORIGINS` + 1.
    """
    places = (_PLACE.fullmatch(part.strip()) for part in text.split(",", MOST_ORIGINS + 1)[: MOST_ORIGINS + 1])
    return {place[1]: int(place[2]) for place in places if place}


def advance(position: dict[str, int], origin: str, number: int, most: int = MOST_ORIGINS) -> None:
    """Record in `position` that `origin` has published its event with this number.

    most: maximum number of origins; beyond it, the one that has not published for the longest time is dropped.
    """
    if origin not in position and len(position) >= most:
        del position[next(iter(position))]
    else:
        # Moved to the end, so that the first one has not published for the longest time.
        position.pop(origin, None)
    position[origin] = number
