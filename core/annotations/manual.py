"""The manual's page of all annotations, written from their declarations."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.annotations import CATALOGUE
from rowcall.core.annotations.declaration import Annotation

_HEAD = """\
# Annotations

<!-- Written by `make docs` from core/annotations/. A test fails when it is out of date. -->

Annotations are lines in the comment of a routine. How a comment is read, and what `HTTP` does in all its forms, is told
in [Endpoints](endpoints.md).

- The first word of a line decides. Its case does not matter, and it may have an `@` in front: `@authorize`.
- Words are separated by blanks or commas. In the tables, `[…]` may be left out and `|` separates choices.
- Lines count from top to bottom: of two that say different things the later one wins.
- A line that is no annotation is prose, for people. An argument that does not fit leaves the endpoint as it was and is
  logged as a warning.
- Where the column `=` has a mark, `word = value` means the same; flags then take `true` or `false`.
"""

_COLUMNS = ("Name", "Syntax", "Words", "`=`", "Meaning")


def manual() -> str:
    """The whole page as Markdown."""
    lines = [_row(_COLUMNS), _row(("---",) * len(_COLUMNS))]
    lines += [_row(_cells(annotation)) for annotation in CATALOGUE]
    return _HEAD + "\n" + "\n".join(lines) + "\n"


def _cells(annotation: Annotation) -> Iterator[str]:
    yield f"`{annotation.name}`"
    yield f"`{annotation.syntax}`"
    yield ", ".join(f"`{word}`" for word in annotation.aliases) or "none: the form decides"
    yield "yes" if annotation.assignable else ""
    yield annotation.description


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
