"""Comment text → lines → annotations applied to a draft (reference 01, 5.1).

Any text is a valid comment: what is no annotation is prose, what is a wrong annotation is a diagnostic. Nothing raises.
"""

from __future__ import annotations

import re

from rowcall.core.annotations import BY_WORD
from rowcall.core.annotations.declaration import BadValueError, Draft, Line
from rowcall.core.annotations.exposure import TAGS, open_block
from rowcall.core.annotations.parameters import unescaped
from rowcall.core.annotations.response import set_header

_LINE_ENDS = re.compile(r"[\r\n]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_comment(text: str, draft: Draft) -> None:
    """Apply every line in order; the draft keeps what was applied, what was prose and what was wrong."""
    for raw in _LINE_ENDS.split(text):
        if stripped := raw.strip():
            _read_line(Line(stripped), draft)


def _read_line(line: Line, draft: Draft) -> None:
    try:
        understood = _apply(line, draft)
    except BadValueError as error:
        draft.warn(line, str(error))
        return
    (draft.applied if understood else draft.prose).append(line.text)


def _apply(line: Line, draft: Draft) -> bool:
    """The order of these tests is part of the grammar: `for` block, `key = value`, `Name: value`, keyword."""
    if draft.tags and line.keyword in TAGS.aliases:
        open_block(draft, line)
        return True
    if draft.muted:
        return False
    return _apply_assignment(line, draft) or _apply_header(line, draft) or _apply_keyword(line, draft)


def _apply_assignment(line: Line, draft: Draft) -> bool:
    sides = line.split_at("=")
    if sides is None:
        return False
    key, value = sides
    if key in draft.parameters:
        draft.expressions[key] = value
        return True
    annotation = BY_WORD.get(key.lower())
    assign = annotation.assign if annotation is not None else None
    decoded = unescaped(draft, line, value)
    if assign is not None:
        assign(draft, decoded)
    else:
        draft.custom[key] = decoded
    return True


def _apply_header(line: Line, draft: Draft) -> bool:
    sides = line.split_at(":")
    if sides is None or not _HEADER_NAME.fullmatch(sides[0]):
        return False
    set_header(draft, *sides)
    return True


def _apply_keyword(line: Line, draft: Draft) -> bool:
    annotation = BY_WORD.get(line.keyword)
    if annotation is None or annotation.apply is None or annotation is TAGS:
        return False
    if len(line.words) < annotation.minimum_words:
        return False
    annotation.apply(draft, line)
    return True
