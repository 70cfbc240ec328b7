"""The drain state: whether this process is about to stop. Request handling reads it, shutdown code sets it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DrainState:
    """How far the graceful shutdown of one worker has come."""

    unready: bool = False
    """Load balancers should send requests elsewhere; those that arrive are answered as usual."""
    closing: bool = False
    """Clients should use another connection for their next request."""
    stopping: bool = False
    """Responses that have no end of their own have to end."""
