"""Logging of event loop errors that no task handles."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger("rowcall")

_CLOSED = "the handler is closed"
"""Message of uvloop about a closed connection."""


def report_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error as asyncio does by default, except for TLS on a connection that its owner has closed: uvloop reports
    an error if the rest of the handshake or of the TLS closure cannot be written, which is expected.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and _CLOSED in str(error):
        log.debug("a connection was given up while it was written to: %s", error)
    else:
        loop.default_exception_handler(context)
