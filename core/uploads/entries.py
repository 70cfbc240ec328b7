"""Metadata entries of uploaded files, for the routine and for row commands (uploads-14).

The order of the members is part of the public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from rowcall.core.uploads.checks import Status

Entry = Mapping[str, Any]
"""Members are plain values, or `orjson.Fragment` for JSON text."""


def file_members(handler: str, name: str, content_type: str, size: int) -> dict[str, Any]:
    """Return the members that come first in the metadata entry of every uploaded file. handler: key of the upload
    handler. name: of the file. size: in bytes."""
    return {"type": handler, "fileName": name, "contentType": content_type, "size": size}


def result_members(status: Status) -> dict[str, Any]:
    """Return the members of an entry that state the result of the checks."""
    return {"success": status is Status.OK, "status": status.value}


def with_claims(entry: Entry, key: str, claims: bytes | None) -> dict[str, Any]:
    """Return a copy of the entry with the claims of the user under a key. key: empty: the claims are left out. claims:
    as JSON; None: the caller has none, and they are left out too."""
    return {**entry, key: orjson.Fragment(claims)} if key and claims is not None else dict(entry)


def format_entry(entry: Entry) -> bytes:
    """Return the entry as JSON."""
    return orjson.dumps(entry)


def metadata(entries: Sequence[Entry]) -> bytes:
    """Return the metadata of all uploaded files as the JSON array that the routine receives; `[]` without files."""
    return orjson.dumps(entries)


NUMBERS = frozenset({20, 21, 23, 26, 700, 701, 1700})
"""Types whose text is a JSON number: integers, oid, floating point, numeric."""
BOOLEAN = 16
VOID = 2278


def json_value(type_oid: int, is_array: bool, json: str) -> Any:
    """Return a value of the database for the members `lastResult` and `result` of metadata; None: NULL, or no value.

    Numbers, booleans, arrays and strings keep their JSON form; other values, such as composites, become a string that
    contains it. is_array: the type is an array. json: the value as the service renders it.
    """
    if json == "null" or type_oid == VOID:
        return None
    if type_oid in NUMBERS or type_oid == BOOLEAN or is_array or json.startswith('"'):
        return orjson.Fragment(json)
    return json
