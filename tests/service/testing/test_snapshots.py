"""Snapshots of responses, as `rowcall --test` compares them with a later run (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.core.testing.request import HttpBlock
from rowcall.service.testing.calls import Reply
from rowcall.service.testing.snapshots import Snapshots

REQUEST = HttpBlock("GET", "/beds")
CONTENT_TYPE = (("Content-Type", "text/plain"),)
BODIES = ["if (a === b)", '{"code": "a === b"}', "=== GET /beds\n200", "a === \n=== b", "x\n\n\n\n", "\n\n", "", " x "]


def compared(first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
    """Return the differences of responses with the second bodies to snapshots of those with the first bodies."""

    def run(bodies: Sequence[str], *, update: bool) -> list[list[str]]:
        snapshots = Snapshots(test, update=update)
        return [snapshots.differences(REQUEST, Reply(200, CONTENT_TYPE, body)) for body in bodies]

    with TemporaryDirectory() as directory:
        test = str(Path(directory) / "a.test.sql")
        assert not any(run(first, update=True))
        return run(second, update=False)


@given(st.lists(st.text(alphabet='=a1 \n\r\u2028\x85\x0c"{}', max_size=20), max_size=3))
@example(BODIES)
@example(["=== a\n\n=== b\n\n\n"])
def test_equal_bodies_have_no_differences(bodies: list[str]) -> None:
    assert not any(compared(bodies, bodies))
    texts = [orjson.dumps([body]).decode() for body in bodies]
    assert not any(compared(texts, texts))


def test_changed_bodies_have_differences() -> None:
    assert all(compared(BODIES, [f"{body}." for body in BODIES]))


def test_numbers_are_compared_exactly() -> None:
    assert compared(["[1.50, 100]"], ["[1.5,1e2]"]) == [[]]
    assert all(compared(["9007199254740993.0"], ["9007199254740992"]))
    assert all(compared(["[12345678901234567890123]"], ["[12345678901234567890124]"]))


def test_characters_other_than_line_ends_are_compared_exactly() -> None:
    assert all(compared(["a\u2028b"], ["a\nb"]))
    assert all(compared(['"a\u2028b"'], ['"a\x85b"']))
