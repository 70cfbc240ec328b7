"""One event: what a notice becomes, and who may see it (events-11 to events-13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import orjson

from rowcall.core.auth.access import Access
from rowcall.core.auth.claims import User
from rowcall.core.endpoint.capabilities import Audience


class HintError(ValueError):
    """The HINT of a notice does not name an audience."""


class Event(NamedTuple):
    """Plain values only: an event travels between processes and hosts as JSON."""

    message: str
    execution: str = ""
    """Empty: for every subscriber, whichever execution they have asked for."""
    audience: str = Audience.ALL.value
    names: Sequence[str] = ()
    """Values of `authorize`, as written, any of which suffices. AUTHORIZE without any: every signed-in user."""
    channel: str = ""
    """Of PostgreSQL, for a notification. Empty: a notice."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Who receives the events of one endpoint, and what it takes to call the endpoint itself."""

    audience: Audience
    names: tuple[str, ...]
    closed: bool
    """Only signed-in users may call it."""
    roles: tuple[str, ...]

    def event(self, message: str, hint: str | None, execution: str) -> Event:
        """What a notice becomes. The words of its HINT come before the endpoint's own (events-11 to events-13 rule 2).

        Raises:
            HintError: its first word is no audience.
        """
        audience, names = self.audience, self.names
        if hint and (words := _words(hint)):
            audience, named = _audience(words)
            # A set for this event alone: it must not widen later ones.
            names = (*names, *named)
        if audience is Audience.MATCHING:
            return self._matching(message, execution)
        if audience is Audience.ALL:
            return Event(message, execution)
        return Event(message, execution, audience.value, names)

    def _matching(self, message: str, execution: str) -> Event:
        if self.roles:
            return Event(message, execution, Audience.MATCHING.value, self.roles)
        if self.closed:
            return Event(message, execution, Audience.AUTHORIZE.value)
        return Event(message, execution)


def _words(hint: str) -> list[str]:
    return hint.replace(",", " ").split()


def _audience(words: list[str]) -> tuple[Audience, tuple[str, ...]]:
    try:
        audience = Audience(words[0].lower())
    except ValueError:
        raise HintError(f"'{words[0]}' is none of {', '.join(item.value for item in Audience)}") from None
    return audience, tuple(words[1:])


class Viewer:
    """What is known about whoever reads a stream: the execution they have asked for, and who they are.

    channel: of a stream of notifications. filters: member of the payload, a JSON object, and the claim that has to have
    its value. key: equal for those that see the same. roles_match_users: as in `Access`.
    """

    __slots__ = ("_filters", "_roles_match_users", "channel", "execution", "key", "user")

    def __init__(
        self,
        execution: str,
        user: User | None,
        channel: str = "",
        filters: Sequence[tuple[str, str]] = (),
        *,
        roles_match_users: bool = False,
    ) -> None:
        # The events of a channel belong to no execution.
        self.execution = "" if channel else execution
        self.user = user
        self.channel = channel
        self.key: tuple[object, ...] = (self.execution, user, channel, tuple(filters))
        claims = () if user is None else user.claims
        self._filters = tuple(
            (member, frozenset(value for kind, value in claims if kind == claim and value)) for member, claim in filters
        )
        self._roles_match_users = roles_match_users

    def may_see(self, event: Event) -> bool:
        if event.channel != self.channel:
            return False
        if self._filters and not self._fits(event.message):
            return False
        if event.execution and self.execution and event.execution != self.execution:
            return False
        if event.audience == "all":
            return True
        if self.user is None:
            return False
        if event.audience == "authorize" and not event.names:
            return True
        return _access(tuple(event.names), self._roles_match_users).admits(self.user)

    def _fits(self, payload: str) -> bool:
        """A payload without the member is for nobody: what cannot be told apart must not be shown."""
        members = _members(payload)
        return all(_text(members.get(member)) in values for member, values in self._filters)


@lru_cache(maxsize=16)
def _members(payload: str) -> dict[str, object]:
    """Of a JSON object; of anything else, none. The same payload is looked at for one reader after another."""
    try:
        read = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _text(value: object) -> str | None:
    """As a claim has it."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


@lru_cache(maxsize=1024)
def _access(values: tuple[str, ...], roles_match_users: bool) -> Access:
    """The access check of endpoints: plain words are roles, ids and names have a prefix."""
    return Access(values, roles_match_users=roles_match_users)
