"""Counters since the start, from the files of the workers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rowcall.service.console.load import Load
from rowcall.service.metrics.segments import Segment


def test_overloads_are_counted_together(tmp_path: Path) -> None:
    segment = Segment(tmp_path, 10)
    for routine, rows in (("public.by_id", 2), ("public.by_name", 3)):
        segment.meter("endpoint", "GET", "/items", routine).add("rows", rows)
    segment.meter("worker", "unrouted").add("rows")
    segment.close()
    traffic = Load(cast(Any, SimpleNamespace(folder=tmp_path))).traffic()
    assert {name: numbers["rows"] for name, numbers in traffic.items()} == {("GET", "/items"): 5}
