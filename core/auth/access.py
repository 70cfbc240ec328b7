"""Who may call an endpoint (spec 5.4, reference 04, 8)."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.core.auth.claims import User


class Access:
    """The values of `authorize`: any one of them suffices, as a role, a user id or a user name.

    A role fits as it is written in the comment and also in lower case, which is how the field's other services read
    it. Ids and names fit exactly: `Kiri` and `kiri` may be two people.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)
        self._roles = self._values | {value.lower() for value in self._values}

    def admits(self, user: User) -> bool:
        return not (self._roles.isdisjoint(user.roles) and self._values.isdisjoint(user.identities))
