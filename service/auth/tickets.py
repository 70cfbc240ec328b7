"""Sealed sessions: the claims of a caller with the times between which they hold, for cookies and opaque tokens."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from rowcall.core.auth.claims import Claim
from rowcall.service.protection.errors import SealError
from rowcall.service.protection.protector import Keys, Protector

CLOCK_SKEW = 300.0
"""Seconds by which the clock of the host that issued a ticket may be ahead."""


class Ticket(NamedTuple):
    claims: tuple[Claim, ...]
    issued: float
    expires: float


class Tickets:
    """Those of one purpose and one scheme: what was issued for one is worth nothing to another."""

    def __init__(self, keys: Keys, kind: str, scheme: str) -> None:
        """kind: `cookie`, `access` or `refresh`."""
        self._protector = Protector(keys, f"session\0{kind}\0{scheme}")

    def issue(self, claims: tuple[Claim, ...], now: float, lifetime: float) -> str:
        return self._protector.seal(orjson.dumps({"c": claims, "i": now, "e": now + lifetime}))

    def read(self, text: str, now: float) -> Ticket:
        """Raises `SealError`, also for one that has expired or comes from the future."""
        content = orjson.loads(self._protector.open(text))
        ticket = Ticket(tuple((kind, value) for kind, value in content["c"]), content["i"], content["e"])
        if not ticket.issued - CLOCK_SKEW <= now < ticket.expires:
            raise SealError("expired, or not valid yet")
        return ticket
