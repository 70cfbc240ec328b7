"""Parse JSON so that its numbers are written unchanged again, such as `1.50` and `12345678901234567890.1`.

No float represents the latter exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Never

import orjson

from rowcall.core.text import json_text

LEVELS = 200
"""Levels of arrays and objects within each other that are parsed: what is parsed can be written as a part of a response
or document, which has levels of its own."""
_WRITTEN_LEVELS = 254
"""Levels that orjson writes."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST = 18
"""Number of digits up to which an integer certainly fits into 64 bits."""


def parse(text: bytes, number: Callable[[str], Any] = orjson.Fragment, *, written: bool = True) -> Any:
    """Parse JSON. Fractions, exponents, integers of more than 18 characters and `-0`, which Python or orjson would
    change, become what `number` returns for their text. Of a repeated key, the last value counts.

    text: UTF-8. written: the value will be written again, so it may have at most `LEVELS` levels; otherwise the limit
    is that of Python. Raises ValueError if it is not valid JSON or has too many levels, and what `number` raises.
    """
    if _SURROGATE.search(text):
        # Python would accept half of a surrogate pair as a character.
        reason = json_text.fault(text)
        if reason is not None:
            raise ValueError(reason)
    try:
        value = json.loads(text.decode(), parse_float=number, parse_int=partial(_whole, number), parse_constant=_refuse)
    except RecursionError:
        raise _too_deep() from None
    if written and text.count(b"[") + text.count(b"{") > LEVELS:
        _check_levels(value)
    return value


def parse_with_number_texts(text: bytes) -> Any:
    """Parse JSON, with the texts of numbers in place of numbers, also of those beyond double precision.

    No Python function is called for a number, so that a long text takes little time. text: UTF-8. Raises ValueError if
    it is not valid JSON or has too many levels.
    """
    try:
        value = json.loads(text.decode(), parse_float=str, parse_int=str, parse_constant=_refuse)
    except RecursionError:
        raise _too_deep() from None
    if _SURROGATE.search(text):
        # Python accepts half of a surrogate pair as a character, which cannot be encoded.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _check_levels(value: Any) -> None:
    """Raise ValueError if a value has more than `LEVELS` levels. To find out, the value is put into nested lists that
    use up the other levels of orjson, and serialized: a walk in Python takes much longer."""
    for _ in range(_WRITTEN_LEVELS - LEVELS):
        value = [value]
    try:
        orjson.dumps(value, lambda _number: None)
    except orjson.JSONEncodeError:
        raise _too_deep() from None


def _too_deep() -> ValueError:
    return ValueError("it is nested too deeply")


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _whole(number: Callable[[str], Any], text: str) -> Any:
    return int(text) if len(text) <= _LONGEST and text != "-0" else number(text)
