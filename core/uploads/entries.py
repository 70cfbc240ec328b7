"""What is told about an uploaded file: to the routine as metadata, and to row commands (uploads-14).

The order of the members is part of what users know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from rowcall.core.uploads.checks import Status

Entry = Mapping[str, Any]
"""Values are plain, or `orjson.Fragment` for JSON that is there already."""


def described(handler: str, name: str, content_type: str, size: int) -> dict[str, Any]:
    """What every entry begins with. handler: its key."""
    return {"type": handler, "fileName": name, "contentType": content_type, "size": size}


def judged(status: Status) -> dict[str, Any]:
    return {"success": status is Status.OK, "status": status.value}


def with_claims(entry: Entry, key: str, claims: bytes | None) -> dict[str, Any]:
    """claims: as JSON. Without them, and with an empty key, nobody is told."""
    return {**entry, key: orjson.Fragment(claims)} if key and claims is not None else dict(entry)


def dumped(entry: Entry) -> bytes:
    return orjson.dumps(entry)


def metadata(entries: Sequence[Entry]) -> bytes:
    """The array that the routine gets; `[]` without files."""
    return orjson.dumps(entries)


NUMBERS = frozenset({20, 21, 23, 26, 700, 701, 1700})
"""Types whose text is a JSON number: integers, oid, floating point, numeric."""
BOOLEAN = 16
VOID = 2278


def json_value(type_oid: int, is_array: bool, json: str) -> Any:
    """A value of the database as `lastResult` and `result` have it: numbers, booleans and arrays as they are,
    everything else as text. json: as the service renders the value."""
    if json == "null" or type_oid == VOID:
        return None
    if type_oid in NUMBERS or type_oid == BOOLEAN or is_array or json.startswith('"'):
        return orjson.Fragment(json)
    return json
