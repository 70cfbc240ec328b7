"""Claims: facts about a signed-in user, and the forms in which routines receive them (access-12 to access-14)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from rowcall.core.text.array_literal import quote

Claim = tuple[str, str]
"""Type and value. A type may occur several times; NULL is an empty value."""

SIGNED_IN_AT = "auth_time"
"""Claim with the time of the sign-in in seconds since 1970 (OpenID Connect Core, 2). A refresh does not change it."""

AMR = "amr"
"""Claim with the methods by which a user has signed in (RFC 8176)."""
MULTIPLE = "mfa"
"""Value of `amr`: more than one factor has been verified."""
ONE_TIME_CODE, PASSKEY = "otp", "pop"
"""Values of `amr` for the second factor: a one-time code, and proof of possession of a key."""

IMPERSONATOR_ID, IMPERSONATOR_NAME, IMPERSONATOR_SIGNED_IN_AT, IMPERSONATOR_AMR = (
    "impersonator_id",
    "impersonator_name",
    "impersonator_auth_time",
    "impersonator_amr",
)
"""Claims of the real user during an impersonation (the actor of RFC 8693, 4.1). The last one has the values of `AMR`,
separated by blanks."""
IMPERSONATION_ENDS_AT = "impersonation_ends_at"
"""Claim with the end of an impersonation in seconds since 1970."""
ACTOR = frozenset(
    {IMPERSONATOR_ID, IMPERSONATOR_NAME, IMPERSONATOR_SIGNED_IN_AT, IMPERSONATOR_AMR, IMPERSONATION_ENDS_AT}
)
"""Claims that only the service sets."""

Grouped = str | list[str] | None
"""All values of one claim type: a text, several, or NULL."""


@dataclass(frozen=True, slots=True)
class IdentityClaims:
    """The claim types for id, name and roles of a user (sign-in-6, sign-in-17)."""

    user_id: str = "user_id"
    user_name: str = "user_name"
    roles: str = "user_roles"

    def name_of(self, user: User) -> str:
        """Return the name of a user for operators: the name, else the id, else a general text."""
        return user.first(self.user_name) or user.first(self.user_id) or "a user without a name"


def group_claims(claims: Iterable[Claim], roles: str) -> dict[str, Grouped]:
    """Return claim type → value, in the order of first appearance (access-12). roles: claim type of roles, in any case.

    Roles are always a list, without empty ones; without a role there is no entry. For other types, the value is a text,
    or a list if there are several; empty values after the first are dropped. If the first value is empty, the result is
    NULL (None), whatever follows.
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
    """Add a role to the list of claim type `kind`. An empty value is ignored."""
    roles = groups.get(kind)
    if not value:
        return
    groups[kind] = [*roles, value] if isinstance(roles, list) else [value]


def _add_repeated(groups: dict[str, Grouped], kind: str, value: str) -> None:
    """Add a further, non-empty value of claim type `kind`. If its first value is NULL, the value is ignored."""
    value_so_far = groups[kind]
    if isinstance(value_so_far, list):
        value_so_far.append(value)
    elif value_so_far is not None:
        groups[kind] = [value_so_far, value]


def claims_json(groups: dict[str, Grouped]) -> bytes:
    """Return the claims as JSON: `{"user_id":"41","user_roles":["boss"],"depot":null}` (access-13)."""
    return orjson.dumps(groups)


def as_text(value: Grouped) -> str | None:
    """Return the value for a parameter of type text; None: NULL. A list becomes an array literal of PostgreSQL."""
    if isinstance(value, list):
        return "{" + ",".join(quote(element) for element in value) + "}"
    return value


def as_array(value: Grouped) -> str | None:
    """Return the array literal for an array parameter; None: NULL. A single value becomes its only element."""
    return as_text([value]) if isinstance(value, str) else as_text(value)


