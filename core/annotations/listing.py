"""The list of annotations as plain data, printed by `rowcall --annotations` (command-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowcall.core.annotations import CATALOGUE


def listing() -> list[Mapping[str, str | Sequence[str]]]:
    """Return an entry for each annotation: `name`, `aliases` (empty if the form of the line decides), `syntax`,
    `description`.
    """
    return [
        {
            "name": annotation.name,
            "aliases": annotation.aliases,
            "syntax": annotation.syntax,
            "description": annotation.description,
        }
        for annotation in CATALOGUE
    ]
