"""Keys that bring back what is closed by default: whoever uses one is told at the start what it opens."""

from __future__ import annotations

import logging

from rowcall.core.config import Settings

log = logging.getLogger("rowcall")


def opened(settings: Settings, key: str, consequence: str) -> bool:
    """The flag `key`. consequence: what is possible where it is on, as the end of a sentence."""
    on = settings.flag(key)
    if on:
        log.warning("%s is on: %s", key, consequence)
    return on
