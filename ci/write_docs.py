"""Writes the generated pages of docs/."""

from pathlib import Path

from rowcall.core.annotations import manual as annotations
from rowcall.core.config import manual as configuration

DOCS = Path(__file__).parents[1] / "docs"

if __name__ == "__main__":
    (DOCS / "annotations.md").write_text(annotations.manual(), encoding="utf-8")
    (DOCS / "configuration.md").write_text(configuration.manual(), encoding="utf-8")
