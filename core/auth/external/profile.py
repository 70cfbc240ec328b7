"""E-mail and name in the response of a provider, in the forms that known providers use (external-sign-in-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


def email_of(info: object) -> str | None:
    """Return the e-mail address in a profile, or in the response of a separate e-mail URL (a list for GitHub); None:
    there is none. In a list, addresses that are marked as not verified are ignored; for a profile, the caller checks
    `email_verified`."""
    if isinstance(info, list):
        return _primary_email(info)
    if not isinstance(info, Mapping):
        return None
    for name in ("email", "userPrincipalName"):
        if text := _text(info.get(name)):
            return text
    elements = info.get("elements")
    first = elements[0] if isinstance(elements, list) and elements else None
    handle = first.get("handle~") if isinstance(first, Mapping) else None
    return _text(handle.get("emailAddress")) if isinstance(handle, Mapping) else None


def _primary_email(entries: list[Any]) -> str | None:
    """Return the primary address in a list, else the first one; None: there is none. Addresses that are marked as
    not verified are ignored."""
    addresses = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("verified", True) is True]
    addresses.sort(key=lambda entry: entry.get("primary") is not True)
    return next((text for entry in addresses if (text := _text(entry.get("email")))), None)


def name_of(info: Mapping[str, Any]) -> str | None:
    """Return the user's name in a profile, or None."""
    last_name = _text(info.get("localizedLastName"))
    if last_name:
        return f"{_text(info.get('localizedFirstName')) or ''} {last_name}".strip()
    return _text(info.get("name"))


def with_address(analytics: str | None, key: str, address: str | None) -> str | None:
    """Return the analytics of the sign-in page as JSON, with the client address added as the member `key`.

    None: there are none, they are no JSON object, or their values are nested too deeply to be written. If the address
    is unknown or `key` is empty, nothing is added.
    """
    if not analytics:
        return None
    try:
        content = orjson.loads(analytics)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(content, dict):
        return None
    if key and address:
        content[key] = address
    try:
        return orjson.dumps(content).decode()
    except orjson.JSONEncodeError:  # more levels than are written, but not more than are read
        return None


def _text(value: object) -> str | None:
    """Return a JSON value as text without NUL. A numeric id becomes its digits. None: an empty text, or another
    value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.replace("\0", "") or None if isinstance(value, str) else None
