"""One request on its way through the steps of its endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rowcall.ext.connection import Request

NO_VALUES: Mapping[str, str] = {}


class Exchange:
    """What the steps of one request share, and how far it has come.

    values: texts of the path's parameter segments.
    body: read once, by whoever needs it first (`service.body`).
    arguments: texts for the parameters in `mask`.
    request: the run of the routine, under way or finished.
    answered: set by a step that has sent the response itself; nothing follows.
    finish: tells the HTTP server that the response has been given.
    """

    __slots__ = (
        "answered",
        "arguments",
        "body",
        "finish",
        "has_null",
        "mask",
        "position",
        "protocol",
        "request",
        "scope",
        "steps",
        "values",
    )

    def __init__(self, scope: Any, protocol: Any, finish: Callable[[], None]) -> None:
        self.scope = scope
        self.protocol = protocol
        self.finish = finish
        self.steps: tuple[Step, ...] = ()
        self.position = 0
        self.values = NO_VALUES
        self.body: bytes | None = None
        self.mask = 0
        self.has_null = False
        self.arguments: list[bytes | None] = []
        self.request: Request | None = None
        self.answered = False

    def follow(self, steps: tuple[Step, ...]) -> None:
        """Goes on with these steps instead of what was left."""
        self.steps = steps
        self.position = 0


Waiting = Awaitable[None] | Request | None
"""What a step gives back: nothing, when the next one may follow at once; a request in the driver's hands; or an
awaitable. A request costs no task and no future, so it is what the hot path uses."""

Step = Callable[[Exchange], Waiting]
