"""What the requests of the endpoints hold, taken apart (passkeys-6, passkeys-7). Whatever is wrong is 400."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import orjson

from rowcall.core.errors.problems import Problem

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,18})", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def invalid(title: str) -> Problem:
    return Problem(400, title=title, code="invalid_request")


def parsed(body: bytes) -> Mapping[str, Any]:
    """Raises `Problem`."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise invalid("Invalid request body")
    return content


def required(content: Mapping[str, Any], *names: str) -> None:
    if any(content.get(name) in (None, "") for name in names):
        raise invalid("Missing required fields")


def binary(content: Mapping[str, Any], name: str) -> bytes:
    """Raises `Problem`."""
    found = from_base64url(content.get(name))
    if found is None:
        raise invalid("Invalid base64url encoding")
    return found


def from_base64url(value: object) -> bytes | None:
    """Without or with padding, in either alphabet."""
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
    """Raises `Problem`."""
    value = content["challengeId"]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or "\0" in value or len(value) > 1000:
        raise invalid("Invalid request body")
    return value


def names_one_record(text: str) -> bool:
    """Written as PostgreSQL writes a number or a uuid. What is read as one without being written so could be a second
    name of the same record, so it is a text and nothing else.
    """
    return _WHOLE.fullmatch(text) is not None or _UUID.fullmatch(text) is not None


def as_json(value: object) -> tuple[Any, str]:
    """A member that is JSON itself, or a text that holds JSON: what it means, and its text. Raises `Problem`."""
    if not isinstance(value, str):
        return value, orjson.dumps(value).decode()
    try:
        return orjson.loads(value), value
    except orjson.JSONDecodeError:
        raise invalid("Invalid JSON in request body") from None


def with_address(value: object, key: str, address: bytes | None) -> str | None:
    """Analytics as JSON, with the address of the client. None: there are none. Raises `Problem`."""
    if value is None or value == "":
        return None
    content, text = as_json(value)
    if not key or not isinstance(content, dict):
        return text
    return orjson.dumps({**content, key: None if address is None else address.decode()}).decode()


def transports(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
