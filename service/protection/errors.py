"""What can be wrong with a sealed text."""

from __future__ import annotations


class NoKeyError(Exception):
    """There is no key to seal with."""


class SealError(Exception):
    """The text was not sealed for this purpose by a key of the ring, or has been changed since."""


class UnknownKeyError(SealError):
    """It names a key that the ring does not hold. Another host may have made it since the ring was read."""
