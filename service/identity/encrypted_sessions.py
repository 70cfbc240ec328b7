"""Sealed sessions: the claims of a caller with the times between which they hold, for cookies and opaque tokens."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from rowcall.core.auth.claims import Claim
from rowcall.service.protection.errors import SealError
from rowcall.service.protection.protector import Keys, Protector

CLOCK_SKEW = 300.0
"""Seconds by which the clock of the host that issued a ticket may be ahead."""


class EncryptedSession(NamedTuple):
    claims: tuple[Claim, ...]
    issued: float
    expires: float
    mark: str | None = None
    """Of a refresh token that is good for one use (`core.auth.token_families`)."""

    @property
    def begins(self) -> float:
        """When it begins to be taken: the clock that issued it may be ahead a little."""
        return self.issued - CLOCK_SKEW


class EncryptedSessions:
    """Those of one purpose and one scheme: what was issued for one is worth nothing to another."""

    def __init__(self, keys: Keys, kind: str, scheme: str) -> None:
        """kind: `cookie`, `access` or `refresh`."""
        self._protector = Protector(keys, f"session\0{kind}\0{scheme}")

    def issue(self, claims: tuple[Claim, ...], now: float, lifetime: float, mark: str | None = None) -> str:
        content = {"c": claims, "i": now, "e": now + lifetime}
        return self._protector.seal(orjson.dumps(content if mark is None else {**content, "m": mark}))

    def read(self, text: str, now: float) -> EncryptedSession:
        """Raises `SealError`, also for one that has expired or comes from the future."""
        content = orjson.loads(self._protector.open(text))
        claims = tuple((kind, value) for kind, value in content["c"])
        lease = EncryptedSession(claims, content["i"], content["e"], content.get("m"))
        if not lease.begins <= now < lease.expires:
            raise SealError("expired, or not valid yet")
        return lease
