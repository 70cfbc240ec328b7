"""Writes the generated pages of docs/."""

from pathlib import Path

from rowcall.core.annotations import manual as annotations
from rowcall.core.config.output import manual as configuration

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = DOCS / "examples"


def annotations_page() -> str:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.md")}
    return annotations.manual(texts, (EXAMPLES / "settings.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    (DOCS / "annotations.md").write_text(annotations_page(), encoding="utf-8")
    (DOCS / "configuration.md").write_text(configuration.manual(), encoding="utf-8")
