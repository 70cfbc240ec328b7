"""One request on its way through the steps of its endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall.core.routing import Match
from rowcall.ext.connection import Request


class Exchange:
    """What the steps of one request share.

    body: read once, by whoever needs it first (`service.body`).
    values: texts of the path's parameter segments.
    request: the finished (or streaming) run of the routine.
    """

    __slots__ = ("answered", "arguments", "body", "has_null", "mask", "protocol", "request", "scope", "values")

    def __init__(self, scope: Any, protocol: Any, match: Match) -> None:
        self.scope = scope
        self.protocol = protocol
        self.values: Mapping[str, str] = match.values
        self.body: bytes | None = None
        self.mask = 0
        self.has_null = False
        self.arguments: list[bytes | None] = []
        self.request: Request | None = None
        self.answered = False
