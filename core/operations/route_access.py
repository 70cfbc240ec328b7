"""The table of routes and who has access to each, as `rowcall --audit` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.http.router import Route


@dataclass(frozen=True, slots=True)
class RouteAccess(Record):
    """A route and its access. method: `*` stands for any. path: may be a pattern. part: signature of a routine, or name
    of a part of the service."""

    method: str
    path: str
    part: str
    access: Access

    def columns(self) -> tuple[str, ...]:
        """Return method, path, who has access, how callers authenticate, conditions, and part, as texts. Conditions are
        separated by `; `."""
        access = self.access
        return self.method, self.path, access.audience, access.scheme, "; ".join(access.conditions), self.part

    def members(self) -> dict[str, object]:
        """Return `columns` with their names, and whether callers may be anonymous, as members of a JSON object."""
        names = ("method", "path", "audience", "authentication", "conditions", "part")
        return {**dict(zip(names, self.columns(), strict=True)), "anonymous": self.access.anonymous}


def route_accesses(routes: Iterable[Route]) -> Iterator[RouteAccess]:
    """Yield the access of each route of a router; of a route with overloads, that of each overload. A route of the
    service itself that declares no access is open."""
    for route in routes:
        if not route.candidates:
            yield RouteAccess(route.method, route.path, "service", route.access or ANYONE)
        for access, identity in dict.fromkeys((item.access, item.routine.identity) for item in route.candidates):
            yield RouteAccess(route.method, route.path, identity, access)


def static_accesses(patterns: Iterable[str], access: Callable[[str], Access]) -> Iterator[RouteAccess]:
    """Yield the access of static files: one row for each pattern, and one for all other files. patterns: of URL paths
    with restricted access. access: returns the access of a URL path."""
    yield from (RouteAccess("GET", pattern, "static files", access(pattern)) for pattern in patterns)
    yield RouteAccess("GET", "*", "other static files", ANYONE)
