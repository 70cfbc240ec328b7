"""Spelling of header names: HTTP ignores their case, but the jsonb of a test does not."""

from __future__ import annotations

from collections.abc import Iterable

_ODD = {name.lower(): name for name in ("ETag", "WWW-Authenticate", "X-XSS-Protection", "DNT", "TE")}


def with_usual_spelling(
    headers: Iterable[tuple[str, str]], declared: Iterable[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return headers with their names in the usual upper and lower case, such as `Content-Type` and `ETag`.

    declared: names as written in a comment, whose spelling has precedence.
    """
    spellings = _ODD | {name.lower(): name for name in declared}
    return tuple((spellings.get(name.lower()) or _capital(name), text) for name, text in headers)


def _capital(name: str) -> str:
    return "-".join(map(str.capitalize, name.split("-")))
