"""The header of a test file: `-- @setup`, `-- @tag` and so on (testing-5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.core.sections.values import words
from rowcall.core.testing.script import Note, ScriptWarning, Step

_LINE = re.compile(r"\s*@(setup|teardown|connection|tag|isolation)\b[ \t]*(.*)", re.IGNORECASE)
_LIKE_ONE = re.compile(r"\s*@\w.*")


@dataclass(frozen=True, slots=True)
class Header:
    """The directives in the header of a test file. setup, teardown: names of steps, in order. connection: name; None:
    that of the configuration."""

    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    connection: str | None = None
    tags: frozenset[str] = frozenset()
    """Tags in lower case."""
    isolation: str | None = None
    """`none`, `transaction` or `template`; None: that of the configuration."""
    warnings: tuple[ScriptWarning, ...] = ()
    """Warnings about lines that resemble directives and have no effect."""


def read_header(steps: Iterable[Step]) -> Header:
    """Return the header, which ends at the first step that is no `Note`. Of several connections or isolations, the last
    one counts; the word of `@isolation` is not checked. steps: of the file, with the steps of included files in their
    places."""
    values: dict[str, list[str]] = {"setup": [], "teardown": [], "connection": [], "tag": [], "isolation": []}
    warnings: list[ScriptWarning] = []
    for step in steps:
        if not isinstance(step, Note):
            break
        text = step.text.strip()
        match = _LINE.fullmatch(text)
        named = words(match[2]) if match else []
        if match:
            values[match[1].lower()] += named
        if not named and _LIKE_ONE.fullmatch(text):
            directives = ", ".join(f"@{word} <name>" for word in values)
            warnings.append(
                ScriptWarning(step.file, step.line, f"{text!r} has no effect; the head of a test has {directives}")
            )
    return Header(
        tuple(values["setup"]),
        tuple(values["teardown"]),
        values["connection"][-1] if values["connection"] else None,
        frozenset(tag.lower() for tag in values["tag"]),
        values["isolation"][-1].lower() if values["isolation"] else None,
        tuple(warnings),
    )
