"""Snapshots of responses, as `rowcall --test` compares them with a later run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.core.testing.request import HttpBlock
from rowcall.service.testing.calls import Reply
from rowcall.service.testing.snapshots import Snapshots

REQUEST = HttpBlock("GET", "/x")
CONTENT_TYPE = (("Content-Type", "text/plain"),)


def compared(first: str, second: str) -> list[str]:
    """Return the differences of a response with the second body to a snapshot of one with the first body."""
    with TemporaryDirectory() as directory:
        test = str(Path(directory) / "a.test.sql")
        assert Snapshots(test, update=True).differences(REQUEST, Reply(200, CONTENT_TYPE, first)) == []
        return Snapshots(test, update=False).differences(REQUEST, Reply(200, CONTENT_TYPE, second))


@given(st.text(alphabet='=a1 \n\r\u2028\x85\x0c"{}', max_size=20))
@example("a === b")
@example("=== a\n\n=== b\n\n\n")
def test_any_body_is_the_same_again(body: str) -> None:
    assert compared(body, body) == []
    text = orjson.dumps([body]).decode()
    assert compared(text, text) == []


def test_numbers_are_compared_exactly() -> None:
    assert compared("[1.50, 100]", "[1.5,1e2]") == []
    assert compared("9007199254740993.0", "9007199254740992")
    assert compared("[12345678901234567890123]", "[12345678901234567890124]")


def test_other_characters_than_line_ends_are_differences() -> None:
    assert compared("a\u2028b", "a\nb")
    assert compared('"a\u2028b"', '"a\x85b"')
