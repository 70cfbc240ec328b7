"""What can go wrong with a request that goes out, as few exceptions.

`core.outgoing.guard.RefusedError` and `core.outgoing.address.BadUrlError` stand beside these: such a request is never
sent, and another attempt would not help.
"""

from __future__ import annotations


class OutboundError(Exception):
    """The transport failed: no connection, a broken one, an answer that is none. The text names no secret.

    unanswered: not a byte of an answer has come; whether the server has acted on the request is unknown.
    """

    def __init__(self, message: str, *, unanswered: bool = False) -> None:
        super().__init__(message)
        self.unanswered = unanswered


class NotReachedError(OutboundError):
    """No connection could be made: the server has seen nothing of the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, unanswered=True)


class TooLargeError(OutboundError):
    """An answer is larger than it may be."""
