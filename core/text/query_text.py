"""Parse a query string into keys and texts: the twin of `ext.binding.query_string`.

`+` is a space, empty pieces are skipped, a key without `=` has an empty text, and a broken escape (`%zz`) stays
unchanged. PostgreSQL text is UTF-8 without NUL, so other texts are refused.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes


class QueryTextError(ValueError):
    """A key or its text is not UTF-8, or contains a NUL. reason: end of a sentence about the key, for messages."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key[:100]!r}: {reason}")
        self.key = key
        """The key as readable text, with U+FFFD in place of bytes that are not UTF-8."""
        self.reason = reason


def pairs(query: str) -> list[tuple[str, str]]:
    """Return key and text of each piece in order, repeated keys included. query: encoded, without `?`. Raises
    `QueryTextError`."""
    return [_pair(piece) for piece in query.split("&") if piece]


def _pair(piece: str) -> tuple[str, str]:
    raw_key, _, raw_text = piece.partition("=")
    key = _unescape(raw_key)
    text = _unescape(raw_text)
    readable = key.decode(errors="replace")
    for part in (key, text):
        if b"\0" in part:
            raise QueryTextError(readable, "holds a NUL character")
    try:
        return key.decode(), text.decode()
    except UnicodeDecodeError:
        raise QueryTextError(readable, "is not valid UTF-8") from None


def _unescape(text: str) -> bytes:
    # "surrogatepass": a lone surrogate becomes bytes that are not UTF-8, which are refused like others.
    return unquote_to_bytes(text.replace("+", " ").encode(errors="surrogatepass"))
