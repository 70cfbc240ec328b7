"""A JSON array of objects as columns of texts: the twin of `ext.binding.json_rows`, for any types of the columns."""

from __future__ import annotations

from rowcall.core.text import json_text


def columns_of(body: bytes) -> dict[str, list[str | None]] | None:
    """Return the values of each key as `json_to_recordset` gives them to input functions. None: the body is no array of
    objects with the same keys in the same order, or contains a NUL."""
    try:
        json_text.check(body)
        if not body.lstrip(b" \t\n\r").startswith(b"["):
            return None
        rows = [json_text.members(element) for element in json_text.elements(body)]
        keys = [key for key, _ in rows[0]] if rows else []
        if not keys or any([key for key, _ in row] != keys for row in rows):
            return None
        return {key: [_text(row[place][1]) for row in rows] for place, key in enumerate(keys)}
    except json_text.JsonTextError:
        return None


def _text(value: bytes) -> str | None:
    if value == b"null":
        return None
    return json_text.unescape(value) if value.startswith(b'"') else value.decode()
