"""Files over HTTP as pure functions: types, paths, validators and ranges (RFC 9110, 13 and 14)."""

from __future__ import annotations

import mimetypes
import re
from email.utils import formatdate, parsedate_to_datetime

DEFAULT_DOCUMENTS = ("default.htm", "default.html", "index.htm", "index.html")
UNKNOWN = "application/octet-stream"

_TYPES = mimetypes.MimeTypes(filenames=())
"""Media types of Python itself. With those of the machine, a file could have different types on two hosts."""
for _suffix, _type in (
    (".js", "text/javascript"),
    (".mjs", "text/javascript"),
    (".json", "application/json"),
    (".map", "application/json"),
    (".xml", "text/xml"),
    (".ico", "image/x-icon"),
    (".svg", "image/svg+xml"),
    (".webp", "image/webp"),
    (".avif", "image/avif"),
    (".woff", "application/font-woff"),
    (".woff2", "font/woff2"),
    (".ttf", "application/x-font-ttf"),
    (".otf", "font/otf"),
    (".wasm", "application/wasm"),
    (".webmanifest", "application/manifest+json"),
    (".md", "text/markdown"),
    (".csv", "text/csv"),
):
    _TYPES.add_type(_type, _suffix)

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ufffd]")
_RANGE = re.compile(r"bytes=(\d{0,100})-(\d{0,100})", re.ASCII)


def content_type(name: str) -> str:
    """Return the media type of a file by the suffix of its name, without a charset; `UNKNOWN` for unknown suffixes."""
    _, dot, suffix = name.rpartition(".")
    return _TYPES.types_map[True].get(f".{suffix.lower()}", UNKNOWN) if dot else UNKNOWN


def relative_path(path: str) -> str | None:
    """Return the path of a file relative to the root, empty for `/`, or None if the request path is refused. path: of
    the request, decoded.

    Refused are paths without a slash at the beginning, empty names (`//`), `..`, hidden names, and names with
    characters that have a meaning for a file system. A slash at the end is preserved.
    """
    if not path.startswith("/") or _UNSAFE.search(path):
        return None
    inner = path[1:]
    names = inner.removesuffix("/").split("/") if inner else []
    if any(not name or name.startswith(".") or ":" in name for name in names):
        return None
    return inner


def entity_tag(modified: int, size: int) -> str:
    """Return the entity tag of a file, a quoted hexadecimal number. modified: nanoseconds since 1970. size: bytes."""
    return f'"{modified ^ size:x}"'


def last_modified(seconds: float) -> str:
    """Return a time as an HTTP date. seconds: since 1970."""
    return formatdate(int(seconds), usegmt=True)


def is_unchanged(tag: str, modified: float, if_none_match: str | None, if_modified_since: str | None) -> bool:
    """Return whether the response is 304. If there is If-None-Match, the date is not compared (RFC 9110, 13.2.2).

    tag: entity tag of the file, in quotes. modified: time of its change in seconds since 1970. if_none_match,
    if_modified_since: the headers of the request; None: it has none.
    """
    if if_none_match is not None:
        tags = (each.strip().removeprefix("W/") for each in if_none_match.split(","))
        return if_none_match.strip() == "*" or tag in tags
    return if_modified_since is not None and _is_since(modified, if_modified_since)


def _is_since(modified: float, date: str) -> bool:
    """Return whether a date of a header is not before `modified` (seconds since 1970); False for a malformed date."""
    try:
        return int(modified) <= parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return False


class UnsatisfiableError(ValueError):
    """A range contains no byte of the file. The response is 416."""


def byte_range(header: str | None, if_range: str | None, tag: str, date: str, size: int) -> tuple[int, int] | None:
    """Return the offset of the first byte and the offset behind the last one; None: the whole file.

    Several ranges and malformed headers lead to the whole file. header, if_range: `Range` and `If-Range` of the
    request; None: it has none. tag, date: entity tag and date of the file, with which `if_range` is compared. size: of
    the file in bytes.

    Raises:
        UnsatisfiableError: the file has no byte at the beginning of the range (an empty file has none at all), or
            the range is a suffix of 0 bytes.
    """
    if header is None or (if_range is not None and if_range not in (tag, date)):
        return None
    match = _RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        first, end = max(0, size - int(match[2])), size
        if not int(match[2]):
            raise UnsatisfiableError
    else:
        first = int(match[1])
        end = min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < first:
            return None
    if first >= size:
        raise UnsatisfiableError
    return first, end


def accepts(header: str | None, coding: str) -> bool:
    """Return whether a client accepts a coding (RFC 9110, 12.5.3). header: its `Accept-Encoding`; None: it sent none,
    and accepts no coding. coding: in lower case."""
    quality: dict[str, float] = {}
    for part in (header or "").lower().split(","):
        name, _, rest = part.partition(";")
        weight = rest.strip().removeprefix("q=")
        quality[name.strip()] = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else float(not rest.strip())
    return quality.get(coding, quality.get("*", 0.0)) > 0
