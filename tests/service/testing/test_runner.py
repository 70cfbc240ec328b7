"""The files that did not pass in their last run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rowcall.core.testing.report import Style
from rowcall.service.testing.runner import Progress, Runner


def test_unreadable_recorded_paths_are_removed(tmp_path: Path) -> None:
    place, there = tmp_path / "failed", tmp_path / "a.test.sql"
    there.touch()
    place.write_text(json.dumps([str(there), str(tmp_path / "gone.test.sql"), 5000 * "a"]), encoding="utf-8")
    means = cast(Any, SimpleNamespace(options=SimpleNamespace(failed_first=str(place), fail_fast=False)))
    assert asyncio.run(Runner(means, []).run([], Progress([], Style()))) == []
    assert json.loads(place.read_text(encoding="utf-8")) == [str(there)]
