"""Parse the requests of the passkey endpoints (passkeys-6, passkeys-7). Every fault is a 400."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import orjson

from rowcall.core.errors.problems import Problem

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def invalid(title: str) -> Problem:
    """Return the 400 for an invalid request."""
    return Problem(400, title=title, code="invalid_request")


def parse_body(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of the body. Raises `Problem` 400 if the body is anything else."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise invalid("Invalid request body")
    return content


def require_members(content: Mapping[str, Any], *names: str) -> None:
    """Raise `Problem` 400 if one of the members is missing, null or empty."""
    if any(content.get(name) in (None, "") for name in names):
        raise invalid("Missing required fields")


def binary(content: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a base64url member. Raises `Problem` 400 if the member is missing or invalid."""
    decoded = from_base64url(content.get(name))
    if decoded is None:
        raise invalid("Invalid base64url encoding")
    return decoded


def from_base64url(value: object) -> bytes | None:
    """Decode base64url, with or without padding, in either alphabet. None if invalid."""
    if not isinstance(value, str):
        return None
    text = value.rstrip("=").replace("+", "-").replace("/", "_")
    if not _BASE64URL.fullmatch(text):
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return None


def to_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def challenge_id(content: Mapping[str, Any]) -> str:
    """Return the member `challengeId`, an integer or a text of at most 1,000 characters without NUL, as text. Raises
    `Problem` 400 for any other value. The member must be present (`require_members`)."""
    value = content["challengeId"]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or "\0" in value or len(value) > 1000:
        raise invalid("Invalid request body")
    return value


def names_one_record(text: str) -> bool:
    """Return whether the text is a number or a uuid in the notation in which PostgreSQL writes it.

    Another notation could be a second name of the same record, so such an id is passed as text only.
    """
    return _WHOLE.fullmatch(text) is not None or _UUID.fullmatch(text) is not None


def as_json(value: object) -> tuple[Any, str]:
    """Parse a member that is JSON itself or a text with JSON. Return its value, which can be written again, and its
    text. Raises `Problem` 400 for a text that is not JSON, and for a value that is nested too deeply.
    """
    try:
        content = orjson.loads(value) if isinstance(value, str) else value
        written = orjson.dumps(content).decode()  # TypeError: orjson reads 1,024 levels and writes 254
    except (orjson.JSONDecodeError, TypeError):
        raise invalid("Invalid JSON in request body") from None
    return content, value if isinstance(value, str) else written


def with_address(value: object, key: str, address: bytes | None) -> str | None:
    """Return the analytics of a client as JSON text; None if there are none. If they are an object and `key` is not
    empty, the member `key` is set to the client address, also if the client has sent one. Raises `Problem` 400 if they
    are not JSON.

    address: None: it is unknown, and the member is null.
    """
    if value is None or value == "":
        return None
    content, text = as_json(value)
    if not key or not isinstance(content, dict):
        return text
    return orjson.dumps({**content, key: None if address is None else address.decode()}).decode()


def transports(value: object) -> list[str]:
    """Return the texts of a list, and ignore other items; empty if the value is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
