"""Events in a worker: publishes those of its requests, and sends to every stream the events that its subscriber may
see.

Streams whose subscribers see the same events form a group: whether they may see an event is decided once for the group,
and events that have accumulated are sent together.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from rowcall.core.auth.claims import User
from rowcall.core.events.event import Event, Viewer
from rowcall.core.events.options import EventOptions
from rowcall.core.events.position import Position, advance, position_text
from rowcall.core.events.wire import BEAT, CONNECTED, event_text, id_text, named_text, retry_text
from rowcall.service.events.batches import Batch
from rowcall.service.events.reading_progress import Connections
from rowcall.service.events.replay_buffer import ReplayBuffer
from rowcall.service.events.stream import Stream
from rowcall.service.events.worker_feed import WorkerFeed

REST = 0.00002
"""Seconds to wait for each stream after sending to it. With many streams, events are sent together, which costs hardly
more than one event, and other work is not delayed. A thousand streams take 20 ms.
"""
SLICE = 128
"""Streams that are sent to in one turn of the event loop, which takes about 150 µs."""
TICKS = 15
"""Number of parts of the streams, whose heartbeats are distributed over the interval."""
PUSH_EVERY = 0.02
"""Seconds between two checks of slow readers, as no callback reports that they have read."""
BACK_WITHIN = 5.0
"""Seconds over which reconnections of clients are distributed after the service has ended their streams."""


class _Group:
    """Streams that see the same events, and have been sent the same ones so far. viewer: the object with their rights,
    which all of them share. pending: texts of events to send."""

    __slots__ = ("pending", "streams", "viewer")

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.streams: dict[Stream, None] = {}
        self.pending: list[bytes] = []


class Broadcaster:
    """Sends events to the streams of a worker. `publish` publishes an event; for a new stream, call `feed.join`, then
    `add`.
    """

    def __init__(self, options: EventOptions) -> None:
        """Construct it in the running event loop."""
        self._options = options
        self._history = ReplayBuffer(options.replay_events, options.stored_bytes)
        self.feed = WorkerFeed(self._deliver, self._history.restore)
        self.publish = self.feed.publish
        self.connections = Connections()
        self._loop = asyncio.get_running_loop()
        self._groups: dict[_Group, None] = {}
        self._growing: dict[tuple[object, ...], _Group] = {}
        """Groups that new streams join, by the key of their viewers."""
        self._by_execution: dict[tuple[str, str], dict[_Group, None]] = {}
        """Groups by channel and execution id of their viewers."""
        self._waiting: dict[_Group, None] = {}
        """Groups with events to send."""
        self._sending: asyncio.Handle | None = None
        self._not_before = 0.0
        self._slow: dict[Stream, None] = {}
        """Streams whose events wait for the reader."""
        self._pushing: asyncio.TimerHandle | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._number = 0
        self.offers: Callable[[Stream], bool] = lambda stream: True
        """Whether a stream still exists for its subscriber. Set by the worker. A stream that was requested before a
        change of the schema snapshot may begin after it.
        """
        self.count_delivered: Callable[[int], None] = lambda count: None
        """Called with the number of events for streams that may see them, once for each stream. Set by the worker."""
        self.count_dropped: Callable[[int], None] = lambda count: None
        """Called with the number of events that the full queues of slow readers drop. Set by the worker."""
        self._ending: dict[Stream, asyncio.TimerHandle] = {}
        """Timers that end streams when the session of the user expires."""
        self._count = 0
        """Number of open streams."""

    # --- streams ---------------------------------------------------------------------------------------------------

    def add(self, stream: Stream, position: Position | None, *, last_value: bool) -> None:
        """Send the beginning of a stream, with the events missed since `position` (None for a new client), and add it.
        It receives the events that are delivered from now on, and ends when the session of its user expires. A stream
        that has ended meanwhile is not added; one that a change of the schema snapshot has removed is ended.

        last_value: a new client first gets the latest event that it may see. If replay is disabled, every client counts
        as new.
        """
        viewer = stream.viewer
        first = [CONNECTED, *self._initial_texts(viewer, position, last_value=last_value)]
        stream.send(first, b"".join(first))
        if not stream.open:
            return
        group = self._group_for(viewer)
        group.streams[stream] = None
        stream.group = group
        stream.viewer = group.viewer  # share one object
        self._count += 1
        stream.number = self._number = self._number + 1
        if viewer.user is not None and viewer.user.expires != float("inf"):
            seconds = max(0.0, viewer.user.expires - time.time())
            self._ending[stream] = self._loop.call_later(seconds, stream.end)
        if self._ticking is None:
            self._tick_later()
        if not self.offers(stream):
            self._end_and_reconnect(stream)

    def _group_for(self, viewer: Viewer) -> _Group:
        """Return the group that a new stream of this viewer joins, if necessary a new one. It has no events to send:
        events published before a stream began are not for it.
        """
        group = self._growing.get(viewer.key)
        if group is None or self._sending is not None:
            group = self._growing[viewer.key] = _Group(viewer)
            self._groups[group] = None
            self._by_execution.setdefault((viewer.channel, viewer.execution), {})[group] = None
        return group

    def _merge_groups(self) -> None:
        """Merge groups whose viewers have the same key, which were created while events were waiting. Does nothing
        while events are being sent.
        """
        if self._sending is not None or len(self._groups) == len(self._growing):
            return
        for group in list(self._groups):
            into = self._growing.setdefault(group.viewer.key, group)
            if into is not group:
                for stream in group.streams:
                    stream.group = into
                into.streams.update(group.streams)
                self._drop(group)

    def _drop(self, group: _Group) -> None:
        """Remove a group without streams, with its waiting events."""
        viewer = group.viewer
        del self._groups[group]
        self._waiting.pop(group, None)
        if self._growing.get(viewer.key) is group:
            del self._growing[viewer.key]
        same = self._by_execution[viewer.channel, viewer.execution]
        del same[group]
        if not same:
            del self._by_execution[viewer.channel, viewer.execution]

    def _initial_texts(self, viewer: Viewer, position: Position | None, *, last_value: bool) -> Iterable[bytes]:
        """Yield the texts with which a stream begins: the retry interval, if one is configured; missed events (after an
        event `gap` if some were removed) or the last value; and the present position, if replay is enabled. Parameters
        as for `add`."""
        if self._options.retry is not None:
            yield retry_text(round(self._options.retry * 1000))
        history = self._history
        if position is not None and self._options.replay:
            if history.misses(position):
                yield named_text("gap", '{"missed":null}')
            seen = dict(position)
            for stored in history.events_after(position):
                advance(seen, stored.origin, stored.number)
                if viewer.may_see(stored.event):
                    yield event_text(stored.event.message, position_text(seen))
        elif last_value:
            latest = next((stored.event for stored in history.latest() if viewer.may_see(stored.event)), None)
            if latest is not None:
                yield event_text(latest.message)
        if self._options.replay and history.position:
            # Also for a client that disconnects before its first event.
            yield id_text(position_text(history.position))

    def remove(self, stream: Stream) -> None:
        """Remove a stream that has ended. One that has ended before it was added is ignored."""
        timer = self._ending.pop(stream, None)
        if timer is not None:
            timer.cancel()
        self._slow.pop(stream, None)
        group, stream.group = stream.group, None
        if group is None:
            return
        del group.streams[stream]
        self._count -= 1
        if not group.streams:
            self._drop(group)

    def clients(self) -> set[str]:
        """Return the clients of open streams, as `host:port`."""
        return {stream.client for stream in self._streams()}

    def streams_by_path(self) -> Mapping[str, int]:
        """Return the number of open streams by path."""
        return Counter(stream.path for stream in self._streams())

    def open_streams(self) -> list[Stream]:
        """Return the open streams, the oldest first."""
        return sorted(self._streams(), key=lambda stream: stream.number)

    def end_stream(self, number: int) -> bool:
        """End the stream with this number, so that its client reconnects. Return whether there was one. number: as in
        `Stream.number`.
        """
        found = [stream for stream in self._streams() if stream.number == number]
        for stream in found:
            self._end_and_reconnect(stream)
        return bool(found)

    def end_streams(self, which: Callable[[Stream], bool]) -> None:
        """End the streams for which `which` returns True, so that their clients reconnect."""
        for stream in self._streams():
            if which(stream):
                self._end_and_reconnect(stream)

    def _end_and_reconnect(self, stream: Stream) -> None:
        """End a stream at once, and let its client reconnect after a random delay, so that not all clients reconnect at
        the same time."""
        delay = (self._options.retry or BACK_WITHIN) * random.uniform(0.2, 1.2)  # noqa: S311 (not a secret)
        stream.end(retry_text(round(delay * 1000)))

    def users(self) -> set[User]:
        """Return the users who read streams, without anonymous callers."""
        return {group.viewer.user for group in self._groups if group.viewer.user is not None}

    def _streams(self) -> list[Stream]:
        return [stream for group in self._groups for stream in group.streams]

    # --- events ----------------------------------------------------------------------------------------------------

    def _deliver(self, batches: Sequence[Batch]) -> None:
        """Store events in the replay buffer, and schedule them for the streams whose subscribers may see them."""
        for batch in batches:
            ids = self._history.add(batch)
            for event, event_id in zip(batch.events, ids, strict=True):
                self._queue_event(event, event_id if self._options.replay else "")
        if self._waiting and self._sending is None:
            self._sending = self._loop.call_at(self._not_before, self._send)

    def _queue_event(self, event: Event, event_id: str) -> None:
        """Add an event to the waiting events of the groups that may see it. event_id: empty: the event is sent without
        one.
        """
        text = event_text(event.message, event_id)
        waiting = self._waiting
        for group in self._addressed_groups(event):
            if group.viewer.may_see(event):
                group.pending.append(text)
                waiting[group] = None

    def _addressed_groups(self, event: Event) -> Iterable[_Group]:
        """Return the groups that may see an event according to its channel and execution id. No other group can see
        it."""
        groups = self._by_execution
        if event.execution:
            return (*groups.get((event.channel, ""), ()), *groups.get((event.channel, event.execution), ()))
        if event.channel:
            return (*groups.get((event.channel, ""), ()),)
        return self._groups

    def _send(self) -> None:
        """Send all waiting events, and count them."""
        groups, self._waiting = self._waiting, {}
        self.count_delivered(sum(len(group.pending) * len(group.streams) for group in groups))
        self._send_on([(group, stream) for group in groups for stream in group.streams], _texts(groups), 0)

    def _send_on(
        self,
        streams: Sequence[tuple[_Group, Stream]],
        texts: dict[_Group, tuple[list[bytes], bytes]],
        start: int,
    ) -> None:
        """Send to a slice of the streams, and after a pause to the next one; finally, schedule the events that have
        arrived meanwhile.

        Other requests run in between, in this thread and in that of the HTTP server, which has to write to each client.

        texts: for each group the texts to send, and their concatenation. start: index of the first stream of the slice.
        """
        some = streams[start : start + SLICE]
        for group, stream in some:
            stream.send(*texts[group])
        rest = REST * len(some)
        if start + SLICE < len(streams):
            self._sending = self._loop.call_later(rest, self._send_on, streams, texts, start + SLICE)
            return
        self._sending = None
        self._not_before = self._loop.time() + rest
        if self._waiting:
            self._sending = self._loop.call_at(self._not_before, self._send)

    # --- time ------------------------------------------------------------------------------------------------------

    def add_slow_stream(self, stream: Stream) -> None:
        """Register a slow stream, whose events wait for its reader: `push` is called until none waits any more."""
        self._slow[stream] = None
        if self._pushing is None:
            self._pushing = self._loop.call_later(PUSH_EVERY, self._push)

    def _push(self) -> None:
        """Send to slow readers what they have room for, and repeat this as long as there are slow readers."""
        self._pushing = None
        for stream in list(self._slow):
            if not stream.push():
                self._slow.pop(stream, None)
        if self._slow:
            self._pushing = self._loop.call_later(PUSH_EVERY, self._push)

    def _tick_later(self) -> None:
        self._ticking = self._loop.call_later((self._options.heartbeat or TICKS) / TICKS, self._tick)

    def _tick(self) -> None:
        """Send heartbeats to a part of the streams, merge groups, and schedule the next tick. Without streams, end the
        delivery of events to this worker instead.
        """
        self._ticking = None
        self._ticks += 1
        if not self._count:
            self.feed.leave()
            return
        self._merge_groups()
        if self._options.heartbeat is not None:
            turn = self._ticks % TICKS
            for stream in self._streams():
                if stream.number % TICKS == turn:
                    stream.beat(BEAT)
        self._tick_later()


def _texts(groups: Iterable[_Group]) -> dict[_Group, tuple[list[bytes], bytes]]:
    """Remove and return the waiting events of groups: as a list, and joined. The texts are mostly the same objects for
    all groups.
    """
    result: dict[_Group, tuple[list[bytes], bytes]] = {}
    for group in groups:
        texts, group.pending = group.pending, []
        result[group] = (texts, b"".join(texts))
    return result
