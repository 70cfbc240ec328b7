"""The row of a download: which column has the file, and what its other columns state about the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.capabilities import FileSource
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.errors.diagnostics import Diagnostic

BYTEA, OID = 17, 26


_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_MEDIA_TYPE = re.compile(
    r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:[ \t]*;[ \t]*[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|\"[\x20\x21\x23-\x7e]*\"))*", re.ASCII
)


class DownloadRowError(ValueError):
    """A value of the row cannot be used. The message names the column."""


@dataclass(frozen=True, slots=True)
class DownloadRow:
    """The file that a row describes.

    name: file name for clients; empty: none. source: the kind of column that has the file or says where it is. bucket:
    of a file in an object store; None: the configured bucket, or another kind of file.
    """

    source: FileSource
    value: str
    """The value of the column as PostgreSQL prints it."""
    name: str = ""
    content_type: str | None = None
    modified: float | None = None
    """Seconds since 1970."""
    tag: str | None = None
    """Entity tag, in quotes."""
    bucket: str | None = None
    binary: bool = False
    """The value is the text of a bytea."""


def source_of(endpoint: Endpoint, types: Mapping[int, TypeInfo]) -> FileSource | None:
    """Return the kind of column that has the file; None: no column, or more than one, can have it.

    Columns are recognized by their names, in any case; the column of a result without names by its type. types: by oid.
    """
    shape = endpoint.shape
    if shape.path is ResultPath.SCALAR or (shape.path is ResultPath.ROWS and not shape.named):
        returned = base_of(endpoint.routine.return_type_oid, types)
        oid = endpoint.routine.return_type_oid if returned is None else returned.oid
        return {BYTEA: FileSource.CONTENT, OID: FileSource.LARGE_OBJECT}.get(oid)
    if shape.path is not ResultPath.ROWS:
        return None
    names = {column.column.name.lower() for column in shape.columns}
    sources = [source for source in FileSource if source.value in names]
    return sources[0] if len(sources) == 1 else None


def with_source(endpoint: Endpoint, types: Mapping[int, TypeInfo]) -> Endpoint:
    """Return the endpoint with the kind of column that has its files (`source_of`); unchanged if it is no download."""
    download = endpoint.options.download
    if download is None:
        return endpoint
    download = replace(download, source=source_of(endpoint, types))
    return replace(endpoint, options=replace(endpoint.options, download=download))


def read_row(source: FileSource, cells: Sequence[tuple[str, int, str | None]]) -> DownloadRow | None:
    """Return the file that a row describes; None: the row has no file.

    cells: name, type oid and text (None: NULL) of each column, of which there is at least one. Raises
    `DownloadRowError` for a value of the columns `type`, `modified` and `etag` that cannot be used.
    """
    values = {name.lower(): text for name, _, text in cells if text is not None}
    types = {name.lower(): oid for name, oid, _ in cells}
    value = values.get(source.value) if len(cells) > 1 or source.value in values else next(iter(values.values()), None)
    if value is None:
        return None
    content_type = values.get("type") or None
    if content_type is not None and not _MEDIA_TYPE.fullmatch(content_type):
        raise DownloadRowError(f"type {content_type!r} is no media type")
    return DownloadRow(
        source,
        value,
        values.get("name", ""),
        content_type,
        _moment(values.get("modified")),
        _tag(values.get("etag")),
        values.get("bucket") or None,
        types.get(source.value, cells[0][1]) == BYTEA,
    )


def _moment(text: str | None) -> float | None:
    """Return seconds since 1970, of a time in UTC if it has no offset; None without a text. Raises
    `DownloadRowError`."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise DownloadRowError(f"modified {text!r} is no time") from None


def _tag(text: str | None) -> str | None:
    """Return an entity tag in quotes; None without a text. Raises `DownloadRowError` for a text that cannot be one."""
    if not text:
        return None
    tag = text if text.endswith('"') else f'"{text}"'
    if not _TAG.fullmatch(tag):
        raise DownloadRowError(f"etag {text!r} has characters that an entity tag cannot have")
    return tag


def download_diagnostics(endpoint: Endpoint, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Report `download` beside an annotation that excludes it, or without a column for the file.

    The endpoint is left out. used: line of each applied annotation, by its name.
    """
    download = endpoint.options.download
    if download is None:
        return
    other = next((name for name in _NOT_WITH if name in used), None)
    if other is not None:
        message = f"download cannot be combined with {other}"
    elif download.source is None:
        message = "download needs exactly one of the columns content, file, oid and object in the result"
    else:
        return
    line = used.get("download")
    yield Diagnostic(
        endpoint.routine.identity, line, f"{endpoint.name}: {message}; the endpoint is left out", left_out=1
    )


_NOT_WITH = (
    "cached",
    "etag",
    "idempotent",
    "job",
    "login",
    "logout",
    "mcp",
    "nested_json",
    "proxy",
    "proxy_out",
    "publishes",
    "queryable",
    "raw",
    "schedule",
    "sse",
    "table_format",
    "upload",
    "version_column",
    "void",
)
"""Annotations about results that a download does not have."""
