"""Logging of event loop errors that no task handles."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger("rowcall")

_CLOSED = "the handler is closed"
"""Message of uvloop about a closed connection."""


def report_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop as asyncio does by default.

    Only at level debug: the error of uvloop that the rest of a TLS handshake or TLS closure could not be written
    because the connection is closed already, which is expected. context: as asyncio passes it to exception handlers.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and _CLOSED in str(error):
        log.debug("a connection was given up while it was written to: %s", error)
    else:
        loop.default_exception_handler(context)
