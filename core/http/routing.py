"""Build routes from endpoints, and report endpoints without a route (routing-8 to routing-10).

`core.http.router` finds the route for a path, and `core.http.overloads` selects the overload.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.overloads import find_hidden_overloads
from rowcall.core.http.router import Route, Router, bare, parameters_of, shape_of

LONGEST_PATH = 2048


class RouteError(ValueError):
    """An endpoint has a path that no request can have."""


def build_router(endpoints: Iterable[Endpoint], *, internal: bool = False) -> tuple[Router, list[Diagnostic]]:
    """Return the router of all endpoints and diagnostics. internal: with internal endpoints (routing-20).

    Left out with a diagnostic are: an endpoint whose route belongs to an endpoint of another owner; an invalidation
    path on the route of another kind of endpoint; the later one of two ambiguous templates; the second one of two
    operations on a table with the same route, because requests could not be distinguished; an overload that no request
    reaches (`find_hidden_overloads`).

    Raises:
        RouteError: a path is empty or longer than 2048 characters (`check_path`).
    """
    routes, diagnostics = _find_routes(_places(endpoints, internal=internal))
    return Router(routes), diagnostics


MOST_CHANGES = 8
"""If more than one of this number of endpoints has changed, a router is built anew."""


class Routing:
    """The routes of a schema snapshot; `with_changes` derives those of the next one."""

    def __init__(self, endpoints: Iterable[Endpoint], *, internal: bool = False) -> None:
        """Build the routes. Endpoints that `build_router` leaves out have none. internal: with internal endpoints.
        Raises `RouteError` as `build_router` does."""
        places = _places(endpoints, internal=internal)
        self._internal = internal
        self._by_key = {item.key: item for item in places}
        self._plain = len(self._by_key) == len(places) and all(map(_is_plain, places))
        """Each endpoint has a route of its own, and no path matches two of them."""
        self.router = Router(_find_routes(places)[0])
        self._routes = {id(route.primary): route for route in self.router.routes} if self._plain else {}

    def with_changes(self, gone: Collection[Endpoint], come: Collection[Endpoint]) -> Routing | None:
        """Return the routes without the endpoints `gone` and with the endpoints `come`; None: the routes have to be
        built anew. Raises `RouteError` as `build_router` does."""
        less, more = _places(gone, internal=self._internal), _places(come, internal=self._internal)
        if not self._plain or MOST_CHANGES * (len(less) + len(more)) > len(self._by_key):
            return None
        by_key = self._by_key.copy()
        for place in less:
            if by_key.pop(place.key).endpoint is not place.endpoint:
                return None
        for place in more:
            if by_key.setdefault(place.key, place) is not place:
                return None
        if not all(map(_is_plain, more)):
            return None
        added = [_route(item.method, item.template, [item.endpoint]) for item in more]
        new = copy.copy(self)
        new._by_key = by_key
        new._routes = self._routes.copy()
        new.router = self.router.with_changes([new._routes.pop(id(item.endpoint)) for item in less], added)
        new._routes.update((id(route.primary), route) for route in added)
        return new


def _is_plain(place: _Place) -> bool:
    """Return whether the template ends neither in an optional segment nor in a slash, which is not significant.

    If so, a template of another shape matches a path of this one only with another precedence (`shape_of`).
    """
    return "?}" not in place.template and (not place.template.endswith("/") or place.template == "/")


class Clashes:
    """Finds endpoints that cannot be reached because their route belongs to another endpoint.

    An object is used for one schema snapshot after another, and remembers the places of unchanged endpoints.
    """

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        """Places of the latest schema snapshot by id of the endpoint."""

    def among(self, endpoints: Iterable[Endpoint]) -> tuple[Collection[Endpoint] | None, list[Diagnostic]]:
        """Return the endpoints that can be reached, and diagnostics: about the others, and about routes that are
        probably a mistake. None instead of endpoints: all of them.

        Internal endpoints have no clashes, and are not in the result. Raises `RouteError` as `build_router` does.
        """
        known = self._places
        places = [known.get(id(item)) or _place(item) for item in endpoints if not item.options.internal]
        self._places = {id(item.endpoint): item for item in places}
        if len({item.key for item in places}) == len(places):
            return None, []
        routes, diagnostics = _find_routes(places)
        if not any(item.left_out for item in diagnostics):
            return None, diagnostics
        return [endpoint for route in routes for endpoint in route.candidates], diagnostics


def _places(endpoints: Iterable[Endpoint], *, internal: bool) -> list[_Place]:
    return [_place(endpoint) for endpoint in endpoints if internal or not endpoint.options.internal]


def _find_routes(places: Sequence[_Place]) -> tuple[list[Route], list[Diagnostic]]:
    """Return the routes of endpoints, and diagnostics about those that are left out or probably a mistake. places: in
    the order of discovery."""
    if len(shared := Counter(item.key for item in places)) == len(places):
        # The usual case: each endpoint has a route of its own.
        return [_route(item.method, item.template, [item.endpoint]) for item in places], []
    overloads: dict[tuple[str, str], list[Endpoint]] = {}
    templates: dict[str, Endpoint] = {}
    diagnostics: list[Diagnostic] = []
    repeated: dict[tuple[RoutineKind, int], list[Endpoint]] = {}
    holders = _holders(item for item in places if shared[item.key] > 1)
    origins = _origins(places, holders, shared)
    for endpoint, method, template, key in places:
        if shared[key] == 1:
            overloads[method, template] = [endpoint]
            continue
        holder = holders[key]
        if not _may_share(endpoint, holder):
            diagnostics.append(_foreign(endpoint, holder))
            continue
        if _origin(endpoint) != origins[key]:
            diagnostics.append(_invalidation_clash(endpoint, origins[key]))
            continue
        first = templates.setdefault(key, endpoint)
        if _template(first) != template:
            diagnostics.append(_ambiguity(endpoint, first))
            continue
        others = overloads.setdefault((method, template), [])
        if others and _same_table(endpoint, others[-1]):
            repeated.setdefault((endpoint.routine.kind, endpoint.routine.oid), []).append(endpoint)
            continue
        if others and (clash := _clash(endpoint, others[-1])):
            diagnostics.append(clash)
        others.append(endpoint)
    diagnostics += map(_repeated_operations, repeated.values())
    for place, candidates in overloads.items():
        if len(candidates) == 1:
            continue
        unreached = dict(find_hidden_overloads(candidates))
        diagnostics += (*unreached.values(), *_warn_of_connections(candidates))
        overloads[place] = [item for index, item in enumerate(candidates) if index not in unreached]
    return [_route(method, path, candidates) for (method, path), candidates in overloads.items()], diagnostics


class _Place(NamedTuple):
    """An endpoint with its template. key: the method and `shape_of` the template."""

    endpoint: Endpoint
    method: str
    template: str
    key: str


def _place(endpoint: Endpoint) -> _Place:
    template = _template(endpoint)
    return _Place(endpoint, endpoint.method, template, f"{endpoint.method} {shape_of(template)}")


def _holders(places: Iterable[_Place]) -> dict[str, Endpoint]:
    """Return key of a route → the endpoint to which it belongs. places: those that share their keys with others.

    If owners may not share the route, it is the endpoint of the powerful owner, else that of the older object. The name
    of a schema does not decide, so that a route cannot be taken over by the choice of a name.
    """
    holders: dict[str, Endpoint] = {}
    for endpoint, _, _, key in places:
        holder = holders.setdefault(key, endpoint)
        if not _may_share(endpoint, holder) and endpoint.routine.precedence < holder.routine.precedence:
            holders[key] = endpoint
    return holders


def _origins(
    places: Sequence[_Place], holders: Mapping[str, Endpoint], shared: Mapping[str, int]
) -> dict[str, tuple[int, str]]:
    """Return key of a shared route → the kind of endpoint to which it belongs (`_origin`). holders: from `_holders`.
    shared: key of a route → number of endpoints with this key.

    Invalidation paths must neither be selected in place of a routine nor remove responses of another method.
    """
    origins: dict[str, tuple[int, str]] = {}
    for endpoint, _, _, key in places:
        if shared[key] > 1 and _may_share(endpoint, holders[key]):
            origins[key] = min(origins.get(key, _origin(endpoint)), _origin(endpoint))
    return origins


def _origin(endpoint: Endpoint) -> tuple[int, str]:
    """Return the kind of an endpoint, as precedence (the lowest first) and method of the cached endpoint.

    0: the endpoint runs a routine. 1: it invalidates responses, with the method of the cached endpoint. 2: it
    invalidates responses, with another method. Only endpoints of equal kind share a route.
    """
    cached = endpoint.options.invalidates
    if cached is None:
        return 0, ""
    return (1 if cached == endpoint.method else 2), cached


def _invalidation_clash(endpoint: Endpoint, origin: tuple[int, str]) -> Diagnostic:
    """Return the diagnostic of an invalidation path that is left out. origin: of the endpoint that has the route."""
    cached = endpoint.options.invalidates
    holder = f"the invalidation path of {origin[1]}" if origin[0] else "another endpoint"
    key = "" if cached == endpoint.method else " or set CacheOptions:InvalidateCacheUseEndpointMethod"
    message = (
        f"{endpoint.name}, which invalidates the cached responses of {cached}, is left out, as {holder} has this "
        f"route; give one of them another path{key}"
    )
    return Diagnostic(endpoint.routine.identity, None, message, left_out=1)


def _may_share(first: Endpoint, other: Endpoint) -> bool:
    """Return whether two endpoints may share a route.

    Routines of different owners of one database may not, so that no owner takes over requests of another. A file
    belongs to the operator, and shares its route with powerful owners.
    """
    mine, theirs = first.routine.owner, other.routine.owner
    if (first.options.connection or "").casefold() != (other.options.connection or "").casefold():
        return True
    if mine is None or theirs is None:
        owner = mine or theirs
        return owner is None or owner.powerful
    return mine.name == theirs.name


def _foreign(endpoint: Endpoint, holder: Endpoint) -> Diagnostic:
    message = (
        f"{endpoint.name} belongs to {holder.routine.identity}, which has another owner, and is left out; give it "
        "another path or the same owner"
    )
    return Diagnostic(endpoint.routine.identity, None, message, left_out=1)


def _warn_of_connections(candidates: Sequence[Endpoint]) -> Iterator[Diagnostic]:
    """Yield warnings about endpoints of different connections on one route: they are hardly overloads (routing-10).
    candidates: all of the route, in the order of discovery."""
    for earlier, later in pairwise(candidates):
        here, there = later.options.connection, earlier.options.connection
        if (here or "").casefold() != (there or "").casefold():
            message = (
                f"{later.name} of {_connection(here)} is also {earlier.routine.identity} of {_connection(there)}; "
                "the later one answers where both could"
            )
            yield Diagnostic(later.routine.identity, None, message)


def _connection(name: str | None) -> str:
    return "the main connection" if name is None else f"connection {name}"


def _route(method: str, path: str, candidates: list[Endpoint]) -> Route:
    return Route(method, path, tuple(candidates), tuple(parameters_of(path)))


def check_path(endpoint: Endpoint) -> None:
    """Raise `RouteError` for a path that no request can have: it is empty, or longer than `LONGEST_PATH`."""
    size = len(endpoint.path)
    if not 1 <= size <= LONGEST_PATH:
        raise RouteError(f"a path has 1 to {LONGEST_PATH} characters, not {size}")


def unbound_segments(endpoint: Endpoint) -> Iterator[str]:
    """Yield the names of path segments that belong to no parameter: they match any text (routing-14)."""
    bound = {parameter.segment for parameter in endpoint.parameters if parameter.path}
    return (name for _, name in parameters_of(endpoint.path) if name not in bound)


def _template(endpoint: Endpoint) -> str:
    """Return the path with a slash in front, and without one at the end. Raises `RouteError` as `check_path` does."""
    check_path(endpoint)
    return "/" + bare(endpoint.path)


_TABLES = frozenset({RoutineKind.TABLE, RoutineKind.VIEW})


def _same_table(later: Endpoint, first: Endpoint) -> bool:
    return later.routine.kind in _TABLES and (later.routine.kind, later.routine.oid) == (
        first.routine.kind,
        first.routine.oid,
    )


def _repeated_operations(operations: Sequence[Endpoint]) -> Diagnostic:
    """Return one diagnostic for all left out operations on a table, as a table has one comment."""
    routine = operations[0].routine
    table = f"{routine.schema}.{routine.name}"
    names = ", ".join(f"{item.name} {item.routine.identity.removeprefix(table).strip()}" for item in operations)
    message = (
        f"these operations are left out, as others of it have their method and path: {names}; "
        "give them paths of their own in `for` blocks"
    )
    return Diagnostic(table, None, message, left_out=len(operations))


def _clash(later: Endpoint, first: Endpoint) -> Diagnostic | None:
    """Return a warning if two endpoints on one route are hardly meant as overloads (routing-10); else None.

    Overloads are routines with routines, or files with files.
    """
    if type(later.routine.source) is not type(first.routine.source) or later.routine.kind in _TABLES:
        message = f"{later.name} is also that of {first.routine.identity}, which answers where only it fits"
    else:
        return None
    return Diagnostic(later.routine.identity, None, message)


def _ambiguity(later: Endpoint, first: Endpoint) -> Diagnostic:
    message = (
        f"{later.name} matches the same paths as {first.name} of {first.routine.identity} and is left out; "
        "give one of them another path"
    )
    return Diagnostic(later.routine.identity, None, message, left_out=1)
