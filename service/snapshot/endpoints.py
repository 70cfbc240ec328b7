"""Builds the endpoints of routines and logs their diagnostics: the only place that reports mistakes in comments.

Each mistake is reported once, however often the catalogue is read. An object that cannot be served is left out with a
message and does not affect others. Only unknown cache profiles prevent the start, with one error that lists all of them
(caching-38).
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rowcall.core.building.endpoint_builder import BuildResult, EndpointDefaults, build_endpoint
from rowcall.core.building.service import ServiceOptions
from rowcall.core.cache.options import CacheOptions
from rowcall.core.cache.plan import invalidations
from rowcall.core.catalogue.catalog import Catalog, Routine, TypeInfo
from rowcall.core.catalogue.installation import NOT_INSTALLED
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic, merge_diagnostics
from rowcall.core.http.routing import Clashes
from rowcall.core.outgoing.address import url_for_logs
from rowcall.core.outgoing.options import TypeOptions
from rowcall.core.outgoing.request_definition import type_diagnostics
from rowcall.core.tables.routines import TableOperation
from rowcall.service.log import VERBOSE
from rowcall.service.snapshot.diagnostics import BasicUsers, UnresolvedReferences
from rowcall.service.snapshot.reserved_paths import ReservedPaths
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

Exposed = Iterable[tuple[Routine, EndpointDefaults]]
"""Candidates for endpoints, with the defaults of their source."""


@dataclass(frozen=True, slots=True)
class BuiltEndpoints:
    """The result of `EndpointBuilder.build`. endpoints: of each catalogue. left_out: objects without endpoint, with the
    reason."""

    endpoints: tuple[tuple[Endpoint, ...], ...]
    left_out: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _RoutineBuild:
    """The build of a routine. built: as `build_endpoint` returns it. endpoints: none, the endpoint, or the endpoint and
    its invalidation endpoint.
    """

    routine: Routine
    defaults: EndpointDefaults
    built: BuildResult
    endpoints: tuple[Endpoint, ...]


Build = Callable[[Routine, EndpointDefaults], _RoutineBuild]
"""Builds a routine, or returns its build of an earlier reading."""


class KnownBuilds:
    """The builds of the last reading of a catalogue, so that only changed routines are built again.

    An endpoint depends only on the routine, the defaults, the types of the catalogue, and the schema `rowcall`: its
    version, and the functions of it that the role of the service may not execute.
    """

    def __init__(self) -> None:
        self._types: Mapping[int, TypeInfo] = {}
        self._installation = NOT_INSTALLED
        self._built: dict[int, _RoutineBuild] = {}
        """By id of the routine: an unchanged routine is the same object."""
        self._named: defaultdict[tuple[int, str], list[_RoutineBuild]] = defaultdict(list)
        """For all others, by oid and name: a table has several operations, and files have no oid."""

    def over(self, catalog: Catalog) -> Build:
        """Return the build function for one reading. It returns the builds of earlier readings for unchanged routines.

        catalog: of this reading. If types are changed or removed, or the schema `rowcall` has changed
        (`Catalog.installation`), all routines are built again. Builds that this reading does not use are dropped with
        the next.
        """
        same = self._types is catalog.types or self._types.items() <= catalog.types.items()
        same = same and self._installation == catalog.installation
        before = self._built if same else {}
        self._types, self._installation = catalog.types, catalog.installation
        built: dict[int, _RoutineBuild] = {}
        self._built = built
        if len(self._named) > 2 * len(before):
            self._named = _by_name(before.values())
        named = self._named

        def build(routine: Routine, defaults: EndpointDefaults) -> _RoutineBuild:
            build_of_routine = before.get(id(routine))
            if build_of_routine is None or build_of_routine.defaults is not defaults:
                same_name = named[routine.oid, routine.name]
                equal = (other for other in same_name if other.routine == routine and other.defaults == defaults)
                match = next(equal, None)
                build_of_routine = (
                    _build_routine(routine, catalog, defaults) if match is None else replace(match, routine=routine)
                )
                same_name[:] = [
                    *(other for other in same_name if other is not match and id(other.routine) in before),
                    build_of_routine,
                ]
            built[id(routine)] = build_of_routine
            return build_of_routine

        return build


def _by_name(builds: Iterable[_RoutineBuild]) -> defaultdict[tuple[int, str], list[_RoutineBuild]]:
    """Return builds by oid and name of the routine."""
    builds_by_name: defaultdict[tuple[int, str], list[_RoutineBuild]] = defaultdict(list)
    for item in builds:
        builds_by_name[item.routine.oid, item.routine.name].append(item)
    return builds_by_name


def _build_routine(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> _RoutineBuild:
    """Build the endpoint of a routine, and, if it has one, the endpoint that invalidates its cached responses."""
    built = _build(routine, catalog, defaults)
    endpoint = built.endpoint
    endpoints = () if endpoint is None else (endpoint, *invalidations(endpoint, defaults.cache))
    return _RoutineBuild(routine, defaults, built, endpoints)


class EndpointBuilder:
    """Builds the endpoints of one service, over all readings of the catalogues."""

    def __init__(self, settings: Settings) -> None:
        self._logs_endpoints = settings.read(ServiceOptions).log_endpoints
        self._logs_annotations = settings.read(ServiceOptions).log_annotations
        self._caches = settings.is_enabled(CacheOptions)
        self._sends = settings.is_enabled(TypeOptions)
        self._reserved_paths = ReservedPaths(settings)
        self._unresolved = UnresolvedReferences(settings)
        self._basic = BasicUsers(settings)
        self._reported: set[Diagnostic] = set()
        self._known: dict[int, KnownBuilds] = {}
        """By the position of the catalogue."""
        self._clashes = Clashes()

    def build(self, routines: Iterable[tuple[Catalog, Exposed]], *, first: bool = True) -> BuiltEndpoints:
        """Return the endpoints of each catalogue, built with the defaults of their sources. Endpoints that cannot be
        served are left out with a diagnostic. New diagnostics are logged.

        routines: catalogues, always in the same order, with their candidates for endpoints. first: whether this is the
        reading of the start.

        Raises:
            StartupError: at the first reading, for all fatal diagnostics together.
        """
        diagnostics: list[Diagnostic] = []
        catalogs = tuple(routines)
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
        groups, clashes = _remove_unreachable(groups, self._clashes)
        diagnostics += clashes
        public = [endpoint for group in groups for endpoint in group if not endpoint.options.internal]
        diagnostics += (
            *self._reserved_paths.diagnose_conflicts(public),
            *self._reserved_paths.diagnose_unsent_cookies(public),
            *self._reserved_paths.diagnose_missing_paths(public),
        )
        diagnostics += self._basic.unusable(endpoint for group in groups for endpoint in group)
        diagnostics += self._unresolved.diagnostics([endpoint for group in groups for endpoint in group])
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
        return BuiltEndpoints(
            groups, (*(diagnostic for diagnostic in dict.fromkeys(diagnostics) if diagnostic.left_out), *broken)
        )

    def _report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Log the diagnostics that the previous reading did not have, similar ones as one message, and remember all of
        them for the next reading.
        """
        unique = dict.fromkeys(diagnostics)
        new = [diagnostic for diagnostic in unique if diagnostic not in self._reported]
        grouped = list(merge_diagnostics(new))
        for diagnostic in grouped:
            log.log(logging.INFO if diagnostic.informational else logging.WARNING, "%s", diagnostic)
        for diagnostic in new:
            if diagnostic not in grouped:
                log.debug("%s", diagnostic)
        # A mistake that was fixed and reappears is reported again.
        self._reported = set(unique)

    def _log_created(self, endpoint: Endpoint) -> None:
        """Log an endpoint, its cache profile and its annotations, as the settings and the log level say."""
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
    """Log method and host to which the annotations `proxy` and `proxy_out` of an endpoint forward requests."""
    for word, forwarding in (("proxy", endpoint.options.proxy), ("proxy_out", endpoint.options.proxy_out)):
        if forwarding is not None:
            host = "Service:ProxyOptions:Host" if forwarding.url is None else url_for_logs(forwarding.url)
            log.info("%s: %s, method %s, host %s", endpoint.name, word, forwarding.method or "of the request", host)


