"""Labels of metrics that are longer than their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.service.metrics.segments import Segment, read


@pytest.mark.parametrize("parts", [("/" + "a" * 600, "f"), ("é" * 400, "ü" * 400), ("/a", "€" * 700)])
def test_each_part_of_a_long_label_is_truncated_separately(tmp_path: Path, parts: tuple[str, str]) -> None:
    Segment(tmp_path, 10).meter("endpoint", "GET", *parts)
    (row,) = [row for row in read(tmp_path) if row.label[0] == "endpoint"]
    assert len(row.label) == 4
    assert all(part and whole.startswith(part) for part, whole in zip(row.label[2:], parts, strict=True))
