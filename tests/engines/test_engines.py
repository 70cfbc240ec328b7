"""The event loop's HTTP server and granian make the same of the same bytes, apart from the differences that
`docs/internals/http-engine.md` explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.comparison import Progress, advance, recheck
from tests.engines.differences import CLASSES, class_of, difference
from tests.engines.outcomes import Outcomes, Response
from tests.engines.services import both_engines
from tests.engines.streams import SPLIT_EVERY, numbered
from tests.harness.database import Database

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "http-engine.md"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


@pytest.mark.slow
def test_engines_differ_in_explained_ways_only(database: Database, tmp_path: Path) -> None:
    progress = Progress(seed=1)
    with both_engines(database, tmp_path) as (auto, granian):
        ports = (auto.port, granian.port)
        advance(ports, progress, 5_000)
        again = Progress(seed=1, unexplained=["0.0 as if no class had explained it", f"{SPLIT_EVERY}.3 and its split"])
        recheck(ports, again)
    assert progress.unexplained == []
    assert progress.sent > progress.split > 5_000
    assert again.unexplained == []
    assert sum(progress.classes.values()) < progress.sent / 2


def test_each_class_of_differences_is_explained() -> None:
    text = PAGE.read_text()
    assert [name for name in CLASSES if f"| {name} |" not in text] == []


def test_a_number_gives_the_same_stream_each_time() -> None:
    assert [*numbered(1, 7)] == [*numbered(1, 7)]
    assert [*numbered(1, 7)] != [*numbered(2, 7)]


def test_a_stream_is_split_at_every_position() -> None:
    whole, *splits = numbered(1, SPLIT_EVERY)
    assert {split.data for split in splits} == {whole.data}
    assert sorted(len(split.pieces[0]) for split in splits) == [1, *range(1, len(whole.data))]
    assert max(len(split.pieces) for split in splits) == len(whole.data)


def test_responses_are_read_with_their_framing() -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    old = b"HTTP/1.0 200 OK\r\n\r\nabc"
    outcome = Outcomes().parse(OK + chunked + old, ended=True)
    assert [str(response) for response in outcome.responses] == [
        "200 length stays",
        "200 chunked stays",
        "200 close close",
    ]
    assert [response.body for response in outcome.responses] == [b"ok", b"1\r\na\r\n", b"abc"]


def test_a_response_to_head_is_followed_by_the_next_one() -> None:
    outcome = Outcomes().parse(OK.removesuffix(b"ok") + OK, ended=False)
    assert outcome.responses == (Response(200, "length", True, b""), Response(200, "length", True, b"ok"))


def test_an_incomplete_response_is_none() -> None:
    outcome = Outcomes().parse(OK[:-1], ended=True)
    assert (outcome.responses, outcome.rest) == ((), OK[:-1])


@pytest.mark.parametrize(
    ("auto", "granian", "name"),
    [
        (REFUSED, OK, "host"),
        (OK, REFUSED, None),
        (OK, OK.replace(b"ok", b"no"), None),
        (OK, OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), None),
        (OK, b"", None),
    ],
)
def test_only_a_known_difference_has_a_class(auto: bytes, granian: bytes, name: str | None) -> None:
    body = b'{"detail":"the header Host is not a host with an optional port"}'
    parsed = [
        Outcomes().parse(data % (len(body), body) if data is REFUSED else data, ended=True) for data in (auto, granian)
    ]
    found = difference(b"GET / HTTP/1.1\r\n\r\n", *parsed)
    assert found is not None
    assert class_of(found) == name


def test_the_same_outcome_is_no_difference() -> None:
    first, second = (Outcomes().parse(data, ended=False) for data in (OK, OK.replace(b"\r\n\r\n", b"\r\nx: y\r\n\r\n")))
    assert difference(b"", first, second) is None


def test_a_run_goes_on_where_it_was_stored(tmp_path: Path) -> None:
    progress = Progress(seed=3, next_number=10, sent=12, split=2, classes={"host": 1})
    progress.save(tmp_path / "progress.json")
    assert Progress.load(tmp_path / "progress.json", 3) == progress
    with pytest.raises(ValueError, match="is of seed 3, not 4"):
        Progress.load(tmp_path / "progress.json", 4)
