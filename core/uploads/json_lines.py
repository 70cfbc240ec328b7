"""JSON lines: one JSON value in each line (jsonlines.org), read as it arrives."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rowcall.core.text.array_literal import literal

LONGEST = 16_777_216
"""Maximum number of bytes of a line."""
_MARK = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"


class LineError(ValueError):
    """A line is no row. The message gives the reason."""


class LineSplitter:
    """Splits a file into its lines, chunk by chunk. A byte order mark at the beginning is left out."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._begun = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, trimmed; a blank line is empty. Raises `LineError` if more than
        `LONGEST` bytes have arrived without a line end."""
        self._rest += piece
        if not self._begun:
            if len(self._rest) < len(_MARK) and _MARK.startswith(bytes(self._rest)):
                return []
            self._begun = True
            if self._rest.startswith(_MARK):
                del self._rest[: len(_MARK)]
        end = self._rest.rfind(b"\n")
        if end < 0:
            if len(self._rest) > LONGEST:
                raise LineError(f"a line is longer than {LONGEST} bytes")
            return []
        lines = bytes(self._rest[:end]).split(b"\n")
        del self._rest[: end + 1]
        return [_strip_blanks(line) for line in lines]

    def finish(self) -> list[bytes]:
        """Return the last line if no line end follows it; an empty list if there is none."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [_strip_blanks(rest)] if rest else []


def _strip_blanks(line: bytes) -> bytes:
    return line.strip(b" \t\r")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=str, parse_float=str)
"""Numbers stay texts: Python refuses to convert those with more than 4300 digits."""
_decode = _decoder.raw_decode


def check_line(line: bytes) -> bytes:
    """Return the line unchanged if it is JSON in UTF-8. Raises `LineError` if it is not."""
    try:
        _decoder.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise LineError(_reason(error)) from None
    return line


def members(line: bytes, names: Sequence[str]) -> bytes:
    """Return an array literal with the values of members of a JSON object, in the order of `names`.

    As with `->>` of PostgreSQL, strings are without quotes and escapes, and null and missing members are NULL; other
    values are as written. Raises `LineError` if the line is no JSON object, or a value contains a NUL or half of a
    surrogate pair.
    """
    try:
        found = _parse_members(line.decode())
        text = literal([found.get(name) for name in names], quoted=True).encode()
    except (ValueError, RecursionError) as error:
        raise LineError(_reason(error)) from None
    if b"\0" in text:
        raise LineError("it holds a NUL character, which PostgreSQL cannot store")
    return text


def _parse_members(text: str) -> dict[str, str | None]:
    """Return the members of an object with their values as texts: strings without quotes and escapes, other values as
    written; None for null. If a name is repeated, its last value counts.

    Raises ValueError for any other text, and RecursionError if it is nested too deeply.
    """
    result: dict[str, str | None] = {}
    place = _skip(text, 0)
    if text[place : place + 1] != "{":
        _decoder.decode(text)  # says what is wrong if it is no JSON
        raise ValueError("it is no object")
    place = _skip(text, place + 1)
    while text[place : place + 1] != "}":
        if text[place : place + 1] != '"':
            raise ValueError(f"a name in quotes is expected at character {place + 1}")
        name, place = _decode(text, place)
        place = _skip(text, place)
        if text[place : place + 1] != ":":
            raise ValueError(f"a colon is expected at character {place + 1}")
        begin = _skip(text, place + 1)
        value, end = _decode(text, begin)
        result[name] = value if isinstance(value, str) else None if value is None else text[begin:end]
        place = _skip(text, end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
            if text[place : place + 1] == "}":
                raise ValueError(f"a name in quotes is expected at character {place + 1}")
        elif text[place : place + 1] != "}":
            raise ValueError(f"a comma or the end of the object is expected at character {place + 1}")
    if _skip(text, place + 1) != len(text):
        raise ValueError(f"there is more behind the object, at character {place + 2}")
    return result


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} of the line is not valid in UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "it holds half of a surrogate pair, which PostgreSQL cannot store"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)
