"""The rules in docs/internals/behaviour: numbered without gaps, and every citation of a rule names an existing one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import FOLDER

ROOT = FOLDER.parent
INTERNALS = FOLDER / "internals"
BEHAVIOUR = INTERNALS / "behaviour"
AREAS = sorted(path.stem for path in BEHAVIOUR.glob("*.md"))

_RULE = re.compile(r"^(\d+)\. \*\*([a-z-]+-\d+)\*\* \S", re.MULTILINE)
_BOLD = re.compile(r"\*\*([a-z-]+-\d+)\*\*")
_CITED = re.compile(rf"(?<![\w/\"'.-])(?:{'|'.join(AREAS)})-\d+(?![\w-])")
_FOREIGN = re.compile(r"\b(?:reference|spec|design) \d")
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_LINK = re.compile(r"\]\(([^()#\s]+)(?:#[^()\s]*)?\)")


def _rules(path: Path) -> list[tuple[str, str]]:
    """Numbers and ids of the rules of one area, in their order."""
    return _RULE.findall(path.read_text(encoding="utf-8"))


def _sources() -> Iterator[Path]:
    for folder in ("core", "ext", "service", "tests"):
        for pattern in ("*.py", "*.pyx", "*.pxd"):
            yield from (ROOT / folder).rglob(pattern)


KNOWN = {rule for area in AREAS for _, rule in _rules(BEHAVIOUR / f"{area}.md")}


def test_rules_are_found() -> None:
    assert len(AREAS) > 20
    assert len(KNOWN) > 300


@pytest.mark.parametrize("area", AREAS)
def test_ids_are_numbered_without_gaps(area: str) -> None:
    path = BEHAVIOUR / f"{area}.md"
    rules = _rules(path)
    assert rules == [(str(number), f"{area}-{number}") for number in range(1, len(rules) + 1)]
    assert _BOLD.findall(path.read_text(encoding="utf-8")) == [rule for _, rule in rules]


def test_no_citation_names_a_document_outside_the_repository() -> None:
    cited = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _sources()
        for match in _FOREIGN.finditer(path.read_text(encoding="utf-8"))
    }
    assert cited == set()


def test_citations_in_the_code_name_existing_rules() -> None:
    unknown = {
        f"{path.relative_to(ROOT)}: {cited}"
        for path in _sources()
        for group in _IN_PARENTHESES.findall(path.read_text(encoding="utf-8"))
        for cited in _CITED.findall(group)
        if cited not in KNOWN
    }
    assert unknown == set()


def test_citations_in_the_internals_name_existing_rules() -> None:
    unknown = {
        f"{path.relative_to(INTERNALS)}: {cited}"
        for path in (*INTERNALS.rglob("*.md"), *INTERNALS.glob("*.txt"))
        for cited in _CITED.findall(path.read_text(encoding="utf-8"))
        if cited not in KNOWN
    }
    assert unknown == set()


def test_link_targets_of_the_internals_exist() -> None:
    broken = {
        f"{path.relative_to(INTERNALS)}: {target}"
        for path in INTERNALS.rglob("*.md")
        for target in _LINK.findall(path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    }
    assert broken == set()
