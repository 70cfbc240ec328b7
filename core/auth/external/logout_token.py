"""Checks of logout tokens beyond the signature (OpenID Connect Back-Channel Logout 1.0, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TYPES = ("logout+jwt", "jwt", "")
"""Accepted types of the token, in lower case. The first is recommended; older issuers send less specific ones."""


class LogoutToken(NamedTuple):
    """The sessions to end: those of one sign-in at the issuer, or without its id all sessions of a user."""

    subject: str | None
    session: str | None
    number: str
    """Unique among the tokens of an issuer."""


class LogoutTokenError(ValueError):
    """The token is no valid logout token; the text gives the reason."""


def read_logout_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> LogoutToken:
    """Return the content of a token whose signature, issuer, audience and times were checked.

    Raises:
        LogoutTokenError: it is another kind of token, or names neither a user nor a session.
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
    """Return the claim. Raises `LogoutTokenError` for a claim that is no text or empty."""
    value = claims.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise LogoutTokenError(f"its {name} is no text")
    return value
