"""The text of a CSV body as names and rows.

Source: RFC 4180, and the parser of PostgREST (cassava), whose messages errors have.
"""

from __future__ import annotations

import csv
import io
import re

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError

# A quoted field is closed at the end of the text at the latest.
_FIELD = r'(?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z)|[^",\r\n]*+)'
_LINE = re.compile(rf"{_FIELD}(?:,{_FIELD})*+")
_LINES = re.compile(rf"{_FIELD}(?:(?:,|\r\n?|\n){_FIELD})*+")
_LONGEST = 100
"""Number of bytes of a refused text that its error shows."""
_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}


def parse_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the names of the header row and the other rows, without blank lines.

    Raises `ApiError` (`PGRST102`) if the header row does not end with a line break, or a field has characters behind
    its closing quote, or quotes without being quoted.
    """
    _check(text)
    # The limit of the module is that of the process; a body has a limit of its own.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    names, *rows = csv.reader(io.StringIO(text, newline=""))
    return names or [""], [row for row in rows if row not in ([], [""])]


def _check(text: str) -> None:
    """Raise `ApiError` for a text that `csv.reader` accepts and PostgREST refuses."""
    header = _end(_LINE, text)
    if header == len(text):
        raise _csv_error("not enough input", "")
    if text[header] not in "\r\n":
        raise _csv_error("satisfy", text[header:])
    end = _end(_LINES, text) if '"' in text else len(text)
    if end < len(text):
        raise _csv_error("endOfInput", text[end:])


def _end(pattern: re.Pattern[str], text: str) -> int:
    """Return the position at which the match of a pattern at the beginning of a text ends. pattern: one that also
    matches an empty text, so that there is always a match."""
    match = pattern.match(text)
    return 0 if match is None else match.end()


def _csv_error(reason: str, rest: str) -> ApiError:
    """Return the error of a text. rest: its end, which could not be read."""
    left = rest[: _LONGEST + 1].encode()
    shortened = f"{left[:_LONGEST].decode(errors='replace')} (truncated)"
    shown = shortened if len(left) > _LONGEST else f'"{_escape_bytes(left)}"'
    return errors.invalid_body(f"parse error ({reason}) at {shown}")


def _escape_bytes(text: bytes) -> str:
    """Return bytes as in a string of Haskell."""
    result = ""
    for place, byte in enumerate(text):
        if byte in _ESCAPES:
            result += _ESCAPES[byte]
        elif 32 <= byte < 127:
            result += chr(byte)
        else:
            result += f"\\{byte}" + (r"\&" if text[place + 1 : place + 2].isdigit() else "")
    return result
