"""Graceful shutdown, after a signal or when a successor serves; a second signal ends the process at once.

First, health checks report that the process is not ready, for as long as load balancers need to notice; then responses
carry `Connection: close`; then running requests finish (docs/operations.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from rowcall.service.options.server.shutdown import ShutdownOptions
from rowcall.service.supervisor.channel import Leave

log = logging.getLogger("rowcall")


class GracefulShutdown:
    """Runs the phases of a shutdown.

    send: sends a message to all workers. stay: returns whether another process keeps the sockets open when this one
    ends; if so, this process accepts no connections while it sends `Connection: close`.
    """

    def __init__(self, options: ShutdownOptions, send: Callable[[Leave], None], stay: Callable[[], bool]) -> None:
        self._options = options
        self._send = send
        self._stay = stay
        self._message: Leave | None = None
        """The last message to the workers, once a shutdown has begun."""
        self.hurry = asyncio.Event()
        """Set by another request to stop: end at once."""

    @property
    def so_far(self) -> list[Leave]:
        """The messages for a worker that is started during the shutdown: the current phase."""
        return [] if self._message is None else [self._message]

    @property
    def begun(self) -> bool:
        """Whether a shutdown has begun."""
        return self._message is not None

    def begin(self) -> None:
        """Mark the shutdown as begun: new workers are informed, and another signal speeds it up."""
        self._message = Leave()

    async def stop(self) -> None:
        """Run the phases of a stop up to the one with `Connection: close`; health checks fail meanwhile. Without a
        configured delay, there are no phases unless another process keeps the sockets open. Returns when the workers
        may finish running requests and end."""
        await self._leave(unready=True)

    async def yield_to_successor(self) -> None:
        """Run the phase with `Connection: close` after a successor serves, without the delay for load balancers: health
        checks succeed, because the same address leads to both processes. Returns as `stop` does."""
        await self._leave(unready=False)

    async def _leave(self, *, unready: bool) -> None:
        """Run the phases. unready: health checks fail."""
        delay = self._options.delay if unready else 0.0
        if delay:
            log.info("not ready any more; requests are served for another %g s", delay)
            self._say(Leave(unready=True))
            await self._unless_hurried(delay)
        if (stay := self._stay()) or delay:
            self._say(Leave(unready, closing=True, stop_accepting=stay, has_successor=not unready))
            await self._unless_hurried(self._options.close_announcement)

    def _say(self, message: Leave) -> None:
        """Send a phase to all workers, and remember it for new ones."""
        self._message = message
        self._send(message)

    async def _unless_hurried(self, seconds: float) -> None:
        """Wait for `seconds`, or until another request to stop."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.hurry.wait(), seconds)
