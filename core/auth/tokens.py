"""What is known of a token, whoever has signed it and however."""

from __future__ import annotations

from typing import NamedTuple

from rowcall.core.auth.claims import Claim

REGISTERED = frozenset({"nbf", "exp", "iat", "iss", "aud"})
"""Claims that say when and for whom a token holds: the service sets them, and no login row can."""


class BadTokenError(Exception):
    """The token does not say who is calling."""


class Verified(NamedTuple):
    claims: tuple[Claim, ...]
    expires: float
    """When it stops being taken, the clock skew included; infinite where lifetimes are not checked."""
    begins: float = float("-inf")
    """When it begins to be taken, in the same way."""
