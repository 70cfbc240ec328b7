"""The manual page of annotations is generated from their declarations and an example of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowcall.core.annotations import CATALOGUE, GROUPS
from rowcall.core.annotations.declaration import Annotation, Draft
from rowcall.core.annotations.manual import examples, manual
from rowcall.core.building.comments import read_comment
from rowcall.core.sqlfile.reading import read_file

DOCS = Path(__file__).parents[3] / "docs"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "examples").glob("*.md")}
EXAMPLES = {name: example for text in TEXTS.values() for name, example in examples(text).items()}
SETTINGS = (DOCS / "examples" / "settings.json").read_text(encoding="utf-8")

_SQL = re.compile(r"^```sql[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^comment on [^;]*? is '((?:[^']|'')*)';", re.MULTILINE)
_PARAMETER = re.compile(r"\b_\w+")


def test_the_page_in_docs_is_current() -> None:
    page = (DOCS / "annotations.md").read_text(encoding="utf-8")
    assert page == manual(TEXTS, SETTINGS), "run `make docs`"


def test_every_word_of_an_annotation_is_on_the_page() -> None:
    page = manual(TEXTS, SETTINGS)
    assert [word for annotation in CATALOGUE for word in annotation.aliases if f"`{word}`" not in page] == []


def test_every_example_is_in_the_module_of_its_annotation() -> None:
    stand = {module: set(examples(text)) for module, text in TEXTS.items()}
    assert {module: names - {item.name for item in GROUPS[module]} for module, names in stand.items()} == {
        module: set() for module in stand
    }


@pytest.mark.parametrize("annotation", CATALOGUE, ids=lambda annotation: annotation.name)
def test_every_annotation_has_a_valid_example(annotation: Annotation) -> None:
    assert annotation.name in EXAMPLES, f"docs/examples has no example for {annotation.name}"
    if annotation.in_files:
        notes = [read_file(sql).notes for sql in _SQL.findall(EXAMPLES[annotation.name])]
        lines = [*notes[0].claimed, *(item.line for about in notes[0].statements for item in about.returns_lines)]
        assert [line for line in lines if line.split(" ")[0] in annotation.aliases]
        return
    drafts = [
        _read(comment, sql) for sql in _SQL.findall(EXAMPLES[annotation.name]) for comment in _COMMENT.findall(sql)
    ]
    assert [draft for draft in drafts if annotation.name in draft.used]
    assert [item.message for draft in drafts for item in draft.diagnostics] == []


@pytest.mark.parametrize("annotation", [one for one in CATALOGUE if not one.in_files], ids=lambda one: one.name)
def test_every_effective_annotation_has_an_example_with_a_request(annotation: Annotation) -> None:
    """tests/docs runs the examples: requests with their responses, event streams with their events.

    No request shows what an annotation does to generated code. Its example shows the code, and
    tests/docs/test_generated_code.py generates it.
    """
    kinds = ("\n```ts", "\n```dart") if annotation in GROUPS["client_code"] else ("```http\n", "```events\n")
    assert any(kind in EXAMPLES[annotation.name] for kind in kinds)


def _read(comment: str, sql: str) -> Draft:
    draft = Draft(
        name="example",
        method="GET",
        tags=frozenset({"function", "stable"}),
        parameters=frozenset(_PARAMETER.findall(sql)),
    )
    read_comment(comment.replace("''", "'"), draft)
    return draft
