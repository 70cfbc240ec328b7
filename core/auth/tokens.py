"""Results of verifying a token, whatever its kind and issuer."""

from __future__ import annotations

from typing import NamedTuple

from rowcall.core.auth.claims import Claim

REGISTERED = frozenset({"nbf", "exp", "iat", "iss", "aud"})
"""Claims about the validity of a token. The service sets them, and no login row can."""


class BadTokenError(Exception):
    """The token is not valid."""


class VerifiedToken(NamedTuple):
    """The claims and the validity of a token, in seconds since 1970."""

    claims: tuple[Claim, ...]
    expires: float
    """End of the validity with the clock skew; infinite if lifetimes are not checked."""
    begins: float = float("-inf")
    """Begin of the validity with the clock skew."""
