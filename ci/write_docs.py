"""Writes the generated pages of docs/, and the table of capabilities in CONTRIBUTING.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `ci`: the script is run by its path

from ci.capabilities import with_table
from rowcall.core.annotations import manual as annotations
from rowcall.core.config.output import manual as configuration

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
EXAMPLES = DOCS / "examples"


def annotations_page() -> str:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.md")}
    return annotations.manual(texts, (EXAMPLES / "settings.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    (DOCS / "annotations.md").write_text(annotations_page(), encoding="utf-8")
    (DOCS / "configuration.md").write_text(configuration.manual(), encoding="utf-8")
    CONTRIBUTING.write_text(with_table(CONTRIBUTING.read_text(encoding="utf-8")), encoding="utf-8")
