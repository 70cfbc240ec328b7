"""Routines → endpoints, and what the log says about them: the one place where mistakes in comments are reported.

Each mistake is reported once, however often the catalogue is read. What cannot be served is left out and named, and
stops nothing else; unknown cache profiles alone stop the start, with one error that lists all of them (caching-38).
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rowcall.core.building.endpoint_builder import Built, EndpointDefaults, build_endpoint
from rowcall.core.cache.plan import invalidations
from rowcall.core.catalogue.catalog import Catalog, Routine, TypeInfo
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic, gathered
from rowcall.core.http.routing import Clashes
from rowcall.core.outgoing.address import shown_url
from rowcall.core.outgoing.request_definition import type_diagnostics
from rowcall.core.tables.routines import TableOperation
from rowcall.service.log import VERBOSE
from rowcall.service.snapshot.basic_users import BasicUsers
from rowcall.service.snapshot.reserved_paths import ReservedPaths
from rowcall.service.snapshot.unresolved_references import UnresolvedReferences
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

Exposed = Iterable[tuple[Routine, EndpointDefaults]]
"""What may become an endpoint, with the defaults of its source."""


@dataclass(frozen=True, slots=True)
class Found:
    """endpoints: of each catalogue. left_out: what is none, with the reason."""

    endpoints: tuple[tuple[Endpoint, ...], ...]
    left_out: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """What was made of a routine. endpoints: none, one, or with that which forgets its kept answers."""

    routine: Routine
    defaults: EndpointDefaults
    built: Built
    endpoints: tuple[Endpoint, ...]


Build = Callable[[Routine, EndpointDefaults], _Known]


class KnownBuilds:
    """What was made of the routines of a catalogue at its last reading: a change of one has one made anew.

    An endpoint is made of the routine, the defaults, and the types of the catalogue, and of nothing else.
    """

    def __init__(self) -> None:
        self._types: Mapping[int, TypeInfo] = {}
        self._built: dict[int, _Known] = {}
        """By id of the routine, which is the same object again where nothing has happened to it."""
        self._named: defaultdict[tuple[int, str], list[_Known]] = defaultdict(list)
        """By oid and name, as a table is several operations, and files have no oid: for all others."""

    def over(self, catalog: Catalog) -> Build:
        """For one reading. What it does not ask for is forgotten with the next one."""
        same = self._types is catalog.types or self._types.items() <= catalog.types.items()
        before = self._built if same else {}
        self._types = catalog.types
        built: dict[int, _Known] = {}
        self._built = built
        if len(self._named) > 2 * len(before):
            self._named = _by_name(before.values())
        named = self._named

        def build(routine: Routine, defaults: EndpointDefaults) -> _Known:
            known = before.get(id(routine))
            if known is None or known.defaults is not defaults:
                those = named[routine.oid, routine.name]
                equal = (one for one in those if one.routine == routine and one.defaults == defaults)
                found = next(equal, None)
                known = _made(routine, catalog, defaults) if found is None else replace(found, routine=routine)
                those[:] = [*(one for one in those if one is not found and id(one.routine) in before), known]
            built[id(routine)] = known
            return known

        return build


def _by_name(builds: Iterable[_Known]) -> defaultdict[tuple[int, str], list[_Known]]:
    found: defaultdict[tuple[int, str], list[_Known]] = defaultdict(list)
    for one in builds:
        found[one.routine.oid, one.routine.name].append(one)
    return found


def _made(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> _Known:
    built = _build(routine, catalog, defaults)
    made = built.endpoint
    endpoints = () if made is None else (made, *invalidations(made, defaults.cache))
    return _Known(routine, defaults, built, endpoints)


class EndpointBuilder:
    def __init__(self, settings: Settings) -> None:
        self._logs_endpoints = settings.flag("Service:DebugLogEndpointCreateEvents")
        self._logs_annotations = settings.flag("Service:DebugLogCommentAnnotationEvents")
        self._caches = settings.flag("CacheOptions:Enabled")
        self._sends = settings.flag("Service:HttpClientOptions:Enabled")
        self._own = ReservedPaths(settings)
        self._lost = UnresolvedReferences(settings)
        self._basic = BasicUsers(settings)
        self._reported: set[Diagnostic] = set()
        self._known: dict[int, KnownBuilds] = {}
        """By the place of the catalogue."""
        self._clashes = Clashes()

    def build(self, found: Iterable[tuple[Catalog, Exposed]], *, first: bool = True) -> Found:
        """The endpoints of each catalogue, every one with the defaults of its source. One that cannot be served is left
        out and named.

        Raises:
            StartupError: at the first reading, diagnostics that are fatal, all of them.
        """
        diagnostics: list[Diagnostic] = []
        catalogs = tuple(found)
        diagnostics += (diagnostic for catalog, _ in catalogs for diagnostic in catalog.left_out)
        builds = [
            self._known.setdefault(number, KnownBuilds()).over(catalog) for number, (catalog, _) in enumerate(catalogs)
        ]
        groups = tuple(
            _endpoints(catalog, exposed, build, diagnostics, first=first)
            for (catalog, exposed), build in zip(catalogs, builds, strict=True)
        )
        if self._sends:
            diagnostics += type_diagnostics(info for catalog, _ in catalogs for info in catalog.types.values())
        fatal = [diagnostic for diagnostic in diagnostics if diagnostic.fatal]
        if fatal:
            self._report(diagnostic for diagnostic in diagnostics if not diagnostic.fatal)
            raise StartupError("\n  ".join(("these endpoints cannot be served:", *map(str, fatal))))
        groups, clashes = _reached(groups, self._clashes)
        diagnostics += clashes
        public = [endpoint for group in groups for endpoint in group if not endpoint.options.internal]
        diagnostics += (*self._own.hidden(public), *self._own.unsent(public), *self._own.missing(public))
        diagnostics += self._basic.unusable(endpoint for group in groups for endpoint in group)
        diagnostics += self._lost.found([endpoint for group in groups for endpoint in group])
        self._report(diagnostics)
        debugging = log.isEnabledFor(logging.DEBUG)
        for group in groups:
            for endpoint in group:
                if debugging or endpoint.options.internal:
                    self._log_created(endpoint)
                options = endpoint.options
                if options.proxy is not None or options.proxy_out is not None:
                    _log_forwarding(endpoint)
        broken = (diagnostic for catalog, _ in catalogs for diagnostic in catalog.broken)
        return Found(groups, (*(one for one in dict.fromkeys(diagnostics) if one.left_out), *broken))

    def _report(self, diagnostics: Iterable[Diagnostic]) -> None:
        seen = dict.fromkeys(diagnostics)
        fresh = [one for one in seen if one not in self._reported]
        told = list(gathered(fresh))
        for one in told:
            log.log(logging.INFO if one.told else logging.WARNING, "%s", one)
        for one in fresh:
            if one not in told:
                log.debug("%s", one)
        # What was mended and comes back is worth another word.
        self._reported = set(seen)

    def _log_created(self, endpoint: Endpoint) -> None:
        if self._logs_endpoints:
            level = logging.INFO if endpoint.options.internal else logging.DEBUG
            kind = "internal endpoint" if endpoint.options.internal else "endpoint"
            log.log(level, "Created %s %s (%s)", kind, endpoint.name, endpoint.routine.identity)
        caching = endpoint.options.caching
        if self._caches and caching is not None and caching.profile is not None:
            log.debug("%s: cache profile '%s'", endpoint.name, caching.profile)
        if self._logs_annotations and log.isEnabledFor(logging.DEBUG):
            _log_annotations(endpoint.routine.identity, endpoint.name, endpoint.annotations)


def _log_forwarding(endpoint: Endpoint) -> None:
    for word, wish in (("proxy", endpoint.options.proxy), ("proxy_out", endpoint.options.proxy_out)):
        if wish is not None:
            host = "Service:ProxyOptions:Host" if wish.url is None else shown_url(wish.url)
            log.info("%s: %s, method %s, host %s", endpoint.name, word, wish.method or "as it comes", host)


def _endpoints(
    catalog: Catalog, exposed: Exposed, build: Build, diagnostics: list[Diagnostic], *, first: bool
) -> tuple[Endpoint, ...]:
    """Adds to `diagnostics`. first: what is fatal is so; later it leaves out what it is about, and nothing else."""
    endpoints: list[Endpoint] = []
    of_tables: list[tuple[str, Diagnostic]] = []
    for routine, defaults in exposed:
        known = build(routine, defaults)
        noticed = known.built.diagnostics
        if not noticed:
            endpoints += known.endpoints
            continue
        made = known.endpoints
        if not first and any(one.fatal for one in noticed):
            noticed = tuple(replace(one, fatal=False, left_out=1) if one.fatal else one for one in noticed)
            made = ()
        if isinstance(routine.source, TableOperation):
            table = f"{routine.schema}.{routine.name}"
            of_tables += ((_ROUTE.sub("", one.message), replace(one, object=table)) for one in noticed)
        else:
            diagnostics += noticed
        endpoints += made
    diagnostics += _once(of_tables)
    return tuple(endpoints)


_ROUTE = re.compile(r"\A[A-Z]+ /\S*: ")


def _once(diagnostics: Iterable[tuple[str, Diagnostic]]) -> Iterable[Diagnostic]:
    """A table has one comment, which is read for each of its operations: a line of it is told of once, and so is what
    their messages say alike, but for the route in front, which comes first in each pair without it.
    """
    found: dict[tuple[str, str], Diagnostic] = {}
    for message, one in diagnostics:
        key = one.object, message if one.line is None else one.line
        first = found.get(key)
        if first is not None:
            one = replace(first, left_out=first.left_out + one.left_out)
            one = one if one.line is not None else replace(one, message=message)
        found[key] = one
    return found.values()


def _reached(
    groups: tuple[tuple[Endpoint, ...], ...], clashes: Clashes
) -> tuple[tuple[tuple[Endpoint, ...], ...], list[Diagnostic]]:
    """Without those that another one's route leaves no request for."""
    reached, diagnostics = clashes.among(itertools.chain.from_iterable(groups))
    if reached is None:
        return groups, diagnostics
    routed = set(map(id, reached))
    kept = tuple(
        tuple(endpoint for endpoint in group if endpoint.options.internal or id(endpoint) in routed) for group in groups
    )
    return kept, diagnostics


def _build(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> Built:
    try:
        built = build_endpoint(routine, catalog, defaults)
    except Exception as error:
        log.exception("%s is left out: its endpoint cannot be built", routine.identity)
        message = f"its endpoint cannot be built ({type(error).__name__}: {error})"
        return Built(None, (Diagnostic(routine.identity, None, message, left_out=1),))
    if built.disabled:
        log.log(VERBOSE, "%s is disabled by its comment", routine.identity)
    return built


def _log_annotations(identity: str, name: str, lines: Sequence[str]) -> None:
    for line in lines:
        log.log(VERBOSE, "%s annotation: %s", identity, line)
    log.debug("%s mapped to %s annotations: [%s]", identity, name, ", ".join(lines))
