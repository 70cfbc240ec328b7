"""Find the route for a method and a path (routing-8).

A route without parameters is found by two dictionary lookups, and its `Match` is built in advance. A route with
parameters is found in a tree of segments. Paths are percent-decoded, as the HTTP server passes them; `decode_path`
decodes a raw path the same way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from rowcall.core.endpoint.access import Access
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.text.ascii_case import ascii_lower

REPLACED = "\ufffd"
"""The character by which the decoder of the HTTP server replaces bytes that are not UTF-8."""

_PARAMETER = re.compile(r"\{([^{}]*?)(\??)\}")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_SLASH = re.compile(r"%2[Ff]")


class MalformedPathError(ValueError):
    """A request path that is not valid text after decoding: it has bytes that are not UTF-8, an incomplete percent
    escape, or a NUL. The response is 400."""


@dataclass(frozen=True, slots=True)
class Route:
    """All endpoints of one method and template, in the order of discovery; the last one is the primary."""

    method: str
    path: str
    candidates: tuple[Endpoint, ...]
    parameters: tuple[tuple[int, str], ...]
    """Index and name of the segments that are parameters."""
    refused: bool = False
    """The steps of the route refuse each request with 405, after the checks of access. The route is not in `Allow`."""
    access: Access | None = None
    """Access to a route without candidates. None: each candidate has its own access."""

    @property
    def path_values(self) -> int:
        """Number of segments that are parameters, including an optional one."""
        return len(self.parameters)

    @property
    def primary(self) -> Endpoint:
        return self.candidates[-1]


@dataclass(frozen=True, slots=True)
class Match:
    """The route of a request, and the values in its path."""

    route: Route
    values: Mapping[str, str]
    """Text of each parameter segment by `EndpointParameter.segment`, without an omitted optional one."""


_NO_VALUES: Mapping[str, str] = {}


@dataclass(slots=True)
class _Node:
    """A node of the tree of path segments of a method: the routes whose templates begin with the same segments."""

    maker: object
    """Marker of the only router that may change the node. Routers that were derived from it share the node."""
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    route: Route | None = None
    """The route that ends here."""
    optional: Route | None = None
    """The route that ends here if its optional last segment is omitted; `route` has precedence."""

    def of(self, maker: object) -> _Node:
        """Return a node that the router with the token `maker` may change: the node itself if that router has made it,
        else a copy. Nodes of another router may be shared with it."""
        if self.maker is maker:
            return self
        return _Node(maker, self.literals.copy(), self.parameter, self.route, self.optional)

    @property
    def leads_nowhere(self) -> bool:
        """Whether no route ends here or below."""
        return not (self.literals or self.parameter or self.route or self.optional)


class Router:
    """The routes of a schema snapshot. Immutable: for another snapshot a new router is built."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._exact: dict[str, dict[str, Match]] = {}
        """Matches of routes without parameters by method and path, as they are written."""
        self._literal: dict[str, dict[str, Match]] = {}
        """The same by path in lower case without slashes at the ends. They have precedence over `_trees`."""
        self._trees: dict[str, _Node] = {}
        """Trees of the templates with parameters, by method."""
        self._maker = object()
        self.routes = tuple(routes)
        for route in self.routes:
            self._add(route)

    def with_changes(self, gone: Collection[Route], come: Collection[Route]) -> Router:
        """Return a router without the routes `gone` and with the routes `come`. It shares unchanged nodes with this
        router.

        gone: routes of this router, whose templates end neither in an optional segment nor in a slash; no other route
        of this router may match a path of a route in `gone`. come: new routes; they follow the remaining ones in
        `routes`.
        """
        new = Router()
        new._exact = {method: result.copy() for method, result in self._exact.items()}
        new._literal = {method: result.copy() for method, result in self._literal.items()}
        new._trees = self._trees.copy()
        for route in gone:
            new._remove(route)
        for route in come:
            new._add(route)
        without = set(map(id, gone))
        new.routes = (*(item for item in self.routes if id(item) not in without), *come)
        return new

    def find(self, method: str, path: str) -> Match | None:
        """Return the match of a decoded path; None: no route of the method has this path. method: in upper case.

        Raises:
            MalformedPathError: a parameter segment is not valid text.
        """
        exact = self._exact.get(method)
        if exact is None:
            return None
        return exact.get(path) or self._search(method, path)

    def allowed_methods(self, path: str) -> tuple[str, ...]:
        """Return the sorted methods that have a route for a decoded path, as `Allow` of a 405 has them. Empty: the path
        is unknown. Routes that are `refused` do not count.

        Raises:
            MalformedPathError: a parameter segment is not valid text.
        """
        result = ((method, self.find(method, path)) for method in self._exact)
        return tuple(sorted(method for method, match in result if match is not None and not match.route.refused))

    def _search(self, method: str, path: str) -> Match | None:
        """Return the match of a decoded path that differs from the template of its route in case or in a slash at an
        end, or has parameters; None: no route has this path. The method must have routes. Raises `MalformedPathError`
        as `find` does."""
        literal = self._literal[method].get(bare(ascii_lower(path)))
        if literal is not None:
            return literal
        tree = self._trees.get(method)
        result = None if tree is None else _walk(tree, _segments(ascii_lower(path)))
        if result is None:
            return None
        segments = _segments(path)
        values = {name: segments[index] for index, name in result.parameters if index < len(segments)}
        if values and (REPLACED in path or "\0" in path):
            raise MalformedPathError("the path is not valid UTF-8 text")
        return Match(result, values)

    def _add(self, route: Route) -> None:
        exact = self._exact.setdefault(route.method, {})
        literal = self._literal.setdefault(route.method, {})
        if "{" not in route.path:
            match = Match(route, _NO_VALUES)
            exact[route.path] = exact[route.path.rstrip("/") or "/"] = match
            literal[bare(ascii_lower(route.path))] = match
            return
        node = self._tree(route.method)
        for segment in _segments(route.path):
            if _is_optional(segment):
                node.optional = node.optional or route
            node = self._child_for(node, segment)
        node.route = route
        if not route.path_values:
            exact[route.path] = exact[route.path.rstrip("/") or "/"] = Match(route, _NO_VALUES)

    def _remove(self, route: Route) -> None:
        exact = self._exact[route.method]
        if "{" not in route.path:
            del exact[route.path], self._literal[route.method][bare(ascii_lower(route.path))]
            return
        if not route.path_values:
            del exact[route.path]
        node = self._tree(route.method)
        way: list[tuple[_Node, str]] = []
        for segment in _segments(route.path):
            way.append((node, segment))
            node = self._child_for(node, segment)
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
        """Return the root of the tree of a method, as a node that this router may change."""
        root = self._trees.get(method)
        root = self._trees[method] = _Node(self._maker) if root is None else root.of(self._maker)
        return root

    def _child_for(self, node: _Node, segment: str) -> _Node:
        """Return the child of a node for a segment, as a node that this router may change."""
        if _PARAMETER.fullmatch(segment):
            node.parameter = below = _Node(self._maker) if node.parameter is None else node.parameter.of(self._maker)
            return below
        key = ascii_lower(segment)
        known = node.literals.get(key)
        below = node.literals[key] = _Node(self._maker) if known is None else known.of(self._maker)
        return below


