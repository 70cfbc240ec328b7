"""Select the content coding of a response by its media type and by `Accept-Encoding` (server-11 to server-13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rowcall.core.sections.declaration import choice, flag, section, texts
from rowcall.core.sections.values import lower_case_texts

IDENTITY = "identity"


@section("ResponseCompression", "Compression of responses.")
class ResponseCompression:
    """Options of response compression, as they are configured. include, exclude: media types in lower case."""

    enabled: bool = flag("Enabled", False, "Compress responses for clients that accept it.")
    https: bool = flag("EnableForHttps", False, "Compress over https too.")
    brotli: bool = flag("UseBrotli", True, "Offer `br`, before gzip.")
    gzip: bool = flag("UseGzipFallback", True, "Offer `gzip`.")
    level: str = choice(
        "CompressionLevel", "Optimal Fastest NoCompression SmallestSize", "Optimal", "Trade-off between speed and size."
    )
    include: frozenset[str] = texts(
        "IncludeMimeTypes",
        (
            "text/plain",
            "text/css",
            "application/javascript",
            "text/javascript",
            "text/html",
            "application/xml",
            "text/xml",
            "application/json",
            "text/json",
            "image/svg+xml",
            "font/woff",
            "font/woff2",
            "application/font-woff",
            "application/font-woff2",
        ),
        "Media types that are compressed.",
        convert=lower_case_texts,
    )
    exclude: frozenset[str] = texts(
        "ExcludeMimeTypes", (), "Media types that are never compressed.", convert=lower_case_texts
    )


@dataclass(frozen=True, slots=True)
class Compression:
    """Options of compression.

    codings: enabled codings, `br` and `gzip`, the preferred one first. effort: for each of them, in the same order, the
    level of its library. include, exclude: patterns of media types in lower case: exact ones, `text/*` and `*/*`.
    https: compress over https too.
    """

    codings: tuple[str, ...]
    effort: tuple[int, ...]
    include: frozenset[str]
    exclude: frozenset[str]
    https: bool = False

    def fits(self, content_type: str) -> bool:
        """Return whether responses with this `Content-Type`, whose parameters do not count, are compressed.

        An exact entry has precedence over `text/*`, and that over `*/*`. Of equal entries, the excluding one applies.
        """
        media_type = content_type.partition(";")[0].strip().lower()
        for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
            if name in self.exclude:
                return False
            if name in self.include:
                return True
        return False

    def choose(self, accept_encoding: str) -> str | None:
        """Return the coding for a client with this `Accept-Encoding`, or None for an uncompressed response. If the
        client accepts several equally, it is the first of `codings`."""
        qualities = dict(_qualities(accept_encoding))
        best, quality = None, 0.0
        for coding in (*self.codings, IDENTITY):
            # `*` covers codings without an entry. An uncompressed body needs no entry.
            own = qualities.get(coding, qualities.get("*", 0.0) if coding != IDENTITY else 0.0)
            if own > quality:
                best, quality = coding, own
        return None if best == IDENTITY else best

    def level(self, coding: str) -> int:
        """Return the compression level for the library of a coding, which is one of `codings`."""
        return self.effort[self.codings.index(coding)]


def _qualities(accept_encoding: str) -> Iterator[tuple[str, float]]:
    """Yield each coding, in lower case, with its `q` from 0 to 1 (RFC 9110, 12.5.3). Malformed entries are skipped."""
    for part in accept_encoding.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = _quality(parameters)
        if name and quality is not None:
            yield name, quality


def _quality(parameters: Iterable[str]) -> float | None:
    """Return the `q` in the parameters of an entry; 1.0 if there is none; None: it is malformed. parameters: texts such
    as `q=0.5`, in lower case."""
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
