"""Conditions of requests on the version of a row: `If-Match` (RFC 9110, 13.1.1), and the tags of responses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.errors.problems import Problem
from rowcall.core.tables.routines import TableOperation
from rowcall.core.tables.versions import array_of, entity_tag, sent_version, version_key, versions_of
from rowcall.service.request_context.arguments import remove_argument, set_argument
from rowcall.service.request_context.protocols import Headers, leave_uncompressed
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.entity_tag import TaggedProtocol

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

_CHANGED = "the row has another version by now, or does not exist; read it again"


def require_version(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step, behind binding, that fills the version from `If-Match`; None: the endpoint has no version.

    The step raises `Problem` 428 without the header, 412 if no version can match, and 400 for one that is invalid or
    that the endpoint cannot use (`*`, or several versions).
    """
    index = endpoint.version_index
    if index is None:
        return None
    many = isinstance(endpoint.routine.source, TableOperation)
    sent = sent_version(endpoint)

    def fill(context: RequestContext) -> None:
        if sent is not None:
            remove_argument(context, sent)
        headers = context.scope.headers.get_all("if-match")
        if not headers:
            detail = "this request needs the header If-Match with the ETag of the row as it was read"
            raise Problem(428, detail)
        try:
            versions = versions_of(",".join(headers))
        except ValueError as error:
            raise Problem(400, f"the header If-Match: {error}") from None
        if versions is None and many:
            remove_argument(context, index)
            return
        if versions is None:
            raise Problem(400, "the header If-Match: this endpoint needs the version of the row, not *")
        if not versions:
            raise Problem(412, _CHANGED)
        if many:
            set_argument(context, index, array_of(versions))
        elif len(versions) > 1:
            raise Problem(400, "the header If-Match: this endpoint takes one version")
        else:
            set_argument(context, index, versions[0].encode())

    return fill


def check_version(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step behind a write that raises `Problem` 412 if no row had the expected version; None: there is no
    version, or the number of rows does not show whether it was found.
    """
    if endpoint.version_index is None or not counts_rows(endpoint):
        return None

    def check(context: RequestContext) -> None:
        execution = context.execution
        if execution is not None and not execution.streaming and execution.rows == 0:
            raise Problem(412, _CHANGED)

    return check


def counts_rows(endpoint: Endpoint) -> bool:
    """Whether the number of rows of a write shows if it found the version."""
    if isinstance(endpoint.routine.source, TableOperation):
        return True
    return endpoint.shape.path is ResultPath.ROWS and endpoint.shape.named


def tag_with_version(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step after which responses with one row have its version as `ETag`; None: rows have no version, or the
    endpoint only invalidates.
    """
    key = version_key(endpoint)
    if key is None or endpoint.options.invalidates:
        return None

    def tag(context: RequestContext) -> None:
        tags = ",".join(context.scope.headers.get_all("if-none-match"))
        context.protocol = protocol = TaggedProtocol(context.protocol, partial(_tagged, key, tags))
        # Compression would make the tag a weak one, which no `If-Match` can use (RFC 9110, 8.8.3.3 and 13.1.1).
        leave_uncompressed(protocol)

    return tag


def _tagged(key: str, tags: str, status: int, headers: Headers, body: bytes) -> tuple[int, Headers]:
    """Return status and headers, with the entity tag if the response is a success with one row; a tag that it has
    already is replaced. The status becomes 304 if it was 200 and `tags` contains this version or is `*`. key: name of
    the version in the row. tags: value of `If-None-Match`; may be empty."""
    mark = entity_tag(body, key) if 200 <= status < 300 else None
    if mark is None:
        return status, headers
    headers = [field for field in headers if field[0].lower() != "etag"]
    if status == 200 and tags and (tags.strip() == "*" or mark in (item.strip() for item in tags.split(","))):
        return 304, [
            *((name, value) for name, value in headers if not name.lower().startswith("content-")),
            ("etag", mark),
        ]
    return status, [*headers, ("etag", mark)]
