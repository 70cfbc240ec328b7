"""The JSON values that a parameter accepts with `Service:StrictJsonTypes`: those that OpenAPI documents for it.

Without this setting, JSON values are converted like texts: a number for a text, `"7"` for an integer (binding-7 to
binding-12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rowcall.core.endpoint.endpoint import EndpointParameter, Field, ValueKind

_INTEGERS = (ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT)
_NUMBERS = (*_INTEGERS, ValueKind.FLOAT, ValueKind.NUMERIC)
_WIDE = (ValueKind.BIGINT, ValueKind.NUMERIC)
_NUMBER_START = b"-0123456789"
_NUMBER = re.compile(r"(?P<sign>-?)(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]+))?(?:[eE](?P<exponent>[+-]?[0-9]{1,6}))?")
_MAX_DIGITS = 20
"""One more than the digits of the largest `bigint`."""


@dataclass(frozen=True, slots=True)
class StrictTypes:
    """The types of JSON values that are accepted, if the service is strict about them."""

    wide_as_text: bool = False
    """`bigint` and `numeric` are documented as strings (`Service:JsonNumbers` is `Safe`); strings and numbers are
    accepted."""

    def starts(self, typed: EndpointParameter | Field) -> bytes | None:
        """Return the first characters of the JSON values that fit the type, or an element of the array; None: any
        value. `null` is not among them: the caller accepts or refuses it before."""
        kind = typed.kind
        if kind is ValueKind.JSON:
            return None
        if kind in _NUMBERS:
            return _NUMBER_START + (b'"' if self.wide_as_text and kind in _WIDE else b"")
        if kind is ValueKind.BOOLEAN:
            return b"tf"
        return b"{" if kind is ValueKind.COMPOSITE and typed.fields else b'"'


def integral(kind: ValueKind, text: str) -> str:
    """Return the digits of a JSON number such as `-7.0` or `1e3`, which is an integer for JSON Schema.

    Texts that are no such number, and texts for kinds that are not integers, are returned unchanged.
    """
    match = _NUMBER.fullmatch(text) if kind in _INTEGERS else None
    if match is None:
        return text
    fraction = match["fraction"] or ""
    written = match["whole"] + fraction
    digits = written.rstrip("0")
    zeros = int(match["exponent"] or 0) - len(fraction) + len(written) - len(digits)
    if not digits:
        return "0"
    if zeros < 0:
        return text
    # With more zeros the number is out of range anyway.
    return match["sign"] + digits + "0" * min(zeros, _MAX_DIGITS)
