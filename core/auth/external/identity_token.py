"""Checks of ID tokens beyond the signature (OpenID Connect Core 1.0, 3.1.3.7)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from rowcall.core.auth.external.options import Provider


def fault_of(
    provider: Provider, claims: Mapping[str, Any], nonce: str | None, algorithm: str, access_token: str | None
) -> str | None:
    """Return the fault of claims whose signature, issuer, audience and times were checked, or None.

    nonce: None if none was sent, as for a refresh.
    """
    audience = claims.get("aud")
    party = claims.get("azp")
    if isinstance(audience, list) and len(audience) > 1 and party is None:
        return "it is for several audiences, and does not say which of them asked for it"
    if party is not None and party != provider.client_id:
        return "another client asked for it"
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        return "it does not say who it is about"
    if nonce is not None and not _same(claims.get("nonce"), nonce):
        return "its nonce is not that of this sign-in"
    token_hash = claims.get("at_hash")
    if (
        token_hash is not None
        and access_token is not None
        and not _same(token_hash, _half_hash(access_token, algorithm))
    ):
        return "it was not issued together with the access token"
    return None


def _same(value: object, expected: str) -> bool:
    return isinstance(value, str) and hmac.compare_digest(value.encode(), expected.encode())


def _half_hash(text: str, algorithm: str) -> str:
    """Return the hash of an access token: the left half of the digest that the signature uses (3.1.3.6)."""
    size = algorithm[-3:] if algorithm[-3:] in ("256", "384", "512") else "512"
    digest = hashlib.new(f"sha{size}", text.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
