"""The types of steps (functions over one request context) and of what they return, and the error for a disconnected
client. The request context itself, and the code that runs the steps, are in `ext.driver.request_context`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.ext.driver.execution import Execution
from rowcall.ext.driver.request_context import BodyArrival, PendingWork, RequestContext

__all__ = ["ClientDisconnectedError", "PendingWork", "RequestContext", "Running", "Step", "Waiting"]


class ClientDisconnectedError(Exception):
    """The client has disconnected during its request or the response, or has not read the response for too long. No
    error response can be sent.
    """


Running = Awaitable[None] | Execution | None
"""How the end of a run is awaited; None: it has ended."""

Waiting = Running | BodyArrival | PendingWork
"""Result of a step: None, if the next step may follow at once; an execution in the driver; the body of the request that
is arriving; other work that calls back; or an awaitable. All but the last cost no task, so the hot path uses them.
"""

Step = Callable[[RequestContext], Waiting]
