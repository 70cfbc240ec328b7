"""The form `key = value`: a resolved parameter or a custom parameter, unless an annotation claims the key."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line

_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9A-Fa-f]{2})|u(?P<u>[0-9A-Fa-f]{4})|0(?P<octal>[0-7]{0,2})|(?P<letter>[aefnrtv])|(?P<sign>[^0-9A-Za-z_]))|\\.?",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unescape(value: str) -> str:
    r"""Decode the escapes of regular expressions: `\t`, `\n`, `\\`, `\u0020`.

    Raises:
        BadValueError: a backslash that starts no escape, or the code of a surrogate, such as `\ud800`.
    """
    return _ESCAPE.sub(_decode_escape, value) if "\\" in value else value


def unescape_or_warn(draft: Draft, line: Line, value: str) -> str:
    """Return the value with decoded escapes. If it cannot be decoded, return it as written, with a warning."""
    try:
        return unescape(value)
    except BadValueError as error:
        draft.warn(line, str(error))
        return value


def _decode_escape(match: re.Match[str]) -> str:
    """Return the character of an escape. Raises `BadValueError`."""
    if letter := match["letter"]:
        return _LETTERS[letter]
    if sign := match["sign"]:
        return sign
    if code := match["x"] or match["u"]:
        return _character(int(code, 16))
    if match["octal"] is not None:
        return _character(int(match["octal"] or "0", 8))
    raise BadValueError(f"'{match[0]}' is not an escape sequence; the value stays as written")


def _character(code: int) -> str:
    """Return the character of a code. Raises `BadValueError` for a surrogate."""
    if 0xD800 <= code <= 0xDFFF:
        raise BadValueError(f"U+{code:04X} is half a character; the value stays as written")
    return chr(code)


CUSTOM = Annotation(
    name="custom_parameter",
    aliases=(),
    syntax="<key> = <value>",
    description="Stores a custom parameter for the features that read it. If the key is the name of a routine "
    "parameter, the value is an SQL expression that fills this parameter.",
)

ANNOTATIONS = (CUSTOM,)
