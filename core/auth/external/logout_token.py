"""What a logout token must say, besides being signed by its issuer (OpenID Connect Back-Channel Logout 1.0, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TYPES = ("logout+jwt", "jwt", "")
"""Of the token, in lower case. The first is recommended; issuers from before say less."""


class LogoutToken(NamedTuple):
    """Whose sessions end: those of one sign-in at the issuer, or without its id all of a user."""

    subject: str | None
    session: str | None
    number: str
    """No two tokens of an issuer have the same."""


class LogoutTokenError(ValueError):
    """The token says no such thing; the text tells what is wrong with it."""


def read_logout_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> LogoutToken:
    """Of a token whose signature, issuer, audience and times have been checked.

    Raises:
        LogoutTokenError: it is another kind of token, or does not say who it is about.
    """
    kind = header.get("typ", "")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise LogoutTokenError("it is a token of another kind")
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(EVENT), dict):
        raise LogoutTokenError("it tells of no logout")
    if "nonce" in claims:
        # An ID token that has been made to look like one.
        raise LogoutTokenError("it has a nonce")
    subject, session, number = (_text(claims, name) for name in ("sub", "sid", "jti"))
    if number is None:
        raise LogoutTokenError("it has no number (jti)")
    if subject is None and session is None:
        raise LogoutTokenError("it says neither whose sessions end nor which one (sub, sid)")
    return LogoutToken(subject, session, number)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    """Raises `LogoutTokenError` for a claim that is no text, or an empty one."""
    value = claims.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise LogoutTokenError(f"its {name} is no text")
    return value
