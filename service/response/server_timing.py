"""`Server-Timing`: reports in the response how the time of a request was spent (W3C Server Timing).

It is only made if `HttpServer:ServerTiming` is set; otherwise no endpoint has a step or a clock for it.
"""

from __future__ import annotations

import time

from rowcall.ext.driver.execution import Execution
from rowcall.ext.rendering.timed_rows import TimedPlan
from rowcall.service.request_context.protocols import Headers, HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext


def start_clock(context: RequestContext) -> None:
    """Replace the protocol of the request by one that measures from now on and adds `Server-Timing`. This step is in
    front of the run of the routine.
    """
    context.protocol = TimedProtocol(context)


class TimedProtocol(HeadersProtocol):
    """Wraps the HTTP server's protocol and adds `Server-Timing` to each response. The clock starts with its
    creation.
    """

    __slots__ = ("_began", "_context")

    def __init__(self, context: RequestContext) -> None:
        super().__init__(context.protocol, [])
        self._context = context
        self._began = time.monotonic()

    def _with_own_headers(self, headers: Headers) -> Headers:
        return [*headers, ("server-timing", server_timing(self._context.execution, time.monotonic() - self._began))]


def server_timing(execution: Execution | None, elapsed: float) -> str:
    """Return `queue;dur=0.2, database;dur=1.5, render;dur=0.1` in milliseconds. execution: None: none has begun, so all
    of the time counts as `queue`.

    queue: waiting for a connection and for the event loop. database: since the execution is the head of its connection,
    until its last row (until now if the result is streamed), without `render`. render: turning rows into the body.
    elapsed: seconds since the clock was started.
    """
    ran = render = 0.0
    if execution is not None:
        ran = execution.seconds if execution.finished else execution.age
        render = execution.plan.seconds if isinstance(execution.plan, TimedPlan) else 0.0
    parts = (("queue", elapsed - ran), ("database", ran - render), ("render", render))
    return ", ".join(f"{name};dur={max(0.0, seconds) * 1000:.3f}" for name, seconds in parts)
