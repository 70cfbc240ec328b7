"""Errors of outgoing requests.

`core.outgoing.guard.RefusedError` and `core.outgoing.address.BadUrlError` complement these: such a request is never
sent, and repeating it would not help.
"""

from __future__ import annotations


class OutboundError(Exception):
    """The transport failed: no connection, a broken one, or an invalid response. The message contains no secret.

    unanswered: no byte of a response has arrived; whether the server has processed the request is unknown.
    """

    def __init__(self, message: str, *, unanswered: bool = False) -> None:
        super().__init__(message)
        self.unanswered = unanswered


class NotReachedError(OutboundError):
    """No connection could be opened, so the server has not received any part of the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, unanswered=True)


class QueueFullError(NotReachedError):
    """Too many requests of this worker wait for a connection to the host. It says nothing about the server."""


class TooLargeError(OutboundError):
    """The response is larger than allowed."""
