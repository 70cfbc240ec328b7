"""Read `ResponseCompression`: which responses are compressed (server-11 to server-13)."""

from __future__ import annotations

import logging

from rowcall.core.config import Settings
from rowcall.core.http.compression import Compression, ResponseCompression

log = logging.getLogger("rowcall")

_LEVELS = {"Optimal": (4, 6), "Fastest": (1, 1), "NoCompression": (0, 0), "SmallestSize": (11, 9)}
"""Levels of brotli and gzip for each value of `CompressionLevel`."""


def compression(settings: Settings) -> Compression | None:
    """Return the compression options, or None if no response is compressed."""
    keys = settings.read_enabled(ResponseCompression)
    if keys is None:
        return None
    brotli_level, gzip_level = _LEVELS[keys.level]
    offers = (("br", brotli_level, keys.brotli), ("gzip", gzip_level, keys.gzip))
    chosen = [(coding, level) for coding, level, offered in offers if offered]
    if not chosen:
        log.warning(
            "ResponseCompression:Enabled is true, but UseBrotli and UseGzipFallback are false: nothing is compressed"
        )
        return None
    return Compression(
        codings=tuple(coding for coding, _ in chosen),
        effort=tuple(level for _, level in chosen),
        include=keys.include,
        exclude=keys.exclude,
        https=keys.https,
    )
