"""Descriptions of schemas: built in slices between which other requests are answered, and cached.

A document of 60,000 tables takes seconds and has a few hundred megabytes. A thread would stop other requests as well,
as the interpreter runs one of them at a time.
"""

from __future__ import annotations

import asyncio
import io
from time import perf_counter

from rowcall.core.postgrest.openapi import document_parts
from rowcall.core.postgrest.openapi.privileges import read_privileges
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Schema

SLICE = 0.001
"""Seconds after which other requests have their turn."""
MOST_BYTES = 32 << 20
"""Size limit of all cached documents of a worker. Beyond it, the oldest one is evicted; a larger one is not cached."""

Key = tuple[str, str, bytes]
"""Schema, host, and what the role may access."""


class Documents:
    """The documents of one schema snapshot. Requests for the same document at the same time share its building."""

    def __init__(self, schema: Schema, options: PostgRestOptions, most_bytes: int = MOST_BYTES) -> None:
        self._schema = schema
        self._options = options
        self._most_bytes = most_bytes
        self._cached: dict[Key, bytes] = {}
        self._cached_bytes = 0
        self._building: dict[Key, asyncio.Task[bytes]] = {}
        self._turn = asyncio.Lock()
        """One document at a time: requests with many hosts must not hold many unfinished ones."""

    async def document(self, namespace: str, host: str, privileges: bytes) -> bytes:
        """Return the OpenAPI document of a schema. namespace: name of the schema. host: of the request, for the URLs in
        the document. privileges: result of `privileges_statement`.
        """
        key = (namespace, host, privileges)
        cached = self._cached.get(key)
        if cached is not None:
            return cached
        task = self._building.get(key)
        if task is None:
            task = self._building[key] = asyncio.create_task(self._build(key))
            task.add_done_callback(lambda _: self._building.pop(key))
        # If one of several clients disconnects, the others wait on.
        return await asyncio.shield(task)

    async def _build(self, key: Key) -> bytes:
        """Build a document after those that are being built, and cache it."""
        async with self._turn:
            document = await self._build_document(*key)
        self._keep(key, document)
        return document

    async def _build_document(self, namespace: str, host: str, privileges: bytes) -> bytes:
        """Build a document in slices. Parameters as for `document`."""
        body = io.BytesIO()
        until = perf_counter() + SLICE
        for part in document_parts(self._schema, namespace, self._options, read_privileges(privileges), host):
            body.write(part)
            if perf_counter() > until:
                await asyncio.sleep(0)
                until = perf_counter() + SLICE
        return body.getvalue()

    def _keep(self, key: Key, document: bytes) -> None:
        """Cache a document, and evict the oldest ones beyond the size limit. A document that is larger than the limit
        is not cached."""
        if len(document) > self._most_bytes:
            return
        self._cached[key] = document
        self._cached_bytes += len(document)
        while self._cached_bytes > self._most_bytes:
            self._cached_bytes -= len(self._cached.pop(next(iter(self._cached))))
