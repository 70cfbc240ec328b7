"""The step that responds with the file which the row of a routine names (RFC 9110, 13 and 14)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from rowcall.core.downloads.disposition import content_disposition, is_passive, safe_name
from rowcall.core.downloads.options import DownloadOptions, SendFile
from rowcall.core.downloads.row import DownloadRow, DownloadRowError, read_row
from rowcall.core.endpoint.capabilities import FileSource
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.files import (
    UNKNOWN,
    UnsatisfiableError,
    byte_range,
    content_type,
    is_unchanged,
    last_modified,
)
from rowcall.core.uploads.options import ObjectStore
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.raw_rows import BytesRenderer
from rowcall.service.database.call import Call
from rowcall.service.database.statements import numbers
from rowcall.service.downloads.files import (
    BytesInMemory,
    File,
    FileOfFolder,
    LargeObjectReader,
    StoredObject,
    find_file,
)
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import rows_of, sql_call
from rowcall.service.request_context.header_values import read_validator
from rowcall.service.request_context.protocols import Headers, leave_uncompressed
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import comment_fields

if TYPE_CHECKING:
    from rowcall.service.http_client.bucket import Bucket

log = logging.getLogger("rowcall")

_ASIDE = 262_144
"""Bytes from which a digest is computed in a thread."""
_OPEN = "select number, lo_lseek64(number, 0, 2) from lo_open($1::oid, 262144) as number"
"""262144: INV_READ. Such a descriptor reads the content of the moment at which it was opened."""


def send_file(endpoint: Endpoint, services: Services, call: Call) -> Step:
    """Return the step that follows the call of the routine, and responds with the file that its first row names. call:
    renders `CellRows`; its attribute `single` is set, so that only the first row is read."""
    call.single = True
    return _Download(endpoint, services, call).respond


class _Download:
    """Sends the files of one endpoint."""

    def __init__(self, endpoint: Endpoint, services: Services, call: Call) -> None:
        download = endpoint.options.download
        assert download is not None  # noqa: S101 (of downloads only)
        assert download.source is not None  # noqa: S101 (others are left out)
        source = download.source
        self._source = source
        self._endpoint = endpoint
        self._options: DownloadOptions = services.options.downloads
        self._inline = download.inline
        self._services = services
        self._time_limit = services.options.http.slow_client
        self._large_objects = _reader(endpoint, services, call) if source is FileSource.LARGE_OBJECT else None

    async def respond(self, context: RequestContext) -> None:
        """Respond with the file, a part of it, 304, or a redirect. Raises `Problem`: 400 for an invalid bucket name,
        404 if there is no file, 416 for a range that it does not have, 500 if it cannot be sent, 502 if the object
        store fails."""
        rows = rows_of(context)
        try:
            row = read_row(self._source, [(cell.name, cell.type_oid, cell.text) for cell in rows[0]]) if rows else None
        except DownloadRowError as error:
            raise self._unusable(str(error)) from None
        if row is None:
            raise Problem(404, "there is no such file")
        seconds = self._options.link_seconds
        # A link is signed for GET, so that HEAD gets the headers from here.
        if seconds is not None and row.source is FileSource.OBJECT and context.scope.method != "HEAD":
            self._redirect(context, row, seconds)
            return
        file = await self._find(row, context)
        if file is None:
            log.warning("%s: the %s that the row names does not exist", self._endpoint.name, row.source.value)
            raise Problem(404, "there is no such file")
        file.tag = row.tag or file.tag
        file.modified = file.modified if row.modified is None else row.modified
        file.content_type = row.content_type or file.content_type
        await self._send(context, row, file)

    def _unusable(self, why: str) -> Problem:
        """Log why the file cannot be sent, and return the 500 for it."""
        log.error("%s: the file cannot be sent: %s", self._endpoint.name, why)
        problem = Problem(500, "the file cannot be sent; the log of the service says why")
        problem.logged = True
        return problem

    # --- the file ----------------------------------------------------------------------------------------------------

    async def _find(self, row: DownloadRow, context: RequestContext) -> File | None:
        """Return the file that the row names, or None if it does not exist. Raises `Problem` if it cannot be read."""
        if row.source is FileSource.CONTENT:
            return await self._content(row)
        if row.source is FileSource.FILE:
            return find_file(row.value, self._options.folders)
        if self._large_objects is not None:
            return await self._large_objects.find(row.value, context)
        return await self._object(row)

    async def _content(self, row: DownloadRow) -> File:
        """Return the content of the row as a file. Raises `Problem` 500 if it is too large."""
        data = bytes.fromhex(row.value[2:]) if row.binary else row.value.encode()
        if len(data) > self._options.largest:
            limit = self._options.largest
            raise self._unusable(
                f"its content has {len(data)} bytes, more than Downloads:LargestContent ({limit}); store larger files "
                "as large objects, in folders or in an object store"
            )
        tag = row.tag
        if tag is None:
            tag = await asyncio.to_thread(_digest, data) if len(data) > _ASIDE else _digest(data)
        return BytesInMemory(len(data), tag, data=data)

    async def _object(self, row: DownloadRow) -> File | None:
        """Return the object of the object store, or None if it does not exist. Raises `Problem` if the store cannot be
        read.
        """
        from rowcall.service.http_client.bucket import StoreError

        bucket = self._bucket(row)
        try:
            headers = await bucket.describe(row.value)
        except StoreError as error:
            if error.status == 404:
                return None
            raise self._unavailable(error) from None
        if "content-length" not in headers:
            raise self._unavailable(StoreError(200, "the size of the object is missing"))
        kind = headers.get("content-type")
        size, tag = int(headers["content-length"]), headers.get("etag", "")
        return StoredObject(size, tag, None, kind, row.value, bucket, self._time_limit, tag)

    def _unavailable(self, error: Exception) -> Problem:
        """Log why the object store cannot be read, and return the 502 for it."""
        log.error("%s: the object store cannot be read: %s", self._endpoint.name, error)
        problem = Problem(502, "the object store does not give the file")
        problem.logged = True
        return problem

    def _bucket(self, row: DownloadRow) -> Bucket:
        """Return the bucket of the row, else the configured one. Raises `Problem`: 400 for an invalid name, 500 without
        an object store.
        """
        from rowcall.service.http_client.bucket import Bucket

        stores = (item for item in self._services.options.uploads.handlers.values() if isinstance(item, ObjectStore))
        store, client = next(stores, None), self._services.client
        if store is None or client is None:
            raise self._unusable("there is no object store; set S3UploadEnabled and the other keys of the handler s3")
        return Bucket(client, store, row.bucket or store.bucket, named=True)

    def _redirect(self, context: RequestContext, row: DownloadRow, seconds: int) -> None:
        """Redirect to the object in the store. seconds: for which the signed link is valid. Raises `Problem` as
        `_bucket` does.
        """
        kind = row.content_type or content_type(row.name or row.value)
        query = {
            "response-content-disposition": self._disposition(row.name or row.value, kind),
            "response-content-type": kind,
        }
        location = self._bucket(row).link(row.value, seconds, query)
        headers = [("location", location), ("cache-control", "no-store"), ("content-length", "0")]
        context.protocol.response_empty(302, headers)

    # --- the response ------------------------------------------------------------------------------------------------

    def _disposition(self, name: str, kind: str) -> str:
        """Return the value of Content-Disposition: `inline` if the comment asks for it and the content type runs no
        scripts, or the options also allow those that do; else `attachment`. name: of the file. kind: its content type.
        """
        shown = self._inline and (self._options.active or is_passive(kind))
        return content_disposition("inline" if shown else "attachment", name)

    async def _send(self, context: RequestContext, row: DownloadRow, file: File) -> None:
        """Respond with the file (200), the requested range (206), 304 if the client has the file already, or with the
        header by which the proxy in front sends the file. Raises `Problem` 416 for a range that the file does not have,
        502 if the object store fails."""
        request, protocol = context.scope.headers, context.protocol
        if not isinstance(file, BytesInMemory):
            leave_uncompressed(protocol)
        name = row.name or (safe_name(row.value) if row.source in (FileSource.FILE, FileSource.OBJECT) else "")
        kind = file.content_type or (content_type(name) if name else UNKNOWN)
        headers: Headers = [(name, value) for name, value in comment_fields(context) if name.lower() not in _OF_FILE]
        if file.tag:
            headers.append(("etag", file.tag))
        date = "" if file.modified is None else last_modified(file.modified)
        if date:
            headers.append(("last-modified", date))
        if context.scope.method in ("GET", "HEAD") and (file.tag or date):
            # Without a time of modification, only the entity tag decides.
            since = None if file.modified is None else request.get("if-modified-since")
            tag = file.tag.removeprefix("W/")
            if is_unchanged(tag, file.modified or time.time(), read_validator(request, "if-none-match"), since):
                protocol.response_empty(304, headers)
                return
        headers += [
            ("accept-ranges", "bytes"),
            ("content-type", kind),
            ("content-disposition", self._disposition(name, kind)),
            ("x-content-type-options", "nosniff"),
        ]
        if isinstance(file, FileOfFolder) and self._options.send_file is not None:
            protocol.response_empty(200, [*headers, self._proxy_header(file, self._options.send_file)])
            return
        try:
            part = None
            if context.scope.method == "GET":
                # A weak tag does not mean equal bytes, so it cannot identify the file of a range (RFC 9110, 13.1.5).
                strong = "" if file.tag.startswith("W/") else file.tag
                part = byte_range(request.get("range"), read_validator(request, "if-range"), strong, date, file.size)
        except UnsatisfiableError:
            size = ("content-range", f"bytes */{file.size}")
            raise Problem(416, f"the file has {file.size} bytes", headers=(size,)) from None
        if context.scope.method == "HEAD":
            protocol.response_empty(200, [*headers, ("content-length", str(file.size))])
        elif part is None:
            await self._send_part(context, file, 200, headers, 0, file.size)
        else:
            headers.append(("content-range", f"bytes {part[0]}-{part[1] - 1}/{file.size}"))
            await self._send_part(context, file, 206, headers, *part)

    async def _send_part(
        self, context: RequestContext, file: File, status: int, headers: Headers, first: int, end: int
    ) -> None:
        """Respond with the bytes from `first` to before `end`. Raises `Problem` 502 if the object store fails."""
        if not isinstance(file, StoredObject):
            await file.send(context, status, headers, first, end)
            return
        from rowcall.service.http_client.bucket import StoreError

        try:
            await file.send(context, status, headers, first, end)
        except StoreError as error:
            raise self._unavailable(error) from None

    def _proxy_header(self, file: FileOfFolder, header: SendFile) -> tuple[str, str]:
        """Return name and value of the header that makes the proxy in front of the service send the file: the path on
        disk for Apache, else a location below the configured one. header: the configured kind."""
        if header is SendFile.APACHE:
            return header.value, file.path
        location = self._options.location.rstrip("/")
        return header.value, f"{location}{f'-{file.folder + 1}' if file.folder else ''}/{quote(file.relative)}"


_OF_FILE = frozenset({"etag", "last-modified", "accept-ranges", "content-disposition", "content-length"})
"""Headers that describe the file, and not the endpoint."""


def _digest(data: bytes) -> str:
    return f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"'


def _reader(endpoint: Endpoint, services: Services, call: Call) -> LargeObjectReader:
    own = partial(sql_call, f"{endpoint.name} large object", services=services)
    read = own("select loread($1::int, $2::int)", 2)
    renderer = BytesRenderer(True)
    read.made = lambda _mask: Statement(next(numbers), b"select loread($1::int, $2::int)", 2, renderer)
    return LargeObjectReader(
        services.database,
        call,
        own(_OPEN, 1),
        own("select lo_lseek64($1::int, $2::bigint, 0)", 2),
        read,
        services.options.http.slow_client,
    )
