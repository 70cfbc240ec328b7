"""Method + path → route with its endpoints (reference 01, 4.2). Which of several overloads is meant:
`core.http.overloads`.

A path without parameters is found by two dict lookups and answered with a `Match` made in advance; what has parameters
is found in a small tree of segments. Paths come percent-decoded, as the HTTP server hands them over; `decode_path` does
the same for callers that hold a raw one.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.overloads import hidden
from rowcall.core.text.ascii_case import ascii_lower

LONGEST_PATH = 2048

REPLACED = "\ufffd"
"""What the HTTP server's decoder leaves in place of bytes that are not UTF-8."""

_PARAMETER = re.compile(r"\{([^{}]*?)(\??)\}")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_SLASH = re.compile(r"%2[Ff]")


class RouteError(ValueError):
    """An endpoint has a path that no request can have."""


class MalformedPathError(ValueError):
    """A request path that is no UTF-8 text once decoded. Becomes status 400."""


@dataclass(frozen=True, slots=True)
class Route:
    """All endpoints on one method and template, in the order of discovery; the last one is the primary."""

    method: str
    path: str
    candidates: tuple[Endpoint, ...]
    parameters: tuple[tuple[int, str], ...]
    """Index and name of the segments that are parameters."""

    @property
    def path_values(self) -> int:
        """How many segments are parameters, counted even when an optional one is left out."""
        return len(self.parameters)

    @property
    def primary(self) -> Endpoint:
        return self.candidates[-1]


@dataclass(frozen=True, slots=True)
class Match:
    route: Route
    values: Mapping[str, str]
    """Text of each parameter segment by `EndpointParameter.segment`; an omitted optional one is missing."""


_NO_VALUES: Mapping[str, str] = {}


@dataclass(slots=True)
class _Node:
    """One position in the tree of segments of a method."""

    maker: object
    """Of the router that may change it: others share it."""
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    route: Route | None = None
    """Ends here."""
    optional: Route | None = None
    """Ends here because its optional last segment is left out; counts less than `route`."""

    def of(self, maker: object) -> _Node:
        """The same for this maker to change."""
        if self.maker is maker:
            return self
        return _Node(maker, self.literals.copy(), self.parameter, self.route, self.optional)

    @property
    def leads_nowhere(self) -> bool:
        return not (self.literals or self.parameter or self.route or self.optional)


