"""What can be wrong with a sealed text."""

from __future__ import annotations

from rowcall.core.errors.problems import Problem


class NoKeyError(Problem):
    """There is no key to seal with."""

    def __init__(self) -> None:
        super().__init__(503, "there is no key to protect a session with yet", headers=(("retry-after", "1"),))


class SealError(Exception):
    """The text was not sealed for this purpose by a key of the ring, or has been changed since."""


class UnknownKeyError(SealError):
    """It names a key that the ring does not hold. Another host may have made it since the ring was read."""
