"""`HttpServer:Shutdown` → how the service stops, and who may take its place."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "HttpServer:Shutdown:"
_LONGEST_PATH = 100
"""Bytes of the path of a Unix socket that every system takes."""


@dataclass(frozen=True, slots=True)
class ShutdownOptions:
    """Times in seconds, one after the other."""

    delay: float
    close_announcement: float
    within: float
    handover: str | None


def shutdown_options(settings: Settings) -> ShutdownOptions:
    handover = settings.text_or_none("HttpServer:HandoverSocket")
    if handover is not None and sys.platform != "linux":
        raise StartupError("HttpServer:HandoverSocket: listening sockets are handed over on Linux only")
    if handover is not None and not (handover.startswith("/") and len(handover.encode()) <= _LONGEST_PATH):
        raise StartupError(f"HttpServer:HandoverSocket: {handover!r} is no absolute path of {_LONGEST_PATH} bytes")
    return ShutdownOptions(
        delay=settings.seconds(_P + "Delay"),
        close_announcement=settings.seconds(_P + "GoodbyeTime"),
        within=settings.seconds("ConnectionSettings:Pool:ShutdownTimeout"),
        handover=handover,
    )
