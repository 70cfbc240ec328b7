"""Writes the generated pages of docs/."""

from pathlib import Path

from rowcall.core.config.manual import manual

DOCS = Path(__file__).parents[1] / "docs"

if __name__ == "__main__":
    (DOCS / "configuration.md").write_text(manual(), encoding="utf-8")