class Router:
    """Immutable once built: a changed schema means a new router, put in place by one assignment."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._exact: dict[str, dict[str, Match]] = {}
        """By method and path, as they are written."""
        self._literal: dict[str, dict[str, Match]] = {}
        """The same in lower case, without slashes at the ends: no template is better than one without parameters."""
        self._trees: dict[str, _Node] = {}
        """Of the templates with parameters."""
        self._maker = object()
        self.routes = tuple(routes)
        for route in self.routes:
            self._add(route)

    def changed(self, gone: Collection[Route], come: Collection[Route]) -> Router:
        """Another one, which shares with this one what is the same in both. What comes is added behind the others, as
        in `Router`; what goes is one of its routes, and none of the others is met by the same paths.
        """
        new = Router()
        new._exact = {method: found.copy() for method, found in self._exact.items()}
        new._literal = {method: found.copy() for method, found in self._literal.items()}
        new._trees = self._trees.copy()
        for route in gone:
            new._remove(route)
        for route in come:
            new._add(route)
        without = set(map(id, gone))
        new.routes = (*(one for one in self.routes if id(one) not in without), *come)
        return new

    def find(self, method: str, path: str) -> Match | None:
        """The route for a decoded path, or None.

        Raises:
            MalformedPathError: a parameter segment holds what is no text.
        """
        exact = self._exact.get(method)
        if exact is None:
            return None
        return exact.get(path) or self._search(method, path)

    def allowed(self, path: str) -> tuple[str, ...]:
        """Methods that have a route for this path, sorted: empty means 404, otherwise it is the `Allow` of a 405."""
        return tuple(sorted(method for method in self._exact if self.find(method, path) is not None))

    def _search(self, method: str, path: str) -> Match | None:
        literal = self._literal[method].get(_bare(ascii_lower(path)))
        if literal is not None:
            return literal
        tree = self._trees.get(method)
        found = None if tree is None else _walk(tree, _segments(ascii_lower(path)))
        if found is None:
            return None
        segments = _segments(path)
        values = {name: segments[index] for index, name in found.parameters if index < len(segments)}
        if values and (REPLACED in path or "\0" in path):
            raise MalformedPathError("the path is not valid UTF-8 text")
        return Match(found, values)

    def _add(self, route: Route) -> None:
        exact = self._exact.setdefault(route.method, {})
        literal = self._literal.setdefault(route.method, {})
        if "{" not in route.path:
            match = Match(route, _NO_VALUES)
            exact[route.path] = exact[route.path.rstrip("/") or "/"] = match
            literal[_bare(ascii_lower(route.path))] = match
            return
        node = self._tree(route.method)
        for segment in _segments(route.path):
            if _is_optional(segment):
                node.optional = node.optional or route
            node = self._below(node, segment)
        node.route = route
        if not route.path_values:
            exact[route.path] = exact[route.path.rstrip("/") or "/"] = Match(route, _NO_VALUES)

    def _remove(self, route: Route) -> None:
        exact = self._exact[route.method]
        if "{" not in route.path:
            del exact[route.path], self._literal[route.method][_bare(ascii_lower(route.path))]
            return
        if not route.path_values:
            del exact[route.path]
        node = self._tree(route.method)
        way: list[tuple[_Node, str]] = []
        for segment in _segments(route.path):
            way.append((node, segment))
            node = self._below(node, segment)
        node.route = None
        for above, segment in reversed(way):
            if not node.leads_nowhere:
                break
            if _PARAMETER.fullmatch(segment):
                above.parameter = None
            else:
                del above.literals[ascii_lower(segment)]
            node = above

    def _tree(self, method: str) -> _Node:
        root = self._trees.get(method)
        root = self._trees[method] = _Node(self._maker) if root is None else root.of(self._maker)
        return root

    def _below(self, node: _Node, segment: str) -> _Node:
        """The next one in the tree, for this router to change."""
        if _PARAMETER.fullmatch(segment):
            node.parameter = below = _Node(self._maker) if node.parameter is None else node.parameter.of(self._maker)
            return below
        key = ascii_lower(segment)
        known = node.literals.get(key)
        below = node.literals[key] = _Node(self._maker) if known is None else known.of(self._maker)
        return below


def build_router(endpoints: Iterable[Endpoint], *, internal: bool = False) -> tuple[Router, list[Diagnostic]]:
    """Routes of all endpoints that are not internal, or of those too (reference 01, 14). Of two ambiguous templates the
    later one is left out, and so is an operation whose route another operation on the same table has: what was asked
    for would not be told apart.

    Raises:
        RouteError: a path is empty or longer than 2048 characters (`check_path`).
    """
    routes, diagnostics = _find_routes(_places(endpoints, internal=internal))
    return Router(routes), diagnostics


MOST_CHANGES = 8
"""Of endpoints, one of so many may have changed: beyond it a router is made anew."""


class Routing:
    """The routes of an edition, and how they follow from those of the edition before it."""

    def __init__(self, endpoints: Iterable[Endpoint], *, internal: bool = False) -> None:
        """internal: with those that are."""
        places = _places(endpoints, internal=internal)
        self._internal = internal
        self._by_key = {one.key: one for one in places}
        self._plain = len(self._by_key) == len(places) and all(map(_is_plain, places))
        """Each has a route to itself, and no path is met by two of them."""
        self.router = Router(_find_routes(places)[0])
        self._routes = {id(route.primary): route for route in self.router.routes} if self._plain else {}

    def changed(self, gone: Collection[Endpoint], come: Collection[Endpoint]) -> Routing | None:
        """None: it has to be made anew."""
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
        added = [_route(one.method, one.template, [one.endpoint]) for one in more]
        new = copy.copy(self)
        new._by_key = by_key
        new._routes = self._routes.copy()
        new.router = self.router.changed([new._routes.pop(id(one.endpoint)) for one in less], added)
        new._routes.update((id(route.primary), route) for route in added)
        return new


def _is_plain(place: _Place) -> bool:
    """No other template is met by a path that is right for this one: none ends in an optional segment, nor in a slash,
    which does not count."""
    return "?}" not in place.template and (not place.template.endswith("/") or place.template == "/")


class Clashes:
    """Endpoints whose routes are others' already; asked about one edition after the other."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        """Of the last edition, by id of the endpoint."""

    def among(self, endpoints: Iterable[Endpoint]) -> tuple[Collection[Endpoint] | None, list[Diagnostic]]:
        """Those that can be reached, None where all can, and what is to be told."""
        known = self._places
        places = [known.get(id(one)) or _place(one) for one in endpoints if not one.options.internal]
        self._places = {id(one.endpoint): one for one in places}
        if len({one.key for one in places}) == len(places):
            return None, []
        routes, diagnostics = _find_routes(places)
        if not any(one.left_out for one in diagnostics):
            return None, diagnostics
        return [endpoint for route in routes for endpoint in route.candidates], diagnostics


