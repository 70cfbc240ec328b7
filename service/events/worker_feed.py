"""A worker's end of the way over the supervisor: what its requests publish, and what its streams get."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from rowcall.core.events.event import Event
from rowcall.service.events.batches import Batch, pack_events, unpack

Deliver = Callable[[Sequence[Batch]], None]
Joined = Callable[[], None]


class WorkerFeed:
    """`publish` at any time; `join` before each stream, `leave` behind the last one."""

    def __init__(self, deliver: Deliver, restore: Callable[[bytes], None]) -> None:
        """To be made in the running event loop. deliver: gets what is published, by whichever worker, while joined.
        restore: gets what has been kept of what was published before, when that begins."""
        self._deliver = deliver
        self._restore = restore
        self._loop = asyncio.get_running_loop()
        self._leaving: list[Event] = []
        self._joining: list[Joined] = []
        """In this turn of the loop."""
        self._asked: deque[list[Joined]] = deque()
        """Those for whom the supervisor has been asked."""
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

    def join(self, joined: Joined) -> None:
        """`joined` is called when whatever is published from now on, anywhere, will be delivered, and nothing that has
        been published before: what is under way to this worker arrives in front of the supervisor's answer.
        """
        self._joining.append(joined)
        if len(self._joining) == 1:
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._asked.append(self._joining)
        self._joining = []
        self.want(True)

    def leave(self) -> None:
        """Nothing is delivered until somebody joins again."""
        if not self._joining and not self._asked:
            self.want(False)

    # --- from the supervisor ---------------------------------------------------------------------------------------

    def begin(self, packed: bytes) -> None:
        """The answer to `want(True)`. packed: what has been published before; nothing where this is known."""
        if packed:
            self._restore(packed)
        # At once: the next message may bring an event that they must not miss.
        for joined in self._asked.popleft():
            joined()

    def arrive(self, packed: bytes) -> None:
        self._deliver(unpack(packed))


def _nowhere(_message: bytes | bool) -> None:
    """A worker that has not been told where to is not serving either."""
