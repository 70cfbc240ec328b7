"""A bucket: the S3 requests that uploads and downloads need, signed, and repeated if that is safe.

https://docs.aws.amazon.com/AmazonS3/latest/API. Requests are sent with the HTTP client of the worker. Its guard checks
hosts that come from values of a request, but not the endpoint, which the operator has configured.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rowcall.core.errors.problems import Problem
from rowcall.core.outgoing.address import read_address
from rowcall.core.outgoing.aws_signature import encoded_path, encoded_query, presigned_query, sign_headers
from rowcall.core.outgoing.guard import RefusedError
from rowcall.core.uploads.options import ObjectStore
from rowcall.service.background import pause
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import HttpResponse, OutgoingRequest

if TYPE_CHECKING:
    from rowcall.service.http_client.client import Client

log = logging.getLogger("rowcall")

ATTEMPTS = 4
_LONGEST_ANSWER = 262_144
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_ASIDE = 65_536
"""Bytes from which a digest is computed in a thread."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BELOW = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


class StoreError(Exception):
    """The store has not answered (status 0) or has answered with an error. code: error code in the response, empty if
    it has none; with status 0, why there is no response."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class Bucket:
    """One bucket of an object store, with the HTTP client of a worker. Methods that send requests raise `StoreError`,
    and `Problem` 400 if the guard refuses the address.
    """

    def __init__(self, client: Client, options: ObjectStore, name: str, *, named: bool) -> None:
        """Raises `Problem` 400 for an invalid bucket name. named: whether the operator has configured the name. If not,
        and the name is part of the host, the guard checks the host."""
        if not _NAME.fullmatch(name) or ".." in name:
            raise Problem(400, "the name of a bucket consists of 3 to 63 lower-case letters, digits, hyphens and dots")
        self.name = name
        self._client = client
        self._options = options
        self._named = named or bool(options.path_style)
        scheme, _, authority = options.endpoint.partition("://")
        self._base = options.endpoint if options.path_style else f"{scheme}://{name}.{authority}"
        self._prefix = f"/{name}" if options.path_style else ""

    # --- objects -----------------------------------------------------------------------------------------------------

    async def store_object(self, key: str, content_type: str, data: bytes) -> None:
        """Store an object; an existing one is replaced. Raises `StoreError`."""
        await self._ask("PUT", key, data=data, content_type=content_type)

    async def delete(self, key: str) -> None:
        """Delete an object, if it exists. Raises `StoreError`."""
        await self._ask("DELETE", key)

    async def begin(self, key: str, content_type: str) -> str:
        """Create a multipart upload and return its id. Raises `StoreError`."""
        _, body = await self._ask("POST", key, {"uploads": ""}, content_type=content_type)
        return _member(body, "UploadId")

    async def upload_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        """Send a part of a multipart upload and return its entity tag. upload: id of `begin`. number: from 1. Raises
        `StoreError`.
        """
        headers, _ = await self._ask("PUT", key, {"partNumber": str(number), "uploadId": upload}, data)
        return headers.get("etag", "")

    async def complete(self, key: str, upload: str, tags: Sequence[str]) -> None:
        """Complete a multipart upload. tags: entity tags of its parts, in order. Raises `StoreError`."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{_escape(tag)}</ETag></Part>"
            for number, tag in enumerate(tags, 1)
        )
        document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        try:
            _, body = await self._ask("POST", key, {"uploadId": upload}, document, content_type="application/xml")
        except StoreError as error:
            # If the answer to the first attempt was lost, the second one reports that the upload does not exist any
            # more.
            if error.code != "NoSuchUpload" or await self.tag(key) is None:
                raise
            return
        if b"<Error>" in body:
            # The store sends status 200 before it knows the result.
            raise StoreError(200, _member(body, "Code"))

    async def abort(self, key: str, upload: str) -> bool:
        """Abort a multipart upload. Return False if it does not exist any more. Raises `StoreError`."""
        try:
            await self._ask("DELETE", key, {"uploadId": upload})
        except StoreError as error:
            if error.code != "NoSuchUpload":
                raise
            return False
        return True

    async def tag(self, key: str) -> str | None:
        """Return the entity tag of the object, empty if the store sends none. None: the object does not exist or cannot
        be described.
        """
        try:
            headers, _ = await self._ask("HEAD", key)
        except StoreError:
            return None
        return headers.get("etag", "")

    async def describe(self, key: str) -> Mapping[str, str]:
        """Return the headers of an object, with lower-case names. Raises `StoreError`."""
        headers, _ = await self._ask("HEAD", key)
        return headers

    async def open(self, key: str, first: int, end: int, tag: str) -> HttpResponse:
        """Return the response with the bytes of an object from `first` to before `end`; further bytes may follow.

        tag: of the object as described; another one is an error; empty: not compared. The response has to be read to
        its end or closed. Raises `StoreError`.
        """
        headers = [("range", f"bytes={first}-{end - 1}"), *([("if-match", tag)] if tag else [])]
        try:
            async with asyncio.timeout(self._options.timeout):
                answer = await self._send("GET", key, {}, b"", _digest(b""), headers)
                if answer.status not in (200, 206):
                    raise StoreError(answer.status, _member(await answer.read(_LONGEST_ANSWER), "Code"))
                if not _begins_with(answer, first, end):
                    answer.close()
                    raise StoreError(answer.status, "other bytes than those of the range")
        except TimeoutError:
            raise StoreError(0, f"no answer within {self._options.timeout:g} s") from None
        except OutboundError as error:
            raise StoreError(0, str(error)) from None
        return answer

    async def next_chunk(self, answer: HttpResponse) -> bytes:
        """Return the next chunk of the body of a response of `open`; empty at its end. Raises `StoreError` if it does
        not arrive within the time limit of a request."""
        try:
            async with asyncio.timeout(self._options.timeout):
                return await answer.chunk()
        except TimeoutError:
            raise StoreError(0, f"no data within {self._options.timeout:g} s") from None
        except OutboundError as error:
            raise StoreError(0, str(error)) from None

    def link(self, key: str, seconds: int, query: Mapping[str, str]) -> str:
        """Return an address with which any client may GET the object. seconds: for which it is valid. query: further
        parameters, such as `response-content-disposition`.
        """
        path = f"{self._prefix}/{key}"
        host = read_address(f"{self._base}/").origin.authority
        options = self._options
        signed_query = presigned_query(
            options.credentials, options.region, datetime.now(UTC), host, path, seconds, query
        )
        return f"{self._base}{encoded_path(path)}?{signed_query}"

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        data: bytes = b"",
        content_type: str | None = None,
    ) -> tuple[Mapping[str, str], bytes]:
        """Send a request, again after errors that may pass. Return headers, with lower-case names, and body. Raises
        `StoreError`. content_type: of `data`; None: without the header.
        """
        loop = asyncio.get_running_loop()
        digest = await loop.run_in_executor(None, _digest, data) if len(data) > _ASIDE else _digest(data)
        for attempt in range(ATTEMPTS):
            try:
                return await self._ask_once(method, key, query or {}, data, digest, content_type)
            except StoreError as error:
                if attempt == ATTEMPTS - 1 or (error.status and error.status not in _TRANSIENT):
                    raise
                log.warning("object store %s: %s of %s is tried again: %s", self._base, method, self.name, error)
            await asyncio.sleep(pause(attempt + 1))
        raise AssertionError

    async def _ask_once(
        self, method: str, key: str, query: Mapping[str, str], data: bytes, digest: str, content_type: str | None
    ) -> tuple[Mapping[str, str], bytes]:
        """Send a request once; return headers, with lower-case names, and body. Raises `StoreError`, with status 0
        without a response within the time limit. digest: SHA-256 of `data` in hexadecimal digits.
        """
        headers = [] if content_type is None else [("content-type", content_type)]
        try:
            async with asyncio.timeout(self._options.timeout):
                answer = await self._send(method, key, query, data, digest, headers)
                body = await answer.read(_LONGEST_ANSWER)
        except TimeoutError:
            raise StoreError(0, f"no answer within {self._options.timeout:g} s") from None
        except OutboundError as error:
            raise StoreError(0, str(error)) from None
        if answer.status >= 300:
            raise StoreError(answer.status, _member(body, "Code"))
        return _headers_by_name(answer), body

    async def _send(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        data: bytes,
        digest: str,
        headers: Sequence[tuple[str, str]],
    ) -> HttpResponse:
        """Send a signed request once, and return the response, whose body is still to be read. Raises `OutboundError`,
        and `Problem` 400 if the address is refused.

        data: body of PUT and POST; other methods have none. digest: SHA-256 of the body in hexadecimal digits.
        """
        path = f"{self._prefix}/{key}"
        target = f"{encoded_path(path)}?{encoded_query(query)}" if query else encoded_path(path)
        options = self._options
        try:
            address = read_address(f"{self._base}{target}")
            host = address.origin.authority
            signed_headers = sign_headers(
                options.credentials, options.region, datetime.now(UTC), method, host, path, query, headers, digest
            )
            request = OutgoingRequest(method, address, signed_headers, data if method in ("PUT", "POST") else None)
            return await self._client.send(request, named=self._named)
        except RefusedError as error:
            raise Problem(400, f"the request to the object store is refused: {error}") from None


def _begins_with(answer: HttpResponse, first: int, end: int) -> bool:
    """Return whether the body of a 200 or 206 begins with the bytes from `first` to before `end`. A server may ignore
    the range and send the whole object (RFC 9110, 14.2)."""
    if answer.status == 200:
        return first == 0
    return (answer.header("content-range") or "").startswith(f"bytes {first}-{end - 1}/")


def _headers_by_name(answer: HttpResponse) -> Mapping[str, str]:
    """Return the headers by their names in lower case."""
    return {name.lower(): value for name, value in answer.headers}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _member(body: bytes, name: str) -> str:
    """Return the text of an element in a response, empty if missing. The documents are simple enough for a regular
    expression.
    """
    match = re.search(f"<{name}>([^<]{{1,2048}})</{name}>".encode(), body)
    return "" if match is None else html.unescape(match[1].decode(errors="replace"))


def _escape(text: str) -> str:
    return "".join(_BELOW.get(item, item) for item in text)
