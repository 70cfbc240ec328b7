"""Positions in the write-ahead log of PostgreSQL (`pg_lsn`): `16/B374D848`, two hexadecimal halves of 64 bits."""

from __future__ import annotations

import re

_POSITION = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", re.ASCII)


def parse_position(text: str) -> int | None:
    """Return a position in the WAL, such as `16/B374D848`, as a number of bytes; None: the text is not a position."""
    match = _POSITION.fullmatch(text)
    return None if match is None else int(match[1], 16) << 32 | int(match[2], 16)


def position_text(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
