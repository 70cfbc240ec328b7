"""Cookies: read one from a request, write one that carries a session (RFC 6265, sign-in-27, sign-in-28)."""

from __future__ import annotations

from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.sections.values import HEADER_NAME

CHUNK = 4000
"""Most characters of a value. Browsers store 4,096 bytes of name, value and attributes together."""

EPOCH = "Thu, 01 Jan 1970 00:00:00 GMT"
"""Expiry of a cookie that is removed."""
_CHUNKED = "chunks-"
_MOST_CHUNKS = 20


def cookie_name(text: str) -> str:
    """Return `text` if it is a token, as the name of a cookie must be (RFC 6265). Raises ValueError for other texts."""
    if not HEADER_NAME.fullmatch(text):
        raise ValueError(f"{text!r} cannot be the name of a cookie")
    return text


def cookie_value(header: str, name: str) -> str | None:
    """Return the value of the first cookie of this name in a Cookie header, or None."""
    start = 0
    prefix = name + "="
    while True:
        start = header.find(prefix, start)
        if start < 0:
            return None
        if start == 0 or header[start - 1] == ";" or header[:start].rstrip(" ")[-1:] in ("", ";"):
            end = header.find(";", start)
            return header[start + len(prefix) : end if end >= 0 else None].strip()
        start += len(prefix)


def session_value(header: str, name: str) -> str | None:
    """Return the value of a cookie that may be split over several cookies. None also if a part is missing."""
    value = cookie_value(header, name)
    if value is None or not value.startswith(_CHUNKED):
        return value
    count = value.removeprefix(_CHUNKED)
    if not count.isascii() or not count.isdigit() or len(count) > 2 or int(count) > _MOST_CHUNKS:
        return None
    parts = [cookie_value(header, f"{name}C{number}") for number in range(1, int(count) + 1)]
    return None if None in parts else "".join(part or "" for part in parts)


def set_session(scheme: CookieScheme, value: str, *, secure: bool) -> list[str]:
    """Return the values of the Set-Cookie headers that store a session. A long value is divided among several
    cookies. secure: the cookies get the attribute `secure`."""
    lifetime = f"; max-age={int(scheme.valid)}" if scheme.persistent else ""
    attributes = lifetime + _attributes(scheme, secure=secure)
    if len(value) <= CHUNK:
        return [f"{scheme.cookie}={value}{attributes}"]
    parts = [value[start : start + CHUNK] for start in range(0, len(value), CHUNK)]
    chunk_cookies = [f"{scheme.cookie}C{number}={part}{attributes}" for number, part in enumerate(parts, 1)]
    return [f"{scheme.cookie}={_CHUNKED}{len(parts)}{attributes}", *chunk_cookies]


def end_session(scheme: CookieScheme, header: str, *, secure: bool) -> list[str]:
    """Return the values of the Set-Cookie headers that remove a session, with all cookies over which it is divided.
    header: the Cookie header of the request, which shows these cookies. secure: as in `set_session`."""
    attributes = f"; expires={EPOCH}" + _attributes(scheme, secure=secure)
    names = [scheme.cookie]
    names += [
        f"{scheme.cookie}C{number}"
        for number in range(1, _MOST_CHUNKS + 1)
        if cookie_value(header, f"{scheme.cookie}C{number}") is not None
    ]
    return [f"{name}={attributes}" for name in names]


def _attributes(scheme: CookieScheme, *, secure: bool) -> str:
    domain = f"; domain={scheme.domain}" if scheme.domain else ""
    same_site = f"; samesite={scheme.same_site}" if scheme.same_site else ""
    flags = ("; secure" if secure else "", same_site, "; httponly" if scheme.http_only else "")
    return f"{domain}; path={scheme.path}" + "".join(flags)
