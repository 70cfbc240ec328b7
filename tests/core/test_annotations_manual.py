"""The manual's page of annotations is written from their declarations."""

from pathlib import Path

from rowcall.core.annotations import CATALOGUE
from rowcall.core.annotations.manual import manual

PAGE = Path(__file__).parents[2] / "docs" / "annotations.md"


def test_the_page_in_docs_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == manual(), "run `make docs`"


def test_every_word_that_a_comment_may_use_is_on_the_page() -> None:
    page = manual()
    assert [word for annotation in CATALOGUE for word in annotation.aliases if f"`{word}`" not in page] == []
