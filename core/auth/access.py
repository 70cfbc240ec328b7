"""Who may call an endpoint (access-1 to access-4, access-1)."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.core.auth.claims import User

USER, NAME = "user:", "name:"
"""In front of a value of `authorize` that is an id or a name."""


class Access:
    """The values of `authorize`: any one of them suffices.

    A value is a role. People choose their names themselves, and ids are given to whoever asks for one, so these count
    only where they are said to be one: `user:41`, `name:kiri`. A role fits as it is written in the comment and also in
    lower case, which is how the field's other services read it. Ids and names fit exactly: `Kiri` and `kiri` may be
    two people.
    """

    def __init__(self, values: Iterable[str], *, roles_match_users: bool = False) -> None:
        """roles_match_users: a bare word is an id and a name too, as in the field's other services."""
        roles: list[str] = []
        users: set[str] = set()
        names: set[str] = set()
        for value in values:
            if value.lower().startswith(USER):
                users.add(value[len(USER) :])
            elif value.lower().startswith(NAME):
                names.add(value[len(NAME) :])
            else:
                roles.append(value)
                if roles_match_users:
                    users.add(value)
                    names.add(value)
        self.roles = tuple(roles)
        """As written, in order: what may be told to whoever has none of them."""
        self._roles = frozenset((*roles, *(role.lower() for role in roles)))
        self._users = frozenset(users)
        self._names = frozenset(names)

    def admits(self, user: User) -> bool:
        return not (
            self._roles.isdisjoint(user.roles)
            and self._users.isdisjoint(user.ids)
            and self._names.isdisjoint(user.names)
        )
