"""Tuple text (rendering-32): parsed into slots, printed from them as `record_out` does."""

from __future__ import annotations

import re

from .arrays import SPACE
from .types import MalformedText

SLOT = re.compile(r'"((?:[^"\\]|""|\\.)*)"|([^"\\(),]*)', re.DOTALL)


def parse_tuple(text: str) -> list[str | None]:
    """Return the slots as texts, None for NULL. Raises MalformedText if the text is not a tuple."""
    if not text.startswith("("):
        raise MalformedText(text)
    slots: list[str | None] = []
    position = 0
    while True:
        slot = SLOT.match(text, position + 1)
        assert slot is not None
        slots.append(_slot_value(slot))
        position = slot.end()
        separator = text[position : position + 1]
        if separator == ")" and position + 1 == len(text):
            return slots
        if separator != ",":
            raise MalformedText(text)


def _slot_value(slot: re.Match[str]) -> str | None:
    if slot[1] is not None:
        return re.sub(r'\\(.)|""', lambda escape: escape[1] or '"', slot[1], flags=re.DOTALL)
    return slot[2] or None


def print_tuple(slots: list[str | None]) -> str:
    return "(" + ",".join(map(_print_slot, slots)) + ")"


def _print_slot(slot: str | None) -> str:
    if slot is None:
        return ""
    if slot and not any(byte in '"\\(),' + SPACE for byte in slot):
        return slot
    return '"' + slot.replace("\\", "\\\\").replace('"', '""') + '"'
