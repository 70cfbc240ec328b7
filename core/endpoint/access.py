"""Who may call an endpoint, as one value from which every part of the service reads it (access-1 to access-11).

`core.building.access` computes it once, when the endpoint is built. Paths without a routine, such as those of health
checks and statistics, have such a value too, made from the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import BasicAuth, Impersonation


@dataclass(frozen=True, slots=True)
class Access(Record):
    """Access to an endpoint or a path. By default, all signed-in users have access."""

    anonymous: bool = False
    """Anonymous callers have access, and so have all users. Of the other fields, only `impersonation` is used then."""
    roles: tuple[str, ...] = ()
    """Roles of which a user needs one, unless it is one of `users`. If both are empty, all users have access."""
    users: tuple[str, ...] = ()
    """Single users, as `user:41` or `name:kiri`."""
    freshness: float | None = None
    """Longest time since the sign-in in seconds; None: no limit."""
    second_factor: bool = False
    """The user has to have proved a second factor."""
    impersonation: Impersonation | None = None
    """How the endpoint treats callers who act as another user; None: like other callers."""
    basic: BasicAuth | None = None
    """Callers authenticate by HTTP Basic only, with these users. None: by any other scheme."""
    database_role: bool = False
    """A claim of the caller has to name a role of PostgreSQL."""
    signature: str | None = None
    """Requests are webhooks with a signature of this scheme. None: they need no signature."""
    links: float | None = None
    """Lifetime in seconds of links that give any client the access of the user who got them. None: there are no
    links."""
    credential_key: str | None = None
    """Configuration key of the bearer token that callers have to send; such callers are not users. None: no such
    token."""

    @property
    def required(self) -> tuple[str, ...]:
        """Roles and users, of which a caller needs one; empty: none."""
        return self.roles + self.users

    @property
    def scheme(self) -> str:
        """How callers authenticate, for messages and tables."""
        if self.anonymous:
            return "none"
        if self.credential_key is not None:
            return self.credential_key
        return "HTTP Basic" if self.basic is not None else "any scheme"

    @property
    def audience(self) -> str:
        """Who has access, for tables of output: `anyone`, `no one`, `operators`, `signed-in users`, or roles and
        users."""
        if self.anonymous:
            return "anyone"
        if self.impersonation is Impersonation.BEGINS and not self.required:
            return "no one"
        if self.credential_key is not None:
            return "operators"
        return ", ".join(self.required) or "signed-in users"

    @property
    def conditions(self) -> tuple[str, ...]:
        """Requirements besides a role, for tables of output."""
        conditions = (
            None if self.freshness is None else f"signed in within {self.freshness:g} s",
            "a proved second factor" if self.second_factor else None,
            None if self.signature is None else f"a webhook with a valid signature ({self.signature})",
            None if self.links is None else f"or a link of a user, for {self.links:g} s",
            "a database role" if self.database_role and not self.anonymous else None,
            None if self.impersonation is None else _IMPERSONATION[self.impersonation],
        )
        return tuple(text for text in conditions if text is not None)


_IMPERSONATION = {
    Impersonation.BEGINS: "begins an impersonation",
    Impersonation.ENDS: "while impersonating",
    Impersonation.REFUSED: "not while impersonating",
}

ANYONE = Access(anonymous=True)
SIGNED_IN = Access()
