"""Read `HttpServer:Shutdown` and `HttpServer:HandoverSocket`: graceful shutdown and zero-downtime restart."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.config.sections.http_server import HttpServer
from rowcall.service.startup_error import StartupError

_LONGEST_PATH = 100
"""Longest path of a Unix socket in bytes that every system accepts."""


@dataclass(frozen=True, slots=True)
class ShutdownOptions:
    """Phases of the graceful shutdown, in this order, in seconds.

    delay: health checks fail, and requests are served as usual. close_announcement: responses carry `Connection:
    close`. within: running requests may finish. handover: path of the Unix socket of the zero-downtime restart, or
    None.
    """

    delay: float
    close_announcement: float
    within: float
    handover: str | None


def shutdown_options(settings: Settings) -> ShutdownOptions:
    """Return the options of graceful shutdown and zero-downtime restart. Raises `StartupError` for a hand-over socket
    that cannot be used.
    """
    server = settings.read(HttpServer)
    handover = server.handover_socket
    if handover is not None and sys.platform != "linux":
        raise StartupError("HttpServer:HandoverSocket: listening sockets are handed over on Linux only")
    if handover is not None and not (handover.startswith("/") and len(handover.encode()) <= _LONGEST_PATH):
        raise StartupError(
            f"HttpServer:HandoverSocket: {handover!r} is no absolute path of at most {_LONGEST_PATH} bytes"
        )
    return ShutdownOptions(
        delay=server.shutdown_delay,
        close_announcement=server.close_announcement,
        within=settings.read(PoolOptions).shutdown,
        handover=handover,
    )
