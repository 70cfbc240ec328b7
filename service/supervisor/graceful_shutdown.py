"""How a process ends: in order where it was asked once, at once where it was asked again, and after a successor serves.

First health says that it is not ready, for as long as load balancers need to notice; then clients are told to come back
on other connections; then what runs is finished (docs/operations.md).
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
    """tell: says it to all workers. stay: whether, as far as is known by then, the sockets stay open elsewhere when
    this process ends; it accepts nothing more while clients are told.
    """

    def __init__(self, options: ShutdownOptions, tell: Callable[[Leave], None], stay: Callable[[], bool]) -> None:
        self._options = options
        self._tell = tell
        self._stay = stay
        self._message: Leave | None = None
        """What workers have been told last, once this process has been asked to end."""
        self.hurry = asyncio.Event()
        """Asked to end again: at once."""

    @property
    def so_far(self) -> list[Leave]:
        """What a worker that comes meanwhile is told."""
        return [] if self._message is None else [self._message]

    @property
    def begun(self) -> bool:
        return self._message is not None

    def begin(self) -> None:
        """From here on new workers are told, and another signal hurries."""
        self._message = Leave()

    async def stop(self) -> None:
        """Returns when the process may end. Health says that it does."""
        await self._leave(unready=True)

    async def yield_to_successor(self) -> None:
        """A successor serves. Health stays as it is: the same address tells of both."""
        await self._leave(unready=False)

    async def _leave(self, *, unready: bool) -> None:
        delay = self._options.delay if unready else 0.0
        if delay:
            log.info("not ready any more; requests are served for another %g s", delay)
            self._say(Leave(unready=True))
            await self._unless_hurried(delay)
        if (stay := self._stay()) or delay:
            self._say(Leave(unready, closing=True, deaf=stay, succeeded=not unready))
            await self._unless_hurried(self._options.close_announcement)

    def _say(self, message: Leave) -> None:
        self._message = message
        self._tell(message)

    async def _unless_hurried(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.hurry.wait(), seconds)
