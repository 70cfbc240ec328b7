"""What the head of a test file asks for: `-- @setup`, `-- @tag` and so on (reference 03, 8.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.core.testing.script import Note, Step

_LINE = re.compile(r"\s*@(setup|teardown|connection|tag|isolation)\b[ \t]*(.*)", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Header:
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    connection: str | None = None
    tags: frozenset[str] = frozenset()
    """In lower case."""
    isolation: str | None = None
    """In lower case: `none`, `transaction` or `template`."""


def read_header(steps: Iterable[Step]) -> Header:
    """steps: of the file, with what it includes in its place."""
    found: dict[str, list[str]] = {"setup": [], "teardown": [], "connection": [], "tag": [], "isolation": []}
    for step in steps:
        if not isinstance(step, Note):
            break
        if match := _LINE.fullmatch(step.text.rstrip()):
            found[match[1].lower()] += words(match[2])
    return Header(
        tuple(found["setup"]),
        tuple(found["teardown"]),
        found["connection"][-1] if found["connection"] else None,
        frozenset(tag.lower() for tag in found["tag"]),
        found["isolation"][-1].lower() if found["isolation"] else None,
    )


def words(text: str) -> list[str]:
    """Separated by blanks or commas."""
    return [word for word in _BETWEEN.split(text) if word]
