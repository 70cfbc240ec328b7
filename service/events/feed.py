"""A worker's end of the way over the supervisor: what its requests publish, and what its streams get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rowcall.core.events.event import Event
from rowcall.service.events.batches import Batch, pack_events, unpack

Deliver = Callable[[Sequence[Batch]], None]


class Feed:
    """`publish` at any time; `join` before the first stream, `leave` behind the last one."""

    def __init__(self, deliver: Deliver) -> None:
        """To be made in the running event loop. deliver: gets what is published, by whichever worker, while joined."""
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._leaving: list[Event] = []
        self._joining: asyncio.Future[None] | None = None
        self.joined = False
        self.send: Callable[[bytes], None] = _nowhere
        """Set by the worker: to the supervisor with these events."""
        self.want: Callable[[bool], None] = _nowhere
        """Set by the worker: begin, or cease, to hand over what is published."""

    def publish(self, event: Event) -> None:
        """All events of one turn of the loop leave together."""
        self._leaving.append(event)
        if len(self._leaving) == 1:
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        events, self._leaving = self._leaving, []
        self.send(pack_events(events))

    async def join(self) -> None:
        """Returns when whatever is published from now on, anywhere, will be delivered."""
        if self.joined:
            return
        if self._joining is None:
            self._joining = self._loop.create_future()
            self.want(True)
        await asyncio.shield(self._joining)

    def leave(self) -> None:
        if self.joined:
            self.joined = False
            self.want(False)

    # --- from the supervisor ---------------------------------------------------------------------------------------

    def begin(self, packed: bytes) -> None:
        """The answer to `want(True)`, with what has been published before."""
        self.joined = True
        if self._joining is not None:
            self._joining.set_result(None)
            self._joining = None

    def arrive(self, packed: bytes) -> None:
        self._deliver(unpack(packed))


def _nowhere(_message: bytes | bool) -> None:
    """A worker that has not been told where to is not serving either."""
