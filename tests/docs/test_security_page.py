"""`docs/security.md` names a test for each promise, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_each_named_test_exists() -> None:
    named = set(_TEST.findall(PAGE))
    assert named
    missing = {f"{path}::{name}" for path, name in named if name not in _tests(ROOT / path)}
    assert missing == set()


def test_each_promise_of_a_table_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| Promise")]
    assert [row for row in rows if not _TEST.search(row)] == []


def test_each_section_and_each_promise_about_the_database_names_a_test() -> None:
    promises, _, _ = PAGE.partition("## What a deployment has to add")
    _, *sections = promises.split("\n## ")
    (listed,) = (section for section in sections if section.startswith("What reaches the database"))
    items = re.findall(r"^- .*(?:\n {2}.*)*", listed, re.MULTILINE)
    assert len(items) > 2
    assert [text for text in (*sections, *items) if not _TEST.search(text)] == []


def test_tests_are_named_in_one_form() -> None:
    assert re.findall(r"`test_\w+`", PAGE) == []


def _tests(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
