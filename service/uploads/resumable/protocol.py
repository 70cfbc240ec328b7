"""The requests of tus to an endpoint (https://tus.io/protocols/resumable-upload).

`resume` answers all of them but the one that brings the last byte. That one goes on through the other steps, as a form
does, and `take_uploads` gives its file to the handlers. Until they and the routine have succeeded the last byte does
not count: a client that asks is told that it is missing, sends it again, and with it starts another attempt.
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
    ALGORITHMS,
    CONTENT_TYPE,
    EXTENSIONS,
    SEGMENT,
    VERSION,
    About,
    HeaderError,
    file_of,
    upload_checksum,
    upload_concat,
    whole_number,
)
from rowcall.service.database.call import Call
from rowcall.service.request.body import body_pieces
from rowcall.service.request_context.client_address import address_reader
from rowcall.service.request_context.protocols import Headers, HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.uploads.digests import digested
from rowcall.service.uploads.incoming import File, read_back
from rowcall.service.uploads.progress import told_of_part
from rowcall.service.uploads.receiving import Receiving
from rowcall.service.uploads.resumable.parts import Known, Part, Parts, aside
from rowcall.service.uploads.resumable.responses import RETURNED, Completed, completed

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

ID = ":resumable"
"""Of the segment with the id, which no parameter is called."""
_AGAIN = frozenset({401, 403, 408, 409, 423, 429})
"""Refusals that another attempt may not get."""


def announced(services: Services) -> Headers:
    """What OPTIONS tells."""
    return [
        ("tus-resumable", VERSION),
        ("tus-version", VERSION),
        ("tus-extension", EXTENSIONS),
        ("tus-checksum-algorithm", ",".join(ALGORITHMS)),
        ("tus-max-size", str(services.options.uploads.resumable.max_size)),
    ]


def resumes(endpoint: Endpoint) -> bool:
    return endpoint.options.upload is not None and endpoint.options.upload.resumable


def parts_of(services: Services) -> Parts:
    options = services.options.uploads.resumable
    return services.host.once("uploads:resumable", lambda: Parts(options, services.host.message_bus))


def resume(endpoint: Endpoint, services: Services) -> Step | None:
    return _Resuming(endpoint, services).step if resumes(endpoint) else None


def take_uploads(endpoint: Endpoint, call: Call, services: Services) -> Step:
    """The step that takes the files of a request, and runs the routine."""
    receiving = Receiving(endpoint, call, services)
    return partial(_take, receiving, parts_of(services)) if resumes(endpoint) else receiving.receive


class _Resuming:
    """Of one endpoint."""

    def __init__(self, endpoint: Endpoint, services: Services) -> None:
        self._key = f"{endpoint.name} {endpoint.routine.identity}"
        self._parts = parts_of(services)
        self._options = services.options.uploads.resumable
        self._time_limit = services.options.http.slow_client
        self._address = address_reader(services.options.forwarding)
        assert endpoint.options.upload is not None  # noqa: S101 (asked only for endpoints that take files)
        self._hear = services.hear(endpoint) if endpoint.options.upload.progress else None

    def step(self, context: RequestContext) -> Waiting:
        headers = context.scope.headers
        id = context.values.get(ID)
        version = headers.get("tus-resumable")
        if id is None and version is None:
            return None  # a form
        context.protocol = HeadersProtocol(context.protocol, [("tus-resumable", VERSION)])
        method = headers.get("x-http-method-override") or context.scope.method
        if version != VERSION:
            raise _closing(
                context,
                Problem(412, f"the header Tus-Resumable has to be {VERSION}", headers=(("tus-version", VERSION),)),
            )
        if id is None:
            return self._guarded(context, self._create)
        if method not in ("HEAD", "PATCH", "DELETE"):
            allowed = (("allow", "DELETE, HEAD, OPTIONS, PATCH"),)
            raise _closing(context, Problem(405, f"an upload does not answer {method[:20]}", headers=allowed))
        ways = {"HEAD": self._tell, "PATCH": self._go_on, "DELETE": self._end}
        return self._guarded(context, partial(ways[method], id=id))

    async def _guarded(self, context: RequestContext, work: Callable[[RequestContext], Awaitable[None]]) -> None:
        try:
            await work(context)
        except HeaderError as error:
            raise _closing(context, Problem(400, str(error))) from None
        except Problem as problem:
            raise _closing(context, problem) from None

    # --- the requests ------------------------------------------------------------------------------------------------

    async def _create(self, context: RequestContext) -> None:
        headers = context.scope.headers
        is_part, parts = upload_concat(headers.get("upload-concat"))
        metadata = headers.get("upload-metadata")
        file = file_of(metadata)
        if parts:
            await self._join(context, parts, metadata, file)
            return
        length = self._length(headers)
        about = About(self._key, owner(context), length, metadata, "partial" if is_part else None)
        id = await aside(partial(self._parts.create, about, length or 0, self._client(context)))
        with await self._taken(context, id) as part:
            if headers.get("content-type") == CONTENT_TYPE:
                await self._append(context, part)
            await self._answer(context, part, 201, [("location", _location(context, id))])

    def _client(self, context: RequestContext) -> str:
        """Whose it is among those that wait: a digest of who has signed in, or of the address."""
        known = owner(context)
        if known is None:
            known = hashlib.sha256(self._address(context.scope) or b"").hexdigest()
        return known[:32]

    def _length(self, headers: Any) -> int | None:
        if headers.get("upload-defer-length") is None:
            return self._fitting(whole_number("Upload-Length", headers.get("upload-length")))
        if headers.get("upload-defer-length") != "1" or headers.get("upload-length") is not None:
            raise HeaderError("the header Upload-Defer-Length is 1, and stands in place of Upload-Length")
        return None

    def _fitting(self, length: int) -> int:
        if length > self._options.max_size:
            raise Problem(413, f"the file is larger than {self._options.max_size} bytes")
        return length

    async def _tell(self, context: RequestContext, id: str) -> None:
        rows = await aside(partial(self._parts.look, id))
        if rows is None or not self._may(context, rows.about):
            raise _missing()
        about = rows.about
        result = [("cache-control", "no-store"), ("upload-offset", str(rows.offset)), *_expiry(rows)]
        result.append(("upload-defer-length", "1") if about.length is None else ("upload-length", str(about.length)))
        if about.metadata:
            result.append(("upload-metadata", about.metadata))
        if about.concat:
            result.append(("upload-concat", about.concat))
        _answered(context, 200, result)

    async def _go_on(self, context: RequestContext, id: str) -> None:
        headers = context.scope.headers
        if headers.get("content-type") != CONTENT_TYPE:
            raise Problem(415, f"a piece of a file has the Content-Type {CONTENT_TYPE}")
        offset = whole_number("Upload-Offset", headers.get("upload-offset"))
        with await self._taken(context, id) as part:
            if offset != part.offset:
                result = (("upload-offset", str(part.offset)),)
                raise Problem(409, f"{part.offset} bytes have arrived; Upload-Offset says {offset}", headers=result)
            if part.about.length is None and headers.get("upload-length") is not None:
                length = self._fitting(whole_number("Upload-Length", headers.get("upload-length")))
                if length < offset:
                    raise HeaderError("the header Upload-Length says less than what has arrived")
                await aside(partial(part.set_length, length))
            if not part.about.done:
                await self._append(context, part)
            await self._answer(context, part, 204, [])

    async def _end(self, context: RequestContext, id: str) -> None:
        with await self._taken(context, id) as part:
            await aside(part.remove)
        _answered(context, 204, [])

    async def _join(
        self, context: RequestContext, ids: tuple[str, ...], metadata: str | None, file: tuple[str, str]
    ) -> None:
        length = 0
        for id in ids:
            result = await aside(partial(self._parts.look, id))
            if result is None or not self._may(context, result.about) or not result.about.partial:
                raise Problem(404, f"there is no part {id}")
            if result.about.length != result.offset:
                raise Problem(409, f"the part {id} is not complete")
            length = self._fitting(length + result.offset)
        about = About(self._key, owner(context), length, metadata, context.scope.headers.get("upload-concat"))
        final = await aside(partial(self._parts.create, about, 0, None))
        self._complete(context, [("location", _location(context, final))], 201, ids, file, final)

    # --- pieces ------------------------------------------------------------------------------------------------------

    async def _taken(self, context: RequestContext, id: str) -> Part:
        result = await aside(partial(self._parts.look, id))
        if result is None or not self._may(context, result.about):
            raise _missing()
        if result.about.concat is not None and not result.about.partial and context.scope.method != "DELETE":
            raise Problem(403, "this file has been put together of others, and takes no pieces")
        part = await self._parts.take(id)
        if part is None:
            raise _missing()
        return part

    def _may(self, context: RequestContext, about: About) -> bool:
        """Whoever has begun it, and nobody else."""
        return about.endpoint == self._key and about.owner == owner(context)

    async def _append(self, context: RequestContext, part: Part) -> None:
        scope, length = context.scope, part.about.length
        begins = part.offset
        await aside(partial(part.cut, begins))
        headers = scope.headers.get("upload-checksum")
        algorithm, digest = ("", b"") if headers is None else upload_checksum(headers)
        seen = hashlib.new(algorithm, usedforsecurity=False) if algorithm else None
        # Nothing of a piece counts before its digest has been seen, whatever becomes of this process.
        checked = seen is not None or scope.headers.get("content-digest") is not None
        settled = begins if checked else None
        if part.about.settled != settled:
            await aside(partial(part.save, settled=settled))
        room = (self._options.max_size if length is None else length) - begins
        pieces = digested(scope, body_pieces(scope, context.protocol, room, self._time_limit))
        if self._hear is not None:
            pieces = told_of_part(pieces, self._hear(context), begins, length)
        try:
            await self._parts.append(part, pieces, None if seen is None else seen.update)
            _check(None if seen is None else seen.digest(), digest)
        except BaseException:
            if checked:
                part.cut(begins)
            raise
        finally:
            if checked:
                part.save(settled=None)

    async def _answer(self, context: RequestContext, part: Part, status: int, told: Headers) -> None:
        """To a piece; the last one goes on to the handlers."""
        about, size = part.about, part.size
        told = [*told, ("upload-offset", str(part.offset))]
        if about.done or about.partial or about.length != size:
            result = await aside(partial(self._parts.look, part.id))
            _answered(context, status, told if result is None else [*told, *_expiry(result)])
            return
        await aside(partial(part.save, settled=max(0, size - 1)))
        self._complete(context, told, status, (part.id,), file_of(about.metadata), None)

    def _complete(
        self,
        context: RequestContext,
        told: Headers,
        status: int,
        ids: tuple[str, ...],
        file: tuple[str, str],
        final: str | None,
    ) -> None:
        headers = (context.scope.headers.get("prefer") or "").replace(" ", "").lower()
        returns = RETURNED in headers.split(",")
        context.protocol = Completed(context.protocol, told, status, ids, file, final=final, returns=returns)


def _check(found: bytes | None, wanted: bytes) -> None:
    if found is not None and found != wanted:
        raise Problem(460, "it is not the piece that Upload-Checksum was made for", title="Checksum Mismatch")


# --- the last piece --------------------------------------------------------------------------------------------------


async def _take(receiving: Receiving, parts: Parts, context: RequestContext) -> None:
    ready = completed(context.protocol)
    if ready is None:
        await receiving.receive(context)
        return
    with contextlib.ExitStack() as held:
        result: list[Part] = []
        for id in ready.ids:
            part = await parts.take(id)
            if part is None:
                raise _missing()
            result.append(held.enter_context(part))
        if any(part.about.done for part in result):
            ready.answer()
            context.follow(())
            return
        if any(part.about.length != part.size for part in result):
            raise Problem(409, "another request goes on with this upload")
        try:
            await receiving.receive(context, partial(_file, ready, result))
        except BaseException as error:
            if isinstance(error, Problem) and _is_final(error) and ready.final is None:
                result[0].remove()
            elif ready.final is not None:
                parts.forget(ready.final)
            raise
        await aside(partial(_finish, parts, ready, result))


def _is_final(problem: Problem) -> bool:
    return problem.status < 500 and problem.status not in _AGAIN


async def _file(ready: Completed, found: list[Part]) -> AsyncIterator[File]:
    yield File(ready.name, ready.content_type, _bytes_of(found))


async def _bytes_of(found: list[Part]) -> AsyncIterator[bytes]:
    for part in found:
        async for piece in read_back(part.file):
            yield piece


def _finish(parts: Parts, ready: Completed, found: list[Part]) -> None:
    """Everything has been committed: nothing here may look as if it had not."""
    try:
        if ready.final is None:
            found[0].finish()
            return
        parts.mark_done(ready.final)
        for part in found:
            part.remove()
    except OSError as error:
        log.error("an upload that has succeeded is not marked as such: %s", error)


# --- what is common to the answers -----------------------------------------------------------------------------------


def owner(context: RequestContext) -> str | None:
    user = context.user
    return None if user is None else hashlib.sha256(orjson.dumps(user.subject)).hexdigest()


def _answered(context: RequestContext, status: int, told: Headers) -> None:
    context.protocol.response_empty(status, told)
    # A step that has been awaited ends the request by leaving nothing to follow.
    context.follow(())


def _expiry(found: Known) -> Headers:
    return [] if found.about.done else [("upload-expires", formatdate(found.expires, usegmt=True))]


def _missing() -> Problem:
    return Problem(404, "there is no such upload; it may have expired")


def _closing(context: RequestContext, problem: Problem) -> Problem:
    """What the client sends is not read any more."""
    scope = context.scope
    if scope.method in ("POST", "PATCH") and scope.headers.get("content-length") != "0":
        problem.headers = (*(item for item in problem.headers if item[0] != "connection"), ("connection", "close"))
    return problem


def _location(context: RequestContext, id: str) -> str:
    """Relative to the URL of the request, which a proxy may have changed on its way here."""
    scope = context.scope
    last = scope.path.rpartition("/")[2]
    base = f"./{quote(last, safe='').replace('%252F', '%2F')}/" if last else ""
    query = f"?{scope.query_string}" if scope.query_string else ""
    return f"{base}{SEGMENT}/{id}{query}"
