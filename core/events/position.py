"""Where a stream is: the number of the last event of each publisher (`id:` and `Last-Event-ID`).

Hosts number their own events and agree on nothing else, neither on clocks nor on an order among each other, so that a
place in the stream is one number for each of them: `9f3ac2d1.17,04be77aa.3`. A client that moves to another host takes
up there exactly behind what it has seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Position = Mapping[str, int]

MOST_ORIGINS = 64
"""What a position names at most. Hosts that have not published for the longest time are left out first."""

_PLACE = re.compile(r"([0-9a-z]{1,16})\.([0-9]{1,15})")


def position_text(position: Position) -> str:
    return ",".join(f"{origin}.{number}" for origin, number in position.items())


def read_position(text: str) -> dict[str, int]:
    """What cannot be read is left out: a client may send anything."""
    places = (_PLACE.fullmatch(part.strip()) for part in text.split(",", MOST_ORIGINS + 1)[: MOST_ORIGINS + 1])
    return {place[1]: int(place[2]) for place in places if place}


def advance(position: dict[str, int], origin: str, number: int) -> None:
    """`origin` has published its event of this number."""
    if origin not in position and len(position) >= MOST_ORIGINS:
        del position[next(iter(position))]
    else:
        # To the end: whoever stands in front has been silent for the longest time.
        position.pop(origin, None)
    position[origin] = number
