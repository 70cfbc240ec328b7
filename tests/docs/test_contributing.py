"""CONTRIBUTING.md: the files of its recipes exist, and its layout names the folders that there are."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from rowcall.core.annotations import CATALOGUE
from rowcall.core.config.table import KEYS
from rowcall.service.handler.step_order import STEPS
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


@pytest.fixture(scope="module")
def capabilities() -> ModuleType:
    path = ROOT / "ci" / "capabilities.py"
    spec = importlib.util.spec_from_file_location("capabilities", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # dataclasses look their module up there.
        patch.setitem(sys.modules, "capabilities", module)
        spec.loader.exec_module(module)
        module.capabilities()
    return module


def test_the_table_of_capabilities_is_current(capabilities: ModuleType) -> None:
    assert capabilities.with_table(TEXT) == TEXT, "run `make docs`"


@pytest.mark.parametrize("column", ["annotations", "sections", "steps", "routes", "metrics"])
def test_a_declaration_belongs_to_one_capability(capabilities: ModuleType, column: str) -> None:
    counts = Counter(value for row in capabilities.capabilities() for value in getattr(row, column))
    assert [value for value, count in counts.items() if count > 1] == []


def test_each_declaration_belongs_to_a_capability(capabilities: ModuleType) -> None:
    rows = capabilities.capabilities()
    assert {item.name for item in CATALOGUE} == {name for row in rows for name in row.annotations}
    assert {step.__name__ for step in STEPS} == {name for row in rows for name in row.steps}
    sections = {name for row in rows for name in row.sections}
    keys = [key.path.split(":") for key in KEYS]
    assert [path for path in keys if not {path[0], ":".join(path[:2])} & sections] == []


def test_each_page_of_the_manual_belongs_to_a_capability_or_is_general(capabilities: ModuleType) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    of_capabilities = {Path(page).stem for row in capabilities.capabilities() for page in row.pages}
    assert of_capabilities | capabilities.GENERAL_PAGES == pages
    assert of_capabilities & capabilities.GENERAL_PAGES == set()
    assert set(capabilities.PAGES) <= pages


def test_modules_with_another_name_than_their_capability_exist(capabilities: ModuleType) -> None:
    modules = {*capabilities.GROUPS, *capabilities.config_modules(), *ORDER["service"][5].split()}
    assert set(capabilities.NAMES) - modules == set()
    assert [name for name in capabilities.NAMES.values() if name in capabilities.NAMES] == []


def test_words_assigned_to_capabilities_occur_in_metrics(capabilities: ModuleType) -> None:
    names = list(capabilities.metrics())
    assert [word for word in capabilities.OF_METRICS if not any(word in name for name in names)] == []
    assert set(capabilities.OF_METRICS.values()) <= {row.name for row in capabilities.capabilities()}
