"""Slow-down of failed sign-ins, as a pure function: from counter and time to the wait and the new counter.

An attempt is counted when it begins, and the count is reset or given back if it does not fail. Otherwise, attempts
that run at the same time would all be permitted.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Collection, Sequence
from ctypes import c_float
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from rowcall.core.auth.cookies import cookie_name
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import EndpointParameter, ValueKind
from rowcall.core.sections.declaration import flag, integer, interval, section, text, texts
from rowcall.core.sections.errors import ConfigError

OUTCOMES = ("failed", "refused", "locked")
"""Outcomes of sign-ins that are counted: failed; refused without an attempt; failed, and delayed further ones."""
_STATE = struct.Struct("<Idd")
_MOST_DOUBLINGS = 40
_NUMBERS = frozenset({ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC})


@dataclass(frozen=True, slots=True)
class Limit(Record):
    """The number of failures after which attempts to sign in have to wait, and the delays. Times in seconds.

    failures: number of failures from which on each further attempt has to wait. delay: time to wait after this number
    of failures; doubled by each further one, up to `longest`. reset: time without an attempt after which the failures
    no longer count; not less than `longest`.
    """

    failures: int
    delay: float
    longest: float
    reset: float

    def delay_after(self, failures: int) -> float:
        doublings = failures - self.failures
        if doublings < 0:
            return 0.0
        return float(min(self.longest, self.delay * 2 ** min(doublings, _MOST_DOUBLINGS)))


def _parts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in texts if part.strip())


def _address(text: str | None) -> str | None:
    return (text or "").strip() or None


@section("Auth:Lockout", "Lock-out and slow-down after failed sign-ins and invalid one-time tokens.")
class LockoutOptions(Record):
    """Options of the lockout after failed sign-ins. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Count failed sign-ins, and refuse further ones for a time with 429.")
    failures_per_account: int = integer(
        "FailuresPerAccount",
        5,
        "Failed sign-ins to an account from which on further ones have to wait; separate for unknown callers, for each "
        "browser and for each address with which the account was signed in to before.",
        minimum=1,
    )
    failures_per_address: int = integer(
        "FailuresPerAddress",
        50,
        "Failed sign-ins from an address, or from an IPv6 network /64, from which on further ones have to wait.",
        minimum=1,
    )
    delay: float = interval("Delay", "1 second", "Time to wait after these failures; doubled by each further one.")
    longest: float = interval("LongestDelay", "15 minutes", "Longest time to wait.")
    reset: float = interval("ResetAfter", "1 hour", "Time without an attempt after which failures are forgotten.")
    parameters: tuple[str, ...] = texts(
        "AccountParameterNameContains",
        ("user", "name", "mail", "login", "account"),
        "The first parameter of a login whose name contains one of these texts is the account; without one, the first "
        "that is not the password.",
        convert=_parts,
    )
    cookie: str = text(
        "CookieName",
        "rowcall-known-browser",
        "Cookie by which a browser that has signed in before is known.",
        convert=cookie_name,
    )
    known_for: float = interval(
        "KnownFor", "90 days", "Time for which a browser and an address are known after a sign-in."
    )
    redis: str | None = text(
        "RedisConfiguration",
        None,
        "Redis that counts for several hosts together, in the format of CacheOptions; these hosts have to share a key "
        "ring. null: each host counts separately.",
        secret=True,
        convert=_address,
    )

    def __post_init__(self) -> None:
        path = "Auth:Lockout:"
        if self.delay <= 0 or self.longest < self.delay:
            raise ConfigError(f"{path}Delay has to be more than 0, and {path}LongestDelay not less than it")
        if self.reset < self.longest:
            raise ConfigError(
                f"{path}ResetAfter has to be at least {path}LongestDelay, or a delay would end before its time"
            )

    @property
    def account(self) -> Limit:
        """The limit for failed sign-ins to one account."""
        return Limit(self.failures_per_account, self.delay, self.longest, self.reset)

    @property
    def address(self) -> Limit:
        """The limit for failed sign-ins from one address."""
        return Limit(self.failures_per_address, self.delay, self.longest, self.reset)


