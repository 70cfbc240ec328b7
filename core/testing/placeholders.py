"""Placeholders in expected texts: `{{any}}`, `{{integer}}`, `{{/regular expression/}}`."""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"\{\{(any|string|integer|number|boolean|uuid|date|timestamp|/(?:[^/\\]|\\.)*/)\}\}")
_TEXTS = {
    "any": r".*",
    "string": r".*",
    "integer": r"-?\d+",
    "number": r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
    "boolean": r"true|false",
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "date": r"\d{4,}-\d{2}-\d{2}",
    "timestamp": r"\d{4,}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})*)?",
}


def fits_text(expected: str, actual: str) -> bool:
    """Return whether a text matches an expected text with placeholders. If a regular expression in it is invalid, the
    expected text is compared as it is."""
    return _pattern(expected).fullmatch(actual) is not None


def _pattern(expected: str) -> re.Pattern[str]:
    pieces, position = [], 0
    for match in PLACEHOLDER.finditer(expected):
        pieces += [re.escape(expected[position : match.start()]), f"(?:{_regex(match[1])})"]
        position = match.end()
    try:
        return re.compile("".join((*pieces, re.escape(expected[position:]))), re.DOTALL)
    except re.error:
        return re.compile(re.escape(expected))


def _regex(word: str) -> str:
    return _TEXTS[word] if word in _TEXTS else word[1:-1]
