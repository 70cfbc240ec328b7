"""One field of a form: its text, and the form without it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_plus

from python_multipart.multipart import parse_options_header

from rowcall.service.request.forms import MULTIPART, URLENCODED

FORMS = frozenset({URLENCODED, MULTIPART, b"text/plain"})
"""What a page of another site can send without being asked by CORS first."""


def kind_of(scope: Any) -> bytes:
    """The content type of a request, in lower case and without its parameters."""
    text: str = scope.headers.get("content-type") or ""
    return text.partition(";")[0].strip().lower().encode("latin-1", "replace")


def take_field(scope: Any, body: bytes, name: str) -> tuple[str | None, bytes]:
    """The text of the first field of this name, and the body without any of them. A body that is no form stays."""
    kind, options = parse_options_header(scope.headers.get("content-type"))
    if kind == URLENCODED:
        return _take_pair(body, name)
    boundary = options.get(b"boundary")
    return _take_part(body, b"\r\n--" + boundary, name.encode()) if kind == MULTIPART and boundary else (None, body)


def _take_pair(body: bytes, name: str) -> tuple[str | None, bytes]:
    found: list[str] = []
    kept: list[bytes] = []
    for pair in body.split(b"&"):
        key, _, value = pair.partition(b"=")
        if unquote_plus(key.decode("latin-1")) == name:
            found.append(unquote_plus(value.decode("latin-1")))
        else:
            kept.append(pair)
    return (found[0], b"&".join(kept)) if found else (None, body)


def _take_part(body: bytes, delimiter: bytes, name: bytes) -> tuple[str | None, bytes]:
    found: list[str] = []
    before, *parts = (b"\r\n" + body).split(delimiter)
    kept = [before]
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        if _name_of(head) == name:
            found.append(value.decode(errors="replace"))
        else:
            kept.append(part)
    if not found:
        return None, body
    # Two are left of an empty form: what stands in front of it, and its end.
    return found[0], delimiter.join(kept).removeprefix(b"\r\n") if len(kept) > 2 else b""


def _name_of(head: bytes) -> bytes | None:
    for line in head.split(b"\r\n"):
        field, _, value = line.partition(b":")
        if field.strip().lower() == b"content-disposition":
            return parse_options_header(value)[1].get(b"name")
    return None
