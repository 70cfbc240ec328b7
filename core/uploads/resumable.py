"""Resumable uploads by the protocol tus 1.0.0: its headers, and the stored state of an upload.

https://tus.io/protocols/resumable-upload, with the extensions creation, creation-with-upload, creation-defer-length,
expiration, termination, checksum and concatenation.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,creation-defer-length,expiration,termination,checksum,concatenation"
ALGORITHMS = ("sha1", "sha256", "sha512", "md5")
CONTENT_TYPE = "application/offset+octet-stream"
SEGMENT = "resumable"
"""Path segment between the path of the endpoint and the id of the upload."""
ID = ":resumable"
"""Name of the path segment with the id. No parameter can have this name."""
MOST_PARTS = 64
"""Maximum number of parts of a concatenated upload."""

_ID = re.compile(r"[0-9a-f]{32}")


class HeaderError(ValueError):
    """A header is invalid or missing. The message has its name and the reason."""


def resumes(endpoint: Endpoint) -> bool:
    """Return whether the endpoint accepts resumable uploads."""
    return endpoint.options.upload is not None and endpoint.options.upload.resumable


def is_id(text: str) -> bool:
    """Return whether the text has the form of an upload's id."""
    return _ID.fullmatch(text) is not None


def whole_number(name: str, text: str | None) -> int:
    """Return the value of a header as a whole number of at most 18 digits. name: of the header, for messages. text: its
    value; None: it is missing. Raises `HeaderError` if it is missing or another text."""
    if text is None:
        raise HeaderError(f"the header {name} is missing")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise HeaderError(f"the header {name} is no whole number")
    return int(text)


def upload_metadata(text: str) -> Mapping[str, str]:
    """Return the metadata in a header Upload-Metadata, such as `filename d29ybGQ=,draft`: key → decoded value, which is
    empty for a key without one. NUL is left out of values.

    Raises `HeaderError` for an empty or repeated key, or a value that is not Base64.
    """
    result: dict[str, str] = {}
    for pair in text.split(","):
        key, _, value = pair.strip().partition(" ")
        if not key or key in result:
            raise HeaderError("the header Upload-Metadata has an empty key, or one twice")
        try:
            result[key] = base64.b64decode(value.strip(), validate=True).decode(errors="replace").replace("\0", "")
        except ValueError:
            raise HeaderError(f"the header Upload-Metadata: the value of {key[:40]!r} is not Base64") from None
    return result


def file_of(metadata: str | None) -> tuple[str, str]:
    """Return name and content type of a file, which clients send under various keys of the metadata; empty if
    missing. metadata: value of the header Upload-Metadata; None or empty: there is none. Raises `HeaderError` as
    `upload_metadata` does."""
    result = upload_metadata(metadata) if metadata else {}
    name = next((result[key] for key in ("filename", "name") if result.get(key)), "")
    content_type = next((result[key] for key in ("filetype", "type", "contentType") if result.get(key)), "")
    return name, content_type


def upload_checksum(text: str) -> tuple[str, bytes]:
    """Return algorithm and digest of a header Upload-Checksum, such as `sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=`. Raises
    `HeaderError` if the algorithm is none of `ALGORITHMS`, or the value is not Base64."""
    algorithm, _, value = text.strip().partition(" ")
    if algorithm not in ALGORITHMS:
        raise HeaderError(f"the header Upload-Checksum: its algorithm is none of {', '.join(ALGORITHMS)}")
    try:
        return algorithm, base64.b64decode(value.strip(), validate=True)
    except ValueError:
        raise HeaderError("the header Upload-Checksum: the value is not Base64") from None


def upload_concat(text: str | None) -> tuple[bool, tuple[str, ...]]:
    """Return whether an upload is a part of another one, and the ids of its own parts, as a header Upload-Concat says:
    `partial`, or `final;` and the URLs of the parts. An upload without the header (None) is no part and has none.

    Raises `HeaderError` for any other value.
    """
    if text is None:
        return False, ()
    if text.strip() == "partial":
        return True, ()
    kind, _, urls = text.partition(";")
    ids = tuple(url.partition("?")[0].rstrip("/").rpartition("/")[2] for url in urls.split())
    if kind.strip() != "final" or not ids or len(ids) > MOST_PARTS or not all(map(is_id, ids)):
        raise HeaderError(
            f"the header Upload-Concat is neither partial nor final; with the URLs of 1 to {MOST_PARTS} parts"
        )
    if len(set(ids)) < len(ids):
        raise HeaderError("the header Upload-Concat names a part twice")
    return False, ids


@dataclass(frozen=True, slots=True)
class StoredState(Record):
    """The stored state of an upload, besides its bytes."""

    endpoint: str
    """Name of the endpoint at which the upload was created; other endpoints refuse it."""
    owner: str | None
    """Digest of the user who created the upload, and of the tenant. None: an anonymous caller without a tenant did."""
    length: int | None
    """Bytes of the whole file; None: the client has not stated them yet."""
    metadata: str | None = None
    """The header `Upload-Metadata` as sent."""
    concat: str | None = None
    """The header `Upload-Concat` as sent."""
    settled: int | None = None
    """Number of valid bytes, if bytes of a request that has not succeeded follow; None: all bytes are valid."""
    done: bool = False
    """The routine has run, and the bytes were removed."""

    @property
    def partial(self) -> bool:
        """Whether the upload is a part of another one."""
        return self.concat == "partial"

    def format_json(self) -> bytes:
        """Return the state as JSON."""
        return orjson.dumps({name: getattr(self, name) for name in self.__match_args__})

    def offset(self, size: int) -> int:
        """Return the number of valid bytes that have arrived. size: number of bytes in the storage, which is ignored
        for an upload that is `done`."""
        if self.done:
            return self.length or 0
        return size if self.settled is None else min(size, self.settled)


def parse_stored_state(text: bytes) -> StoredState:
    """Return a state from the JSON of `StoredState.format_json`. Raises `ValueError` if it is not JSON, and
    `TypeError` if its members are others."""
    members: Any = orjson.loads(text)
    return StoredState(**members)
