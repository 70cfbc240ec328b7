"""Families of refresh tokens that can be used once, as data.

Every sign-in begins a family, and every refresh issues its next generation. A second use of a generation shows that two
clients hold the same token, one of them a thief. As it is unknown which, the family ends for both (RFC 9700, section
4.14.2). Only one small entry for each family has to be stored.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_WRITTEN = re.compile(r"([A-Za-z0-9_-]{1,64})\.(\d{1,9})")

NONE_USED = -1
ENDED = 1_000_000_000
"""Higher than any generation: no token of the family is accepted any more."""

BETWEEN_SWEEPS = 600.0
"""Seconds between two searches for expired entries."""


class Mark(NamedTuple):
    """Family and generation of one refresh token."""

    family: str
    generation: int

    @property
    def text(self) -> str:
        """`family.generation`, as tokens have it."""
        return f"{self.family}.{self.generation}"

    @property
    def next(self) -> Mark:
        """The mark of the token that replaces this one."""
        return Mark(self.family, self.generation + 1)


def mark_of(written: object, protected: str) -> Mark:
    """Return the mark in a token. A token without a mark, issued while single use was off, is a family of its own.

    written: the claim with the mark, as it is in the token; None: there is none. protected: the part of the token's
    text that its protection covers, so that no other text stands for the same token.
    """
    match = _WRITTEN.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        return Mark(hashlib.sha256(protected.encode()).hexdigest(), 0)
    return Mark(match[1], int(match[2]))


def used_after(used: int, generation: int) -> tuple[bool, int]:
    """Return whether a token of this generation may be used, and the value to store for its family.

    A token may be used once. If it or an older one is used again, the stored value refuses all tokens of the family.
    used: the latest generation used so far, as stored; `NONE_USED`: nothing is stored for the family.
    """
    return (True, generation) if used < generation else (False, ENDED)


class Families:
    """The families with used tokens, in memory. Times in seconds since 1970."""

    def __init__(self) -> None:
        self._used: dict[str, tuple[int, float]] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return len(self._used)

    def use(self, mark: Mark, now: float, keep_until: float) -> bool:
        """Record the use of a token; return whether it may be used. After a second use, all tokens of its family are
        refused.

        keep_until: when every existing token of the family has expired.
        """
        if now >= self._sweep_at:
            self._used = {family: entry for family, entry in self._used.items() if entry[1] > now}
            self._sweep_at = now + BETWEEN_SWEEPS
        used, _ = self._used.get(mark.family, (NONE_USED, 0.0))
        first, used = used_after(used, mark.generation)
        self._used[mark.family] = (used, keep_until)
        return first


class FailedUses:
    """Counts of uses without effect, such as of a logout token whose sessions could not be ended. After each of them,
    the token may be used once more: this use is recorded under another family, so that a second use in the meantime,
    which was refused, does not matter. Times in seconds since 1970."""

    def __init__(self) -> None:
        self._failed: dict[str, tuple[int, float]] = {}

    def add(self, mark: Mark, now: float, keep_until: float) -> None:
        """Count a first use of the token with this mark as one without effect. keep_until: when the token has
        expired."""
        self._failed = {family: entry for family, entry in self._failed.items() if entry[1] > now}
        count, _ = self._failed.get(mark.family, (0, 0.0))
        self._failed[mark.family] = (count + 1, keep_until)

    def mark_to_use(self, mark: Mark) -> Mark:
        """Return the mark under which the next use of the token is recorded. mark: of the token."""
        count, _ = self._failed.get(mark.family, (0, 0.0))
        if not count:
            return mark
        return Mark(hashlib.sha256(f"{mark.family} {count}".encode()).hexdigest(), mark.generation)
