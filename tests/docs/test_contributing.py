"""CONTRIBUTING.md: the files of its recipes exist, and its layout names the folders that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_architecture import ORDER

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAYOUT = re.search(r"^```\n(core/.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_files_of_the_recipes_exist() -> None:
    named = set(re.findall(r"`((?:\.ci|bench|ci|core|docs|ext|service|tests)/[\w./-]*)", TEXT))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_links_exist() -> None:
    targets = [target.partition("#")[0] for target in re.findall(r"\]\((?!https?:)([^)#][^)]*)\)", TEXT)]
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("top", ORDER)
def test_the_layout_names_folders_in_the_order_of_their_imports(top: str) -> None:
    assert LAYOUT is not None
    part = re.search(rf"^{top}/.*\n((?: .*\n)+)", LAYOUT[1], re.MULTILINE)
    assert part is not None
    named = [name for line in part[1].splitlines() for name in re.findall(r"(?<=\s)(\w+)/", f" {line.strip()}")]
    order = [name for line in ORDER[top] for name in line.split()]
    assert [name for name in named if name not in order] == []
    assert sorted(named, key=order.index) == [name for name in order if name in named]
    assert "…" in part[1] or {name for name in order if (ROOT / top / name).is_dir()} <= set(named)
