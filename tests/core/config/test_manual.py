"""The manual page of keys is generated from the table."""

from pathlib import Path

from rowcall.core.config.output.manual import manual

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_in_docs_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == manual(), "run `make docs`"
