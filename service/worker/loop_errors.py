"""What the event loop tells of errors that no task has seen."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger("rowcall")

_CLOSED = "the handler is closed"
"""What uvloop says of a connection that is gone."""


def tell_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As asyncio does by itself, but for TLS on a connection that its owner has given up, of which uvloop tells an
    error when the rest of the handshake or of the goodbye cannot be written: it is what was wanted.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and _CLOSED in str(error):
        log.debug("a connection was given up while it was written to: %s", error)
    else:
        loop.default_exception_handler(context)
