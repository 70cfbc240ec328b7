"""Errors of sealing and opening."""

from __future__ import annotations

from rowcall.core.errors.problems import Problem


class NoKeyError(Problem):
    """There is no key to seal with: a 503, because the first key may be created a moment later."""

    def __init__(self) -> None:
        super().__init__(503, "there is no key to protect a session with yet", headers=(("retry-after", "1"),))


class SealError(Exception):
    """The text was not sealed for this purpose by a key of the ring, or was changed afterwards."""


class UnknownKeyError(SealError):
    """The text names a key that is not in the ring. Another host may have created it since the ring was read."""