def _endpoints(
    catalog: Catalog, exposed: Exposed, build: Build, diagnostics: list[Diagnostic], *, first: bool
) -> tuple[Endpoint, ...]:
    """Return the endpoints of a catalogue and add its diagnostics to `diagnostics`.

    exposed: the candidates. build: as `KnownBuilds.over` returns it. first: fatal diagnostics stay fatal, as at the
    start; at later readings, they only leave out their endpoints.
    """
    endpoints: list[Endpoint] = []
    of_tables: list[tuple[str, Diagnostic]] = []
    for routine, defaults in exposed:
        build_of_routine = build(routine, defaults)
        noticed = build_of_routine.built.diagnostics
        if not noticed:
            endpoints += build_of_routine.endpoints
            continue
        endpoints_of_routine = build_of_routine.endpoints
        if not first and any(diagnostic.fatal for diagnostic in noticed):
            noticed = tuple(
                replace(diagnostic, fatal=False, left_out=1) if diagnostic.fatal else diagnostic
                for diagnostic in noticed
            )
            endpoints_of_routine = ()
        if isinstance(routine.source, TableOperation):
            table = f"{routine.schema}.{routine.name}"
            of_tables += (
                (_ROUTE.sub("", diagnostic.message), replace(diagnostic, object=table)) for diagnostic in noticed
            )
        else:
            diagnostics += noticed
        endpoints += endpoints_of_routine
    diagnostics += _merge_diagnostics(of_tables)
    return tuple(endpoints)


