"""The step that names the endpoint for the request log."""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.log.request_log import logged
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request_context.request_context import RequestContext, Step


def name_endpoint(endpoint: Endpoint, options: WorkerOptions) -> Step | None:
    """Return the first step if requests are logged: it records the name of the endpoint."""
    if not options.request_log:
        return None
    name = f"{endpoint.name} {endpoint.routine.schema}.{endpoint.routine.name}"

    def record_name(context: RequestContext) -> None:
        if (result := logged(context.protocol)) is not None:
            result.endpoint = name

    def record_name_alone(context: RequestContext) -> None:
        """Record name and path template, as the real path contains values."""
        if (result := logged(context.protocol)) is not None:
            result.endpoint = name
            result.path = endpoint.path

    return record_name_alone if endpoint.redacted else record_name
