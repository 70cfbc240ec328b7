"""The header `Accept` as media types.

Source: PostgREST's documentation, Resource Representation; RFC 9110, 12.5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

JSON = "application/json"
OBJECT = "application/vnd.pgrst.object"
ARRAY = "application/vnd.pgrst.array"
CSV = "text/csv"
GEO_JSON = "application/geo+json"
PLAN = "application/vnd.pgrst.plan"
OPENAPI = "application/openapi+json"
ANY = "*/*"
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_CHARSET = "; charset=utf-8"
_WITH_CHARSET = frozenset((JSON, OBJECT, ARRAY, PLAN, CSV, GEO_JSON, OPENAPI, "text/plain", "text/xml"))


@dataclass(frozen=True, slots=True)
class MediaType:
    """One entry of `Accept`.

    name: in lower case, without `+json` or `+text` for PostgREST's own types. sent: name and parameters of the client,
    with names in lower case, without `q`, blanks and quotes. stripped: leave out null members. plan_format, plan_for,
    plan_options: format, wrapped media type and options of an execution plan.
    """

    name: str
    sent: str
    stripped: bool = False
    plan_format: str = "text"
    plan_for: str = JSON
    plan_options: tuple[str, ...] = ()

    @property
    def canonical(self) -> str:
        """Return the name with the parameters that PostgREST evaluates: `nulls=stripped`, or those of an execution
        plan. An array that is not stripped is `application/json`."""
        if self.name == OBJECT:
            return f"{OBJECT}+json{';nulls=stripped' if self.stripped else ''}"
        if self.name == ARRAY:
            return f"{ARRAY}+json;nulls=stripped" if self.stripped else JSON
        if self.name == PLAN:
            options = f"; options={'|'.join(self.plan_options)}" if self.plan_options else ""
            return f'{PLAN}+{self.plan_format}; for="{self.plan_for}"{options}'
        return self.name

    @property
    def shown(self) -> str:
        """Return the media type for the error about unavailable types: a type that PostgREST knows in its canonical
        form, another one as the client has sent it."""
        return self.canonical if self.name in _WITH_CHARSET else self.sent

    @property
    def content_type(self) -> str:
        """Return the value of the header `Content-Type`."""
        return self.canonical + _CHARSET if self.name in _WITH_CHARSET else self.name


DEFAULT = MediaType(ANY, ANY)


def parse_accept(headers: Iterable[str]) -> tuple[MediaType, ...]:
    """Return the entries in the order of preference: quality, then specificity, then position. Entries of quality 0
    are not removed. Without entries, return only `DEFAULT`. headers: values of `Accept`."""
    entries: list[tuple[float, int, int, MediaType]] = []
    for header in headers:
        for text in _split(header, ","):
            text = text.strip()
            if not text:
                continue
            media, quality, specific = _entry(text)
            entries.append((-quality, -specific, len(entries), media))
    entries.sort(key=lambda entry: entry[:3])
    return tuple(entry[3] for entry in entries) or (DEFAULT,)


def _split(text: str, separator: str) -> list[str]:
    """Split a text at each separator outside of double quotes."""
    parts: list[str] = []
    start, inside = 0, False
    for place, character in enumerate(text):
        if character == '"':
            inside = not inside
        elif character == separator and not inside:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return parts


def _entry(text: str) -> tuple[MediaType, float, int]:
    """Return the media type of an entry, its quality, and how specific it is (0 for `*/*`). The quality is the number
    at the beginning of its text; without one, it is 1."""
    pieces = [piece.strip() for piece in _split(text, ";")]
    name = pieces[0].lower()
    parameters: dict[str, str] = {}
    quality = 1.0
    for piece in pieces[1:]:
        key, _, value = piece.partition("=")
        key, value = key.strip().lower(), value.strip().strip('"')
        if key == "q":
            number = _NUMBER.match(value)
            quality = 1.0 if number is None else float(number.group())
        elif key:
            parameters[key] = value
    specific = 0 if name == ANY else 1 if name.endswith("/*") else 2 + len(parameters)
    sent = name + "".join(f";{key}={value}" for key, value in parameters.items())
    base, _, suffix = name.partition("+")
    if base == PLAN and suffix in ("", "text", "json"):
        wrapped = _entry(parameters.get("for", JSON))[0].canonical
        options = tuple(
            option
            for option in ("analyze", "verbose", "settings", "buffers", "wal")
            if option in parameters.get("options", "").split("|")
        )
        return MediaType(PLAN, sent, False, suffix or "text", wrapped, options), quality, specific
    if base in (OBJECT, ARRAY) and suffix in ("", "json"):
        return MediaType(base, sent, parameters.get("nulls") == "stripped"), quality, specific
    return MediaType(name, sent), quality, specific
