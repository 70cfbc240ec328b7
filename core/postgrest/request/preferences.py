"""The header `Prefer` as preferences.

Source: PostgREST's documentation, Prefer Header; RFC 7240.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.core.postgrest import errors

_CHOICES = {
    "resolution": ("merge-duplicates", "ignore-duplicates"),
    "missing": ("default", "null"),
    "return": ("representation", "headers-only", "minimal"),
    "count": ("exact", "planned", "estimated"),
    "tx": ("commit", "rollback"),
    "handling": ("strict", "lenient"),
}
_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*").fullmatch


@dataclass(frozen=True, slots=True)
class Preferences:
    """Recognised preferences; None: the client has sent none of this kind. unknown: tokens that are not recognised."""

    resolution: str | None = None
    missing: str | None = None
    returning: str | None = None
    count: str | None = None
    transaction: str | None = None
    handling: str | None = None
    timezone: str | None = None
    max_affected: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def strict(self) -> bool:
        return self.handling == "strict"

    def check(self) -> None:
        """Raise `ApiError` if `handling=strict` was sent with unknown preferences."""
        if self.strict and self.unknown:
            raise errors.invalid_preferences(self.unknown)


def parse_preferences(headers: Iterable[str]) -> Preferences:
    """Merge the values of all `Prefer` headers. If a preference is sent twice, the first value counts. A `max-affected`
    that is no whole number of at most 18 digits is ignored."""
    values: dict[str, str] = {}
    unknown: list[str] = []
    for header in headers:
        for token in (part.strip() for part in header.split(",")):
            if not token:
                continue
            key, equals, value = token.partition("=")
            if (key in _CHOICES and value in _CHOICES[key]) or (equals and key in ("timezone", "max-affected")):
                values.setdefault(key, value)
            else:
                unknown.append(token)
    affected = _NUMBER(values.get("max-affected", ""))
    return Preferences(
        resolution=values.get("resolution"),
        missing=values.get("missing"),
        returning=values.get("return"),
        count=values.get("count"),
        transaction=values.get("tx"),
        handling=values.get("handling"),
        timezone=values.get("timezone"),
        max_affected=int(affected[0]) if affected else None,
        unknown=tuple(unknown),
    )


def preference_applied(
    preferences: Preferences,
    *,
    method: str,
    transaction: bool,
    resolution: bool = False,
    function: bool = False,
) -> str | None:
    """Return the value of `Preference-Applied`; None: no preference was applied.

    method: of the request. transaction: `tx` may be overridden. resolution: a conflict target exists. function: the
    request is a call.
    """
    write = method in ("POST", "PATCH", "PUT", "DELETE") and not function
    parts = (
        ("resolution", preferences.resolution if method == "POST" and not function and resolution else None),
        ("missing", preferences.missing if method in ("POST", "PATCH") and not function else None),
        ("return", preferences.returning if write else None),
        ("count", preferences.count),
        ("tx", preferences.transaction if transaction else None),
        ("handling", preferences.handling),
        ("timezone", preferences.timezone),
        (
            "max-affected",
            None
            if preferences.max_affected is None
            or not preferences.strict
            or not (function or method in ("PATCH", "DELETE"))
            else str(preferences.max_affected),
        ),
    )
    return ", ".join(f"{key}={value}" for key, value in parts if value is not None) or None
