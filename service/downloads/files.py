"""The kinds of files that can be sent, each with its size, its validators and the way to send a part of it."""

from __future__ import annotations

import logging
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowcall.core.http.files import entity_tag
from rowcall.core.uploads.names import RESERVED
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.response.stream_body import StreamBody
from rowcall.service.response.streaming import PipeBody, client_of_only_response, open_body

if TYPE_CHECKING:
    from rowcall.service.http_client.bucket import Bucket

log = logging.getLogger("rowcall")

CHUNK = 262_144
"""Bytes of a large object that are read at once."""


@dataclass(slots=True)
class File(ABC):
    """A file of `size` bytes, found for one request. tag: entity tag in quotes, empty if unknown. modified: seconds
    since 1970, None if unknown. content_type: None: it follows from the name.
    """

    size: int
    tag: str = ""
    modified: float | None = None
    content_type: str | None = None

    @abstractmethod
    async def send(self, context: RequestContext, status: int, headers: Headers, first: int, end: int) -> None:
        """Respond with the bytes from `first` to before `end`. headers: without the length.

        If the response cannot begin, raises `Problem` or, for an object of an object store, `StoreError`. If the bytes
        cannot be read to the end, the response is cut off.
        """


@dataclass(slots=True)
class BytesInMemory(File):
    """Content that the row contains."""

    data: bytes = b""

    async def send(self, context: RequestContext, status: int, headers: Headers, first: int, end: int) -> None:
        data = self.data if end - first == self.size else self.data[first:end]
        context.protocol.response_bytes(status, headers, data)


@dataclass(slots=True)
class FileOfFolder(File):
    """A file in one of the configured folders. path: on disk. relative: path below the folder."""

    path: str = ""
    folder: int = 0
    """Index of the folder."""
    relative: str = ""

    async def send(self, context: RequestContext, status: int, headers: Headers, first: int, end: int) -> None:
        headers = [*headers, ("content-length", str(end - first))]
        if status == 206:
            context.protocol.response_file_range(status, headers, self.path, first, end)
        else:
            context.protocol.response_file(status, headers, self.path)


def find_file(value: str, folders: Sequence[str]) -> FileOfFolder | None:
    """Return the regular file with this path, relative to a folder or absolute; None if none of the folders contains
    it.

    Symbolic links count as their targets. Unfinished uploads are not found. folders: with symbolic links resolved.
    """
    if not value or "\0" in value or value.endswith("/"):
        return None
    for index, folder in enumerate(folders):
        path = os.path.realpath(os.path.join(folder, value))
        if not path.startswith(f"{folder.rstrip('/')}/"):
            continue
        relative = os.path.relpath(path, folder)
        if any(name.startswith(RESERVED) for name in relative.split("/")):
            continue  # an upload that has not finished
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            tag = entity_tag(status.st_mtime_ns, status.st_size)
            return FileOfFolder(status.st_size, tag, status.st_mtime, None, path, index, relative)
    return None


@dataclass(slots=True)
class LargeObject(File):
    """A large object, read in a transaction with the settings of the request: its content is that of one moment."""

    oid: str = ""
    reader: LargeObjectReader | None = None

    async def send(self, context: RequestContext, status: int, headers: Headers, first: int, end: int) -> None:
        assert self.reader is not None  # noqa: S101 (set by `LargeObjectReader.find`)
        await self.reader.send(self, context, status, headers, first, end)


@dataclass(frozen=True, slots=True)
class LargeObjectReader:
    """Finds and reads large objects for one endpoint. call: call of the routine, with the preamble of the request.
    open, seek, read: calls of the functions of PostgreSQL. time_limit: seconds that a client may take for a chunk.
    """

    database: Database
    call: Call
    open: Call
    seek: Call
    read: Call
    time_limit: float

    async def find(self, oid: str, context: RequestContext) -> LargeObject | None:
        """Return the large object, or None if there is none. Raises `Problem` for another error."""
        transaction = self.database.transaction(self.call, context)
        try:
            async with transaction:
                execution = await transaction.begin_with(self.open, [oid.encode()])
        except Exception:
            if transaction.sqlstate == "42704":
                return None
            raise
        _, size = (execution.body or b"").split(b"\0")
        return LargeObject(int(size), oid=oid, reader=self)

    async def send(
        self, file: LargeObject, context: RequestContext, status: int, headers: Headers, first: int, end: int
    ) -> None:
        async with self.database.transaction(self.call, context) as transaction:
            execution = await transaction.begin_with(self.open, [file.oid.encode()])
            number, size = (execution.body or b"").split(b"\0")
            # The object may have been written meanwhile; the response has the length that its headers state.
            left = end - first if int(size) >= end else 0
            await transaction.run(self.seek, [number, str(first).encode()])
            pending = transaction.send(self.read, [number, str(min(CHUNK, left)).encode()])
            body = _body(context, status, headers, end - first, self.time_limit)
            complete = False
            try:
                while left > 0:
                    data = (await transaction.wait_for_execution(self.read, pending)).body or b""
                    left -= len(data)
                    if left > 0:
                        pending = transaction.send(self.read, [number, str(min(CHUNK, left)).encode()])
                    await body.write(data)
                    if not data:
                        break
                complete = left == 0 and int(size) >= end
            except ClientDisconnectedError:
                pass
            finally:
                await _close(body, context, complete=complete)


@dataclass(slots=True)
class StoredObject(File):
    """An object of an object store. time_limit: seconds that a client may take for a chunk. stored_tag: entity tag of
    the object in the store; `tag` may be that of the row.
    """

    key: str = ""
    bucket: Bucket | None = None
    time_limit: float = 0.0
    stored_tag: str = ""

    async def send(self, context: RequestContext, status: int, headers: Headers, first: int, end: int) -> None:
        bucket = self.bucket
        assert bucket is not None  # noqa: S101 (set where it is made)
        if end == first:
            context.protocol.response_bytes(status, headers, b"")
            return
        from rowcall.service.http_client.bucket import StoreError

        answer = await bucket.open(self.key, first, end, self.stored_tag)
        body = _body(context, status, headers, end - first, self.time_limit)
        left = end - first
        try:
            while left > 0 and (data := (await bucket.next_chunk(answer))[:left]):
                left -= len(data)
                await body.write(data)
        except ClientDisconnectedError:
            left = -1
        except StoreError as error:
            log.warning("%s: the object %s/%s is cut off: %s", context.scope.path, bucket.name, self.key, error)
            left = -1
        finally:
            answer.close()
            await _close(body, context, complete=left == 0)


def _body(
    context: RequestContext, status: int, headers: Headers, length: int, time_limit: float
) -> PipeBody | StreamBody:
    """Begin a response with a body of `length` bytes, which is written in chunks. time_limit: seconds that one chunk
    may wait for the client.
    """
    headers = [*headers, ("content-length", str(length))]
    return open_body(context.protocol, status, headers, time_limit, client_of_only_response(context.scope))


async def _close(body: PipeBody | StreamBody, context: RequestContext, *, complete: bool) -> None:
    """End a response, and its entry in the request log. complete: False: the response is cut off."""
    if complete:
        await body.close()
    else:
        body.abort(client_of_only_response(context.scope))
    protocol: Any = context.protocol
    if (waiting := logging_protocol_of(protocol)) is not None:
        waiting.stream_ended()
