"""The worker's side of the event feed over the supervisor: events that its requests publish, and events for its
streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from rowcall.core.events.event import Event
from rowcall.service.events.batches import Batch, pack_events, unpack

Deliver = Callable[[Sequence[Batch]], None]
Joined = Callable[[], None]


class WorkerFeed:
    """The event feed of a worker. Call `publish` at any time; `join` before each stream, `leave` after the last one."""

    def __init__(self, deliver: Deliver, restore: Callable[[bytes], None]) -> None:
        """Construct it in the running event loop.

        deliver: gets the events that any worker publishes, while joined. restore: gets the replay buffer when joining.
        """
        self._deliver = deliver
        self._restore = restore
        self._loop = asyncio.get_running_loop()
        self._leaving: list[Event] = []
        """Events published in this turn of the event loop."""
        self._joining: list[Joined] = []
        """Joins of this turn of the event loop."""
        self._requested_joins: deque[list[Joined]] = deque()
        """Joins for which the supervisor was asked."""
        self.send: Callable[[bytes], None] = _nowhere
        """Sends events to the supervisor. Set by the worker."""
        self.request_delivery: Callable[[bool], None] = _nowhere
        """Asks the supervisor to begin or end the delivery of events. Set by the worker."""

    def publish(self, event: Event) -> None:
        """Publish an event. All events of one turn of the event loop are sent together."""
        self._leaving.append(event)
        if len(self._leaving) == 1:
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        """Send the events of this turn of the event loop to the supervisor."""
        events, self._leaving = self._leaving, []
        self.send(pack_events(events))

    def join(self, joined: Joined) -> None:
        """Request the delivery of events, and call `joined` when the supervisor has answered. Every event after the
        answer is delivered; earlier ones are in the replay buffer.

        Earlier events in flight to this worker arrive before the answer of the supervisor.
        """
        self._joining.append(joined)
        if len(self._joining) == 1:
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        """Ask the supervisor once for all joins of this turn of the event loop."""
        self._requested_joins.append(self._joining)
        self._joining = []
        self.request_delivery(True)

    def leave(self) -> None:
        """End the delivery of events until the next join. Nothing happens if a join is in progress."""
        if not self._joining and not self._requested_joins:
            self.request_delivery(False)

    # --- from the supervisor ---------------------------------------------------------------------------------------

    def on_join_answer(self, packed: bytes) -> None:
        """Handle the answer of the supervisor to `join`: restore the replay buffer, and call the functions that were
        passed to `join`. packed: the replay buffer; empty if this worker has it already."""
        if packed:
            self._restore(packed)
        # Immediately, as the next message may contain an event that they must not miss.
        for joined in self._requested_joins.popleft():
            joined()

    def on_events(self, packed: bytes) -> None:
        """Pass events of the supervisor on to the streams. packed: batches from `pack`."""
        self._deliver(unpack(packed))


def _nowhere(_message: bytes | bool) -> None:
    """Discard a message: a worker without a connection to the supervisor does not serve yet."""
