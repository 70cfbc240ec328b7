"""Convert the text of a request to the text that PostgreSQL receives (binding-7 to binding-12).

Only types whose check is cheap and whose errors need a status of their own are checked here; texts of other types are
sent verbatim, and PostgreSQL casts them. `converter` returns the function for a `ValueKind`, which raises
`NotConvertible`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from rowcall.core.endpoint.endpoint import ValueKind
from rowcall.core.text.timestamps import BadTimestampError, TimestampReader

Converter: TypeAlias = Callable[[str], str]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CURRENCY = re.compile(r"(?<![0-9.,])[$€£¥](?=[0-9.])")
_NOT_FINITE = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_SIZED = re.compile(r"(character|bit)(?: varying)?\((\d+)\)")
_BITS = re.compile(r"[bB]?([01]*)|[xX]([0-9a-fA-F]*)")
_UUID = re.compile(r"[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}", re.IGNORECASE)

MAX_NUMBER_LENGTH = 150_000
"""A `numeric` has at most 131,072 digits before the point and 16,383 after it."""
_VERBATIM = frozenset({ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER, ValueKind.COMPOSITE})
_MAX_INTEGER_DIGITS = 19
_INTEGER_BITS = {ValueKind.SMALLINT: 15, ValueKind.INTEGER: 31, ValueKind.BIGINT: 63}
_MAX_REAL = 3.4028235677973366e38
"""Half a step above the largest `real`: from here on PostgreSQL reports "out of range"."""
_MIN_REAL = 7.006492321624085e-46
"""Half of the smallest `real`: PostgreSQL does not round down to zero."""


NOUNS: dict[ValueKind, str] = {
    ValueKind.SMALLINT: "an integer",
    ValueKind.INTEGER: "an integer",
    ValueKind.BIGINT: "an integer",
    ValueKind.FLOAT: "a number",
    ValueKind.NUMERIC: "a number",
    ValueKind.BOOLEAN: "true or false",
    ValueKind.UUID: "a uuid",
    ValueKind.TIMESTAMPTZ: "a timestamp",
    ValueKind.TIMESTAMP: "a timestamp",
    ValueKind.DATE: "a date",
    ValueKind.TIME: "a time",
    ValueKind.TIMETZ: "a time",
    ValueKind.TEXT: "a text",
    ValueKind.JSON: "a JSON value",
    ValueKind.OTHER: "a value of this type",
    ValueKind.COMPOSITE: "an object",
}
"""Name of a value of each kind in the error about a value of another kind."""


class NotConvertible(ValueError):
    """The text is not a value of the type. The message completes "'x' …": `is not an integer`."""


def converter(kind: ValueKind, type_name: str, *, timestamps_utc: bool = True) -> Converter:
    """Return the function that checks a text of `kind` and returns the text to send. It raises `NotConvertible`.

    type_name: of the element; it distinguishes `real` from `double precision`. timestamps_utc: a timestamp without an
    offset is in UTC.
    """
    if kind in _INTEGER_BITS:
        return _integer(kind, type_name)
    if kind is ValueKind.FLOAT:
        return _real if type_name == "real" else _double
    if type_name == "money":
        return _money
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind in _VERBATIM:
        return str
    return _moment(kind, TimestampReader(timestamps_utc))


def sized_converter(convert: Converter, type_name: str) -> Converter:
    """Return the converter that raises `NotConvertible` also for a text that is too long for a type such as `character
    varying(3)` or `bit(8)`; for other types, the converter itself.

    PostgreSQL cuts such a text without an error where SQL has a cast to this type, or to a row with an attribute of
    this type. Blanks behind the last character that fits do not count.
    """
    match = _SIZED.fullmatch(type_name)
    if match is None:
        return convert
    most = int(match[2])

    def convert_characters(text: str) -> str:
        if text[most:].strip(" "):
            raise NotConvertible(f"has more than {most} characters")
        return convert(text)

    def convert_bits(text: str) -> str:
        digits = _BITS.fullmatch(text)
        # What is no bit string is refused by PostgreSQL.
        if digits is not None and len(digits[1] or "") + 4 * len(digits[2] or "") > most:
            raise NotConvertible(f"has more than {most} bits")
        return convert(text)

    return convert_bits if match[1] == "bit" else convert_characters


def _integer(kind: ValueKind, type_name: str) -> Converter:
    """Return the converter for integers of a kind. type_name: for messages."""
    limit = 1 << _INTEGER_BITS[kind]

    def convert(text: str) -> str:
        text = text.strip(" \t\n\r\v\f")
        if not _INTEGER.fullmatch(text):
            raise NotConvertible("is not an integer")
        digits = text.lstrip("+-0")
        # Checked first: converting a million digits into a number is slow.
        if (
            len(digits) > _MAX_INTEGER_DIGITS
            or not -limit <= int(text[:1].strip("+0123456789") + (digits or "0")) < limit
        ):
            raise NotConvertible(f"is out of range for {type_name}")
        return text

    return convert


def _decimal(text: str) -> str:
    """Return the text of a decimal number. Raises `NotConvertible`, also for exponents, which `money` does not
    accept."""
    number = _number(text)
    if "e" in number.lower() and not _NOT_FINITE.fullmatch(number):
        raise NotConvertible("is not a decimal number")
    return number


def _money(text: str) -> str:
    """Return the text of an amount of money, also of the form in which the server prints it: `-$1,234.50`."""
    return _decimal(_CURRENCY.sub("", text, count=1))


def _number(text: str) -> str:
    """Return the text of a number without blanks around it and without commas. Raises `NotConvertible`."""
    text = text.strip(" \t\n\r\v\f")
    if len(text) > MAX_NUMBER_LENGTH:
        raise NotConvertible("is too long for a number")
    if _NUMBER.fullmatch(text):
        return text.replace(",", "")
    if _NOT_FINITE.fullmatch(text):
        return text
    raise NotConvertible("is not a number")


def _double(text: str) -> str:
    number = _number(text)
    _check_float(number, float(number), float("inf"), 0.0)
    return number


def _real(text: str) -> str:
    number = _number(text)
    _check_float(number, float(number), _MAX_REAL, _MIN_REAL)
    return number


def _check_float(text: str, value: float, too_large: float, too_small: float) -> None:
    """Raise `NotConvertible` if the absolute value is `too_large` or more, or if it is `too_small` or less although the
    text has a digit other than 0 before its exponent. Texts of NaN and infinity are accepted. value: that of the text.
    """
    if _NOT_FINITE.fullmatch(text):
        return
    mantissa = text.lower().partition("e")[0]
    if abs(value) >= too_large or (abs(value) <= too_small and mantissa.strip("+-0.")):
        raise NotConvertible("is out of range")


def _boolean(text: str) -> str:
    word = text.strip(" \t\n\r\v\f").lower()
    if word not in {"true", "false"}:
        raise NotConvertible("is neither true nor false")
    return word


def _uuid(text: str) -> str:
    """Return a uuid in lower case with hyphens. In `text`, hyphens may be missing, and braces or parentheses may
    enclose it. Raises `NotConvertible`."""
    text = text.strip(" \t\n\r\v\f")
    bare = text[1:-1] if text[:1] + text[-1:] in {"{}", "()"} else text
    if not _UUID.fullmatch(bare):
        raise NotConvertible("is not a uuid")
    digits = bare.replace("-", "").lower()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _moment(kind: ValueKind, moments: TimestampReader) -> Converter:
    """Return the converter for a kind of date or time."""
    convert_moment = {
        ValueKind.TIMESTAMPTZ: moments.timestamptz,
        ValueKind.TIMESTAMP: moments.timestamp,
        ValueKind.DATE: moments.date,
        ValueKind.TIME: moments.time,
        ValueKind.TIMETZ: moments.timetz,
    }[kind]

    def convert(text: str) -> str:
        try:
            return convert_moment(text.strip(" \t\n\r\v\f"))
        except BadTimestampError:
            raise NotConvertible(f"is not {NOUNS[kind]}") from None

    return convert


_SIMPLE: dict[ValueKind, Converter] = {
    ValueKind.NUMERIC: _number,
    ValueKind.BOOLEAN: _boolean,
    ValueKind.UUID: _uuid,
}