_ROUTE = re.compile(r"\A[A-Z]+ /\S*: ")
"""Method and path at the beginning of a message."""


def _merge_diagnostics(diagnostics: Iterable[tuple[str, Diagnostic]]) -> Iterable[Diagnostic]:
    """Return the diagnostics of tables, with equal ones of a table merged into one whose `left_out` is the sum.

    A table has one comment, which is read for each of its operations. Diagnostics of a table are equal if their line is
    equal or, without a line, their message without the route.

    diagnostics: pairs of the message without the route and the diagnostic.
    """
    merged: dict[tuple[str, str], Diagnostic] = {}
    for message, diagnostic in diagnostics:
        key = diagnostic.object, message if diagnostic.line is None else diagnostic.line
        first = merged.get(key)
        if first is not None:
            diagnostic = replace(first, left_out=first.left_out + diagnostic.left_out)
            diagnostic = diagnostic if diagnostic.line is not None else replace(diagnostic, message=message)
        merged[key] = diagnostic
    return merged.values()


def _remove_unreachable(
    groups: tuple[tuple[Endpoint, ...], ...], clashes: Clashes
) -> tuple[tuple[tuple[Endpoint, ...], ...], list[Diagnostic]]:
    """Return the endpoints without those that are unreachable because of the route of another endpoint, and the
    diagnostics about routes. groups: the endpoints of each catalogue.
    """
    reached, diagnostics = clashes.among(itertools.chain.from_iterable(groups))
    if reached is None:
        return groups, diagnostics
    routed = set(map(id, reached))
    reachable = tuple(
        tuple(endpoint for endpoint in group if endpoint.options.internal or id(endpoint) in routed) for group in groups
    )
    return reachable, diagnostics


def _build(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> BuildResult:
    """Build the endpoint of a routine. An unexpected error is logged, and leaves the routine out with a diagnostic."""
    try:
        built = build_endpoint(routine, catalog, defaults)
    except Exception as error:
        log.exception("%s is left out: its endpoint cannot be built", routine.identity)
        message = f"its endpoint cannot be built ({type(error).__name__}: {error})"
        return BuildResult(None, (Diagnostic(routine.identity, None, message, left_out=1),))
    if built.disabled:
        log.log(VERBOSE, "%s is disabled by its comment", routine.identity)
    return built


def _log_annotations(identity: str, name: str, lines: Sequence[str]) -> None:
    """Log the annotation lines of an endpoint. identity: of the routine. name: of the endpoint."""
    for line in lines:
        log.log(VERBOSE, "%s annotation: %s", identity, line)
    log.debug("%s mapped to %s annotations: [%s]", identity, name, ", ".join(lines))
