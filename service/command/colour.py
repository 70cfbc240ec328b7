"""Colour commented JSON for a terminal. Output to a pipe or file is not coloured."""

from __future__ import annotations

import re

_RESET = "\x1b[0m"
_CYAN, _YELLOW, _GREEN, _GREY, _DARK_GREEN = "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[90m", "\x1b[2;32m"
_INVERSE, _NOT_INVERSE = "\x1b[7m", "\x1b[27m"

_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    rf"(?P<comment>^\s*//.*$)|(?P<key>{_STRING})(?=:)|(?P<text>{_STRING})|(?P<null>\bnull\b)"
    r"|(?P<value>-?\d[\d.eE+-]*|\btrue\b|\bfalse\b)|(?P<mark>[{}\[\],:])",
    re.MULTILINE,
)
_COLOURS = {
    "comment": _DARK_GREEN,
    "key": _CYAN,
    "text": _YELLOW,
    "value": _GREEN,
    "null": _GREY,
    "mark": _GREY,
}


def coloured(text: str, word: str = "") -> str:
    """Return the text with coloured tokens; occurrences of `word` in tokens are highlighted."""

    def paint(match: re.Match[str]) -> str:
        return f"{_COLOURS[match.lastgroup or 'mark']}{_marked(match[0], word)}{_RESET}"

    return _TOKEN.sub(paint, text)


def _marked(token: str, word: str) -> str:
    if not word:
        return token
    return re.sub(re.escape(word), lambda match: f"{_INVERSE}{match[0]}{_NOT_INVERSE}", token, flags=re.IGNORECASE)
