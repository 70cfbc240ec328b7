"""Lines of a text that a user has written or receives."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends: LF, CRLF or CR. Behind the last line end is a line only if it has
    characters. Others than these end no line, such as U+0085 and U+2028, at which `str.splitlines` splits.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]
