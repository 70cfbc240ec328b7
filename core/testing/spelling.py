"""Names of headers as people write them: on the way they have no case, in the jsonb of a test they do."""

from __future__ import annotations

from collections.abc import Iterable

_ODD = {name.lower(): name for name in ("ETag", "WWW-Authenticate", "X-XSS-Protection", "DNT", "TE")}


def spelled(headers: Iterable[tuple[str, str]], declared: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """declared: as a comment spells those that it sets; others have a capital letter in each part."""
    known = _ODD | {name.lower(): name for name in declared}
    return tuple((known.get(name.lower()) or _capital(name), text) for name, text in headers)


def _capital(name: str) -> str:
    return "-".join(map(str.capitalize, name.split("-")))
