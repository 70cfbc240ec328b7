"""What the service does for each request of PostgREST's interface before the interface itself: traces and counts."""

from __future__ import annotations

from rowcall.service.metrics.meters import count_path
from rowcall.service.pipeline.services import Services
from rowcall.service.postgrest.interface import Ahead
from rowcall.service.tracing.request_tracing import trace_path

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def steps_ahead(path: str, services: Services) -> Ahead:
    """Return the steps of requests below a path. Spans and meters have templates of paths, so that there are few."""
    base = path.rstrip("/")
    templates = {False: f"{base}/{{relation}}", True: f"{base}/rpc/{{function}}"}
    steps = {
        (method, calls): (trace_path(method, template, services), count_path(method, template, services))
        for calls, template in templates.items()
        for method in METHODS
    }
    present = {key: tuple(step for step in both if step is not None) for key, both in steps.items()}
    return present if any(present.values()) else {}
