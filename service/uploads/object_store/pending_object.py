"""An object that is being stored: its parts are sent as they arrive, and it is created when the routine has succeeded.

Until then the bucket shows no change, and an object with the same key stays. After a failure the multipart upload is
aborted, so that no parts remain. Those of a killed worker stay until a lifecycle rule of the bucket removes them
(`AbortIncompleteMultipartUpload`); they cannot be distinguished from those of a running worker.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence

from rowcall.core.errors.problems import Problem
from rowcall.service.http_client.bucket import Bucket, StoreError

log = logging.getLogger("rowcall")

MOST_PARTS = 10_000
"""Maximum number of parts that S3 accepts."""
_EMPTY = f'"{hashlib.md5(b"", usedforsecurity=False).hexdigest()}"'
"""Entity tag of an empty object, unless the store encrypts with a key of the owner."""


class PendingObject:
    """A multipart upload of one object."""

    def __init__(self, bucket: Bucket, key: str, content_type: str) -> None:
        self._bucket = bucket
        self._key = key
        self._content_type = content_type
        self._upload: str | None = None
        self._tags: list[str] = []
        self._exists = False
        self._may_exist = False
        """An empty object with this key can only be that of this upload."""

    async def add(self, data: bytes) -> None:
        """Send a part. Raises `Problem`: 413 if there are too many parts, 502 or 504 if the store refuses it or does
        not answer.
        """
        if len(self._tags) >= MOST_PARTS:
            raise Problem(413, f"the file has more than {MOST_PARTS} parts; a larger S3PartSize allows larger files")
        try:
            if self._upload is None:
                self._upload = await self._bucket.begin(self._key, self._content_type)
            self._tags.append(await self._bucket.upload_part(self._key, self._upload, len(self._tags) + 1, data))
        except StoreError as error:
            raise self._problem(error) from None

    async def settle(self) -> None:
        """Create the object. Raises `Problem` 502 or 504 if the store refuses it or does not answer."""
        try:
            if self._upload is None:
                # A multipart upload has at least one part, so an empty file is sent alone. If the response is lost, the
                # object is recognized by its tag, unless an equal one had, or may have had, the key before.
                self._may_exist = await self._holds_empty() is False
                await self._bucket.store_object(self._key, self._content_type, b"")
            else:
                await self._bucket.complete(self._key, self._upload, self._tags)
        except StoreError as error:
            if 400 <= error.status < 500:
                # Nothing was created: an empty object with this key is that of another request.
                self._may_exist = False
            raise self._problem(error) from None
        self._upload = None
        self._exists = True

    async def undo(self) -> None:
        """Abort the upload, or delete the object if it has been created. Raises nothing; errors are logged."""
        try:
            if self._upload is not None:
                # If the upload is gone although completing it failed, it is complete, and only the response was lost.
                gone = not await self._bucket.abort(self._key, self._upload)
                self._exists = gone and await self._bucket.tag(self._key) == _tag_of(self._tags)
            elif self._may_exist and not self._exists:
                self._exists = await self._holds_empty() is True
            if self._exists:
                await self._bucket.delete(self._key)
        except (StoreError, Problem) as error:
            log.error(
                "a failed upload could not be removed from the object store, %s/%s: %s",
                self._bucket.name,
                self._key,
                error,
            )

    def leave(self) -> None:
        log.warning(
            "%s/%s: the outcome of an upload is not known, because its commit was not confirmed; the object stays, "
            "although it may have been rolled back",
            self._bucket.name,
            self._key,
        )

    async def _holds_empty(self) -> bool | None:
        """Return whether the bucket has an empty object with the key; None: the store does not say."""
        try:
            return (await self._bucket.describe(self._key)).get("etag") == _EMPTY
        except StoreError as error:
            return False if error.status == 404 else None

    def _problem(self, error: StoreError) -> Problem:
        """Log an error of the store, and return the problem for the client: 504 if it does not answer, else 502."""
        log.error("the object store refuses %s/%s: %s", self._bucket.name, self._key, error)
        if error.status == 0:
            return Problem(504, f"the object store does not answer: {error.code}")
        return Problem(502, f"the object store refuses the file: {error}")


def _tag_of(parts: Sequence[str]) -> str | None:
    """Return the entity tag of an object with these parts, as stores compute it unless they encrypt with a key of the
    owner; None if unknown.
    """
    try:
        digests = b"".join(bytes.fromhex(part.strip('"')) for part in parts)
    except ValueError:
        return None
    return f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"'