def _places(endpoints: Iterable[Endpoint], *, internal: bool) -> list[_Place]:
    return [_place(endpoint) for endpoint in endpoints if internal or not endpoint.options.internal]


def _find_routes(places: Sequence[_Place]) -> tuple[list[Route], list[Diagnostic]]:
    """What `build_router` makes a router of."""
    if len(shared := Counter(one.key for one in places)) == len(places):
        # As nearly always: each of them has a route to itself.
        return [_route(one.method, one.template, [one.endpoint]) for one in places], []
    overloads: dict[tuple[str, str], list[Endpoint]] = {}
    templates: dict[str, Endpoint] = {}
    diagnostics: list[Diagnostic] = []
    repeated: dict[tuple[RoutineKind, int], list[Endpoint]] = {}
    holders = _holders(one for one in places if shared[one.key] > 1)
    for endpoint, method, template, key in places:
        if shared[key] == 1:
            overloads[method, template] = [endpoint]
            continue
        holder = holders[key]
        if not _may_share(endpoint, holder):
            diagnostics.append(_foreign(endpoint, holder))
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
    diagnostics += map(_repeated, repeated.values())
    for place, candidates in overloads.items():
        if len(candidates) == 1:
            continue
        unreached = dict(hidden(candidates))
        diagnostics += (*unreached.values(), *_met_from_elsewhere(candidates))
        overloads[place] = [one for index, one in enumerate(candidates) if index not in unreached]
    return [_route(method, path, candidates) for (method, path), candidates in overloads.items()], diagnostics


class _Place(NamedTuple):
    """key: the method, and what is equal for templates that match the same paths with the same precedence."""

    endpoint: Endpoint
    method: str
    template: str
    key: str


def _place(endpoint: Endpoint) -> _Place:
    template = _template(endpoint)
    bare = _PARAMETER.sub("{}", template) if "{" in template else template
    return _Place(endpoint, endpoint.method, template, f"{endpoint.method} {ascii_lower(bare)}")


def _holders(places: Iterable[_Place]) -> dict[str, Endpoint]:
    """Whose a route is, among owners who do not share: that of the owner who is trusted by nature, else of the older
    object. Whoever comes later does not get it by the name of his schema.
    """
    holders: dict[str, Endpoint] = {}
    for endpoint, _, _, key in places:
        holder = holders.setdefault(key, endpoint)
        if not _may_share(endpoint, holder) and _standing(endpoint.routine) < _standing(holder.routine):
            holders[key] = endpoint
    return holders


def _standing(routine: Routine) -> tuple[bool, int]:
    return routine.owner is not None and not routine.owner.powerful, routine.oid


def _may_share(one: Endpoint, other: Endpoint) -> bool:
    """Routines of different owners of one database do not (issue 12.5). A file is the operator's, and shares with
    whoever is as powerful."""
    mine, theirs = one.routine.owner, other.routine.owner
    if (one.options.connection or "").casefold() != (other.options.connection or "").casefold():
        return True
    if mine is None or theirs is None:
        return (mine or theirs) is None or bool((mine or theirs).powerful)  # type: ignore[union-attr]
    return mine.name == theirs.name


