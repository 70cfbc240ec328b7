"""A response equals the snapshot that was written of it (docs/testing.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.testing.request import HttpBlock
from rowcall.service.testing.calls import Reply
from rowcall.service.testing.snapshots import Snapshots

BLOCK = HttpBlock("GET", "/beds")
BODIES = ["if (a === b)", '{"code": "a === b"}', "=== GET /beds\n200", "a === \n=== b", "x\n\n\n\n", "\n\n", "", " x "]


def differences(test: Path, bodies: list[str], *, update: bool) -> list[list[str]]:
    snapshots = Snapshots(str(test), update=update)
    return [snapshots.differences(BLOCK, Reply(200, (("Content-Type", "text/plain"),), body)) for body in bodies]


def test_responses_equal_their_snapshots(tmp_path: Path) -> None:
    differences(tmp_path / "a.test.sql", BODIES, update=True)
    assert differences(tmp_path / "a.test.sql", BODIES, update=False) == [[] for _ in BODIES]
    changed = [f"{body}." for body in BODIES]
    assert all(differences(tmp_path / "a.test.sql", changed, update=False))


@given(bodies=st.lists(st.text(st.sampled_from("= a\n\r\f\u2028"), max_size=12), max_size=3))
def test_any_text_equals_its_snapshot(tmp_path_factory: pytest.TempPathFactory, bodies: list[str]) -> None:
    test = tmp_path_factory.getbasetemp() / "any.test.sql"
    Path(f"{test}.snapshots").unlink(missing_ok=True)
    differences(test, bodies, update=True)
    assert differences(test, bodies, update=False) == [[] for _ in bodies]
