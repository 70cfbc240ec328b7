"""Refresh tokens that are good for one use, as data: who is next in the line that began with a sign-in.

Every sign-in begins a family, and every refresh hands out its next generation. Whoever comes with a generation that
has been used already shows that two hold the same token, one of them a thief; as nobody can tell which, the family
ends for both (RFC 9700, section 4.14.2). One small entry for each family is all that has to be remembered.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_WRITTEN = re.compile(r"([A-Za-z0-9_-]{1,64})\.(\d{1,9})")

NONE_USED = -1
ENDED = 1_000_000_000
"""Higher than any generation: no token of the family is taken any more."""

BETWEEN_SWEEPS = 600.0
"""Seconds between looks for entries that may be forgotten."""


class Mark(NamedTuple):
    """The place of one refresh token."""

    family: str
    generation: int

    @property
    def text(self) -> str:
        return f"{self.family}.{self.generation}"

    @property
    def next(self) -> Mark:
        return Mark(self.family, self.generation + 1)


def mark_of(written: object, protected: str) -> Mark:
    """The mark that a token carries. One without (it was issued while nobody counted) is a family of its own.

    protected: that part of the token's text which its protection covers, so that no other text means the same token.
    """
    found = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        return Mark(hashlib.sha256(protected.encode()).hexdigest(), 0)
    return Mark(found[1], int(found[2]))


def used_after(used: int, generation: int) -> tuple[bool, int]:
    """Whether this generation may be used, when `used` is the latest that was; and what to remember from now on."""
    return (True, generation) if used < generation else (False, ENDED)


class Families:
    """The families of which a token has been used, in memory. Times in seconds since 1970."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, float]] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return len(self._used)

    def use(self, mark: Mark, now: float, keep_until: float) -> bool:
        """Whether this is the first use. keep_until: when every token of the family that exists has expired."""
        if now >= self._sweep_at:
            self._used = {family: entry for family, entry in self._used.items() if entry[1] > now}
            self._sweep_at = now + BETWEEN_SWEEPS
        used, _ = self._used.get(mark.family, (NONE_USED, 0.0))
        first, used = used_after(used, mark.generation)
        self._used[mark.family] = (used, keep_until)
        return first
