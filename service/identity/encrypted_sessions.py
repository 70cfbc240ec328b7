"""Encrypted sessions: the claims of a user with begin and end of validity, sealed, for cookies and opaque tokens."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from rowcall.core.auth.claims import Claim
from rowcall.service.protection.errors import SealError
from rowcall.service.protection.protector import Keys, Protector

CLOCK_SKEW = 300.0
"""Seconds by which the clock of the host that issued a session may be ahead."""


class EncryptedSession(NamedTuple):
    """The content of a session. issued, expires: in seconds since 1970."""

    claims: tuple[Claim, ...]
    issued: float
    expires: float
    mark: str | None = None
    """Mark of a refresh token that can be used once (`core.auth.token_families`); None: of another token."""

    @property
    def begins(self) -> float:
        """When the session becomes valid: earlier than `issued`, because the issuing clock may be ahead."""
        return self.issued - CLOCK_SKEW


class EncryptedSessions:
    """Sessions of one purpose and one scheme. A session that was issued for another purpose or scheme is refused."""

    def __init__(self, keys: Keys, kind: str, scheme: str) -> None:
        """kind: `cookie`, `access` or `refresh`. scheme: its name."""
        self._protector = Protector(keys, f"session\0{kind}\0{scheme}")

    def issue(self, claims: tuple[Claim, ...], now: float, lifetime: float, mark: str | None = None) -> str:
        """Return the encrypted text of a new session.

        now: in seconds since 1970. lifetime: in seconds. mark: text of the `core.auth.token_families.Mark` of a refresh
        token that can be used once. Raises `NoKeyError`.
        """
        content = {"c": claims, "i": now, "e": now + lifetime}
        return self._protector.seal(orjson.dumps(content if mark is None else {**content, "m": mark}))

    def read(self, text: str, now: float) -> EncryptedSession:
        """Decrypt the text of a session. now: in seconds since 1970. Raises `SealError`, also if it has expired or is
        not valid yet, and `UnknownKeyError`.
        """
        content = orjson.loads(self._protector.open(text))
        claims = tuple((kind, value) for kind, value in content["c"])
        session = EncryptedSession(claims, content["i"], content["e"], content.get("m"))
        if not session.begins <= now < session.expires:
            raise SealError("expired, or not valid yet")
        return session
