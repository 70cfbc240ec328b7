"""Conditions of requests on the version of a row: `If-Match` and `If-None-Match` (RFC 9110, 13.1), and the tags of
responses.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rowcall.core.binding.json_values import Reader
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.errors.problems import Problem
from rowcall.core.tables.routines import TableOperation
from rowcall.core.tables.versions import (
    IF_MATCH,
    READING,
    array_of,
    entity_tag,
    excluded_versions,
    is_insert,
    version_key,
    version_parameter_index,
    versions_of,
)
from rowcall.ext.driver.execution import Script
from rowcall.service.request_context.arguments import remove_argument, set_argument
from rowcall.service.request_context.header_values import read_header_lines
from rowcall.service.request_context.protocols import Headers, leave_uncompressed
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.entity_tag import TaggedProtocol

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

_CHANGED = "the row has another version by now, or does not exist; read it again"
_EXISTS = "the row exists already"
_EXCLUDED = "the header If-None-Match excludes the version in If-Match; leave it out"


def require_version(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step after binding that sets the parameter for the version from `If-Match`; None: the endpoint has no
    version. For a table, it drops a value that the request supplies for the column of the version, passes several
    versions as an array, without those that are no values of the column's type, and for `*` no version, so that each
    one is accepted.

    The step raises `Problem`: 428 without the header; 412 if no version can match, or `If-None-Match` excludes all of
    them; 400 for headers that are invalid, or that the endpoint cannot use (`*` or several versions, except for a
    table).
    """
    index = endpoint.version_index
    if index is None:
        return None
    if is_insert(endpoint):
        return partial(_require_absence, index)
    many = isinstance(endpoint.routine.source, TableOperation)
    sent = version_parameter_index(endpoint)
    reader = None if sent is None else Reader.of(IF_MATCH, endpoint.parameters[sent], services.options.timestamps_utc)

    def fill(context: RequestContext) -> None:
        if sent is not None:
            remove_argument(context, sent)
        headers = read_header_lines(context.scope.headers, "if-match")
        if not headers:
            detail = "this request needs the header If-Match with the ETag of the row as it was read"
            raise Problem(428, detail)
        try:
            versions = versions_of(",".join(headers))
        except ValueError as error:
            raise Problem(400, f"the header If-Match: {error}") from None
        excluding = read_header_lines(context.scope.headers, "if-none-match")
        if excluding:
            versions = _not_excluded(versions, ",".join(excluding))
        if versions is None and many:
            remove_argument(context, index)
            return
        if versions is None:
            raise Problem(400, "the header If-Match: this endpoint needs the version of the row, not *")
        if not versions:
            raise Problem(412, _CHANGED)
        if many:
            # A single one is refused by the server, with the reason.
            fitting = versions if reader is None else tuple(item for item in versions if _is_readable(reader, item))
            set_argument(context, index, array_of(fitting or versions))
        elif len(versions) > 1:
            raise Problem(400, "the header If-Match: this endpoint takes one version")
        else:
            set_argument(context, index, versions[0].encode())

    return fill


def _is_readable(reader: Reader, text: str) -> bool:
    """Return whether the text is a value of the type of the reader."""
    try:
        reader.convert_text(text)
    except ValueError:
        return False
    return True


def _require_absence(index: int, context: RequestContext) -> None:
    """Set the parameter of an insert that leaves an existing row unchanged if the request has `If-None-Match: *`.

    Raises `Problem` 400 for another value: whether a row has one of the versions is not compared. index: of the
    parameter.
    """
    header = ",".join(read_header_lines(context.scope.headers, "if-none-match"))
    if not header:
        remove_argument(context, index)
    elif header.strip() == "*":
        set_argument(context, index, b"true")
    else:
        raise Problem(400, "the header If-None-Match: an insert supports only *, with which no row may exist")


def _not_excluded(versions: tuple[str, ...] | None, header: str) -> tuple[str, ...] | None:
    """Return the versions of `If-Match` without those of `If-None-Match`. versions: None: `If-Match: *`. header: value
    of `If-None-Match`.

    Raises `Problem`: 412 if none is left; 400 if the header is invalid, or names versions together with `If-Match: *`.
    """
    try:
        excluded = excluded_versions(header)
    except ValueError as error:
        raise Problem(400, f"the header If-None-Match: {error}") from None
    if excluded is None:
        raise Problem(412, _EXCLUDED)
    if versions is None:
        raise Problem(400, "the header If-None-Match: versions cannot be excluded together with If-Match: *")
    left = tuple(version for version in versions if version not in excluded)
    if versions and not left:
        raise Problem(412, _EXCLUDED)
    return left


def check_version(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step behind a write that raises `Problem` 412 if no row had the expected version, or if an insert that
    requires the absence of its row has inserted none; None: there is no version, or the number of rows does not show
    whether it was found.
    """
    index = endpoint.version_index
    if index is None or not counts_rows(endpoint):
        return None
    inserts = is_insert(endpoint)

    def check(context: RequestContext) -> None:
        execution = context.execution
        if execution is None or execution.streaming:
            return
        # Behind the write, a script reads the response that SQL sets.
        if execution.first_rows if isinstance(execution.statement, Script) else execution.rows:
            return
        if not inserts:
            raise Problem(412, _CHANGED)
        if context.mask >> index & 1:
            raise Problem(412, _EXISTS)

    return check


def counts_rows(endpoint: Endpoint) -> bool:
    """Whether the number of rows of a write shows if it found the version."""
    if isinstance(endpoint.routine.source, TableOperation):
        return True
    return endpoint.shape.path is ResultPath.ROWS and endpoint.shape.named


def tag_with_version(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step after which responses with one row have its version as `ETag`, and no response is compressed;
    None: rows have no version, or the endpoint only invalidates."""
    key = version_key(endpoint)
    if key is None or endpoint.options.invalidates:
        return None

    reads = endpoint.method in READING

    def tag(context: RequestContext) -> None:
        sent = ",".join(context.scope.headers.get_all("if-none-match")) if reads else ""
        context.protocol = protocol = TaggedProtocol(context.protocol, partial(_with_entity_tag, key, sent))
        # Compression would make the tag a weak one, which no `If-Match` can use (RFC 9110, 8.8.3.3 and 13.1.1).
        leave_uncompressed(protocol)

    return tag


def _with_entity_tag(key: str, sent: str, status: int, headers: Headers, body: bytes) -> tuple[int, Headers]:
    """Return status and headers, with the entity tag if the response is a success with one row; a tag that it has
    already is replaced. The status becomes 304 if it was 200 and `sent` contains this version or is `*`. key: name of
    the version in the row. sent: `If-None-Match` of a request that reads; empty for others and without the header.
    """
    mark = entity_tag(body, key) if 200 <= status < 300 else None
    if mark is None:
        return status, headers
    headers = [field for field in headers if field[0].lower() != "etag"]
    if status == 200 and sent and _contains_tag(sent, mark):
        return 304, [
            *((name, value) for name, value in headers if not name.lower().startswith("content-")),
            ("etag", mark),
        ]
    return status, [*headers, ("etag", mark)]


def _contains_tag(sent: str, mark: str) -> bool:
    """Return whether the value of `If-None-Match` is `*` or contains the tag. An invalid value contains none."""
    try:
        excluded = excluded_versions(sent)
        return excluded is None or any(version in excluded for version in versions_of(mark) or ())
    except ValueError:
        return False