class User:
    """A signed-in user, with the values that endpoints need, computed once for each token.

    texts, arrays: claim type → value for a parameter of type text, or of an array type, as bytes in UTF-8; None: NULL.
    ids, names, roles: non-empty values of these claims. scheme: name of the scheme of the session. context: names and
    values of the session variables in turn, computed and cached by `service.auth.context`; None: not computed yet.
    json: all claims as JSON.
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
        groups = group_claims(claims, identity.roles)
        self.texts = {kind: _encode_or_none(as_text(value)) for kind, value in groups.items()}
        self.arrays = {kind: _encode_or_none(as_array(value)) for kind, value in groups.items()}
        self.roles = frozenset(value for kind, value in claims if kind.lower() == identity.roles.lower() and value)
        self.ids = frozenset(value for kind, value in claims if kind == identity.user_id and value)
        self.names = frozenset(value for kind, value in claims if kind == identity.user_name and value)
        self.subject: tuple[Claim, ...] = _subject(claims, identity)
        """Identifies the user: equal for two sessions of the same user."""
        self._json = claims_json(groups)
        self.context: list[bytes | None] | None = None
        self.expires = float("inf")
        """End of the session in seconds since 1970."""

    @property
    def json(self) -> bytes:
        return self._json

    def first(self, kind: str) -> str | None:
        """Return the first value of a type; None if there is none or it is empty."""
        return next((value or None for name, value in self.claims if name == kind), None)

    @property
    def impersonates(self) -> bool:
        """Whether another user acts as this user."""
        return any(kind in ACTOR for kind, _ in self.claims)


class NoImpersonatorError(ValueError):
    """The user who begins an impersonation has neither an id nor a name that would identify them."""


def impersonation_claims(
    claims: Iterable[Claim], actor: User, identity: IdentityClaims, ends_at: float | None = None
) -> tuple[Claim, ...]:
    """Return the claims with which `actor` impersonates a user.

    The time and the methods of the sign-in are those of `actor` in claims of their own, because the impersonated user
    has not signed in.

    ends_at: in seconds since 1970; None: with the session.

    Raises:
        NoImpersonatorError: `actor` could not be identified afterwards.
    """
    actor_claims = (
        (IMPERSONATOR_ID, actor.first(identity.user_id)),
        (IMPERSONATOR_NAME, actor.first(identity.user_name)),
        (IMPERSONATOR_SIGNED_IN_AT, actor.first(SIGNED_IN_AT)),
        (IMPERSONATOR_AMR, " ".join(value for kind, value in actor.claims if kind == AMR) or None),
        (IMPERSONATION_ENDS_AT, None if ends_at is None else str(int(ends_at))),
    )
    if actor_claims[0][1] is None and actor_claims[1][1] is None:
        raise NoImpersonatorError
    user_claims = (claim for claim in claims if claim[0] != SIGNED_IN_AT)
    return (*user_claims, *((kind, value) for kind, value in actor_claims if value is not None))


def with_second_factor(claims: tuple[Claim, ...], method: str) -> tuple[Claim, ...]:
    """Return the claims after a user has proved a second factor. method: as in `amr`, such as `otp`. The earlier
    methods and time of the sign-in are left out."""
    others = tuple(claim for claim in claims if claim[0] not in (AMR, SIGNED_IN_AT))
    return (*others, (AMR, method), (AMR, MULTIPLE))


def has_second_factor(claims: tuple[Claim, ...]) -> bool:
    """Return whether the user has signed in with more than one factor."""
    return (AMR, MULTIPLE) in claims


def refreshed_claims(claims: tuple[Claim, ...], user: User, identity: IdentityClaims) -> tuple[Claim, ...]:
    """Return the claims of a session that replaces the session of `user` without another sign-in: the time of the
    sign-in, and the methods of a proved second factor, are those of `user`; another user has no time of a sign-in.

    claims: of the row for the new session.
    """
    same_user = _subject(claims, identity) == user.subject
    retained = {SIGNED_IN_AT, AMR} if same_user and has_second_factor(user.claims) else {SIGNED_IN_AT}
    former = (claim for claim in user.claims if claim[0] in retained) if same_user else ()
    return (*(claim for claim in claims if claim[0] not in retained), *former)


def latest_end(claims: Iterable[Claim]) -> float:
    """Return when an impersonation in these claims ends, in seconds since 1970; infinite: nothing limits the session.

    An end that cannot be read counts as past (0).
    """
    ends = next((value for kind, value in claims if kind == IMPERSONATION_ENDS_AT), None)
    if ends is None:
        return math.inf
    return float(ends) if ends.isascii() and ends.isdigit() else 0.0


def lifetime(claims: Iterable[Claim], now: float, longest: float) -> float:
    """Return the remaining lifetime of a session in seconds: `longest`, or less if an impersonation ends before. now:
    in seconds since 1970."""
    return min(longest, max(0.0, latest_end(claims) - now))


def claims_after_impersonation(
    claims: Iterable[Claim], user: User, identity: IdentityClaims
) -> tuple[Claim, ...] | None:
    """Return the claims with which the real user continues after an impersonation, with the time and the methods of
    their own sign-in; None: `claims` do not have the id (or, without an id, the name) of the real user.

    claims: of the row that ends the impersonation. user: the impersonated user, whose claims name the real user.
    """
    user_claims = tuple(claim for claim in claims if claim[0] != SIGNED_IN_AT)
    by_type = dict(user_claims)
    kind, actor = identity.user_id, user.first(IMPERSONATOR_ID)
    if actor is None:
        kind, actor = identity.user_name, user.first(IMPERSONATOR_NAME)
    if not actor or by_type.get(kind) != actor:
        return None
    methods = (user.first(IMPERSONATOR_AMR) or "").split()
    if methods:
        others = (claim for claim in user_claims if claim[0] != AMR)
        user_claims = (*others, *((AMR, method) for method in methods))
    signed_in_at = user.first(IMPERSONATOR_SIGNED_IN_AT)
    return user_claims if signed_in_at is None else (*user_claims, (SIGNED_IN_AT, signed_in_at))


def _subject(claims: tuple[Claim, ...], identity: IdentityClaims) -> tuple[Claim, ...]:
    """Return the claims that identify a user: those of the id, else those of the name, else all claims."""
    for kind in (identity.user_id, identity.user_name):
        if identifying := tuple(claim for claim in claims if claim[0] == kind and claim[1]):
            return identifying
    return tuple(sorted(claims))


def _encode_or_none(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


ANONYMOUS = "anonymous"
"""The owner if the caller is anonymous."""


def owner_of(user: User | None) -> str:
    """Return the owner of the jobs and idempotency keys of a caller: a hash, the same for all sessions of a user,
    and one text for all anonymous callers."""
    if user is None:
        return ANONYMOUS
    return hashlib.sha256(orjson.dumps([list(claim) for claim in user.subject])).hexdigest()
