"""What a step is: a function over one exchange. The exchange itself, and what carries it from step to step, stand in
`ext.driver.request_context`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.ext.driver.execution import Execution
from rowcall.ext.driver.request_context import BodyArrival, PendingWork, RequestContext

__all__ = ["ClientDisconnectedError", "PendingWork", "RequestContext", "Running", "Step", "Waiting"]


class ClientDisconnectedError(Exception):
    """The client has left, in the middle of its request or of its answer, or has left the answer unread for too long.
    Nobody is there to be told."""


Running = Awaitable[None] | Execution | None
"""What a run of a routine is waited for by; None: it is over."""

Waiting = Running | BodyArrival | PendingWork
"""What a step gives back: nothing, when the next one may follow at once; a request in the driver's hands; the body of
its own on its way; something else that calls back; or an awaitable. The former cost no task, so they are what the hot
path uses."""

Step = Callable[[RequestContext], Waiting]
