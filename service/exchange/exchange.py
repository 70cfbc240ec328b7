"""What a step is: a function over one exchange. The exchange itself, and what carries it from step to step, stand in
`ext.driver.exchange`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.ext.driver.exchange import Arrival, Exchange, Pending
from rowcall.ext.driver.request import Request

__all__ = ["ClientGoneError", "Exchange", "Pending", "Running", "Step", "Waiting"]


class ClientGoneError(Exception):
    """The client has left, in the middle of its request or of its answer, or has left the answer unread for too long.
    Nobody is there to be told."""


Running = Awaitable[None] | Request | None
"""What a run of a routine is waited for by; None: it is over."""

Waiting = Running | Arrival | Pending
"""What a step gives back: nothing, when the next one may follow at once; a request in the driver's hands; the body of
its own on its way; something else that calls back; or an awaitable. The former cost no task, so they are what the hot
path uses."""

Step = Callable[[Exchange], Waiting]
