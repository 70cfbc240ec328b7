"""An event: made from a notice, for the subscribers who may see it (events-11 to events-13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.required_roles import RequiredRoles
from rowcall.core.endpoint.capabilities import Audience


class HintError(ValueError):
    """The HINT of a notice does not begin with an audience."""


class Event(NamedTuple):
    """An event for subscribers. Its fields are texts and lists, because it is sent between processes as JSON.

    audience: value of an `Audience`. message: text of the notice, or payload of the notification.
    """

    message: str
    execution: str = ""
    """Execution id. Empty: for all subscribers, whatever execution they have requested."""
    audience: str = Audience.ALL.value
    names: Sequence[str] = ()
    """Values as in `authorize`, of which a subscriber needs one. AUTHORIZE without values: every signed-in user."""
    channel: str = ""
    """Channel of PostgreSQL, for a notification. Empty: the event is from a notice."""
    tenant: str = ""
    """Tenant of the request that published it. Empty: for the subscribers of all tenants."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Makes the events of one endpoint. audience, names: of its events. roles: those that may call the endpoint
    itself."""

    audience: Audience
    names: tuple[str, ...]
    closed: bool
    """Whether only signed-in users may call the endpoint."""
    roles: tuple[str, ...]

    def event(self, message: str, hint: str | None, execution: str) -> Event:
        """Return the event for a notice. If the notice has a HINT, its first word replaces the audience, and its
        further words are added to the names (events-11 to events-13).

        execution: id of the execution that has raised the notice; empty: none. Raises `HintError` if the first word of
        the HINT is no audience.
        """
        audience, names = self.audience, self.names
        if hint and (words := _words(hint)):
            audience, named = _audience(words)
            # A new tuple for this event only: it must not widen the audience of later ones.
            names = (*names, *named)
        if audience is Audience.MATCHING:
            return self._event_for_callers(message, execution)
        if audience is Audience.ALL:
            return Event(message, execution)
        return Event(message, execution, audience.value, names)

    def _event_for_callers(self, message: str, execution: str) -> Event:
        """Return an event for the users who may call the endpoint itself."""
        if self.roles:
            return Event(message, execution, Audience.MATCHING.value, self.roles)
        if self.closed:
            return Event(message, execution, Audience.AUTHORIZE.value)
        return Event(message, execution)


def _words(hint: str) -> list[str]:
    return hint.replace(",", " ").split()


def _audience(words: list[str]) -> tuple[Audience, tuple[str, ...]]:
    """Return the audience and the names in the words of a HINT. Raises `HintError` if the first one is no audience."""
    try:
        audience = Audience(words[0].lower())
    except ValueError:
        raise HintError(f"'{words[0]}' is none of {', '.join(item.value for item in Audience)}") from None
    return audience, tuple(words[1:])


class Viewer:
    """The subscriber of a stream: the requested execution (empty: all), the user (None: an anonymous caller), and the
    tenant (empty: of none).

    channel: of a stream of notifications; empty: the stream has events. filters: pairs (member, claim): this member of
    the payload, which is a JSON object, must have one of the user's values of this claim. key: equal for viewers that
    see the same events. roles_match_users: names of recipients without a prefix are also compared with ids and names of
    users.
    """

    __slots__ = ("_filters", "_roles_match_users", "channel", "execution", "key", "tenant", "user")

    def __init__(
        self,
        execution: str,
        user: User | None,
        channel: str = "",
        filters: Sequence[tuple[str, str]] = (),
        *,
        tenant: str = "",
        roles_match_users: bool = False,
    ) -> None:
        # Events of a channel have no execution.
        self.execution = "" if channel else execution
        self.user = user
        self.channel = channel
        self.tenant = tenant
        self.key: tuple[object, ...] = (self.execution, user, channel, tuple(filters), tenant)
        claims = () if user is None else user.claims
        self._filters = tuple(
            (member, frozenset(value for kind, value in claims if kind == claim and value)) for member, claim in filters
        )
        self._roles_match_users = roles_match_users

    def may_see(self, event: Event) -> bool:
        """Return whether the subscriber may receive the event."""
        if event.channel != self.channel or (event.tenant and event.tenant != self.tenant):
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
        """Return whether the payload passes the filters. A payload without the member passes for no subscriber."""
        members = _members(payload)
        return all(not values.isdisjoint(_texts(members.get(member))) for member, values in self._filters)


@lru_cache(maxsize=16)
def _members(payload: str) -> dict[str, object]:
    """Return the members of a JSON object; none for other texts. Cached, as the same payload is checked for each
    viewer."""
    try:
        read = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts that a claim with this JSON value may have: a text as it is; for a boolean, `True` and `true`,
    or `False` and `false`; another value as JSON; none for null, and for a value that is nested too deeply."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        # Claims of login rows are capitalized (core.auth.login), those of other tokens are JSON.
        return ("True", "true") if value else ("False", "false")
    try:
        return (orjson.dumps(value).decode(),)
    except TypeError:  # orjson reads more levels than it writes
        return ()


@lru_cache(maxsize=1024)
def _access(values: tuple[str, ...], roles_match_users: bool) -> RequiredRoles:
    """Return the check whether a user is among the recipients `values`. As in `authorize`, plain words are roles, and
    ids and names have a prefix. roles_match_users: plain words are also ids and names."""
    return RequiredRoles(values, roles_match_users=roles_match_users)
