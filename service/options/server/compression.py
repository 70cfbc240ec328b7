"""Read `ResponseCompression`: which responses are compressed (server-11 to server-13)."""

from __future__ import annotations

import logging

from rowcall.core.config import Settings
from rowcall.core.http.compression import Compression

log = logging.getLogger("rowcall")

_SECTION = "ResponseCompression:"
_LEVELS = {"Optimal": (4, 6), "Fastest": (1, 1), "NoCompression": (0, 0), "SmallestSize": (11, 9)}
"""Levels of brotli and gzip for each value of `CompressionLevel`."""


def compression(settings: Settings) -> Compression | None:
    """Return the compression options, or None if no response is compressed."""
    brotli_level, gzip_level = _LEVELS[settings.choice(_SECTION + "CompressionLevel")]
    offers = (
        ("br", brotli_level, settings.flag(_SECTION + "UseBrotli")),
        ("gzip", gzip_level, settings.flag(_SECTION + "UseGzipFallback")),
    )
    chosen = [(coding, level) for coding, level, offered in offers if offered]
    if not settings.flag(_SECTION + "Enabled"):
        return None
    if not chosen:
        log.warning("%sEnabled is true, but UseBrotli and UseGzipFallback are false: nothing is compressed", _SECTION)
        return None
    return Compression(
        codings=tuple(coding for coding, _ in chosen),
        effort=tuple(level for _, level in chosen),
        include=_types(settings, "IncludeMimeTypes"),
        exclude=_types(settings, "ExcludeMimeTypes"),
        https=settings.flag(_SECTION + "EnableForHttps"),
    )


def _types(settings: Settings, key: str) -> frozenset[str]:
    return frozenset(text.strip().lower() for text in settings.texts(_SECTION + key) or ())
