"""Encodings of uploaded text files: the names that comments and the configuration may use, and the codec of each."""

from __future__ import annotations

import codecs

UTF8 = "utf-8"

ENCODINGS = (
    UTF8,
    "utf-16",
    "utf-16le",
    "utf-16be",
    "latin-1",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-15",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1253",
    "windows-1254",
    "windows-1257",
    "shift_jis",
    "gb18030",
    "big5",
    "euc-kr",
)
"""Names of Python codecs, except that `shift_jis` is the encoding that Windows has under this name."""


class UnknownEncodingError(ValueError):
    """The name is not in `ENCODINGS`."""


def codec_name(encoding: str) -> str | None:
    """Return the name of the Python codec of an encoding; None for UTF-8. Case and blanks around the name do not
    matter.

    Raises `UnknownEncodingError` if the encoding is none of `ENCODINGS`.
    """
    name = encoding.strip().lower()
    if name not in ENCODINGS:
        raise UnknownEncodingError(f"'{encoding[:40]}' is not one of the encodings {', '.join(ENCODINGS)}")
    if name == UTF8:
        return None
    return "cp932" if name == "shift_jis" else name


def utf8_sample(beginning: bytes, codec: str | None) -> bytes:
    """Return the beginning of a file, recoded to UTF-8, for checks of single bytes. Invalid bytes become U+FFFD. codec:
    from `codec_name`; None: the bytes are unchanged."""
    if codec is None:
        return beginning
    try:
        text = codecs.getincrementaldecoder(codec)(errors="replace").decode(beginning)
    except UnicodeError:
        # utf-16 without a byte order mark, which is refused when the file is read.
        text = beginning.decode("utf-16le", errors="replace")
    return text.encode()
