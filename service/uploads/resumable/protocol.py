"""The requests of the tus protocol to an endpoint (https://tus.io/protocols/resumable-upload).

`resume` responds to all requests except the one with the last byte. That one continues through the other steps, as a
form does, and `take_uploads` passes its file to the handlers. Until they and the routine have succeeded, the last byte
does not count: the offset that a client receives excludes it, so the client sends it again, and thereby starts another
attempt.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.resumable import (
    CONTENT_TYPE,
    ID,
    SEGMENT,
    VERSION,
    HeaderError,
    StoredState,
    file_of,
    resumes,
    upload_checksum,
    upload_concat,
    whole_number,
)
from rowcall.service.database.call import Call
from rowcall.service.request.body import body_chunks
from rowcall.service.request_context.client_address import address_reader
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.protocols import Headers, HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.request_context.surroundings import with_tenant
from rowcall.service.uploads.digests import with_digest_check
from rowcall.service.uploads.incoming_files import File, read_back
from rowcall.service.uploads.progress import with_progress_of_part
from rowcall.service.uploads.receiving import UploadStep
from rowcall.service.uploads.resumable.parts import Part, Parts, UploadState, run_in_thread
from rowcall.service.uploads.resumable.responses import RETURNED, TusResponseProtocol, find_tus_protocol

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

_AGAIN = frozenset({401, 403, 408, 409, 423, 429})
"""Statuses of refusals that may not occur at another attempt."""


def parts_of(services: Services) -> Parts:
    """Return the resumable uploads of this worker, which all schema snapshots share."""
    options = services.options.uploads.resumable
    return services.host.get_or_create("uploads:resumable", lambda: Parts(options, services.host.message_bus))


def take_uploads(endpoint: Endpoint, call: Call, services: Services) -> Step:
    """Return the step that stores the files of a request, and runs the routine."""
    receiving = UploadStep(endpoint, call, services)
    return partial(_take, receiving, parts_of(services)) if resumes(endpoint) else receiving.receive


class ResumableUploadStep:
    """The step of one endpoint that responds to tus requests: creating, appending, asking for the state, and
    terminating. A request that completes an upload, and a form, continue to the next steps. The step is the method
    `step`."""

    def __init__(self, endpoint: Endpoint, services: Services) -> None:
        self._key = f"{endpoint.name} {endpoint.routine.identity}"
        self._tenant = endpoint.options.tenant
        self._parts = parts_of(services)
        self._options = services.options.uploads.resumable
        self._time_limit = services.options.http.slow_client
        self._address = address_reader(services.options.forwarding)
        assert endpoint.options.upload is not None  # noqa: S101 (asked only for endpoints that take files)
        self._hear = services.hear(endpoint) if endpoint.options.upload.progress else None

    def step(self, context: RequestContext) -> Waiting:
        """Respond to a tus request, unless it completes an upload; a form continues. Raises `Problem`."""
        headers = context.scope.headers
        id = context.values.get(ID)
        version = headers.get("tus-resumable")
        if id is None and version is None:
            return None  # a form
        context.protocol = HeadersProtocol(context.protocol, [("tus-resumable", VERSION)])
        method = read_header(headers, "x-http-method-override") or context.scope.method
        if version != VERSION:
            raise _with_connection_close(
                context,
                Problem(412, f"the header Tus-Resumable has to be {VERSION}", headers=(("tus-version", VERSION),)),
            )
        if id is None:
            return self._run_work(context, self._create)
        if method not in ("HEAD", "PATCH", "DELETE"):
            allowed = (("allow", "DELETE, HEAD, OPTIONS, PATCH"),)
            raise _with_connection_close(
                context, Problem(405, f"an upload does not support the method {method[:20]}", headers=allowed)
            )
        ways = {"HEAD": self._head, "PATCH": self._append_chunk, "DELETE": self._terminate}
        return self._run_work(context, partial(ways[method], id=id))

    async def _run_work(self, context: RequestContext, work: Callable[[RequestContext], Awaitable[None]]) -> None:
        """Run the work for a request. Raises `Problem` if it fails; if the request may have a body, the connection is
        closed after the response (`_with_connection_close`)."""
        try:
            await work(context)
        except HeaderError as error:
            raise _with_connection_close(context, Problem(400, str(error))) from None
        except Problem as problem:
            raise _with_connection_close(context, problem) from None

    # --- the requests ------------------------------------------------------------------------------------------------

    async def _create(self, context: RequestContext) -> None:
        """Create an upload and respond, or concatenate others (POST). The body may be the first chunk.

        If the upload is complete, as a concatenated one always is, the request continues to the handlers instead; a
        part for a later concatenation never does. Raises `Problem` and `HeaderError`.
        """
        headers = context.scope.headers
        is_part, part_ids = upload_concat(read_header(headers, "upload-concat"))
        metadata = read_header(headers, "upload-metadata")
        file = file_of(metadata)
        if part_ids:
            await self._concatenate(context, part_ids, metadata, file)
            return
        length = self._length(headers)
        stored_state = StoredState(self._key, self._owner(context), length, metadata, "partial" if is_part else None)
        id = await run_in_thread(partial(self._parts.create, stored_state, length or 0, self._client(context)))
        with await self._lock_upload(context, id) as part:
            if headers.get("content-type") == CONTENT_TYPE:
                await self._append(context, part)
            await self._answer(context, part, 201, [("location", _location(context, id))])

    def _client(self, context: RequestContext) -> str:
        """Return the client for the limits of unfinished uploads: a digest of the signed-in user, or of the address."""
        user = context.user
        client = (self._address(context.scope) or b"") if user is None else orjson.dumps(user.subject)
        return hashlib.sha256(client).hexdigest()[:32]

    def _length(self, headers: Any) -> int | None:
        """Return the announced length; None if it is deferred. Raises `HeaderError`, and `Problem` 413."""
        if headers.get("upload-defer-length") is None:
            return self._check_length(whole_number("Upload-Length", headers.get("upload-length")))
        if headers.get("upload-defer-length") != "1" or headers.get("upload-length") is not None:
            raise HeaderError("the header Upload-Defer-Length must be 1, and must not be sent with Upload-Length")
        return None

    def _check_length(self, length: int) -> int:
        """Return the length. Raises `Problem` 413 if it is beyond the limit."""
        if length > self._options.max_size:
            raise Problem(413, f"the file is larger than {self._options.max_size} bytes")
        return length

    async def _head(self, context: RequestContext, id: str) -> None:
        """Respond with the state of an upload (HEAD). Raises `Problem` 404 if the caller has no such upload."""
        state = await run_in_thread(partial(self._parts.state_of, id))
        if state is None or not self._may(context, state.stored_state):
            raise _not_found_problem()
        stored_state = state.stored_state
        response_headers = [("cache-control", "no-store"), ("upload-offset", str(state.offset)), *_expiry(state)]
        response_headers.append(
            ("upload-defer-length", "1") if stored_state.length is None else ("upload-length", str(stored_state.length))
        )
        if stored_state.metadata:
            response_headers.append(("upload-metadata", stored_state.metadata))
        if stored_state.concat:
            response_headers.append(("upload-concat", stored_state.concat))
        _send_empty_response(context, 200, response_headers)

    async def _append_chunk(self, context: RequestContext, id: str) -> None:
        """Append a chunk to an upload (PATCH), unless the upload is done already, and respond as `_answer` does. The
        header `Upload-Length` sets a length that was deferred. Raises `Problem` and `HeaderError`."""
        headers = context.scope.headers
        if headers.get("content-type") != CONTENT_TYPE:
            raise Problem(415, f"a chunk of an upload must have the Content-Type {CONTENT_TYPE}")
        offset = whole_number("Upload-Offset", headers.get("upload-offset"))
        with await self._lock_upload(context, id) as part:
            if offset != part.offset:
                current_offset = (("upload-offset", str(part.offset)),)
                raise Problem(
                    409, f"{part.offset} bytes have arrived; Upload-Offset says {offset}", headers=current_offset
                )
            if part.stored_state.length is None and headers.get("upload-length") is not None:
                length = self._check_length(whole_number("Upload-Length", headers.get("upload-length")))
                if length < offset:
                    raise HeaderError("the header Upload-Length is less than the bytes that have arrived")
                await run_in_thread(partial(part.set_length, length))
            if not part.stored_state.done:
                await self._append(context, part)
            await self._answer(context, part, 204, [])

    async def _terminate(self, context: RequestContext, id: str) -> None:
        """Terminate an upload (DELETE). Raises `Problem` as `_lock_upload` does."""
        with await self._lock_upload(context, id, ends=True) as part:
            await run_in_thread(part.remove)
        _send_empty_response(context, 204, [])

    async def _concatenate(
        self, context: RequestContext, ids: tuple[str, ...], metadata: str | None, file: tuple[str, str]
    ) -> None:
        """Concatenate uploads, whose file continues to the handlers. Raises `Problem`: 404 if the caller has no such
        upload, 409 if one is not complete, 413 if the file is too large, and for errors of the disk. ids: of the parts,
        in their order. metadata: header `Upload-Metadata`. file: name and content type.
        """
        length = 0
        for id in ids:
            part = await run_in_thread(partial(self._parts.state_of, id))
            if part is None or not self._may(context, part.stored_state) or not part.stored_state.partial:
                raise Problem(404, f"there is no part {id}")
            if part.stored_state.length != part.offset:
                raise Problem(409, f"the part {id} is not complete")
            length = self._check_length(length + part.offset)
        stored_state = StoredState(
            self._key, self._owner(context), length, metadata, context.scope.headers.get("upload-concat")
        )
        final = await run_in_thread(partial(self._parts.create, stored_state, 0, None))
        # No limit counts it, so it must not remain, whichever step ends the request.
        context.at_end(lambda _context, _error: self._parts.forget_unless_done(final))
        self._complete(context, [("location", _location(context, final))], 201, ids, file, final)

    # --- chunks ------------------------------------------------------------------------------------------------------

    async def _lock_upload(self, context: RequestContext, id: str, *, ends: bool = False) -> Part:
        """Return the locked upload.

        Raises `Problem`: 404 if the caller has no such upload, 403 for chunks of an upload that was concatenated from
        others, and as `Parts.take` does. ends: the upload is terminated, which a concatenated one can be.
        """
        state = await run_in_thread(partial(self._parts.state_of, id))
        if state is None or not self._may(context, state.stored_state):
            raise _not_found_problem()
        if state.stored_state.concat is not None and not state.stored_state.partial and not ends:
            raise Problem(403, "this upload was concatenated from others and accepts no chunks")
        part = await self._parts.take(id)
        if part is None:
            raise _not_found_problem()
        return part

    def _may(self, context: RequestContext, stored_state: StoredState) -> bool:
        """Return whether the caller may use the upload at this endpoint: only the user who has created it; if an
        anonymous caller has created it, any anonymous caller. Requests of another tenant may not."""
        return stored_state.endpoint == self._key and stored_state.owner == self._owner(context)

    def _owner(self, context: RequestContext) -> str | None:
        """Return a digest of the signed-in user and of the tenant of the request; None for an anonymous caller without
        a tenant."""
        user = context.user
        owner = with_tenant(b"" if user is None else orjson.dumps(user.subject), self._tenant, context)
        return hashlib.sha256(owner).hexdigest() if owner else None

    async def _append(self, context: RequestContext, part: Part) -> None:
        """Append the body of the request. If its digest is wrong, nothing of it counts. Raises `HeaderError` for an
        invalid checksum, and `Problem`: 460 or 400 for a wrong digest, and as `Parts.append` does.
        """
        scope, length = context.scope, part.stored_state.length
        begins = part.offset
        await run_in_thread(partial(part.truncate, begins))
        checksum = read_header(scope.headers, "upload-checksum")
        algorithm, digest = ("", b"") if checksum is None else upload_checksum(checksum)
        computed = hashlib.new(algorithm, usedforsecurity=False) if algorithm else None
        # No byte of a chunk counts before its digest is verified, whatever happens to this process.
        checked = computed is not None or "content-digest" in scope.headers
        valid_bytes = begins if checked else None
        if part.stored_state.settled != valid_bytes:
            await run_in_thread(partial(part.save, settled=valid_bytes))
        room = (self._options.max_size if length is None else length) - begins
        pieces = with_digest_check(scope, body_chunks(scope, context.protocol, room, self._time_limit))
        if self._hear is not None:
            pieces = with_progress_of_part(pieces, self._hear(context), begins, length)
        try:
            await self._parts.append(part, pieces, None if computed is None else computed.update)
            _check(None if computed is None else computed.digest(), digest)
        except BaseException:
            if checked:
                part.truncate(begins)
            raise
        finally:
            if checked:
                part.save(settled=None)

    async def _answer(self, context: RequestContext, part: Part, status: int, headers: Headers) -> None:
        """Send the response to a chunk; after the last chunk of an upload, let the request continue to the handlers
        instead. For a part of a later concatenation, and for an upload that is done already, always send the response.
        status, headers: of the response."""
        stored_state, size = part.stored_state, part.size
        headers = [*headers, ("upload-offset", str(part.offset))]
        if stored_state.done or stored_state.partial or stored_state.length != size:
            state = await run_in_thread(partial(self._parts.state_of, part.id))
            _send_empty_response(context, status, headers if state is None else [*headers, *_expiry(state)])
            return
        await run_in_thread(partial(part.save, settled=max(0, size - 1)))
        self._complete(context, headers, status, (part.id,), file_of(stored_state.metadata), None)

    def _complete(
        self,
        context: RequestContext,
        headers: Headers,
        status: int,
        ids: tuple[str, ...],
        file: tuple[str, str],
        final: str | None,
    ) -> None:
        """Let the request continue to the handlers, with a protocol that turns the response into that of tus. headers,
        status: of the response. ids, file, final: as for `TusResponseProtocol`.
        """
        preferences = (context.scope.headers.get("prefer") or "").replace(" ", "").lower()
        returns = RETURNED in preferences.split(",")
        context.protocol = TusResponseProtocol(
            context.protocol, headers, status, ids, file, final=final, returns=returns
        )


def _check(actual: bytes | None, expected: bytes) -> None:
    """Raise `Problem` 460 if the digests differ. actual: of the chunk; None if the client has sent no checksum."""
    if actual is not None and actual != expected:
        raise Problem(
            460, "the chunk does not match the digest of the header Upload-Checksum", title="Checksum Mismatch"
        )


# --- the last chunk --------------------------------------------------------------------------------------------------


async def _take(receiving: UploadStep, parts: Parts, context: RequestContext) -> None:
    """Store the files of a request: those of a complete upload, or of a form. If the routine has run for the upload
    before, only the response is sent. If storing fails, a concatenated upload is removed, and its parts stay; another
    upload is removed if a new attempt would fail in the same way.

    Raises `Problem`: 404 if the upload does not exist any more, 409 if another request continues it, and as
    `Parts.take` and `UploadStep.receive` do.
    """
    ready = find_tus_protocol(context.protocol)
    if ready is None:
        await receiving.receive(context)
        return
    with contextlib.ExitStack() as stack:
        taken_parts: list[Part] = []
        for id in ready.ids:
            part = await parts.take(id)
            if part is None:
                raise _not_found_problem()
            taken_parts.append(stack.enter_context(part))
        if any(part.stored_state.done for part in taken_parts):
            ready.answer()
            context.follow(())
            return
        if any(part.stored_state.length != part.size for part in taken_parts):
            raise Problem(409, "another request continues this upload")
        try:
            await receiving.receive(context, partial(_file, ready, taken_parts))
        except BaseException as error:
            if isinstance(error, Problem) and _is_final(error) and ready.final is None:
                taken_parts[0].remove()
            raise
        await run_in_thread(partial(_finish, parts, ready, taken_parts))


def _is_final(problem: Problem) -> bool:
    """Return whether another attempt would fail in the same way."""
    return problem.status < 500 and problem.status not in _AGAIN


async def _file(ready: TusResponseProtocol, parts: list[Part]) -> AsyncIterator[File]:
    """Yield the one file of a complete upload. parts: its uploads, in their order."""
    yield File(ready.name, ready.content_type, _bytes_of(parts))


async def _bytes_of(parts: list[Part]) -> AsyncIterator[bytes]:
    for part in parts:
        async for piece in read_back(part.file):
            yield piece


def _finish(parts: Parts, ready: TusResponseProtocol, stored: list[Part]) -> None:
    """Mark the upload as done, and remove the parts of a concatenated one. stored: the uploads, locked. The transaction
    is committed, so an error here is logged and must not fail the request.
    """
    try:
        if ready.final is None:
            stored[0].finish()
            return
        parts.mark_done(ready.final)
        for part in stored:
            part.remove()
    except OSError as error:
        log.error("an upload has succeeded but could not be marked as done: %s", error)


# --- common parts of the responses -----------------------------------------------------------------------------------


def _send_empty_response(context: RequestContext, status: int, headers: Headers) -> None:
    """Send an empty response, and end the request."""
    context.protocol.response_empty(status, headers)
    # An awaited step ends the request by removing the steps behind it.
    context.follow(())


def _expiry(upload: UploadState) -> Headers:
    """Return the header `Upload-Expires`; none for an upload that is done."""
    return [] if upload.stored_state.done else [("upload-expires", formatdate(upload.expires, usegmt=True))]


def _not_found_problem() -> Problem:
    """Return the 404 for an upload that does not exist, or not for the caller."""
    return Problem(404, "there is no such upload; it may have expired")


def _with_connection_close(context: RequestContext, problem: Problem) -> Problem:
    """Return the problem with a header that lets the connection be closed after it, if the request may have a body,
    whose rest is not read.
    """
    scope = context.scope
    if scope.method in ("POST", "PATCH") and scope.headers.get("content-length") != "0":
        problem.headers = (*(item for item in problem.headers if item[0] != "connection"), ("connection", "close"))
    return problem


def _location(context: RequestContext, id: str) -> str:
    """Return the URL of the upload, relative to that of the request, which a proxy may have rewritten."""
    scope = context.scope
    last = scope.path.rpartition("/")[2]
    base = f"./{quote(last, safe='').replace('%252F', '%2F')}/" if last else ""
    query = f"?{scope.query_string}" if scope.query_string else ""
    return f"{base}{SEGMENT}/{id}{query}"
