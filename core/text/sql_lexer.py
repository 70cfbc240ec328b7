"""Split SQL text into tokens by the rules of PostgreSQL's scanner (scan.l, psqlscan.l), as far as they determine where
a statement, a comment or a placeholder begins and ends.

No function raises an error: an unclosed token extends to the end of the text, and the server reports the error.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import NamedTuple


class Kind(enum.Enum):
    """Kind of a token."""

    SPACE = "space"
    LINE_COMMENT = "line"
    BLOCK_COMMENT = "block"
    STRING = "string"
    """All strings: plain, E'', B'', X'', U&'' and N''. Names in double quotes are `QUOTED_NAME`."""
    DOLLAR_STRING = "dollar"
    QUOTED_NAME = "quoted"
    WORD = "word"
    """A keyword or an unquoted name."""
    POSITIONAL = "positional"
    """`$1`."""
    NAMED = "named"
    """`:name`; never the second half of `::name`, and never in `:=`."""
    SEMICOLON = "semicolon"
    OTHER = "other"


class Token(NamedTuple):
    """A token of a text. start: position of its first character."""

    kind: Kind
    start: int
    end: int
    """Position behind the last character."""


_LETTER = r"A-Za-z_\x80-\U0010ffff"
_REST_OF_E = r"(?:[^'\\]++|\\.|'')*+'"
# A string continues behind a line break; one that began with E continues with its escapes.
_CONTINUED = r"(?:(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f\v]++|--[^\n\r]*+[\n\r])*+'"

_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\n\r\f\v]++)
    | (?P<filler>[ \t\n\r\f\v0-9,.=<>+*%!@^&|~?\[\]{{}}]++)
    | (?P<line>--[^\n\r]*+)
    | (?P<block>/\*)
    | (?P<escape>[eE]'(?:{_REST_OF_E}{_CONTINUED}{_REST_OF_E})*+|(?:[^'\\]++|\\.|'')*+\\?\Z))
    | (?P<string>(?:[nNbBxX]|[uU]&)?'(?:[^']++|'')*+(?:'|\Z))
    | (?P<quoted>(?:[uU]&)?"(?:[^"]++|"")*+(?:"|\Z))
    | (?P<dollar>\$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$)
    | (?P<word>[{_LETTER}][{_LETTER}0-9$]*+)
    | (?P<positional>\$[0-9]++)
    | (?P<other>::|:=)
    | (?P<named>:[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<semicolon>;)
    | (?P<single>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")
_KINDS = {**{kind.value: kind for kind in Kind}, "escape": Kind.STRING, "single": Kind.OTHER, "filler": Kind.OTHER}


def tokens(text: str) -> Iterator[Token]:
    """Yield all tokens of the text in order, without gaps."""
    position, end = 0, len(text)
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None  # noqa: S101 (the last alternative takes any character)
        name = match.lastgroup or ""
        start, position = position, match.end()
        if name == "block":
            closed = _comment_end(text, position)
            # An unclosed comment is no comment, but an error that the server reports.
            name = "other" if closed is None else name
            position = closed or end
        elif name == "dollar":
            closing = text.find(match[0], position)
            position = end if closing < 0 else closing + len(match[0])
        yield Token(_KINDS[name], start, position)


_EMPTY = frozenset({Kind.SPACE, Kind.LINE_COMMENT, Kind.BLOCK_COMMENT, Kind.SEMICOLON})


def statement_span(text: str) -> slice:
    """Return the place of a statement in a text: without the blanks, comments and semicolons around it. Blanks at its
    end may remain, because a token such as a number includes the blanks behind it. It is empty if there is nothing
    else."""
    written = [token for token in tokens(text) if token.kind not in _EMPTY]
    return slice(written[0].start, written[-1].end) if written else slice(0, 0)


def _comment_end(text: str, position: int) -> int | None:
    """Return the position behind the `*/` that closes a comment; None: it is not closed. Comments nest.

    position: offset behind the `/*` of the comment.
    """
    depth = 1
    for edge in _EDGE.finditer(text, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
