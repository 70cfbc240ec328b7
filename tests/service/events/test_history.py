"""The replay buffer for reconnecting subscribers, and the send queue of slow ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.events.event import Event
from rowcall.core.events.position import MOST_ORIGINS, read_position
from rowcall.service.events.batches import Batch, pack, unpack, unpack_received
from rowcall.service.events.replay_buffer import ReplayBuffer
from rowcall.service.events.send_queue import PIECE, SendQueue

PUBLISHED = st.lists(st.sampled_from("abc"), max_size=60)
"""Who publishes, one event after another."""


def published(origins: list[str]) -> list[Batch]:
    numbers = dict.fromkeys("abc", 0)
    batches = []
    for origin in origins:
        numbers[origin] += 1
        batches.append(Batch(origin, numbers[origin], [Event(f"{origin}{numbers[origin]}")]))
    return batches


@given(PUBLISHED, st.data())
def test_a_reconnecting_subscriber_gets_each_event_once_from_any_host(origins: list[str], data: st.DataObject) -> None:
    """Two hosts hear the same publishers in different orders; a client moves from one to the other at any moment."""
    batches = published(origins)
    here, there = ReplayBuffer(1000, 1_000_000), ReplayBuffer(1000, 1_000_000)
    seen = data.draw(st.integers(0, len(batches)))
    position: dict[str, int] = {}
    got = []
    for batch in batches[:seen]:
        position = read_position(here.add(batch)[-1])
        got += [event.message for event in batch.events]
    # Each publisher's own order holds everywhere; the order between them does not.
    for batch in sorted(batches, key=lambda batch: batch.origin):
        there.add(batch)
    got += [stored.event.message for stored in there.events_after(position)]
    assert sorted(got) == sorted(f"{batch.origin}{batch.first}" for batch in batches)
    assert not there.misses(position)


@given(PUBLISHED, st.integers(1, 10))
def test_events_that_were_dropped_are_reported_as_missed(origins: list[str], most: int) -> None:
    history = ReplayBuffer(most, 1_000_000)
    for batch in published(origins):
        history.add(batch)
    assert len(history.events_after({})) == min(most, len(origins))
    assert history.misses({}) == (len(origins) > most)
    assert not history.misses(history.position)


def test_events_that_have_not_arrived_are_reported_as_missed() -> None:
    """A host has missed notifications, or has started later than another one."""
    history = ReplayBuffer(1000, 1_000_000)
    for batch in (Batch("a", 1, [Event("a1")]), Batch("a", 4, [Event("a4")]), Batch("b", 7, [Event("b7")])):
        history.add(batch)
    assert [history.misses({"a": number, "b": 7}) for number in range(1, 5)] == [True, True, False, False]
    assert [history.misses({"a": 4, "b": number}) for number in (5, 6)] == [True, False]


def test_events_after_a_position_of_unknown_hosts_are_reported_as_missed() -> None:
    history = ReplayBuffer(1000, 1_000_000)
    assert history.misses({"former": 3})
    history.add(Batch("a", 1, [Event("a1")]))
    assert history.misses({"former": 3})
    assert not history.misses({"former": 3, "a": 1})


def test_events_of_hosts_that_positions_no_longer_name_are_not_repeated() -> None:
    history = ReplayBuffer(MOST_ORIGINS + 3, 1_000_000)
    for number in range(MOST_ORIGINS + 6):
        (last,) = history.add(Batch(f"host{number}", 1, [Event("event")]))
    assert history.events_after(read_position(last)) == []
    assert not history.misses(read_position(last))
    first = history.events_after({f"host{MOST_ORIGINS + 4}": 1, "host3": 0})[0]
    assert first.origin == "host3", "a position that names it is exact"


def test_the_size_in_bytes_is_limited() -> None:
    history = ReplayBuffer(1000, 100)
    for number in range(1, 11):
        history.add(Batch("a", number, [Event("x" * 30)]))
    assert len(history.events_after({})) == 3


@given(PUBLISHED)
def test_a_restored_copy_has_the_same_events(origins: list[str]) -> None:
    history, copy = ReplayBuffer(20, 1_000_000), ReplayBuffer(20, 1_000_000)
    for batch in published(origins):
        history.add(batch)
    copy.restore(history.pack())
    stored, copied = (
        [(item.origin, item.number, item.event.message) for item in each.events_after({})] for each in (history, copy)
    )
    assert copied == stored
    assert copy.position == history.position
    assert copy.misses({}) == history.misses({})


def test_batches_survive_serialization() -> None:
    batch = Batch("a", 5, [Event("ä\n", "job", "authorize", ("x", "y")), Event("", channel="news")])
    (result,) = unpack(pack((batch,)))
    assert [(event.message, tuple(event.names), event.channel) for event in result.events] == [
        ("ä\n", ("x", "y"), ""),
        ("", (), "news"),
    ]
    assert (result.origin, result.first) == ("a", 5)
    assert unpack_received(pack((batch,))) == [result]


@given(st.lists(st.binary(min_size=1, max_size=3 * PIECE), max_size=5))
def test_a_backlog_returns_all_bytes_in_pieces(texts: list[bytes]) -> None:
    backlog = SendQueue(10)
    assert backlog.add(texts, bounded=True) == 0
    pieces = []
    while backlog:
        pieces.append(backlog.take())
    assert b"".join(pieces) == b"".join(texts)
    assert all(len(piece) <= PIECE for piece in pieces)


def test_a_full_backlog_drops_and_reports_the_oldest_unsent_events() -> None:
    backlog = SendQueue(2)
    backlog.add([b"a" * (PIECE + 1)], bounded=True)
    assert backlog.take() == b"a" * PIECE
    assert backlog.add([b"b\n", b"c\n", b"d\n", b"e\n"], bounded=True) == 2
    assert backlog.take() == b"a"
    assert backlog.take() == b'event: gap\ndata: {"missed":2}\n\nd\n'
    assert backlog.take() == b"e\n"
    assert not backlog
