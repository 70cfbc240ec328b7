"""The step of resumable uploads and the headers of responses to OPTIONS, which are determined for every endpoint. The
modules that receive uploads are imported when an endpoint has uploads: most services have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.uploads.resumable import ALGORITHMS, EXTENSIONS, VERSION, resumes
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def options_headers(services: Services) -> Headers:
    """Return the headers of the response to OPTIONS, which describe what resumable uploads support."""
    return [
        ("tus-resumable", VERSION),
        ("tus-version", VERSION),
        ("tus-extension", EXTENSIONS),
        ("tus-checksum-algorithm", ",".join(ALGORITHMS)),
        ("tus-max-size", str(services.options.uploads.resumable.max_size)),
    ]


def resume(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that responds to all requests of an upload but the last; None: the endpoint has no resumable
    uploads.
    """
    if not resumes(endpoint):
        return None
    from rowcall.service.uploads.resumable.protocol import ResumableUploadStep

    return ResumableUploadStep(endpoint, services).step
