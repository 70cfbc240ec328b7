"""Extraction of one field of a form: its text, and the form without it."""

from __future__ import annotations

from typing import Any

from python_multipart.multipart import parse_options_header

from rowcall.ext.binding.query_string import unescape
from rowcall.service.request.forms import LONGEST_HEADERS, MOST_FIELDS, MULTIPART, URLENCODED, too_many_fields
from rowcall.service.request_context.header_values import read_header

FORMS = frozenset({URLENCODED, MULTIPART, b"text/plain"})
"""Content types that a page of another site can send without a CORS preflight request."""


def kind_of(scope: Any) -> bytes:
    """Return the content type of a request, in lower case and without its parameters."""
    text = read_header(scope.headers, "content-type") or ""
    return text.partition(";")[0].strip().lower().encode("latin-1", "replace")


def take_field(scope: Any, body: bytes, name: str) -> tuple[str | None, bytes]:
    """Return the text of the first field of this name (None: there is none), and the body without all fields of this
    name. A body that is no form is returned unchanged. Bytes of the text that are not UTF-8 become U+FFFD; as no token
    contains this character, the text can still be compared with one.

    Raises: Problem: 400 for a form with too many fields.
    """
    kind, options = parse_options_header(read_header(scope.headers, "content-type"))
    if kind == URLENCODED:
        return _take_pair(body, name)
    boundary = options.get(b"boundary")
    return _take_part(body, b"\r\n--" + boundary, name.encode()) if kind == MULTIPART and boundary else (None, body)


def _take_pair(body: bytes, name: str) -> tuple[str | None, bytes]:
    if body.count(b"&") >= MOST_FIELDS:
        raise too_many_fields()
    encoded_name = name.encode()
    values: list[str] = []
    remaining: list[bytes] = []
    for pair in body.split(b"&"):
        key, _, value = pair.partition(b"=")
        if unescape(key) == encoded_name:
            values.append(unescape(value).decode(errors="replace"))
        else:
            remaining.append(pair)
    return (values[0], b"&".join(remaining)) if values else (None, body)


def _take_part(body: bytes, delimiter: bytes, name: bytes) -> tuple[str | None, bytes]:
    # The last delimiter ends the form.
    if body.count(delimiter) > MOST_FIELDS + 1:
        raise too_many_fields()
    result: list[str] = []
    before, *parts = (b"\r\n" + body).split(delimiter)
    remaining = [before]
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        if len(head) <= LONGEST_HEADERS and _name_of(head) == name:
            result.append(value.decode(errors="replace"))
        else:
            remaining.append(part)
    if not result:
        return None, body
    # An empty form leaves two parts: the text before the first delimiter, and the end.
    return result[0], delimiter.join(remaining).removeprefix(b"\r\n") if len(remaining) > 2 else b""


def _name_of(head: bytes) -> bytes | None:
    for line in head.split(b"\r\n"):
        field, _, value = line.partition(b":")
        if field.strip().lower() == b"content-disposition":
            return parse_options_header(value)[1].get(b"name")
    return None
