"""Checks of the tokens of an issuer beyond the signature: ID tokens (OpenID Connect Core 1.0, 3.1.3.7) and logout
tokens (OpenID Connect Back-Channel Logout 1.0, 2).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, NamedTuple

from rowcall.core.auth.external.options import Provider

EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TYPES = ("logout+jwt", "jwt", "")
"""Accepted types of the token, in lower case. The first is recommended; older issuers send less specific ones."""


def fault_of(
    provider: Provider, claims: Mapping[str, Any], nonce: str | None, algorithm: str, access_token: str | None
) -> str | None:
    """Return the fault of the claims of an ID token, or None. Signature, issuer, audience and times were checked
    before.

    nonce: None if none was sent, as for a refresh. algorithm: of the signature, such as `RS256`. access_token: the one
    that came with the claims, which `at_hash` has to fit; None: there was none.
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
    """Return whether a value is the expected text, compared in constant time."""
    return isinstance(value, str) and hmac.compare_digest(value.encode(), expected.encode())


def _half_hash(text: str, algorithm: str) -> str:
    """Return the hash of an access token in base64url: the left half of its digest, made by the hash function of the
    signature's `algorithm` (OpenID Connect Core 1.0, 3.1.3.6), or by SHA-512 if its name has none, as `EdDSA`."""
    size = algorithm[-3:] if algorithm[-3:] in ("256", "384", "512") else "512"
    digest = hashlib.new(f"sha{size}", text.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()


class LogoutToken(NamedTuple):
    """A logout token: names the sessions to end.

    session: id of one sign-in at the issuer; None: all sessions of `subject` end. subject: id of the user there.
    """

    subject: str | None
    session: str | None
    number: str
    """Unique among the tokens of an issuer."""


class LogoutTokenError(ValueError):
    """The token is no valid logout token; the text gives the reason."""


def read_logout_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> LogoutToken:
    """Return the content of a token whose signature, issuer, audience and times were checked.

    Raises `LogoutTokenError` if it is another kind of token, has no id (`jti`), or names neither a user nor a session.
    """
    kind = header.get("typ", "")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise LogoutTokenError("it is a token of another kind")
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(EVENT), dict):
        raise LogoutTokenError("it has no logout event")
    if "nonce" in claims:
        # A nonce marks an ID token that is used as a logout token.
        raise LogoutTokenError("it has a nonce")
    subject, session, number = (_text(claims, name) for name in ("sub", "sid", "jti"))
    if number is None:
        raise LogoutTokenError("it has no number (jti)")
    if subject is None and session is None:
        raise LogoutTokenError("it names neither a user nor a session (sub, sid)")
    return LogoutToken(subject, session, number)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    """Return the value of a claim; None if it is missing or null. Raises `LogoutTokenError` for an empty text, a text
    with a NUL, which PostgreSQL cannot store, and a value that is no text."""
    value = claims.get(name)
    if value is not None and (not isinstance(value, str) or not value or "\0" in value):
        raise LogoutTokenError(f"its {name} is no text")
    return value
