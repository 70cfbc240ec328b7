"""Routines → endpoints, and what the log says about them: the one place where mistakes in comments are reported.

Each mistake is reported once, however often the catalogue is read. What must not be served stops the start with one
error that lists all of it; at a later reading the last good edition stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from rowcall.core.building.endpoint_builder import Built, EndpointDefaults, build_endpoint
from rowcall.core.cache.plan import with_invalidation
from rowcall.core.catalogue.catalog import Catalog, Routine
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.routing import build_router
from rowcall.core.outbound.address import shown_url
from rowcall.core.outbound.request_definition import type_diagnostics
from rowcall.service.log import VERBOSE
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

Exposed = Iterable[tuple[Routine, EndpointDefaults]]
"""What may become an endpoint, with the defaults of its source."""


class EndpointBuilder:
    def __init__(self, settings: Settings) -> None:
        self._logs_endpoints = settings.flag("Service:DebugLogEndpointCreateEvents")
        self._logs_annotations = settings.flag("Service:DebugLogCommentAnnotationEvents")
        self._sends = settings.flag("Service:HttpClientOptions:Enabled")
        self._reported: set[Diagnostic] = set()

    def build(self, found: Iterable[tuple[Catalog, Exposed]]) -> tuple[tuple[Endpoint, ...], ...]:
        """The endpoints of each catalogue, every one with the defaults of its source. One that cannot be built is left
        out and named.

        Raises:
            StartupError: diagnostics that are fatal, all of them.
        """
        diagnostics: list[Diagnostic] = []
        catalogs = tuple(found)
        diagnostics += (diagnostic for catalog, _ in catalogs for diagnostic in catalog.left_out)
        groups = tuple(_endpoints(catalog, exposed, diagnostics) for catalog, exposed in catalogs)
        endpoints = [endpoint for group in groups for endpoint in group]
        if self._sends:
            diagnostics += type_diagnostics(info for catalog, _ in catalogs for info in catalog.types.values())
        fatal = [diagnostic for diagnostic in diagnostics if diagnostic.fatal]
        if not fatal:
            diagnostics += build_router(endpoints)[1]
        self._report(diagnostic for diagnostic in diagnostics if not diagnostic.fatal)
        if fatal:
            raise StartupError("\n  ".join(("these endpoints cannot be served:", *map(str, fatal))))
        for endpoint in endpoints:
            self._log_created(endpoint)
        return groups

    def _report(self, diagnostics: Iterable[Diagnostic]) -> None:
        seen: set[Diagnostic] = set()
        for diagnostic in diagnostics:
            if diagnostic not in self._reported and diagnostic not in seen:
                log.log(logging.INFO if diagnostic.told else logging.WARNING, "%s", diagnostic)
            seen.add(diagnostic)
        # What was mended and comes back is worth another word.
        self._reported = seen

    def _log_created(self, endpoint: Endpoint) -> None:
        if self._logs_endpoints:
            level = logging.INFO if endpoint.options.internal else logging.DEBUG
            kind = "internal endpoint" if endpoint.options.internal else "endpoint"
            log.log(level, "Created %s %s (%s)", kind, endpoint.name, endpoint.routine.identity)
        _log_forwarding(endpoint)
        if self._logs_annotations and log.isEnabledFor(logging.DEBUG):
            _log_annotations(endpoint.routine.identity, endpoint.name, endpoint.annotations)


def _log_forwarding(endpoint: Endpoint) -> None:
    for word, wish in (("proxy", endpoint.options.proxy), ("proxy_out", endpoint.options.proxy_out)):
        if wish is not None:
            host = "Service:ProxyOptions:Host" if wish.url is None else shown_url(wish.url)
            log.info("%s: %s, method %s, host %s", endpoint.name, word, wish.method or "as it comes", host)


def _endpoints(catalog: Catalog, exposed: Exposed, diagnostics: list[Diagnostic]) -> tuple[Endpoint, ...]:
    """Adds to `diagnostics`."""
    endpoints: list[Endpoint] = []
    for routine, defaults in exposed:
        built = _build(routine, catalog, defaults)
        diagnostics += built.diagnostics
        if built.endpoint is not None:
            endpoints.append(built.endpoint)
            forgetting = with_invalidation(built.endpoint, defaults.cache)
            if forgetting is not None:
                endpoints.append(forgetting)
    return tuple(endpoints)


def _build(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> Built:
    try:
        built = build_endpoint(routine, catalog, defaults)
    except Exception:
        log.exception("%s is left out: its endpoint cannot be built", routine.identity)
        return Built(None)
    if built.disabled:
        log.log(VERBOSE, "%s is disabled by its comment", routine.identity)
    return built


def _log_annotations(identity: str, name: str, lines: Sequence[str]) -> None:
    for line in lines:
        log.log(VERBOSE, "%s annotation: %s", identity, line)
    log.debug("%s mapped to %s annotations: [%s]", identity, name, ", ".join(lines))
