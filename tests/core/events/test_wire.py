"""Written event streams are parsed by clients as intended, by the rules of the HTML standard (9.2.6)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.events.position import MOST_ORIGINS, advance, position_text, read_position
from rowcall.core.events.wire import event_text


def read(text: str) -> list[tuple[str, str]]:
    """Return id and data of each event, as a browser parses them."""
    events: list[tuple[str, str]] = []
    data: list[str] = []
    last = ""
    for line in re.split(r"\r\n|\r|\n", text):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and data:
            events.append((last, "\n".join(data)))
            data = []
        elif field == "data" and line:
            data.append(value)
        elif field == "id":
            last = value
    return events


@given(st.text().filter(lambda text: "\0" not in text), st.sampled_from(["", "a1.5", "a1.5,b2.7"]))
def test_every_message_arrives(message: str, event_id: str) -> None:
    message = message.encode("utf-8", "replace").decode()
    lines = re.split(r"\r\n|\r|\n", message)
    assert read(event_text(message, event_id).decode()) == [(event_id, "\n".join(lines))]


def test_a_single_line_is_written_as_by_npgsqlrest() -> None:
    assert event_text("40 percent") == b"data: 40 percent\n\n"


@given(st.dictionaries(st.from_regex(r"[0-9a-f]{8}", fullmatch=True), st.integers(0, 10**14), max_size=MOST_ORIGINS))
def test_positions_survive_a_round_trip(position: dict[str, int]) -> None:
    assert read_position(position_text(position)) == position


@given(st.text())
def test_any_text_can_be_read_as_a_position(text: str) -> None:
    assert all(isinstance(number, int) for number in read_position(text).values())


def test_the_least_recently_updated_host_is_dropped_first_from_a_position() -> None:
    position: dict[str, int] = {}
    for origin in range(MOST_ORIGINS):
        advance(position, str(origin), 1)
    advance(position, "0", 2)
    advance(position, "new", 1)
    assert len(position) == MOST_ORIGINS
    assert "1" not in position
    assert (position["0"], position["new"]) == (2, 1)