class Attempt(NamedTuple):
    """The decision about an attempt. wait: seconds until an attempt is permitted; 0: this one is. failures: number of
    counted failures, including this attempt if it is permitted."""

    wait: float
    failures: int


def begin(limit: Limit, state: bytes | None, now: float) -> tuple[Attempt, bytes | None]:
    """Return the decision about an attempt, and the new state to store; None: the attempt is refused, and the state is
    unchanged.

    A permitted attempt is counted as a failure (`give_back` revokes that). state: stored for the account or address;
    None: it has no failures. now: in seconds, on the clock of earlier calls.
    """
    failures, until, expires = (0, 0.0, 0.0) if state is None else _STATE.unpack(state)
    if now >= expires:
        failures, until = 0, 0.0
    if now < until:
        return Attempt(until - now, failures), None
    failures += 1
    return Attempt(0.0, failures), _STATE.pack(failures, now + limit.delay_after(failures), now + limit.reset)


def give_back(limit: Limit, state: bytes | None) -> bytes | None:
    """Return the state to store after an attempt that has neither failed nor succeeded; None: there is no state.

    The attempt, which `begin` has counted as a failure, no longer counts. The delay that it began ends only if fewer
    than `limit.failures` failures remain. state: stored; None: it has expired.
    """
    if state is None:
        return None
    failures, until, expires = _STATE.unpack(state)
    failures = max(0, failures - 1)
    return _STATE.pack(failures, until if failures >= limit.failures else 0.0, expires)


def state_without_failures(expires: float) -> bytes:
    """Return a state without failures, for a key that only has to exist until `expires`, such as a known browser.

    expires: in seconds, on the clock of `now` in `begin`.
    """
    return _STATE.pack(0, 0.0, expires)


def is_expired(state: bytes, now: float) -> bool:
    expires: float = _STATE.unpack(state)[2]
    return now >= expires


def is_delayed(state: bytes, now: float) -> bool:
    """Return whether attempts for the account or address with this state have to wait. now: as in `begin`."""
    until: float = _STATE.unpack(state)[1]
    return now < until


def normalize_account(account: str, kind: ValueKind = ValueKind.TEXT, cast: str = "") -> str:
    """Return the form of an account name under which its failures are counted. Names that a database may regard as
    equal have the same form: case, compatible characters (NFKC) and blanks around the name are ignored.

    kind, cast: of the parameter with the account. Numbers are compared by value (`7`, `07` and `007` are one account),
    and UUIDs without hyphens and braces. Floating-point numbers are rounded to `real` unless the cast is `double
    precision`, because the cast of a domain does not show which of the two is its base type. An invalid number is
    compared as text.
    """
    text = unicodedata.normalize("NFKC", account).strip().casefold()
    if kind in _NUMBERS:
        try:
            # The sum with 0 of -0 is 0.
            if kind is ValueKind.FLOAT:
                number = float(text)
                return str((number if cast == "double precision" else c_float(number).value) + 0)
            return str((Decimal(text) + 0).normalize())
        except (ArithmeticError, ValueError):
            return text
    return "".join(filter(str.isalnum, text)) if kind is ValueKind.UUID else text


def account_parameter(
    parameters: Sequence[EndpointParameter], excluded: Collection[int], parts: Sequence[str]
) -> int | None:
    """Return the index of the parameter with the account: among the candidates, the first whose database name contains
    one of `parts`, else the first candidate. None: there is no candidate.

    Excluded parameters, arrays, JSON and composites are no candidates: a value with several members could name the same
    account in a new form for each attempt. excluded: indexes of the password and of parameters that the request does
    not set. parts: in lower case.
    """
    names = {
        index: parameter.db_name.lower()
        for index, parameter in enumerate(parameters)
        if index not in excluded and not parameter.array and parameter.kind not in (ValueKind.JSON, ValueKind.COMPOSITE)
    }
    named = (index for index, name in names.items() if any(part in name for part in parts))
    return next(named, next(iter(names), None))