def _foreign(endpoint: Endpoint, holder: Endpoint) -> Diagnostic:
    message = (
        f"{endpoint.name} belongs to {holder.routine.identity}, which has another owner, and is left out; give it "
        "another path or the same owner"
    )
    return Diagnostic(endpoint.routine.identity, None, message, left_out=1)


def _met_from_elsewhere(candidates: Sequence[Endpoint]) -> Iterator[Diagnostic]:
    """Endpoints of different connections on one route: hardly meant as overloads (reference 01, 4.2)."""
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


def decode_path(raw: str) -> str:
    """Percent-decode a raw path, all but `%2F`, which stays so that a value cannot become two segments.

    Raises:
        MalformedPathError: an incomplete escape, or bytes that are not UTF-8.
    """
    if "%" not in raw:
        return raw
    if _BAD_ESCAPE.search(raw):
        raise MalformedPathError("the path has an incomplete percent escape")
    try:
        return unquote_to_bytes(_ENCODED_SLASH.sub(lambda slash: f"%25{slash[0][1:]}", raw)).decode()
    except UnicodeDecodeError:
        raise MalformedPathError("the path is not valid UTF-8") from None


def _route(method: str, path: str, candidates: list[Endpoint]) -> Route:
    return Route(method, path, tuple(candidates), tuple(_parameters(path)))


def check_path(endpoint: Endpoint) -> None:
    """Raises `RouteError` for a path that no request can have."""
    size = len(endpoint.path)
    if not 1 <= size <= LONGEST_PATH:
        raise RouteError(f"a path has 1 to {LONGEST_PATH} characters, not {size}")


def unbound_segments(endpoint: Endpoint) -> Iterator[str]:
    """Parameter segments of the path that belong to no parameter: they take any text (reference 01, 7.7)."""
    bound = {parameter.segment for parameter in endpoint.parameters if parameter.path}
    return (name for _, name in _parameters(endpoint.path) if name not in bound)


def _template(endpoint: Endpoint) -> str:
    check_path(endpoint)
    return "/" + _bare(endpoint.path)


def _bare(path: str) -> str:
    """One trailing slash does not count."""
    return path.removeprefix("/").removesuffix("/")


def _segments(path: str) -> list[str]:
    trimmed = _bare(path)
    return trimmed.split("/") if trimmed else []


def _is_optional(segment: str) -> bool:
    return segment.startswith("{") and segment.endswith("?}")


def _parameters(template: str) -> Iterator[tuple[int, str]]:
    if "{" not in template:
        return
    for index, segment in enumerate(_segments(template)):
        if match := _PARAMETER.fullmatch(segment):
            yield index, match[1]


def _walk(root: _Node, segments: list[str]) -> Route | None:
    """Literals beat parameters at each position from the left; a dead end is taken back."""
    open_ends = [(root, 0)]
    while open_ends:
        node, depth = open_ends.pop()
        if depth == len(segments):
            if route := node.route or node.optional:
                return route
            continue
        segment = segments[depth]
        if node.parameter is not None and segment:
            open_ends.append((node.parameter, depth + 1))
        if literal := node.literals.get(segment):
            open_ends.append((literal, depth + 1))
    return None


_TABLES = frozenset({RoutineKind.TABLE, RoutineKind.VIEW})


def _same_table(later: Endpoint, first: Endpoint) -> bool:
    return later.routine.kind in _TABLES and (later.routine.kind, later.routine.oid) == (
        first.routine.kind,
        first.routine.oid,
    )


def _repeated(operations: Sequence[Endpoint]) -> Diagnostic:
    """One word for a table, as it has one comment."""
    routine = operations[0].routine
    table = f"{routine.schema}.{routine.name}"
    names = ", ".join(f"{one.name} {one.routine.identity.removeprefix(table).strip()}" for one in operations)
    message = (
        f"these operations are left out, as others of it have their method and path: {names}; "
        "give them paths of their own in `for` blocks"
    )
    return Diagnostic(table, None, message, left_out=len(operations))


def _clash(later: Endpoint, first: Endpoint) -> Diagnostic | None:
    """Overloads among routines, or among files, are meant; other shared routes hardly are (reference 01, 4.2)."""
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
