"""Authorization by the values of `authorize` (access-1 to access-4)."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.core.auth.claims import User

USER, NAME = "user:", "name:"
"""Prefixes of values of `authorize` that are an id or a name."""


def is_user(value: str) -> bool:
    """Return whether a value of `authorize` names a single user by id or name, and not a role."""
    return value.lower().startswith((USER, NAME))


class RequiredRoles:
    """The values of `authorize` of one endpoint, of which a user needs one.

    A value is a role. Users can choose their names, and often obtain ids freely, so a value is an id or a name only
    with a prefix: `user:41`, `name:kiri`. A role matches as written in the comment and in lower case, which is how
    comparable services read it. Ids and names match exactly: `Kiri` and `kiri` may be two users.
    """

    def __init__(self, values: Iterable[str], *, roles_match_users: bool = False) -> None:
        """roles_match_users: a value without prefix is also an id and a name, as in comparable services."""
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
        """As written, in order; may be shown to users who have none of them."""
        self._roles = frozenset((*roles, *(role.lower() for role in roles)))
        self._users = frozenset(users)
        self._names = frozenset(names)

    def admits(self, user: User) -> bool:
        """Return whether the user has one of the values."""
        return not (
            self._roles.isdisjoint(user.roles)
            and self._users.isdisjoint(user.ids)
            and self._names.isdisjoint(user.names)
        )