def decode_path(raw: str) -> str:
    """Percent-decode a raw path except `%2F`, so that a value cannot become two segments.

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


def shape_of(template: str) -> str:
    """Return a text that is equal for templates that match a path in common with the same precedence: those that differ
    only in the case of ASCII letters, in the names of parameters, or in whether the last parameter is optional."""
    return ascii_lower(_PARAMETER.sub("{}", template) if "{" in template else template)


def bare(path: str) -> str:
    """Return the path without one slash at its start and without one at its end, which is not significant."""
    return path.removeprefix("/").removesuffix("/")


def _segments(path: str) -> list[str]:
    """Return the segments of a path or template without its slashes at the ends; none for `/`."""
    trimmed = bare(path)
    return trimmed.split("/") if trimmed else []


def _is_optional(segment: str) -> bool:
    return segment.startswith("{") and segment.endswith("?}")


def parameters_of(template: str) -> Iterator[tuple[int, str]]:
    """Yield index (from 0) and name of the segments of a template that are parameters, without the `?` of an optional
    one."""
    if "{" not in template:
        return
    for index, segment in enumerate(_segments(template)):
        if match := _PARAMETER.fullmatch(segment):
            yield index, match[1]


def _walk(root: _Node, segments: list[str]) -> Route | None:
    """Return the route for segments, or None. From the left, literals have precedence over parameters, with
    backtracking. root: of the tree of a method. segments: in lower case."""
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
