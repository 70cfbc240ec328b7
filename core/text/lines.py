"""Lines of a text that a user has written or receives, and characters that a terminal would not show."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends: LF, CRLF or CR. Behind the last line end is a line only if it has
    characters; an empty text has no lines. Other characters at which `str.splitlines` splits, such as U+0085 and
    U+2028, end no line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


class _Escapes(dict[int, str]):
    """Table for `str.translate` that escapes unprintable characters as in Python."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        return character if character.isprintable() else repr(character)[1:-1]


ESCAPES = _Escapes({code: _Escapes()[code] for code in range(256)})
"""Table for `str.translate` that escapes all unprintable characters."""
_BUT_TABS = _Escapes(ESCAPES | {ord("\t"): "\t"})


def printable_line(line: str) -> str:
    """Return a line with unprintable characters escaped as in Python, except tabs, so that it cannot affect a
    terminal."""
    return line if line.isprintable() else line.translate(_BUT_TABS)
