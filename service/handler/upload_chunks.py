"""Routes of resumable uploads, below the path of each endpoint with `resumable`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from rowcall.core.http.router import Route
from rowcall.core.uploads.resumable import ID, SEGMENT, resumes
from rowcall.service.handler.overloads import compile_route
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import Step

log = logging.getLogger("rowcall")

METHODS = ("HEAD", "PATCH", "DELETE", "POST")
"""POST carries the other methods, for clients that cannot send them."""


def chunk_routes(routes: Iterable[Route], services: Services) -> Iterator[tuple[Route, tuple[Step, ...]]]:
    """Yield the routes of upload chunks, with their steps: those of the endpoint, so that a chunk needs the same rights
    as the file. A route has them if all of its overloads are `resumable`; if only some are, a warning is logged.
    routes: of all endpoints."""
    for route in routes:
        if not all(map(resumes, route.candidates)):
            if any(map(resumes, route.candidates)):
                log.warning("%s: resumable has no effect, as not all routines there say so", route.primary.name)
            continue
        steps = compile_route(route, services)
        path = f"{route.path.rstrip('/')}/{SEGMENT}/{{upload}}"
        place = path.removeprefix("/").count("/")
        for method in METHODS:
            yield Route(method, path, route.candidates, (*route.parameters, (place, ID))), steps
