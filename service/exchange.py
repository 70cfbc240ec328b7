"""One request on its way through the steps of its endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rowcall.ext.connection import Request

if TYPE_CHECKING:
    from rowcall.service.response_headers import CommentHeaders

NO_VALUES: Mapping[str, str] = {}


class ClientGoneError(Exception):
    """The client has left, in the middle of its request or of its answer, or has left the answer unread for too long.
    Nobody is there to be told."""


class Exchange:
    """What the steps of one request share, and how far it has come.

    remaining: the steps that have not begun.
    values: texts of the path's parameter segments.
    body: read once, by whoever needs it first (`service.body`).
    arguments: texts for the parameters in `mask`.
    request: the run of the routine, under way or finished.
    comment_headers: the header lines of the comment, once the caller has been let in.
    answered: set by a step that has sent the response itself; nothing follows.
    """

    __slots__ = (
        "answered",
        "arguments",
        "body",
        "comment_headers",
        "has_null",
        "mask",
        "protocol",
        "remaining",
        "request",
        "scope",
        "values",
    )

    def __init__(self, scope: Any, protocol: Any) -> None:
        self.scope = scope
        self.protocol = protocol
        self.remaining: Iterator[Step] = iter(())
        self.values = NO_VALUES
        self.body: bytes | None = None
        self.mask = 0
        self.has_null = False
        self.arguments: list[bytes | None] = []
        self.request: Request | None = None
        self.answered = False
        self.comment_headers: CommentHeaders | None = None

    def follow(self, steps: tuple[Step, ...]) -> None:
        """Goes on with these steps instead of what was left, from a step that has been awaited."""
        self.remaining = iter(steps)


Waiting = Awaitable[None] | Request | None
"""What a step gives back: nothing, when the next one may follow at once; a request in the driver's hands; or an
awaitable. A request costs no task and no future, so it is what the hot path uses."""

Step = Callable[[Exchange], Waiting]
