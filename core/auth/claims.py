"""Claims: what is known about a signed-in caller, and the forms in which routines get it (access-12 to access-14)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from rowcall.core.text.array_literal import quote

Claim = tuple[str, str]
"""Type and value. A type may occur several times; NULL is an empty value."""

SIGNED_IN_AT = "auth_time"
"""Claim with the seconds since 1970 at which a user signed in (OpenID Connect Core, 2); refreshing leaves it."""

IMPERSONATOR_ID, IMPERSONATOR_NAME, IMPERSONATOR_SIGNED_IN_AT = (
    "impersonator_id",
    "impersonator_name",
    "impersonator_auth_time",
)
"""Claims that tell who really acts, where somebody acts as another user (RFC 8693, 4.1 calls it the actor)."""
IMPERSONATION_ENDS_AT = "impersonation_ends_at"
"""Claim with the seconds since 1970 at which nobody acts as the other any more."""
ACTOR = frozenset({IMPERSONATOR_ID, IMPERSONATOR_NAME, IMPERSONATOR_SIGNED_IN_AT, IMPERSONATION_ENDS_AT})
"""Only the service itself sets them."""

Grouped = str | list[str] | None
"""All values of one type: a text, several, or NULL."""


@dataclass(frozen=True, slots=True)
class IdentityClaims:
    """The claim types that say who somebody is and what they may do (sign-in-6, sign-in-17)."""

    user_id: str = "user_id"
    user_name: str = "user_name"
    roles: str = "user_roles"


def grouped(claims: Iterable[Claim], roles: str) -> dict[str, Grouped]:
    """Values by type, in the order of first appearance (access-12).

    Roles are always a list, without empty ones; no role at all is no entry. Of other types, one value is a text and an
    empty one NULL; several are a list, unless the first is empty.
    """
    groups: dict[str, Grouped] = {}
    for kind, value in claims:
        if kind.lower() == roles.lower():
            _add_role(groups, kind, value)
        elif kind not in groups:
            groups[kind] = value or None
        elif value:
            _add_repeated(groups, kind, value)
    return groups


def _add_role(groups: dict[str, Grouped], kind: str, value: str) -> None:
    known = groups.get(kind)
    if not value:
        return
    groups[kind] = [*known, value] if isinstance(known, list) else [value]


def _add_repeated(groups: dict[str, Grouped], kind: str, value: str) -> None:
    known = groups[kind]
    if isinstance(known, list):
        known.append(value)
    elif known is not None:
        groups[kind] = [known, value]


def claims_json(groups: dict[str, Grouped]) -> bytes:
    """`{"user_id":"41","user_roles":["boss"],"depot":null}` (access-13)."""
    return orjson.dumps(groups)


def as_text(value: Grouped) -> str | None:
    """What a routine gets: a list becomes an array literal, which casts to text[] whatever its elements hold."""
    if isinstance(value, list):
        return "{" + ",".join(quote(element) for element in value) + "}"
    return value


def as_array(value: Grouped) -> str | None:
    """The same for a parameter that is an array: a single value is its only element."""
    return as_text([value]) if isinstance(value, str) else as_text(value)


class User:
    """A signed-in caller, with everything that endpoints ask about one, worked out once for each token.

    context: names and values of the session variables, kept by whoever works them out (`service.auth.context`).
    """

    __slots__ = (
        "__weakref__",
        "_json",
        "arrays",
        "claims",
        "context",
        "expires",
        "ids",
        "names",
        "roles",
        "scheme",
        "subject",
        "texts",
    )  # fmt: skip

    def __init__(self, claims: tuple[Claim, ...], identity: IdentityClaims, scheme: str) -> None:
        self.claims = claims
        self.scheme = scheme
        groups = grouped(claims, identity.roles)
        self.texts = {kind: _encoded(as_text(value)) for kind, value in groups.items()}
        self.arrays = {kind: _encoded(as_array(value)) for kind, value in groups.items()}
        self.roles = frozenset(value for kind, value in claims if kind.lower() == identity.roles.lower() and value)
        self.ids = frozenset(value for kind, value in claims if kind == identity.user_id and value)
        self.names = frozenset(value for kind, value in claims if kind == identity.user_name and value)
        self.subject: tuple[Claim, ...] = _subject(claims, identity)
        """Who it is: equal for two sessions of one person."""
        self._json = claims_json(groups)
        self.context: list[bytes | None] | None = None
        self.expires = float("inf")
        """Until when the session holds that this was learned from, in seconds of the clock."""

    @property
    def json(self) -> bytes:
        return self._json

    def first(self, kind: str) -> str | None:
        """The first value of a type; None when there is none or it is empty."""
        return next((value or None for name, value in self.claims if name == kind), None)

    @property
    def impersonates(self) -> bool:
        """Somebody else acts as this user."""
        return any(kind in ACTOR for kind, _ in self.claims)


class NoImpersonatorError(ValueError):
    """Whoever is to act as another has neither an id nor a name that would tell who it is."""


def acting(
    claims: Iterable[Claim], actor: User, identity: IdentityClaims, ends_at: float | None = None
) -> tuple[Claim, ...]:
    """Claims of a user, for `actor` to act as him. The moment of a sign-in is none of them: he has not signed in.

    ends_at: in seconds since 1970; None: when the session does.

    Raises:
        NobodyActsError: it could not be told afterwards who has acted.
    """
    known = (
        (IMPERSONATOR_ID, actor.first(identity.user_id)),
        (IMPERSONATOR_NAME, actor.first(identity.user_name)),
        (IMPERSONATOR_SIGNED_IN_AT, actor.first(SIGNED_IN_AT)),
        (IMPERSONATION_ENDS_AT, None if ends_at is None else str(int(ends_at))),
    )
    if known[0][1] is None and known[1][1] is None:
        raise NoImpersonatorError
    others = (claim for claim in claims if claim[0] != SIGNED_IN_AT)
    return (*others, *((kind, value) for kind, value in known if value is not None))


def latest_end(claims: Iterable[Claim]) -> float:
    """Until when a session with these claims holds at most, in seconds since 1970: that of who acts as another ends. A
    moment that cannot be read has passed.
    """
    ends = next((value for kind, value in claims if kind == IMPERSONATION_ENDS_AT), None)
    if ends is None:
        return math.inf
    return float(ends) if ends.isascii() and ends.isdigit() else 0.0


def lifetime(claims: Iterable[Claim], now: float, wanted: float) -> float:
    """Seconds for which something is issued that would hold for `wanted` without these claims."""
    return min(wanted, max(0.0, latest_end(claims) - now))


def own_claims(claims: Iterable[Claim], user: User, identity: IdentityClaims) -> tuple[Claim, ...] | None:
    """Claims with which `user`, who acts as another, goes on as himself; None where they are those of somebody else."""
    kept = tuple(claim for claim in claims if claim[0] != SIGNED_IN_AT)
    found = dict(kept)
    kind, actor = identity.user_id, user.first(IMPERSONATOR_ID)
    if actor is None:
        kind, actor = identity.user_name, user.first(IMPERSONATOR_NAME)
    if not actor or found.get(kind) != actor:
        return None
    moment = user.first(IMPERSONATOR_SIGNED_IN_AT)
    return kept if moment is None else (*kept, (SIGNED_IN_AT, moment))


def _subject(claims: tuple[Claim, ...], identity: IdentityClaims) -> tuple[Claim, ...]:
    """The claims of the id; without any, those of the name; and without these, all there are."""
    for kind in (identity.user_id, identity.user_name):
        if found := tuple(claim for claim in claims if claim[0] == kind and claim[1]):
            return found
    return tuple(sorted(claims))


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
