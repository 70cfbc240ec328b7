"""The catalogue as plain data, for programs: what `rowcall --annotations` prints (command-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowcall.core.annotations import CATALOGUE


def listing() -> list[Mapping[str, str | Sequence[str]]]:
    """One entry for each declaration: `name`, `aliases` (none where the form of the line decides), `syntax`,
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
