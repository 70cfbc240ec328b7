"""The handler `s3`: files into a bucket, in parts, while they arrive."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, file_members, result_members
from rowcall.core.uploads.names import extension, file_name
from rowcall.core.uploads.options import Common, ObjectStore
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.http_client.bucket import Bucket
from rowcall.service.uploads.handler import HandlerCommon, Turn, judge, stored_file_checks
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.object_store.pending_object import PendingObject

if TYPE_CHECKING:
    from rowcall.service.http_client.client import Client

LONGEST_KEY = 1024
"""Maximum length of a key in bytes."""


class ObjectStorage:
    """Stores the files of one request in a bucket."""

    def __init__(
        self,
        key: str,
        options: ObjectStore,
        common: Common,
        settings: HandlerSettings,
        turn: Turn,
        client: Client,
        *,
        named: bool,
    ) -> None:
        """named: whether the operator has configured the bucket; False: it is a value of the request."""
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._checks = stored_file_checks(self.common, settings, options, common.image_types)
        self._bucket = Bucket(client, options, settings.text("bucket", options.bucket), named=named)
        self._path = settings.text("path", options.path).strip("/")
        self._unique = settings.flag("unique_name", options.unique_name)
        self._name = settings.text_or_none("file") or None
        self._part_size = options.part_size

    async def check(self, file: File) -> tuple[Status, File]:
        return await judge(file, self._checks), file

    async def store(self, file: File) -> list[Entry]:
        """Send the file to the store, and return its entry; the object is created when the routine has succeeded.
        Raises `Problem` 400 for a key that is too long, and as `PendingObject.add` does.
        """
        key = self._key_for(file)
        if len(key.encode()) > LONGEST_KEY:
            raise Problem(400, f"the key of the object is longer than {LONGEST_KEY} bytes")
        pending = PendingObject(self._bucket, key, file.content_type or "application/octet-stream")
        self._turn.pending.append(pending)
        async for part in file.in_pieces_of(self._part_size):
            await pending.add(part)
        return [self._entry(file, key, Status.OK)]

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        return [self._entry(file, self._key_for(file), status)]

    def _key_for(self, file: File) -> str:
        """Return the key of the object: below the path of the settings, a new unique name with the same extension, if
        the settings say so, else the name of the settings or of the client, made safe.
        """
        requested = self._name or file.name
        name = f"{uuid.uuid4()}{extension(requested)}" if self._unique else file_name(requested)
        return f"{self._path}/{name}" if self._path else name

    def _entry(self, file: File, key: str, status: Status) -> Entry:
        return {
            **file_members(self.key, file.name, file.content_type, file.size),
            "bucket": self._bucket.name,
            "key": key,
            **result_members(status),
        }
