"""Which answers are compressed, and how: by media type and by what the client accepts (server-11 to server-13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Compression:
    """codings: those on offer, `br` and `gzip`, the preferred one first. effort: for each, the level of its library."""

    codings: tuple[str, ...]
    effort: tuple[int, ...]
    include: frozenset[str]
    exclude: frozenset[str]
    https: bool = False

    def fits(self, content_type: str) -> bool:
        """The media type is compressed. An exact entry counts before `text/*`, that before `*/*`; among equals the one
        that excludes."""
        media_type = content_type.partition(";")[0].strip().lower()
        for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
            if name in self.exclude:
                return False
            if name in self.include:
                return True
        return False

    def choose(self, accept_encoding: str) -> str | None:
        """The coding for a client that says this. None: as it is."""
        expected = dict(_qualities(accept_encoding))
        best, quality = None, 0.0
        for coding in (*self.codings, IDENTITY):
            # What is not named may be sent as `*` says; leaving a body as it is needs no permission.
            own = expected.get(coding, expected.get("*", 0.0) if coding != IDENTITY else 0.0)
            if own > quality:
                best, quality = coding, own
        return None if best == IDENTITY else best

    def level(self, coding: str) -> int:
        return self.effort[self.codings.index(coding)]


def _qualities(accept_encoding: str) -> Iterator[tuple[str, float]]:
    """Each coding with its `q` (RFC 9110, 12.5.3). What cannot be read is not there."""
    for part in accept_encoding.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = _quality(parameters)
        if name and quality is not None:
            yield name, quality


def _quality(parameters: Iterable[str]) -> float | None:
    for parameter in parameters:
        key, _, text = parameter.partition("=")
        if key.strip() != "q":
            continue
        digits = text.strip()
        if not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
            return None
        quality = float(digits)
        return quality if quality <= 1.0 else None
    return 1.0
